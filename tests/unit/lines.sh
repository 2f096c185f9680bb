#!/bin/sh
# lines.sh TOOL: which long lines tools/check-lines rejects, and which it accepts.
set -eu
tool=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GIT_DIR="$work/none" # walk the folder, whatever lies around it

fail() {
    echo "$1" >&2
    exit 1
}

# text N: N characters, the first of them not ASCII.
text() {
    printf 'é%s' "$(head -c $(($1 - 1)) /dev/zero | tr '\0' x)"
}

# check WANTED NAME LINE: a file of that one line is accepted or rejected.
check() {
    rm -rf "$work/tree"
    mkdir "$work/tree"
    printf '%s\n' "$3" >"$work/tree/$2"
    if "$tool" "$work/tree" >"$work/got"; then got=accepted; else got=rejected; fi
    [ "$got" = "$1" ] || fail "$got: $2: $3"
    [ "$got" = accepted ] || grep -q "^$2:1: more than 100 columns$" "$work/got" ||
        fail "the place is missing: $(cat "$work/got")"
}

for name in a.c a.h a.sql a.lua a.md; do
    check accepted $name "$(text 100)"
    check rejected $name "$(text 101)"
done
check accepted a.py "$(text 200)" # other tools check these

check accepted a.c "    X(NAME, $(text 100)) \\"
check rejected a.c "    Y(NAME, $(text 100)) \\"
check accepted a.c "$(text 98)                    \\"
check accepted a.def "X(NAME, $(text 100))"
check rejected a.def " * $(text 100)"
check accepted a.md "| $(text 100) |"
check accepted a.md "see https://example.org/$(text 100)"
check accepted a.md "<!-- generated: options --> $(text 100)"
check rejected a.md "- $(text 100)"

mkdir -p "$work/tree"
printf '~~~\n%s\n~~~\n%s\n' "$(text 101)" "$(text 101)" >"$work/tree/a.md"
! "$tool" "$work/tree" >"$work/got" || fail "a line after a code block"
[ "$(cat "$work/got")" = "a.md:4: more than 100 columns" ] || fail "$(cat "$work/got")"
