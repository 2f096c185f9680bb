#!/bin/bash
# asan: every suite under AddressSanitizer and UndefinedBehaviorSanitizer.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup build test
make asan NO_SUITES=more
