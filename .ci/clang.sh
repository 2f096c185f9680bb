#!/bin/bash
# clang: clang builds everything without a warning, and the suites that depend on the compiler pass.
set -euo pipefail
cd "$(dirname "$0")/.."

# The other suites test processes and files, not code generation; the test job has run them.
suites=${CI_CLANG_SUITES:-unit contract}

tools/setup build test
make clang SUITES="$suites"
