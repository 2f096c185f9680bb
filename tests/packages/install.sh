#!/bin/bash
# install.sh DIR: `make install` into DIR with a prefix of its own; everything is in its place, and
# `ninja uninstall` removes it. Output is TAP.
set -u
cd "$(dirname "$0")/../.." || exit 1
prefix=/opt/interlock
rm -rf "$1"
mkdir -p "$1" && work=$(cd "$1" && pwd) || exit 1
root=$work$prefix
. tests/packages/tap.sh || exit 1
export LC_ALL=C.UTF-8 DESTDIR=$work

# verified: systemd has nothing to say about the unit, with the binary where it is now.
verified() {
    sed "s|=$prefix/|=$root/|" "$unit" >"$work/interlock.service" &&
        systemd-analyze verify --man=no "$work/interlock.service" 2>&1 | tee "$work/remarks"
    ! grep interlock "$work/remarks"
    local status=$?
    rm -f "$work/interlock.service" "$work/remarks"
    return "$status"
}

check "make install" make install PREFIX=$prefix DESTDIR="$work"
check "the binary works" "$root/bin/interlock" --version
unit=$root/lib/systemd/system/interlock.service
check "the unit starts it" grep -q "^ExecStart=$prefix/bin/interlock serve" "$unit"
if command -v systemd-analyze >/dev/null; then
    check "systemd understands the unit" verified
fi
for file in share/man/man1/interlock.1 share/man/man7/interlock-options.7 include/interlock.h \
    share/bash-completion/completions/interlock.bash share/zsh/site-functions/_interlock \
    share/fish/vendor_completions.d/interlock.fish; do
    check "$file is installed" test -s "$root/$file"
done
pc=$(find "$root" -name interlock.pc)
check "pkg-config knows the prefix" grep -qx "prefix=$prefix" "$pc"
check "uninstall" ninja -C build uninstall
is "... leaves no file" "$(find "$work" ! -type d ! -name out)" ""
meson configure build -Dprefix=/usr/local >&2
finish
