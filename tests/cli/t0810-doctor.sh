#!/usr/bin/env bash
# doctor: settings of the store, and the indexes of a table used as a queue.
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
error "it has no tables of yours" 64 "*--connection*" "$il" doctor --table jobs

postgres_store
gives "a PostgreSQL store" 0 "$il" migrate
run "$il" doctor --json
is "... without fsync does not keep the promises" "$status" 1
json "... and that is what is bad" "[i['name'] for i in d['items'] if i['level'] == 'bad'] == ['fsync']"
json "... the clock is compared" "any(i['name'] == 'clock' for i in d['items'])"
# What makes every op fail. Settings of a role or database, or, as here, of the client's environment.
bad() {
    json "$1" "[i['name'] for i in d['items'] if i['level'] == 'bad'] == [$2]"
}
run env PGOPTIONS="-c default_transaction_isolation=serializable" "$il" doctor --json
json "transactions of another kind are noted" \
    "[i['level'] for i in d['items'] if i['name'] == 'default_transaction_isolation'] == ['note']"
gives "... and ops begin their own" 0 env PGOPTIONS="-c default_transaction_isolation=serializable" "$il" run k -- true
error "transactions that do not write" 69 "*read-only*primary*default_transaction_read_only*" env PGOPTIONS="-c default_transaction_read_only=on" "$il" doctor
run env PGOPTIONS="-c default_transaction_read_only=on" "INTERLOCK_STORE=$INTERLOCK_STORE&target_session_attrs=any" "$il" doctor --json
bad "... are bad" "'default_transaction_read_only', 'fsync'"
run env PGOPTIONS="-c default_transaction_read_only=on" PGTARGETSESSIONATTRS=any "$il" doctor --json
bad "... and so by the environment" "'default_transaction_read_only', 'fsync'"
psql -q -c "CREATE ROLE reader_$schema LOGIN" -c "GRANT USAGE ON SCHEMA $schema TO reader_$schema" -c "GRANT SELECT ON ALL TABLES IN SCHEMA $schema TO reader_$schema"
run env "INTERLOCK_STORE=${INTERLOCK_STORE/postgres@/reader_$schema@}" "$il" doctor --json
bad "a role that may only read" "'privileges', 'fsync'"
psql -q -c "GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA $schema TO reader_$schema" -c "GRANT USAGE, UPDATE ON ALL SEQUENCES IN SCHEMA $schema TO reader_$schema"
run env "INTERLOCK_STORE=${INTERLOCK_STORE/postgres@/reader_$schema@}" "$il" doctor --json
bad "... and then may write" "'fsync'"
gives "... can" 0 env "INTERLOCK_STORE=${INTERLOCK_STORE/postgres@/reader_$schema@}" "$il" run reader -- true
psql -q -c "DROP OWNED BY reader_$schema" -c "DROP ROLE reader_$schema"
table=jobs_$$
trap 'psql -q -c "DROP TABLE IF EXISTS $table" >/dev/null 2>&1; cleanup' EXIT
psql -q -c "CREATE TABLE $table (id int, idempotency_key text, status text, created_at timestamptz, updated_at timestamptz)"
run "$il" doctor --table "$table" --json
json "a table without indexes lacks three" "[i['level'] for i in d['items']] == ['warning'] * 3"
# A partial index serves if its condition covers the states that are looked for.
partial()
{
    psql -q -c "CREATE INDEX partial_$$ ON $table ($2) WHERE $3"
    run "$il" doctor --table "$table" --json
    json "$2 WHERE $3: $1" "$1"
    psql -q -c "DROP INDEX partial_$$"
}
ready="d['items'][1]['level'] =="
running="d['items'][2]['level'] =="
partial "$ready 'warning'" "status, created_at" "status = 'COMPLETED'"
partial "$ready 'warning'" "status, created_at" "status IN ('done', 'running')"
partial "$ready 'warning'" "status, created_at" "status <> 'PENDING'"
partial "$ready 'ok'" "status, created_at" "status IN ('done', 'pending')"
partial "$ready 'ok'" "status, created_at" "status NOT IN ('COMPLETED', 'FAILED')"
partial "$ready 'note'" "status, created_at" "status = 'todo'"
partial "$ready 'note'" "status, created_at" "status = 'PENDING' AND id > 7"
partial "$running 'warning'" "status, updated_at" "status = 'PENDING'"
partial "$running 'ok'" "status, updated_at" "status = 'PROCESSING'"
psql -q -c "CREATE UNIQUE INDEX partial_$$ ON $table (idempotency_key) WHERE status = 'COMPLETED'"
run "$il" doctor --table "$table" --json
json "a unique index must cover all rows" "d['items'][0]['level'] == 'warning'"
psql -q -c "DROP INDEX partial_$$" -c "CREATE UNIQUE INDEX ON $table (idempotency_key) WHERE idempotency_key IS NOT NULL" -c "CREATE INDEX whatever_$$ ON $table (status, created_at, id) WHERE status = 'PENDING'"
run "$il" doctor --table "public.$table" --json
json "indexes are known by their shape" "[i['level'] for i in d['items']] == ['ok', 'ok', 'warning']"
error "no such table" 1 "*no such table*" "$il" doctor --table "no$table"
finish
