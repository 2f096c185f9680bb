#!/bin/sh
# header.sh FILE: the public headers compile alone, as strict C11 and as C++.
set -eu
header=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/use.c" <<'END'
#include "interlock.h"
#include "interlock.h"
int use(void);
int use(void)
{
    il_open_opts open_opts = IL_OPEN_OPTS_INIT;
    il_acquire_opts opts = IL_ACQUIRE_OPTS_INIT;
    il_op op = { IL_OP_GET, 0, 0, 0, 0, 0, { { 0, 0, 0, IL_MODE_EXCLUSIVE, 0, 0, 0, 0 } }, IL_OK };
    return (int)(open_opts.struct_size + opts.struct_size) + (int)op.status;
}
END
cat >"$work/guard.c" <<'END'
#include "interlock-guard.h"
#include "interlock-guard.h"
int use(void);
int use(void)
{
    il_guard_opts opts = IL_GUARD_OPTS_INIT;
    il_guard_tx_opts tx_opts = IL_GUARD_TX_OPTS_INIT;
    il_guard_column key[1] = { { "id", { IL_GUARD_INT, 7, 0, 0, 0 } } };
    il_guard_target row = { "User", "users", key, 1, IL_GUARD_PLACE };
    return (int)(opts.struct_size + tx_opts.struct_size + row.n_key);
}
END
cp "$work/guard.c" "$work/guard.cc"
cat >"$work/use.cc" <<'END'
#include "interlock.h"
extern "C" int use(void);
int use(void)
{
    il_open_opts open_opts = IL_OPEN_OPTS_INIT;
    il_acquire_opts opts = IL_ACQUIRE_OPTS_INIT;
    il_op op = il_op();
    op.type = IL_OP_ACQUIRE;
    op.in.lock.ttl_ms = 1;
    return (int)(open_opts.struct_size + opts.struct_size) + (int)op.status + il_status_exit(IL_HELD);
}
END

set -x
# The build's own compiler, and the other one when it is there.
for compiler in "${CC:-cc}" gcc clang; do
    command -v "${compiler%% *}" >/dev/null || continue
    $compiler -I"${header%/*}" -std=c11 -pedantic-errors -Wall -Wextra -Werror -Wno-missing-field-initializers \
        -c "$work/use.c" -o "$work/use.o"
    $compiler -I"${header%/*}" -std=c11 -pedantic-errors -Wall -Wextra -Werror -c "$work/guard.c" -o "$work/guard.o"
done
found=
for compiler in c++ g++ clang++; do
    command -v "$compiler" >/dev/null || continue
    for standard in c++11 c++17; do
        "$compiler" -I"${header%/*}" -std=$standard -pedantic-errors -Wall -Wextra -Werror \
            -Wno-missing-field-initializers -c "$work/use.cc" -o "$work/use.o"
        "$compiler" -I"${header%/*}" -std=$standard -pedantic-errors -Wall -Wextra -Werror \
            -c "$work/guard.cc" -o "$work/guard.o"
    done
    found=yes
done
[ -n "$found" ] || { echo "no C++ compiler: header not tried as C++" >&2; exit 1; }
