#!/bin/bash
# fuzz: each target for a few seconds. `make fuzz` by hand goes on for longer.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup fuzz
make fuzz FUZZ_SECONDS="${CI_FUZZ_SECONDS:-5}"
