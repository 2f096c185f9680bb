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
app=app_$$       # a schema of the user's
copy=il_copy_$$  # a database that a dump is read into
role=il_role_$$
tidy() {
    export PGDATABASE=postgres
    psql -q -c "DROP TABLE IF EXISTS $table, $other" -c "DROP SCHEMA IF EXISTS $app, ${app}_b CASCADE" \
        -c "DROP DATABASE IF EXISTS $copy WITH (FORCE)" -c "DROP OWNED BY $role CASCADE" -c "DROP ROLE IF EXISTS $role" >/dev/null 2>&1
    cleanup
}
trap tidy EXIT
psql -q -c "CREATE TABLE $table (event_id int, n int)" -c "CREATE TABLE $other (a text, b text)"

# sql TEXT...: in one transaction each; the SQLSTATE of what failed is in $state.
sql() {
    psql -X -q -A -t -v ON_ERROR_STOP=1 -v VERBOSITY=verbose -c "$*" >sql.out 2>sql.err
    status=$?
    state=$(LC_ALL=C sed -n 's/^[^ ]*:  \([0-9A-Z]\{5\}\):.*/\1/p' sql.err) # HATA in Turkish
}

error "no such table" 1 "*no such table*" "$il" guard "no$table" --key 'event:{event_id}'
error "no such column" 64 "*no column nope*" "$il" guard "$table" --key 'event:{nope}'
error "a key without a column" 64 "*column in braces*" "$il" guard "$table" --key event
error "brackets that do not fit" 64 "*column in braces*" "$il" guard "$table" --key 'event:{event_id'
error "neither --key nor --remove" 64 "*either*" "$il" guard "$table"
error "which table" 64 "*TABLE is missing*" "$il" guard --key 'event:{event_id}'
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

# ---- which table is meant

# refused TABLE: how many writes to it were; "no" if it has no guard.
refused() {
    "$il" guard --json | py -c 'import json, sys
print(next((i["refused"] for i in json.load(sys.stdin)["items"] if i["table"] == sys.argv[1]), "no"))' "$1"
}
# with_fence ISOLATION SQL: with the fence of event:2 shown.
with_fence() {
    sql "BEGIN ISOLATION LEVEL $1; $show('event:2', $two); $2; COMMIT"
}

psql -q -c "CREATE SCHEMA $app" -c "CREATE SCHEMA ${app}_b" -c "CREATE TABLE $app.job (event_id int, queue int)" -c "CREATE TABLE $app.\"Odd-Name\" (event_id int)" \
    -c "CREATE VIEW $app.seen AS SELECT 1 AS event_id" -c "CREATE TABLE $app.seat (event_id int)"
gives "a name that tables of ours have is the user's" 0 "$il" guard job --key 'event:{event_id}'
is "... and not ours" "$(psql -X -q -A -t -c "SELECT tgrelid::regclass FROM pg_trigger WHERE tgfoid = '$schema.guard_check'::regproc AND tgrelid::regclass::text LIKE '%job'")" "$app.job"
psql -q -c "CREATE TABLE ${app}_b.job (event_id int)"
error "two tables have the name" 64 "*use $app.job or ${app}_b.job*" "$il" guard job --key 'event:{event_id}'
gives "... with its schema it is one" 0 "$il" guard "${app}_b.job" --key 'event:{event_id}'
error "a table of ours by its schema" 64 "*of Interlock and cannot be guarded*" "$il" guard "$schema.job" --key 'event:{tenant}'
error "... or as the only one" 64 "*of Interlock and cannot be guarded*" "$il" guard lease --key 'event:{key}'
error "a table of PostgreSQL's" 1 "*no such table*" "$il" guard pg_catalog.pg_class --key '{relname}'
error "a view" 1 "*no such table*" "$il" guard "$app.seen" --key 'event:{event_id}'
error "a name of three parts" 64 "*SCHEMA.TABLE*" "$il" guard a.b.c --key 'event:{event_id}'
error "a quote that does not end" 64 "*SCHEMA.TABLE*" "$il" guard '"acct' --key 'event:{event_id}'
error "nothing behind the dot" 64 "*SCHEMA.TABLE*" "$il" guard "$app." --key 'event:{event_id}'
gives "a name that would have to be quoted" 0 "$il" guard Odd-Name --key 'event:{event_id}'
gives "... or is" 0 "$il" guard "$app.\"Odd-Name\"" --remove

# ---- partitions

psql -q -c "CREATE TABLE $app.parted (event_id int, n int) PARTITION BY RANGE (n)" -c "CREATE TABLE $app.low PARTITION OF $app.parted FOR VALUES FROM (0) TO (10)"
gives "a partitioned table" 0 "$il" guard parted --key 'event:{event_id}'
psql -q -c "CREATE TABLE $app.high PARTITION OF $app.parted FOR VALUES FROM (10) TO (20)"
for part in parted low high; do
    n=5 && [ $part = high ] && n=15
    sql "INSERT INTO $app.$part VALUES (2, $n)"
    is "a write to $part is refused" "$state" IL002
done
is "... and counted" "$(refused "$app.parted")" 3
is "... under the table's name" "$(refused "$app.low")" no
with_fence "READ COMMITTED" "INSERT INTO $app.parted VALUES (2, 5); UPDATE $app.parted SET n = 15; UPDATE $app.high SET n = 16"
is "with the fence it is not, from one to the other" "$status$state" 0
with_fence "READ COMMITTED" "UPDATE $app.parted SET n = 5, event_id = 1"
is "... but to another key" "$state" IL002
sql "TRUNCATE $app.low"
is "a partition cannot be truncated" "$state" IL002
error "the guard is not the partition's" 64 "*is a partition of $app.parted*" "$il" guard low --remove
error "... nor can it have one of its own" 64 "*is a partition of $app.parted*" "$il" guard low --key 'x:{event_id}'
gives "again, for partitions that came later" 0 "$il" guard parted --key 'event:{event_id}'
sql "TRUNCATE $app.high"
is "... they cannot be truncated either" "$state" IL002
is "... and the count goes on" "$(refused "$app.parted")" 6
psql -q -c "CREATE TABLE $app.late_parted (event_id int, n int) PARTITION BY RANGE (n)" -c "CREATE TABLE $app.early PARTITION OF $app.late_parted FOR VALUES FROM (0) TO (10)"
gives "a partition alone" 0 "$il" guard early --key 'event:{event_id}'
sql "INSERT INTO $app.late_parted VALUES (2, 5)"
is "... is guarded" "$state $(refused "$app.early")" "IL002 1"
gives "then all of its table" 0 "$il" guard late_parted --key 'event:{event_id}'
sql "INSERT INTO $app.late_parted VALUES (2, 5)"
is "... as one" "$state $(refused "$app.early") $(refused "$app.late_parted")" "IL002 no 1"
gives "... which is taken away as one" 0 "$il" guard late_parted --remove
sql "INSERT INTO $app.late_parted VALUES (2, 5); TRUNCATE $app.early"
is "... and nothing is left of it" "$status$state" 0

# ---- what is in the row at last

psql -q -c "CREATE TABLE $app.twisted (event_id int PRIMARY KEY, n int, k int GENERATED ALWAYS AS (event_id) STORED)" \
    -c "CREATE FUNCTION $app.twist() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF NEW.n < 0 THEN NEW.event_id := 1; END IF; RETURN NEW; END'" \
    -c "CREATE TRIGGER zzz BEFORE INSERT OR UPDATE ON $app.twisted FOR EACH ROW EXECUTE FUNCTION $app.twist()"
gives "a table with a trigger that sorts last" 0 "$il" guard twisted --key 'event:{event_id}'
with_fence "READ COMMITTED" "INSERT INTO $app.twisted VALUES (2, -1)"
is "a key that another trigger has changed" "$state" IL002
with_fence "READ COMMITTED" "INSERT INTO $app.twisted VALUES (2, 1); UPDATE $app.twisted SET n = -1"
is "... in an update" "$state" IL002
gives "a generated column as the key" 0 "$il" guard twisted --key 'event:{k}'
with_fence "READ COMMITTED" "INSERT INTO $app.twisted VALUES (2, 1)"
is "... is that of the row" "$status$state" 0
sql "INSERT INTO $app.twisted VALUES (2, 1) ON CONFLICT (event_id) DO UPDATE SET n = 7"
is "an insert that becomes an update" "$state" IL002
sql "INSERT INTO $app.twisted VALUES (2, 1) ON CONFLICT DO NOTHING"
is "... or becomes nothing" "$status$state" 0
sql "COPY $app.twisted (event_id, n) FROM PROGRAM 'echo 3,1' (FORMAT csv)"
is "COPY" "$state" IL002
sql "DELETE FROM $app.twisted"
is "DELETE" "$state" IL002

# ---- tables that inherit

psql -q -c "CREATE TABLE $app.base (event_id int)" -c "CREATE TABLE $app.heir () INHERITS ($app.base)" -c "INSERT INTO $app.heir VALUES (2)"
error "a table that others inherit from" 64 "*$app.base has child tables*" "$il" guard base --key 'event:{event_id}'
gives "one that inherits" 0 "$il" guard heir --key 'event:{event_id}'
sql "UPDATE $app.base SET event_id = 3"
is "... also when it is written through the other" "$state" IL002
psql -q -c "CREATE TABLE $app.later (event_id int)" -c "INSERT INTO $app.later VALUES (2)"
gives "a table without heirs" 0 "$il" guard later --key 'event:{event_id}'
psql -q -c "CREATE TABLE $app.later_heir () INHERITS ($app.later)" -c "INSERT INTO $app.later_heir VALUES (1)"
with_fence "READ COMMITTED" "UPDATE $app.later SET event_id = 2"
is "... that gets one later" "$state" IL002

# ---- who may not use the schema

psql -q -c "CREATE ROLE $role" -c "GRANT USAGE ON SCHEMA $app TO $role" -c "GRANT ALL ON $app.twisted TO $role"
sql "SET ROLE $role; INSERT INTO $app.twisted VALUES (3, 1)"
is "a role without rights in the store is refused" "$state" IL002
like "... and told why" "$(cat sql.err)" "*$role may not use the schema $schema*"
sql "SET ROLE $role; TRUNCATE $app.twisted"
is "... nor can it truncate" "$state" IL002
before=$(refused "$app.twisted")
psql -q -c "GRANT USAGE ON SCHEMA $schema TO $role"
sql "SET ROLE $role; DELETE FROM $app.twisted"
is "one that may use it is refused" "$state" IL002
is "... and counted" "$(refused "$app.twisted")" $((before + 1))
psql -q -c "GRANT SELECT, UPDATE ON $schema.lease TO $role" -c "GRANT SELECT ON $schema.state, $schema.fence_seq TO $role"
sql "SET ROLE $role; BEGIN; $show('event:2', $two); DELETE FROM $app.twisted; COMMIT"
is "with the rights that man interlock-guard names it may write" "$status$state" 0
sql "SET ROLE $role; BEGIN ISOLATION LEVEL REPEATABLE READ; $show('event:2', $two); INSERT INTO $app.twisted VALUES (2, 1); COMMIT"
is "... at any level" "$status$state" 0
sql "SET ROLE $role; BEGIN ISOLATION LEVEL REPEATABLE READ; $show('event:2', 9000000000000000000)"
is "... and be told of a fence that is none" "$state" IL001

# Whoever owns a table need not own the store.
psql -q -c "ALTER ROLE $role LOGIN" -c "GRANT USAGE ON SCHEMA $schema TO $role" -c "GRANT ALL ON ALL TABLES IN SCHEMA $schema TO $role" -c "GRANT ALL ON ALL SEQUENCES IN SCHEMA $schema TO $role" \
    -c "CREATE TABLE $app.own (event_id int)" -c "ALTER TABLE $app.own OWNER TO $role"
gives "a guard by the owner of the table" 0 env "INTERLOCK_STORE=${INTERLOCK_STORE/postgres@/$role@}" "$il" guard own --key 'event:{event_id}'
sql "INSERT INTO $app.own VALUES (2)"
is "... counts" "$state $(refused "$app.own")" "IL002 1"

# ---- transactions that see what was

# In a transaction of this level that has shown fence: what then happens, and a write.
# meanwhile ISOLATION FENCE COMMAND SQL...
meanwhile() {
    local level=$1 fence=$2 command=$3
    shift 3
    rm -f script shown
    mkfifo script
    bg writer psql -X -q -A -t -v ON_ERROR_STOP=1 -v VERBOSITY=verbose -f script
    exec 7>script
    echo "BEGIN ISOLATION LEVEL $level; $fence; \\! touch shown" >&7
    if await "its snapshot is taken" test -e shown; then
        psql -X -q -A -t -v ON_ERROR_STOP=1 -c "$command" >meanwhile.out
        echo "$*; COMMIT;" >&7
    fi
    exec 7>&-
    reap writer
    state=$(LC_ALL=C sed -n 's/.*[^ ]:  \([0-9A-Z]\{5\}\):.*/\1/p' writer.err)
}
gives "a table for these" 0 "$il" guard "$table" --key 'rr:{event_id}'
short=$(psql -X -q -A -t -c "SELECT fence FROM $schema.acquire('rr:1', 'h1', '3 s')")
meanwhile "REPEATABLE READ" "$show('rr:1', $short)" "SELECT $schema.renew('rr:1', 'h1', $short, '60 s')" "SELECT pg_sleep(3.1); INSERT INTO $table VALUES (1, 1)"
is "a lease that was renewed since it was shown" "$status$state" 0
meanwhile "SERIALIZABLE" "$show('rr:1', $short)" "SELECT $schema.renew('rr:1', 'h1', $short, '60 s')" "INSERT INTO $table VALUES (1, 1); DELETE FROM $table WHERE event_id = 1"
is "... serializable" "$status$state" 0
meanwhile "REPEATABLE READ" "SELECT 1" "SELECT $schema.renew('rr:1', 'h1', $short, '60 s')" "$show('rr:1', $short)"
is "one that was renewed before may be another by now" "$state" 40001
meanwhile "REPEATABLE READ" "SELECT 1" "SELECT 'fence ' || fence FROM $schema.acquire('rr:2', 'h2', '60 s')" "$show('rr:2', (SELECT last_value FROM $schema.fence_seq))"
is "one that was granted since cannot be known" "$state" 40001
meanwhile "REPEATABLE READ" "SELECT $schema.show_fence('default', 'rr:1', $short)" "SELECT $schema.release('rr:1', 'h1', $short)" "INSERT INTO $table VALUES (1, 1)"
is "one that was only said, and ended since" "$state" 40001
sql "BEGIN ISOLATION LEVEL REPEATABLE READ; $show('rr:1', $short)"
is "one that is over is stale" "$state" IL001
lie="'default' || chr(31) || 'rr:1' || chr(31) || '$short' || chr(30), true"
sql "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT set_config('interlock.shown', $lie), set_config('interlock.held', $lie); INSERT INTO $table VALUES (1, 1)"
is "... also for who says that he holds it" "$state" IL001
sql "BEGIN ISOLATION LEVEL REPEATABLE READ; $show('rr:1', 9000000000000000000)"
is "... and one that nobody has given" "$state" IL001

# ---- another database

createdb "$copy"
pg_dump -n "$app" -n "$schema" | psql -X -q -d "$copy" >restore.out 2>&1
export PGDATABASE=$copy
original=$INTERLOCK_STORE
INTERLOCK_STORE=${INTERLOCK_STORE/"@/postgres?"/"@/$copy?"}
sql "INSERT INTO $app.parted VALUES (2, 5)"
is "a dump read elsewhere has its guards" "$state" IL002
is "... and their counts" "$(refused "$app.parted")" 7
# A number is no longer the table's: another one may get it.
psql -q -c "CREATE TABLE $app.late (event_id int)" -c "DO 'BEGIN EXECUTE format(''CREATE TRIGGER interlock_guard AFTER INSERT ON $app.seat FOR EACH ROW EXECUTE FUNCTION $schema.guard_check(%L, %L, %L, %L, %L)'',
    ''$app.late''::regclass::oid, ''default'', ''event:'', ''event_id'', ''''); END'"
gives "a table that has the number of another one's guard" 0 "$il" guard late --key 'event:{event_id}'
sql "INSERT INTO $app.late VALUES (2)"
is "... has its own" "$state $(refused "$app.late") $(refused "$app.seat")" "IL002 1 0"
sequence=$(psql -X -q -A -t -c "SET search_path = $schema" -c "SELECT 'refused_' || id FROM guards_there() WHERE relation = '$app.parted'::regclass")
psql -q -c "DROP SEQUENCE $schema.$sequence"
sql "INSERT INTO $app.parted VALUES (2, 5)"
is "one that cannot be counted is refused as well" "$state" IL002
gives "it can be renewed there" 0 "$il" guard parted --key 'event:{event_id}'
gives "... and taken away" 0 "$il" guard parted --remove
is "... alone" "$(refused "$app.parted") $(refused "$app.twisted")" "no $(refused "$app.twisted")"
INTERLOCK_STORE=$original
export PGDATABASE=postgres
finish
