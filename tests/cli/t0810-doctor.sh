#!/usr/bin/env bash
# doctor: settings of the store, and the indexes of a table that is used as a queue (R4.14).
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

gives "a store that does not exist yet" 0 env INTERLOCK_STORE= "$il" doctor
"$il" run k -- true
run "$il" doctor --json
is "a SQLite store" "$status" 0
json "... has findings" "{'SQLite', 'synchronous', 'file system', 'free space', 'file mode'} <= {i['name'] for i in d['items']}"
json "... each with a level, a value and what it means" "all(i['level'] in ('ok', 'note', 'warning', 'bad') and i['value'] and i['means'] for i in d['items'])"
chmod 644 "$INTERLOCK_STORE"
run "$il" doctor --json
json "a file that others can read is a warning" "[i['level'] for i in d['items'] if i['name'] == 'file mode'] == ['warning']"
error "it has no tables of yours" 64 "*postgres:*" "$il" doctor --table jobs

postgres_store
gives "a PostgreSQL store" 0 "$il" migrate
run "$il" doctor --json
is "... without fsync does not keep the promises" "$status" 1
json "... and that is what is bad" "[i['name'] for i in d['items'] if i['level'] == 'bad'] == ['fsync']"
json "... the clock is compared" "any(i['name'] == 'clock' for i in d['items'])"
table=jobs_$$
trap 'psql -q -c "DROP TABLE IF EXISTS $table" >/dev/null 2>&1; cleanup' EXIT
psql -q -c "CREATE TABLE $table (id int, idempotency_key text, status text, created_at timestamptz, updated_at timestamptz)"
run "$il" doctor --table "$table" --json
json "a table without indexes lacks three" "[i['level'] for i in d['items']] == ['warning'] * 3"
psql -q -c "CREATE UNIQUE INDEX ON $table (idempotency_key)" -c "CREATE INDEX whatever_$$ ON $table (status, created_at, id) WHERE status = 'PENDING'"
run "$il" doctor --table "public.$table" --json
json "indexes are known by their shape" "[i['level'] for i in d['items']] == ['ok', 'ok', 'warning']"
error "no such table" 1 "*no table*" "$il" doctor --table "no$table"
finish
