#!/bin/bash
# packages: the Debian packages are built, and lintian has no remark; `make test-packages` installs them
# as well.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup packages
tools/test-packages build/deb --no-install
