#!/usr/bin/env bash
# doctor --connection: findings about the user's own tables, in SQLite and PostgreSQL, and the
# statements that fix them.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# sql TEXT: on the database of $engine.
sql() {
    if [ "$engine" = sqlite ]; then
        py -c 'import sqlite3, sys; d = sqlite3.connect("app.db"); d.executescript(sys.argv[1]); d.commit()' "$1"
    else
        PGOPTIONS="-c search_path=$schema" psql -X -q -v ON_ERROR_STOP=1 -c "$1"
    fi
}

# doctor OPTION...: on that database, as JSON.
doctor() {
    run "$il" doctor --connection app --json "$@"
}

# found NAME TABLE LEVEL CHECK [CONDITION]: doctor has this finding about the table; its item is i.
found() {
    doctor --table "$2"
    json "$engine: $1" "[i['level'] for i in d['items'] if i['name'] == '$4'] == ['$3']"
    if [ -n "${5:-}" ]; then
        json "... $5" "all(${5} for i in d['items'] if i['name'] == '$4')"
    fi
}

# fix NAME TABLE CHECK: run the printed statement; then the finding is gone.
fix() {
    local text
    text=$(py -c 'import json, sys; print(next(i["sql"] for i in json.load(sys.stdin)["items"] if i["name"] == sys.argv[1]))' "$3" <"$work/out")
    check "$engine: $1: $text" sql "$text"
    found "... and the finding is gone" "$2" ok "$3"
}

# invariant CONNECTION SQL: the only one of the folder.
invariant() {
    printf -- '- name: balance\n  connection: %s\n  sql: "%s"\n' "$1" "$2" >checks/acme/all.yml
}

tables() {
    local id="INTEGER PRIMARY KEY" tricky='"od"" d"'
    sql "CREATE TABLE healthy (id $id, idempotency_key text UNIQUE, note text);
         CREATE TABLE users (id $id, credit_balance integer, name_count text);
         CREATE TABLE items (id $id, a integer, b integer, UNIQUE (a, b));
         CREATE TABLE payments (id $id, user_id integer REFERENCES users (id), amount integer,
                                request_key text, idempotency_key text);
         CREATE TABLE parts (id $id, a integer, b integer, FOREIGN KEY (a, b) REFERENCES items (a, b));
         CREATE TABLE ledger (id $id, tenant_id text, idempotency_key text);
         CREATE TABLE jobs (id $id, status text, created_at text, updated_at text, claimed_by text,
                            idempotency_key text UNIQUE);
         CREATE TABLE posts (id $id, status text, created_at text, updated_at text);
         CREATE TABLE nokey (id integer, a integer);
         CREATE TABLE $tricky (id $id, idempotency_key text);
         CREATE TABLE interlock_thing (a integer);
         CREATE VIEW seen AS SELECT id FROM users"
}

findings() {
    tables
    found "a primary key" healthy ok "primary key"
    is "... a healthy table has no bad findings" "$status" 0
    json "... and no statement" "all(i['level'] == 'ok' and i['sql'] is None for i in d['items'])"
    found "a table of posts is no table of jobs" posts ok "primary key"
    json "... and needs no indexes" "len(d['items']) == 1"
    found "a balance without an invariant is a note" users note credit_balance "i['sql'] is None"
    json "... and only integers count" "len(d['items']) == 2"
    mkdir -p checks/acme
    sql "CREATE TABLE interlock_tables (one integer)"
    found "in the tables of an app its own invariants count" users ok credit_balance "i['value'].startswith('campus.')"
    sql "DROP TABLE interlock_tables"
    invariant app "SELECT id FROM users WHERE credit_balances < 0 OR old_credit_balance < 0"
    doctor --table users --checks checks
    json "$engine: ... an invariant about other columns" "[i['level'] for i in d['items'] if i['name'] == 'credit_balance'] == ['note']"
    invariant other "SELECT id FROM users WHERE credit_balance < 0"
    doctor --table users --checks checks
    json "... or another database" "[i['level'] for i in d['items'] if i['name'] == 'credit_balance'] == ['note']"
    invariant app "SELECT id FROM payments WHERE credit_balance < 0"
    doctor --table users --checks checks
    json "... or another table" "[i['level'] for i in d['items'] if i['name'] == 'credit_balance'] == ['note']"
    invariant app "SELECT u.id FROM Users u WHERE u.\\\"credit_balance\\\" < 0"
    doctor --table users --checks checks
    json "... one that mentions it" "[(i['level'], i['value']) for i in d['items'] if i['name'] == 'credit_balance'] == [('ok', 'balance')]"
    doctor --schema --checks checks
    json "... so that it is not reported" "not [i for i in d['items'] if i['name'] == 'credit_balance']"
    run env "INTERLOCK_CHECKS=$work/checks" "$il" doctor --connection "$INTERLOCK_CONNECTION_APP" --schema --json
    json "... by its URL, and by the configuration" "not [i for i in d['items'] if i['name'] == 'credit_balance']"

    found "no unique idempotency key" payments warning "unique (idempotency_key)" "i['violations'] == 0 and i['examples'] == []"
    is "... exits with 0" "$status" 0
    fix "a unique index" payments "unique (idempotency_key)"
    sql "INSERT INTO payments (id, request_key) VALUES (1, 'a'), (2, 'a'), (3, 'b'), (4, 'b'), (5, 'b'), (6, 'c'), (7, NULL), (8, NULL)"
    found "keys of a ledger that repeat are bad" payments bad "unique (request_key)" "i['violations'] == 5 and i['examples'] == ['a', 'b']"
    is "... and exits with 1" "$status" 1
    sql "DELETE FROM payments WHERE id IN (2, 4, 5)"
    found "without the duplicates" payments warning "unique (request_key)" "i['violations'] == 0"
    fix "it can be created" payments "unique (request_key)"
    sql "INSERT INTO ledger (id, tenant_id, idempotency_key) VALUES (1, 'x', 'k'), (2, 'y', 'k')"
    found "a tenant leads the key" ledger warning "unique (tenant_id, idempotency_key)" "i['violations'] == 0"
    sql "INSERT INTO ledger (id, tenant_id, idempotency_key) VALUES (3, 'x', 'k'), (4, 'x', 'k2'), (5, 'x', 'k2'), (6, 'x', 'k3'), (7, 'x', 'k3'), (8, 'x', 'k4'), (9, 'x', 'k4'), (10, 'x', 'k5'), (11, 'x', 'k5'), (12, 'x', 'k6'), (13, 'x', 'k6')"
    found "at most five examples" ledger bad "unique (tenant_id, idempotency_key)" "i['violations'] == 12 and i['examples'] == ['x, k', 'x, k2', 'x, k3', 'x, k4', 'x, k5']"
    sql "DELETE FROM ledger; CREATE TABLE idx_ledger_tenant_id_idempotency_key (id integer)"
    found "an index whose usual name is taken" ledger warning "unique (tenant_id, idempotency_key)" "'_2' in i['sql']"
    fix "it can be created" ledger "unique (tenant_id, idempotency_key)"
    found "a name with quotes and blanks" 'od" d' warning "unique (idempotency_key)"
    fix "its statement is quoted" 'od" d' "unique (idempotency_key)"

    found "a foreign key without an index" payments warning "index (user_id)"
    fix "an index" payments "index (user_id)"
    found "... of two columns" parts warning "index (a, b)"
    sql "CREATE INDEX reversed ON parts (b, a, id)"
    found "... in any order" parts ok "index (a, b)"

    found "the next job" jobs warning "(status, created_at)"
    sql "CREATE INDEX wrong ON jobs (status, created_at) WHERE status = 'done'"
    found "... not by an index of jobs that are done" jobs warning "(status, created_at)"
    sql "DROP INDEX wrong; CREATE INDEX likely ON jobs (status, created_at) WHERE status = 'todo'"
    found "... perhaps by one of unknown states" jobs note "(status, created_at)"
    sql "DROP INDEX likely; CREATE INDEX not_in ON jobs (status, created_at) WHERE status NOT IN ('done', 'failed')"
    found "... by one without those that have ended" jobs ok "(status, created_at)"
    sql "DROP INDEX not_in; CREATE INDEX is_in ON jobs (status, created_at) WHERE status IN ('pending', 'retry')"
    found "... by one of those that are ready" jobs ok "(status, created_at)"
    found "jobs of dead workers" jobs warning "(status, updated_at)"
    fix "an index" jobs "(status, updated_at)"
    json "a table of jobs with its three indexes" "all(i['level'] == 'ok' for i in d['items'])"

    doctor --schema
    is "$engine: the schema without duplicates" "$status" 0
    json "... lists what is not in order" "{i['table'] for i in d['items']} - {None} == {'users', 'nokey', 'idx_ledger_tenant_id_idempotency_key'}"
    json "... with four fields of every finding" "all(i['level'] != 'ok' and i['name'] and i['value'] and i['means'] for i in d['items'] if i['table'])"
    doctor --checklist
    json "$engine: the checklist has 13 questions" "len(d['items']) == 13 and all(i['question'] for i in d['items'])"
    json "... it answers what the database knows" "{t['table']: t['answer'] for i in d['items'] if i['name'] == 'three indexes' for t in i['tables']} == dict({'jobs': 'yes'}, **{n: 'not applicable' for n in ('healthy', 'users', 'items', 'payments', 'parts', 'ledger', 'posts', 'nokey', 'od\" d', 'idx_ledger_tenant_id_idempotency_key')})"
    json "... and nothing else" "all(not i['tables'] for i in d['items'] if i['name'] in ('row lock', 'race test', 'freeze notice'))"
    doctor --checklist --table payments
    json "... for one table" "[i['tables'] for i in d['items'] if i['name'] == 'idempotency'] == [[{'table': 'payments', 'answer': 'yes', 'found': None}]]"
    run "$il" doctor --connection app --table users
    like "$engine: for people" "$out" "*LEVEL*TABLE*credit_balance*no invariant*"
    error "$engine: an unknown table" 1 "no such table: nothing" "$il" doctor --connection app --table nothing
    error "$engine: a view" 64 "seen is not a table" "$il" doctor --connection app --table seen
}

# ---- without a database

gives "the questions need no database" 0 "$il" doctor --checklist
like "... and are printed" "$out" "*row lock*three indexes*"
error "a schema of which database?" 64 "*--connection*" "$il" doctor --schema
error "... or a table" 64 "*cannot be combined*" "$il" doctor --schema --table t --connection ./x.db
error "which table?" 64 "*--table, --schema or --checklist*" "$il" doctor --connection ./x.db
error "an unknown name" 64 "*no connection 'app'*" "$il" doctor --connection app --schema
error "a missing file" 69 "cannot open database ./app.db: *" "$il" doctor --connection ./app.db --schema
check "... is not created" test ! -e app.db
error "another database" 64 "*unsupported database URL*" "$il" doctor --connection redis://u:secret@h/0 --schema
is "... the password is not shown" "${err/secret/}" "$err"
echo "no database" >text.db
error "a file that is no database" 69 "*" "$il" doctor --connection ./text.db --schema
"$il" run k -- true
error "a store" 64 "*is an Interlock store*" "$il" doctor --connection "$INTERLOCK_STORE" --schema

# ---- SQLite

engine=sqlite
export INTERLOCK_CONNECTION_APP=sqlite:$work/app.db
sql "PRAGMA page_size = 1024; CREATE TABLE t (id INTEGER PRIMARY KEY)"
found_setting() {
    doctor --schema
    json "$1" "[i['level'] for i in d['items'] if i['name'] == '$2'] == $3"
}
found_setting "a file without WAL" journal_mode "['warning']"
found_setting "... with small pages" page_size "['note']"
found_setting "... and what it does not keep" foreign_keys "['note']"
sql "$(py -c 'import json, sys; print(next(i["sql"] for i in json.load(sys.stdin)["items"] if i["name"] == "page_size"))' <"$work/out")"
found_setting "its pages are changed" page_size "[]"
found_setting "... and it is in WAL mode" journal_mode "[]"
sql "PRAGMA journal_mode = DELETE"
doctor --schema
sql "$(py -c 'import json, sys; print(next(i["sql"] for i in json.load(sys.stdin)["items"] if i["name"] == "journal_mode"))' <"$work/out")"
found_setting "WAL mode" journal_mode "[]"
sql "DROP TABLE t"
findings
found "no primary key" nokey warning "primary key" "i['sql'] is None and i['means'].endswith('SQLite cannot add one: create a new table, copy the rows, rename it')"
check "nothing was written" py -c 'import sqlite3; assert sqlite3.connect("app.db").execute("PRAGMA integrity_check").fetchone() == ("ok",)'

# ---- PostgreSQL

engine=postgres
postgres_store
psql -q -c "CREATE SCHEMA $schema"
export INTERLOCK_CONNECTION_APP="$IL_TEST_POSTGRES&options=-csearch_path%3D$schema"
findings
sql "INSERT INTO nokey VALUES (1), (1), (NULL)"
found "no primary key" nokey warning "primary key" "i['violations'] == 3 and i['examples'] == ['1']"
sql "DELETE FROM nokey"
found "... for rows that have one" nokey warning "primary key" "i['violations'] == 0"
fix "a primary key" nokey "primary key"
sql "CREATE TABLE noid (a int)"
found "a table without an id" noid warning "primary key" "i['violations'] is None"
fix "it is given one" noid "primary key"
sql "CREATE TABLE half (id int PRIMARY KEY, idempotency_key text); INSERT INTO half VALUES (1, 'a'), (2, 'a')"
run sql "CREATE UNIQUE INDEX CONCURRENTLY half_key ON half (idempotency_key)"
found "an index whose creation failed" half bad "unique (idempotency_key)" "i['value'] == 'half_key is invalid' and i['violations'] == 2"
sql "DELETE FROM half WHERE id = 2"
found "... without the duplicates" half warning "unique (idempotency_key)"
fix "it is built again" half "unique (idempotency_key)"
sql "CREATE TABLE split (id int, idempotency_key text, at int, PRIMARY KEY (id, at)) PARTITION BY RANGE (at); CREATE TABLE split_1 PARTITION OF split FOR VALUES FROM (1) TO (2)"
found "a partitioned table" split warning "unique (idempotency_key)" "i['sql'] is None and 'partition' in i['means']"
doctor --schema
json "... its partitions are left out" "'split_1' not in {i['table'] for i in d['items']}"
error "a server that is away" 69 "*" "$il" doctor --connection "postgres://u:secret@127.0.0.1:1/db" --schema
is "... the password is not shown" "${err/secret/}" "$err"
finish
