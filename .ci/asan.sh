#!/bin/bash
# asan: the suites that take all of the code apart, under AddressSanitizer and UndefinedBehaviorSanitizer.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup build test
make asan SUITES="unit contract fault http" NO_SUITES="more served"
