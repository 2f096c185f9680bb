#!/bin/bash
# tsan: the suites with several threads under ThreadSanitizer; `make tsan` runs the others too, and more
# processes on one server.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup build test
make tsan SUITES="unit contract runner" NO_SUITES="more served"
