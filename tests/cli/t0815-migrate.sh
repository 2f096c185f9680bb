#!/usr/bin/env bash
# migrate: installing, upgrading, refusing what is newer; two at once.
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

newest=3 # version of the schema

gives "a SQLite store brings itself up to date" 0 "$il" migrate
gives "... so there is never something to do" 0 "$il" migrate --check

postgres_store
export PGOPTIONS="-c client_min_messages=error"
sql() {
    psql -qAt -c "$1"
}

error "no store yet" 69 "*interlock migrate*" "$il" locks
error "... which is something to do" 1 "*version $newest is to be installed" "$il" migrate --check
run "$il" migrate --json
is "it is installed" "$status" 0
json "... from nothing to a version" "d == {'from': 0, 'to': $newest, 'functions': True, 'to_do': False}"
gives "then there is nothing to do" 0 "$il" migrate --check
gives "... and it is done" 0 "$il" migrate
gives "it can be used" 0 "$il" run k -- true
is "... on the server's clock" "$(sql "SELECT test_clock FROM $schema.state")" f

# Functions are no part of the version.
sql "UPDATE $schema.state SET functions = '0.0.1 0000000000000000'"
sql "DROP FUNCTION $schema.asked()"
error "functions of an older release are to be replaced" 1 "*functions are to be installed anew*" "$il" migrate --check
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

# Version 1, as its migration made it, with a run of then.
# catalogue: all tables, columns and indexes.
catalogue() {
    sql "SELECT md5(string_agg(line, chr(10) ORDER BY line)) FROM (
        SELECT concat_ws(' ', table_name, ordinal_position, column_name, data_type, is_nullable, column_default, collation_name) AS line
          FROM information_schema.columns WHERE table_schema = '$schema'
        UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = '$schema') AS lines"
}
# overloads: functions by name and parameters; one that has lost its place to another with more parameters may still be called.
overloads() {
    sql "SELECT md5(string_agg(p.oid::regprocedure::text, ' ' ORDER BY p.oid::regprocedure::text)) FROM pg_proc p WHERE p.pronamespace = '$schema'::regnamespace"
}
sql "DROP SCHEMA $schema CASCADE"
"$il" migrate >/dev/null 2>&1
fresh=$(catalogue)
fresh_overloads=$(overloads)
sql "DROP SCHEMA $schema CASCADE"
version_1=()
for family in base lock run once cache queue guard; do
    version_1+=(-f "$source/src/store/postgres/migrations/0000--0001-$family.sql")
done
psql -q -v ON_ERROR_STOP=1 -o /dev/null -c "CREATE SCHEMA $schema" -c "SET search_path = $schema" "${version_1[@]}" \
    -c "INSERT INTO state (version, min_version, test_clock) VALUES (1, 1, false)" \
    -c "CREATE FUNCTION key_look(t text, k text, now bigint) RETURNS key_view LANGUAGE sql AS 'SELECT NULL::key_view'" \
    -c "CREATE FUNCTION give_on(v key_view, t text, k text, now bigint) RETURNS int LANGUAGE sql AS 'SELECT 0'" \
    -c "INSERT INTO run (seq, tenant, id, key, holder, fence, ticket, state, cancelled, finished, error, trigger_, by_, meta, ttl_ms, keep_ms, created_ms, started_ms, updated_ms, ended_ms, purge_ms)
        VALUES (1, 'default', 'old', 'k', 'h', 1, 0, 3, 0, 1, '', '', '', '', 1, 1, 1, 1, 1, 1, 99999999999999)"
error "version 1 is not used" 69 "*version 1*needs $newest*interlock migrate*" "$il" locks
error "... but can be brought up to date" 1 "*version $newest*" "$il" migrate --check
for i in 1 2 3 4; do
    "$il" migrate --json >"$work/out.$i" 2>"$work/err.$i" &
done
wait
is "four at once" "$(grep -l "\"to\":$newest" "$work"/out.[1-4] | wc -l)" 4
is "... make what is made anew" "$(catalogue)" "$fresh"
is "... with functions that are not there twice" "$(overloads)" "$fresh_overloads"
is "... with what was there" "$("$il" runs --json | "$python" -c 'import json,sys; print(*(i["id"] for i in json.load(sys.stdin)["items"]))')" old
gives "... and it can be used" 0 "$il" run k -- true

# Somebody who may not make schemas.
sql "CREATE ROLE nobody_$schema LOGIN"
others=${INTERLOCK_STORE/postgres@/nobody_$schema@}
error "without the right to make one" 69 "*interlock migrate*permission denied*" env "INTERLOCK_STORE=${others/schema=$schema/schema=${schema}_x}" "$il" run k -- true
sql "CREATE SCHEMA ${schema}_x AUTHORIZATION nobody_$schema"
gives "an empty one that he was given" 0 env "INTERLOCK_STORE=${others/schema=$schema/schema=${schema}_x}" "$il" run k -- true
sql "DROP SCHEMA ${schema}_x CASCADE"
sql "DROP ROLE nobody_$schema"

# Ten at once: one installs it, the others find it.
sql "DROP SCHEMA $schema CASCADE"
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
