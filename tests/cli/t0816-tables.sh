#!/usr/bin/env bash
# The tables of apps: migrate creates and upgrades them in PostgreSQL, and doctor knows their version.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

toy=${IL_TEST_TOY:?the binary with the toy app} # tests/app
next=${IL_TEST_TOY_NEXT:?the same with the next version of its tables}

run "$toy" migrate --json
is "in SQLite the tables are created when they are opened" "$status" 0
json "... so nothing is listed" "d['apps'] == [] and not d['to_do']"
is "... and nothing is created" "$(find "$(dirname "${INTERLOCK_STORE#sqlite:}")" -name '*-toy.db' | wc -l)" 0

# last NAME STATUS PATTERN COMMAND...: the status, and the last line on stderr; the one about the store is before it.
last() {
    local name=$1 wanted=$2 pattern=$3
    shift 3
    run "$@"
    is "$name" "$status" "$wanted"
    like "... (what it says)" "${err##*$'\n'}" "interlock: $pattern"
}

sqlite=$INTERLOCK_STORE
postgres_store
export PGOPTIONS="-c client_min_messages=error"
sql() {
    psql -qAt -c "$1"
}

last "nothing is there yet" 1 "*toy: version 1 needs to be installed" "$toy" migrate --check
run "$toy" migrate --check --json
json "... as JSON" "[a for a in d['apps'] if a['name'] == 'toy'] == [{'name': 'toy', 'from': 0, 'to': 1, 'to_do': True}] and d['to_do']"
is "... and nothing was created" "$(sql "SELECT count(*) FROM pg_namespace WHERE nspname = '${schema}_toy'")" 0
run "$toy" migrate --json
is "it is installed with the store" "$status" 0
json "... from nothing" "[a for a in d['apps'] if a['name'] == 'toy'] == [{'name': 'toy', 'from': 0, 'to': 1, 'to_do': False}] and d['from'] == 0"
is "... in its own schema" "$(sql "SELECT version FROM ${schema}_toy.interlock_tables")" 1
gives "then there is nothing to do" 0 "$toy" migrate --check
run "$toy" doctor --json
json "... and nothing to tell" "not [i for i in d['items'] if i['name'] == 'tables of toy']"

# The next version.
sql "INSERT INTO ${schema}_toy.course (tenant, code, seats) VALUES ('a', 'c', 7)"
run "$next" doctor --json
json "doctor warns of older tables" "[i['value'] for i in d['items'] if i['name'] == 'tables of toy'] == ['version 1']"
last "... which are to be upgraded" 1 "*toy: version 1 needs to be upgraded to version 2" "$next" migrate --check
for i in 1 2 3 4; do
    "$next" migrate --json >"$work/out.$i" 2>"$work/err.$i" &
done
wait
is "four at once" "$(grep -l '"name":"toy".*"to":2' "$work"/out.[1-4] | wc -l)" 4
is "... keep the rows" "$(sql "SELECT title || seats FROM ${schema}_toy.course")" c7
gives "... once" 0 "$next" migrate --check
last "the older binary does not use them" 69 "*version 2 of the tables of toy*newer Interlock; this one supports 1*" "$toy" migrate
run "$toy" doctor --json
json "... and says why" "[i['value'] for i in d['items'] if i['name'] == 'tables of toy'] == ['newer']"

# The data store decides, not the store.
sql "DROP SCHEMA ${schema}_toy CASCADE"
last "a store in a file with its data in a database" 1 "*toy: version 1 needs to be installed" \
    env "INTERLOCK_STORE=$sqlite" "$toy" migrate --check --data "$INTERLOCK_STORE"
gives "... is migrated there" 0 env "INTERLOCK_STORE=$sqlite" "$toy" migrate --data "$INTERLOCK_STORE"
is "... really" "$(sql "SELECT version FROM ${schema}_toy.interlock_tables")" 1

# A store and the tables of an app do not share a schema.
error "a store where the tables of an app are" 64 "*schema ${schema}_toy contains the tables of an app*" \
    env "INTERLOCK_STORE=${INTERLOCK_STORE}_toy" "$toy" migrate
sql "DROP SCHEMA ${schema}_toy, ${schema}_check CASCADE"
gives "a store first" 0 env "INTERLOCK_STORE=${INTERLOCK_STORE}_toy" "$il" run k -- true
last "... then the tables of an app" 64 "*schema ${schema}_toy, needed for the tables of toy, contains a store*" "$toy" migrate
sql "DROP SCHEMA IF EXISTS ${schema}_toy, ${schema}_toy_admin, ${schema}_toy_check CASCADE"
gives "... without it" 0 "$toy" migrate

# Somebody who may not make schemas.
sql "DROP SCHEMA ${schema}_toy, ${schema}_check CASCADE"
sql "CREATE ROLE nobody_$schema LOGIN"
others=${INTERLOCK_STORE/postgres@/nobody_$schema@}
last "without the right to make one" 0 "*cannot create the tables of toy*permission denied*" \
    env "INTERLOCK_STORE=$sqlite" "$toy" migrate --data "$others"
sql "CREATE SCHEMA ${schema}_toy AUTHORIZATION nobody_$schema"
sql "CREATE SCHEMA ${schema}_check AUTHORIZATION nobody_$schema"
gives "an empty one that he was given" 0 env "INTERLOCK_STORE=$sqlite" "$toy" migrate --data "$others"
sql "DROP SCHEMA ${schema}_toy, ${schema}_check CASCADE"
gives "tables of somebody else" 0 env "INTERLOCK_STORE=$sqlite" "$toy" migrate --data "$INTERLOCK_STORE"
last "... in a schema that he may not use" 0 "cannot use the tables of toy: this user has no USAGE privilege on schema ${schema}_toy" \
    env "INTERLOCK_STORE=$sqlite" "$toy" migrate --data "$others"
sql "GRANT USAGE ON SCHEMA ${schema}_toy, ${schema}_check TO nobody_$schema"
last "... or whose tables he may not read" 0 "*permission denied for table interlock_tables*" \
    env "INTERLOCK_STORE=$sqlite" "$toy" migrate --data "$others"
sql "DROP SCHEMA ${schema}_toy, ${schema}_check CASCADE"
sql "DROP ROLE nobody_$schema"
finish
