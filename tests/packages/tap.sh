# shellcheck shell=bash
# tap.sh: shared by the tests of this folder, which source it. A test is a line of TAP; $work is a
# folder of the script's own.
n_tests=0

# check NAME COMMAND...: fails as the command does; its output is shown then.
check() {
    local name=$1
    shift
    n_tests=$((n_tests + 1))
    if "$@" >"$work/out" 2>&1 </dev/null; then
        echo "ok $n_tests - $name"
    else
        tail -n 40 "$work/out" | sed 's/^/# /'
        echo "not ok $n_tests - $name"
        return 1
    fi
}

# is NAME GOT EXPECTED
is() {
    check "$1" diff <(printf '%s\n' "$3") <(printf '%s\n' "$2")
}

# finish: the plan, at the end.
finish() {
    echo "1..$n_tests"
    exit
}
