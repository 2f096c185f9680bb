#!/bin/bash
# packages: `make install` with a prefix; the Debian packages are built, and lintian has no remark. `make
# test-packages` installs them as well, and builds the container.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup packages
tools/test-packages build/deb --no-install
