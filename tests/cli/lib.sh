# shellcheck shell=bash
# lib.sh: shared by the CLI tests. Sourced first; `finish` is the last command of a test.
#
# A test is a line of TAP. Everything lives in $work, which is also $HOME; the store is $work/x.db.
set -u
# shellcheck disable=SC2034
here=$(cd "$(dirname "$0")" && pwd)
il=${INTERLOCK_BIN:?the interlock binary}
python=$(python3 -c 'import sys; print(sys.executable)') # a shim of pyenv depends on $HOME
# py ARGUMENT...: without the packages that are installed, since looking for those takes most of its time.
py() {
    "$python" -IS "$@"
}
if [ -z "${TMPDIR:-}" ] && [ -d /dev/shm ] && [ -w /dev/shm ]; then
    work=$(mktemp -d /dev/shm/interlock-cli-XXXXXX)
else
    work=$(mktemp -d)
fi
for name in $(compgen -e INTERLOCK_); do
    unset "$name"
done
export HOME=$work XDG_CONFIG_HOME=$work/config XDG_STATE_HOME=$work/state INTERLOCK_STORE=$work/x.db
unset NO_COLOR
cd "$work" || exit 1
if [ -n "${IL_TEST_THROUGH_SERVER:-}" ]; then
    . "$here/through-server.sh"
fi
n_tests=0
n_failed=0
status=0
limit=20 # seconds that an event may take
declare -A pids

cleanup() {
    local pid
    for pid in "${pids[@]}"; do
        kill -KILL "$pid" 2>/dev/null
    done
    # Not `wait` alone: that includes each <(...), and bash 5.2 now and then misses the end of one.
    for pid in $(jobs -p); do
        wait "$pid"
    done
    if [ -n "${server_pid:-}" ]; then
        kill -KILL "$server_pid" 2>/dev/null
    fi
    if [ -n "${schema:-}" ]; then
        psql -q -c "DROP SCHEMA IF EXISTS $schema, ${schema}_admin, ${schema}_check, ${schema}_toy CASCADE" >/dev/null 2>&1
    fi
    if [ -n "${servers:-}" ]; then
        "$here/../../tools/test-servers" stop "$servers"
    fi
    cd / && rm -rf "$work"
}
trap cleanup EXIT

# postgres_store: the store is a schema of its own in a PostgreSQL, which tools/run-tests has started, or is started here. psql works in its
# database; $schema is the schema.
# shellcheck disable=SC2034
postgres_store() {
    if [ -z "${IL_TEST_POSTGRES:-}" ]; then
        servers=$(mktemp -u -d) # not below $work, which is nobody else's
        eval "$("$here/../../tools/test-servers" start "$servers")"
    fi
    schema=il_cli_$$
    export INTERLOCK_STORE="$IL_TEST_POSTGRES&schema=$schema"
    export PGHOST=${IL_TEST_POSTGRES#*host=} PGUSER=postgres PGDATABASE=postgres
}

# finish: the plan, and the exit status.
finish() {
    echo "1..$n_tests"
    [ "$n_failed" -eq 0 ]
    exit
}

pass() {
    n_tests=$((n_tests + 1))
    echo "ok $n_tests - $1"
}

# fail NAME [TEXT...]: the texts are shown below it.
fail() {
    n_tests=$((n_tests + 1))
    n_failed=$((n_failed + 1))
    echo "not ok $n_tests - $1"
    shift
    printf '%s\n' "$@" | sed 's/^/#   /'
}

# is NAME ACTUAL EXPECTED
is() {
    if [ "$2" = "$3" ]; then
        pass "$1"
    else
        fail "$1" "got:      $2" "expected: $3"
    fi
}

# like NAME TEXT PATTERN: a shell pattern that the whole text must match.
like() {
    # shellcheck disable=SC2053
    if [[ $2 == $3 ]]; then
        pass "$1"
    else
        fail "$1" "got:     $2" "pattern: $3"
    fi
}

# check NAME COMMAND...: it succeeds.
check() {
    local name=$1
    shift
    if "$@" >"$work/check.out" 2>&1; then
        pass "$name"
    else
        fail "$name" "failed: $*" "$(cat "$work/check.out")"
    fi
}

# read_file VARIABLE FILE: the text of the file, as $(...) would give it, without starting a process;
# with what ends it in $whole.
read_file() {
    local part
    whole=
    while IFS= read -r -d '' part; do # up to a NUL
        whole+=$part
    done <"$2"
    whole+=$part
    printf -v "$1" '%s' "${whole%"${whole##*[!$'\n']}"}"
}

# run COMMAND...: $status, and what it said in $out and $err.
run() {
    "$@" >"$work/out" 2>"$work/err"
    status=$?
    read_file out "$work/out"
    read_file err "$work/err"
}

# has_controls TEXT: control characters other than tab and newline.
has_controls() {
    local LC_ALL=C
    [[ $1 == *[$'\001'-$'\010'$'\013'-$'\037'$'\177']* ]]
}

# nap: 20 ms, without starting a process: nothing is ever written to that pipe.
mkfifo "$work/never"
exec {never}<>"$work/never"
rm "$work/never"
nap() {
    read -r -t 0.02 <&"$never"
    true
}

# gives NAME STATUS COMMAND...: run it, look at the status.
gives() {
    local name=$1 expected=$2
    shift 2
    run "$@" </dev/null
    if [ "$status" = "$expected" ]; then
        pass "$name"
    else
        fail "$name" "status $status, expected $expected: $*" "$out" "$err"
    fi
}

# error NAME STATUS PATTERN COMMAND...: nothing on stdout, on stderr one line "interlock: ..." that matches.
error() {
    local name=$1 expected=$2 pattern=$3
    shift 3
    run "$@" </dev/null
    # shellcheck disable=SC2053
    if [ "$status" != "$expected" ]; then
        fail "$name" "status $status, expected $expected" "$err"
    elif [ -n "$out" ]; then
        fail "$name" "on stdout: $out"
    elif [[ $err == *$'\n'* ]] || [ "$whole" != "$err"$'\n' ] || [[ $err != "interlock: "$pattern ]]; then
        fail "$name" "on stderr: $err" "pattern: interlock: $pattern"
    elif has_controls "$err"; then
        fail "$name" "control characters on stderr: $(cat -v "$work/err")"
    else
        pass "$name"
    fi
}

# json NAME EXPRESSION: a Python expression over d, the JSON of the last run's stdout, is true.
json() {
    if py - "$2" <"$work/out" >"$work/json.out" 2>&1 3<&0 <<'END'; then
import json, os, re, sys
d = json.load(os.fdopen(3, encoding="utf-8"))
time = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
sys.exit(0 if eval(sys.argv[1]) else f"not true of {d}")
END
        pass "$1"
    else
        fail "$1" "$2" "$(cat "$work/json.out")" "$(cat "$work/out")"
    fi
}

# await NAME COMMAND...: repeat until it succeeds.
await() {
    local name=$1 until=$((SECONDS + limit))
    shift
    until "$@" >/dev/null 2>&1; do
        if [ "$SECONDS" -ge "$until" ]; then
            fail "$name" "not within $limit s: $*"
            return 1
        fi
        nap
    done
}

# bg NAME COMMAND...: in the background, as a terminal would start it (INT and QUIT not ignored). What it
# says is in NAME.out and NAME.err.
bg() {
    local name=$1
    shift
    : >"$work/$name.out" # not by the shell in the background: whoever waits for a word there would find an old one
    : >"$work/$name.err"
    env --default-signal=INT,QUIT "$@" >"$work/$name.out" 2>"$work/$name.err" </dev/null &
    pids[$name]=$!
}

# reap NAME: wait for its end; $status.
reap() {
    local pid=${pids[$1]} until=$((SECONDS + limit))
    while kill -0 "$pid" 2>/dev/null; do
        if [ "$SECONDS" -ge "$until" ]; then
            fail "$1 ends" "still running after $limit s: $(ps -o pid,stat,args -p "$pid")"
            kill -KILL "$pid"
        fi
        nap
    done
    wait "$pid"
    status=$?
    unset "pids[$1]"
}

# hold NAME KEY OPTION...: a run that holds KEY until `let_go NAME`. ${pids[NAME]} is the wrapper,
# $command_pid the command.
hold() {
    local name=$1 key=$2
    shift 2
    rm -f "$work/$name.up" "$work/$name.go"
    mkfifo "$work/$name.up" "$work/$name.go"
    bg "$name" "$il" run "$@" "$key" -- \
        sh -c 'exec 3<>"$2"; echo $$ >"$1"; read -r _ <&3' sh "$work/$name.up" "$work/$name.go"
    # shellcheck disable=SC2034
    if ! read -r -t "$limit" command_pid <>"$work/$name.up"; then
        fail "$name holds $key" "$(cat "$work/$name.err")"
    fi
}

# A fifo must be open on the other side, or what is written is lost: hence the exec above, before `up`.
let_go() {
    echo go 1<>"$work/$1.go"
    reap "$1"
}

# state: who holds and who waits in $INTERLOCK_STORE, without what changes by itself.
state() {
    local store=$INTERLOCK_STORE
    if [ ! -e "$store" ]; then
        echo none
        return
    fi
    py - "$store" <<'END'
import sqlite3, sys
db = sqlite3.connect("file:" + sys.argv[1] + "?mode=ro", uri=True)
for table in ("il_lease", "il_waiter"):
    columns = "tenant, key, holder, mode, permits" + (", fence, state" if table == "il_lease" else ", ticket")
    print(table, sorted(db.execute(f"SELECT {columns} FROM {table}")))
END
}

n_waiters() {
    "$il" locks --waiters --json "$1" | py -c 'import json,sys; print(len(json.load(sys.stdin)["items"]))'
}
waits_for() {
    [ "$(n_waiters "$1")" = "$2" ]
}
