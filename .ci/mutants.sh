#!/bin/bash
# mutants: the suite detects seeded bugs: some of them, others with each commit; `make mutants` tries all.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup build test
make mutants SAMPLE="${CI_MUTANTS:-5}"
