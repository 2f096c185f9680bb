#!/bin/bash
# tsan: every suite under ThreadSanitizer.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup build test
make tsan
