#!/bin/bash
# odd: the quick suite on two odd machines, each with several oddities; `make test-odd` runs more
# suites, with one oddity at a time.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup build test
new_machine=uptime-small+name-long+tz-east+umask-077+tmpdir+nofile-256
old_machine=uptime-large+name-short+tz-west+locale-tr+user
make test-odd SUITES=quick VARIANTS="$new_machine $old_machine"
