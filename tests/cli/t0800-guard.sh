#!/usr/bin/env bash
# guard: a table that refuses a write without a current fence of its row's key (PostgreSQL).
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

"$il" run k -- true
error "a store that cannot guard tables says which can" 64 "*postgres:*" "$il" guard laps --key 'event:{event_id}'
postgres_store
gives "the store is made" 0 "$il" migrate
table=laps_$$
other=entries_$$
trap 'psql -q -c "DROP TABLE IF EXISTS $table, $other" >/dev/null 2>&1; cleanup' EXIT
psql -q -c "CREATE TABLE $table (event_id int, n int)" -c "CREATE TABLE $other (a text, b text)"

# sql TEXT...: in one transaction each; the SQLSTATE of what failed is in $state.
sql() {
    psql -X -q -A -t -v ON_ERROR_STOP=1 -v VERBOSITY=verbose -c "$*" >sql.out 2>sql.err
    status=$?
    state=$(sed -n 's/^ERROR:  \([0-9A-Z]*\):.*/\1/p' sql.err)
}

error "no such table" 1 "*no table*" "$il" guard "no$table" --key 'event:{event_id}'
error "no such column" 64 "*no column nope*" "$il" guard "$table" --key 'event:{nope}'
error "a key without a column" 64 "*column in brackets*" "$il" guard "$table" --key event
error "brackets that do not fit" 64 "*column in brackets*" "$il" guard "$table" --key 'event:{event_id'
error "neither --key nor --remove" 64 "*either*" "$il" guard "$table"
error "which table" 64 "*which table*" "$il" guard --key 'event:{event_id}'
gives "a guard is put on it" 0 "$il" guard "$table" --key 'event:{event_id}'
gives "... again" 0 "$il" guard "public.$table" --key 'event:{event_id}'
gives "a key of two columns" 0 "$il" guard "$other" --key '{a}:{b}/x'

sql "INSERT INTO $table VALUES (1, 1)"
is "a write without a fence is refused" "$state" IL002
run "$il" guard --json
json "... and counted" "[(i['table'], i['key'], i['refused']) for i in d['items'] if i['table'].endswith('$table')] == [('public.$table', 'event:{event_id}', 1)]"

# The fences of three keys, held by sleeping commands.
for key in event:1 event:2 x:y/x; do
    name=${key//[:\/]/-}
    bg "$name" "$il" run --ttl 60s "$key" -- sh -c "echo \$INTERLOCK_FENCE >fence-$name; exec sleep 60"
    await "$key is held" test -s "fence-$name"
done
one=$(cat fence-event-1) two=$(cat fence-event-2) three=$(cat fence-x-y-x)
show="SELECT $schema.check_fence"

sql "BEGIN; $show('event:1', $one); INSERT INTO $table VALUES (1, 1), (1, 2); UPDATE $table SET n = 3 WHERE n = 2; COMMIT"
is "with the current fence it is not" "$status$state" 0
sql "BEGIN; $show('event:1', $one); INSERT INTO $table VALUES (2, 1); COMMIT"
is "another key's row is" "$state" IL002
sql "BEGIN; $show('event:1', $one); UPDATE $table SET event_id = 2; COMMIT"
is "so is moving a row to another key" "$state" IL002
sql "BEGIN; $show('event:1', $one); $show('event:2', $two); UPDATE $table SET event_id = 2 WHERE n = 3; COMMIT"
is "... with only one of the two fences" "$status$state" 0
sql "BEGIN; $show('event:1', $one); COMMIT; DELETE FROM $table WHERE event_id = 1"
is "what another transaction has shown does not count" "$state" IL002
sql "TRUNCATE $table"
is "nor can it be truncated" "$state" IL002
sql "BEGIN; $show('event:1', $((one - 1))); COMMIT"
is "an old fence cannot be shown" "$state" IL001
sql "BEGIN; SELECT set_config('interlock.shown', 'default' || chr(31) || 'event:1' || chr(31) || '5' || chr(30), true); DELETE FROM $table WHERE event_id = 1; COMMIT"
is "nor pretended" "$state" IL001
sql "BEGIN; $show('x:y/x', $three); INSERT INTO $other VALUES ('x', 'y'); COMMIT"
is "a key of two columns is put together" "$status$state" 0
sql "BEGIN; $show('x:y/x', $three); INSERT INTO $other VALUES ('x', NULL); COMMIT"
is "a column that is NULL has no key" "$state" IL002

# While a transaction that has shown the fence is open, nobody else gets the key; the one whose lease was taken cannot write.
mkfifo script
bg writer psql -X -q -A -t -v ON_ERROR_STOP=1 -v VERBOSITY=verbose -f script
exec 7>script
echo "BEGIN; $show('event:1', $one); \\! touch shown" >&7
await "the fence is shown" test -e shown
kill -KILL "${pids[event-1]}"
error "its key cannot be broken now" 75 "*committing*" "$il" break event:1 --now --reason test
echo "DELETE FROM $table WHERE event_id = 1; COMMIT;" >&7
exec 7>&-
reap writer
is "... and what it writes is committed" "$status" 0
gives "afterwards it can" 0 "$il" break event:1 --now --reason test
sql "BEGIN; $show('event:1', $one); COMMIT"
is "then its fence is stale" "$state" IL001

gives "the guard is taken away" 0 "$il" guard "$table" --remove
error "... once" 1 "*no guard*" "$il" guard "$table" --remove
sql "INSERT INTO $table VALUES (1, 1)"
is "then anybody may write" "$status$state" 0
finish
