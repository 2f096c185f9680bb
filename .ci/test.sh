#!/bin/bash
# test: gcc builds everything without a warning, and every suite passes.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup build test
make test
