#!/bin/sh
# layers.sh TOOL: which includes tools/check-layers rejects, and which it accepts.
set -eu
tool=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "$1" >&2
    exit 1
}

# check WANTED FILE INCLUDED: a tree in which src/FILE includes src/INCLUDED.
check() {
    rm -rf "$work/tree"
    mkdir -p "$work/tree/include" "$work/tree/src/${2%/*}" "$work/tree/src/${3%/*}"
    touch "$work/tree/src/$3"
    printf '#include "%s"\n' "$3" >"$work/tree/src/$2"
    if "$tool" "$work/tree" 2>"$work/got"; then got=accepted; else got=rejected; fi
    [ "$got" = "$1" ] || fail "$got: $2 includes $3: $(cat "$work/got")"
    [ "$got" = accepted ] || grep -q "^src/$2:1: .*may not include.*\"$3\"" "$work/got" ||
        fail "the place is missing: $(cat "$work/got")"
}

check accepted store/a.c core/a.h
check rejected core/a.c store/a.h
check accepted runtime/a.c config/a.h
check rejected config/a.c store/a.h
check rejected cli/a.c apps/runner/a.h
check accepted apps/runner/cmd_a.c cli/a.h

check accepted apps/apps.c apps/app.h
check accepted apps/runner/a.c apps/app.h
check accepted apps/runner/a.c apps/runner/b.h
check accepted apps/runner/a.c apps/work/b.h
check accepted apps/runner/a.c apps/common/b.h
check accepted apps/work/a.c apps/common/b.h
check rejected apps/runner/a.c apps/check/b.h
check rejected apps/work/a.c apps/runner/b.h
check rejected apps/common/a.c apps/runner/b.h
check rejected apps/common/a.c apps/work/b.h
