#!/bin/bash
# tsan: the suites that use threads, under ThreadSanitizer.
set -euo pipefail
cd "$(dirname "$0")/.."

# What fits the time. `make tsan` by hand runs them all.
suites=${CI_TSAN_SUITES:-unit contract}

tools/setup build test
make tsan SUITES="$suites"
