#!/bin/bash
# clang: clang builds everything without a warning, and every suite passes.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup build test
make clang
