#!/bin/bash
# asan: the suites under AddressSanitizer and UndefinedBehaviorSanitizer.
set -euo pipefail
cd "$(dirname "$0")/.."

# What fits the time. `make asan` by hand runs them all.
suites=${CI_ASAN_SUITES:-unit contract fault spec cli}

tools/setup build test
make asan SUITES="$suites"
