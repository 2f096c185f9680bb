#!/bin/bash
# mutants: the suite detects every seeded bug.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup build test
make mutants
