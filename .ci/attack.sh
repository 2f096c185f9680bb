#!/bin/bash
# attack: a minute of random requests against a running server, under the sanitizers of build-asan;
# the fairness test is part of `make test`. `make attack` by hand goes on for longer.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup build test
make attack ATTACK_PARTS=fuzz ATTACK_SECONDS="${CI_ATTACK_SECONDS:-15}"
