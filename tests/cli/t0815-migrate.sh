#!/usr/bin/env bash
# migrate: installs, upgrades, refuses newer versions; two at once.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

newest=1 # version of the schema
next=${IL_TEST_NEXT:?the binary of the next version} # which is made up (tests/next)

gives "a SQLite store brings itself up to date" 0 "$il" migrate
gives "... so there is never something to do" 0 "$il" migrate --check

postgres_store
export PGOPTIONS="-c client_min_messages=error"
sql() {
    psql -qAt -c "$1"
}

# to_do NAME PATTERN COMMAND...: its first line says what needs to be done; those of apps follow.
to_do() {
    local name=$1 pattern=$2
    shift 2
    run "$@"
    is "$name" "$status" 1
    like "... (what it says)" "$(head -n 1 "$work/err")" "interlock: $pattern"
}
error "no store yet" 69 "*interlock migrate*" "$il" locks
to_do "... which is something to do" "*version $newest needs to be installed" "$il" migrate --check
run "$il" migrate --json
is "it is installed" "$status" 0
json "... from nothing to a version" "d == {'from': 0, 'to': $newest, 'functions': True, 'to_do': False, 'apps': [{'name': n, 'from': 0, 'to': 1, 'to_do': False} for n in ('campus', 'check', 'ingest', 'usage')]}"
gives "then there is nothing to do" 0 "$il" migrate --check
gives "... and it is done" 0 "$il" migrate
gives "it can be used" 0 "$il" run k -- true
is "... on the server's clock" "$(sql "SELECT test_clock FROM $schema.state")" f

# Functions are no part of the version.
sql "UPDATE $schema.state SET functions = '0.0.1 0000000000000000'"
sql "DROP FUNCTION $schema.asked()"
to_do "functions of an older release are to be replaced" "*functions need to be reinstalled*" "$il" migrate --check
gives "... whoever opens the store does it" 0 "$il" locks
is "... for good" "$(sql "SELECT count(*) FROM pg_proc WHERE pronamespace = '$schema'::regnamespace AND proname = 'asked'")" 1
gives "... so nothing is left to do" 0 "$il" migrate --check
sql "UPDATE $schema.state SET functions = '999.0.0 0000000000000000'"
gives "functions of a newer release are left alone" 0 "$il" run k2 -- true
is "... really" "$(sql "SELECT functions FROM $schema.state")" "999.0.0 0000000000000000"

# Versions.
sql "UPDATE $schema.state SET version = $((newest + 1)), min_version = $newest"
gives "a newer schema that older code can live with" 0 "$il" run k3 -- true
gives "... needs nothing" 0 "$il" migrate --check
sql "UPDATE $schema.state SET version = $((newest + 1)), min_version = $((newest + 1))"
error "a newer schema that it cannot live with" 69 "*newer*" "$il" run k4 -- true
error "... is not migrated either" 69 "*newer*" "$il" migrate

# The next version.
# catalogue: all tables, columns and indexes.
catalogue() {
    sql "SELECT md5(string_agg(line, chr(10) ORDER BY line)) FROM (
        SELECT concat_ws(' ', table_name, ordinal_position, column_name, data_type, is_nullable, column_default, collation_name) AS line
          FROM information_schema.columns WHERE table_schema = '$schema'
        UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = '$schema') AS lines"
}
sql "DROP SCHEMA $schema, ${schema}_admin CASCADE"
"$next" migrate >/dev/null 2>&1
fresh=$(catalogue)
sql "DROP SCHEMA $schema, ${schema}_admin CASCADE"
"$il" migrate >/dev/null 2>&1
gives "a run of this version" 0 "$il" run --record k -- true
old=$(sql "SELECT id FROM $schema.run")
error "... whose store the next one does not use" 69 "*version $newest*needs $((newest + 1))*interlock migrate*" "$next" locks
to_do "... but can bring up to date" "*version $((newest + 1))*" "$next" migrate --check
for i in 1 2 3 4; do
    "$next" migrate --json >"$work/out.$i" 2>"$work/err.$i" &
done
wait
is "four at once" "$(grep -l "\"to\":$((newest + 1))" "$work"/out.[1-4] | wc -l)" 4
is "... make what is made anew" "$(catalogue)" "$fresh"
is "... with what was there" "$("$next" runs --json | py -c 'import json,sys; print(*(i["id"] for i in json.load(sys.stdin)["items"]))')" "$old"
is "... and the column that is new" "$(sql "SELECT next FROM $schema.run")" 7
gives "... and it can be used" 0 "$next" run k -- true
error "... but not by this one" 69 "*version $((newest + 1)) of schema*newer Interlock; this one supports $newest*" "$il" locks

# Somebody who may not make schemas.
sql "CREATE ROLE nobody_$schema LOGIN"
others=${INTERLOCK_STORE/postgres@/nobody_$schema@}
error "without the right to make one" 69 "*interlock migrate*permission denied*" env "INTERLOCK_STORE=${others/schema=$schema/schema=${schema}_x}" "$il" run k -- true
sql "CREATE SCHEMA ${schema}_x AUTHORIZATION nobody_$schema"
gives "an empty one that he was given" 0 env "INTERLOCK_STORE=${others/schema=$schema/schema=${schema}_x}" "$il" run k -- true
sql "DROP SCHEMA ${schema}_x CASCADE"
sql "DROP ROLE nobody_$schema"

# Ten at once: one installs it, the others find it.
sql "DROP SCHEMA $schema, ${schema}_admin CASCADE"
for i in 1 2 3 4 5 6 7 8 9 10; do
    "$il" migrate --json >"$work/out.$i" 2>"$work/err.$i" &
done
wait
is "ten at once" "$(grep -l "\"to\":$newest" "$work"/out.* | wc -l)" 10
is "... make one store" "$(sql "SELECT count(*) FROM $schema.state")" 1
gives "... which works" 0 "$il" run k -- true

# No server; a server that is no server.
error "no server" 69 "*failed*" env INTERLOCK_STORE="postgres://user:secret@127.0.0.1:1/db" "$il" locks
is "... and no password in what is said" "$(grep -c secret "$work/err")" 0
error "an unknown option" 64 "*URL*" env "INTERLOCK_STORE=postgres://user:secret@127.0.0.1:1/db?nonsense=1" "$il" locks
error "a bad name of a schema" 64 "*schema*" env "INTERLOCK_STORE=postgres://127.0.0.1:1/db?schema=A;B" "$il" locks
finish
