#!/bin/bash
# lint: format, static analysis, layers, symbols, words; clang builds everything without a warning.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup lint
make lint
