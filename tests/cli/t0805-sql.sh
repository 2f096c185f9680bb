#!/usr/bin/env bash
# The SQL functions of docs/SQL.md beyond its examples: jobs that are retried, and callers'
# transactions that stay open.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

postgres_store
gives "the store is made" 0 "$il" migrate

# sql TEXT: what it answers; on an error its SQLSTATE and text.
sql() {
    psql -X -q -A -t -v ON_ERROR_STOP=1 -v VERBOSITY=verbose -c "SET search_path = $schema" -c "$*" 2>&1
}

# opens NAME SQL: a session that says this in a transaction, and leaves it open until `closes NAME`.
opens() {
    mkfifo "$1.script"
    bg "$1" psql -X -q -A -t -v ON_ERROR_STOP=1 -f "$1.script"
    exec {fd}>"$1.script"
    sessions[$1]=$fd
    printf 'SET search_path = %s;\nBEGIN;\n%s;\n\\! touch %s.open\n' "$schema" "$2" "$1" >&"$fd"
    await "$1 is open" test -e "$1.open"
}
closes() {
    echo "${2:-COMMIT};" >&"${sessions[$1]}"
    fd=${sessions[$1]}
    exec {fd}>&-
    reap "$1"
}
declare -A sessions

# ---- jobs that come back: claimed by whoever asks next, without a program of the library

claimed() { [ "$(sql "SELECT job FROM claim('$1', 'w2')")" = "$2" ]; }
id=$(sql "SELECT job FROM push('delayed', 'x', delay => '50 ms')")
await "a delayed job" claimed delayed "$id" && pass "a delayed job is claimed when it is due"
id=$(sql "SELECT job FROM push('again', 'x')")
sql "SELECT (fail(c.job, c.token, 'no', retry_in => '50 ms')).status FROM claim('again', 'w1') c" >/dev/null
await "a failed job" claimed again "$id" && pass "one that has failed, too"
id=$(sql "SELECT job FROM push('dead', 'x')")
is "one is claimed" "$(sql "SELECT job FROM claim('dead', 'w1', lease => '1 s')")" "$id"
await "a dead worker's job" claimed dead "$id" && pass "... and claimed again when its worker is dead"
like "a time that never comes" "$(sql "SELECT push('q', 'x', run_at => 'infinity')")" "*22023*run_at*"

# ---- a release does not give the key on while a transaction that has shown the fence is open

for mode in exclusive shared; do
    fence=$(sql "SELECT fence FROM acquire('$mode', 'old', mode => '$mode')")
    opens "$mode" "SELECT check_fence('$mode', $fence)"
    is "$mode: the holder gives it back" "$(sql "SELECT released FROM release('$mode', 'old', $fence)")" t
    is "... and again: the answer was lost" "$(sql "SELECT released FROM release('$mode', 'old', $fence)")" t
    is "... nobody else is given it" "$(sql "SELECT granted, status FROM acquire('$mode', 'new')")" "f|LOCK_HELD"
    closes "$mode"
    is "... until the transaction has ended" "$(sql "SELECT granted FROM acquire('$mode', 'new')")" t
done
fence=$(sql "SELECT fence FROM acquire('many', 'old')")
opens many "SELECT check_fence('many', $fence)"
bg releases "$il" race 4 --expect 4 -- psql -X -q -c "SELECT released FROM $schema.release('many', 'old', $fence)"
reap releases
is "released by several at once" "$(sql "SELECT granted FROM acquire('many', 'new')")" f
bg waits "$il" run --wait 60s many -- true
waits() { "$il" -q locks --waiters | grep -q many; }
await "it waits" waits
closes many
reap waits
is "who waits for it gets it then" "$status" 0

# A run that ends while a transaction of its own is open.
bg runs "$il" run --record nightly -- sh -c "echo \$INTERLOCK_FENCE >fence; until [ -e go ]; do sleep 0.02; done"
await "it runs" test -s fence
opens nightly "SELECT check_fence('nightly', $(cat fence))"
touch go
reap runs
is "it ends well" "$status" 0
gives "... and the next one does not start" 75 "$il" run nightly -- touch twice
closes nightly
gives "... before it has" 0 "$il" run nightly -- true
check "... nor has it" test ! -e twice

finish
