#!/bin/bash
# interlock check: files of invariants, what is found on SQLite and PostgreSQL, output, exit statuses.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
unset INTERLOCK_STORE
sample=$IL_TEST_SOURCE/deploy/checks

sql() {
    if [ "$engine" = sqlite ]; then
        py -c 'import sqlite3, sys; d = sqlite3.connect("app.db"); d.executescript(sys.argv[1]); d.commit()' "$1"
    else
        PGOPTIONS="-c search_path=$schema" psql -X -q -v ON_ERROR_STOP=1 -c "$1"
    fi
}

# invariants LINE...: the file of tenant acme.
invariants() {
    mkdir -p checks/acme
    printf '%s\n' "$@" >checks/acme/a.yml
}

# checked NAME STATUS EXPRESSION [OPTION...]: run them as JSON; r is the result by name.
checked() {
    local name="$engine: $1" expected=$2 expression=$3
    shift 3
    gives "$name" "$expected" "$il" check --checks checks --json "$@"
    json "... $expression" "(lambda r: $expression)({i['name']: i for i in d['items']})"
}

# junit NAME EXPRESSION: a Python expression over x, the root of out.xml.
junit() {
    if py -c 'import sys, xml.etree.ElementTree as t; x = t.parse("out.xml").getroot(); sys.exit(0 if eval(sys.argv[1]) else t.tostring(x).decode())' "$2" >"$work/xml.out" 2>&1; then
        pass "$1"
    else
        fail "$1" "$2" "$(cat "$work/xml.out")"
    fi
}

findings() {
    sql "CREATE TABLE account (id integer PRIMARY KEY, owner text, balance integer)"
    sql "INSERT INTO account VALUES (1, 'ann', 5), (2, 'bob', 0)"
    local negative=('- name: negative' '  connection: app' '  description: Balances below zero' '  sql: SELECT id, owner, balance FROM account WHERE balance < 0 ORDER BY id')

    invariants "${negative[@]}"
    checked "healthy data" 0 "r['negative']['outcome'] == 'passed' and r['negative']['new'] == 0"
    sql "UPDATE account SET balance = -3"
    checked "planted data" 1 "r['negative']['outcome'] == 'broken' and r['negative']['new'] == 2 and r['negative']['offenders'][0] == {'key': '1', 'text': 'owner=ann, balance=-3'}"

    invariants "${negative[@]}" '  baseline: [1, "2", gone]'
    checked "a baseline" 0 "r['negative']['outcome'] == 'passed' and r['negative']['known'] == 2 and r['negative']['not_needed'] == {'count': 1, 'keys': ['gone']}"
    sql "INSERT INTO account VALUES (3, 'cid', -1)"
    checked "a new offender beside it" 1 "r['negative']['new'] == 1 and r['negative']['known'] == 2 and [o['key'] for o in r['negative']['offenders']] == ['3']"
    printf '3\r\n\n2\n1\n1' >checks/acme/known.keys
    invariants "${negative[@]}" '  baseline: known.keys'
    checked "a file of keys" 0 "r['negative']['known'] == 3 and r['negative']['not_needed']['count'] == 0"

    invariants "${negative[@]}" '  severity: warning'
    checked "a warning" 0 "r['negative']['outcome'] == 'broken' and r['negative']['severity'] == 'warning'"
    checked "... counts with --strict" 1 "r['negative']['outcome'] == 'broken'" --strict
    invariants "${negative[@]}" '  severity: info'
    checked "an info does not" 0 "r['negative']['outcome'] == 'broken'" --strict

    sql "DELETE FROM account WHERE id > 2; UPDATE account SET balance = 0"
    # shellcheck disable=SC2016
    invariants "${negative[@]}" \
        '- {name: no_table, connection: app, sql: SELECT id FROM nothing_here}' \
        '- {name: syntax, connection: app, baseline: [1], sql: SELECT FROM WHERE}' \
        '- {name: two, connection: app, sql: SELECT 1 WHERE 1 = 0; SELECT 2}' \
        '- {name: placeholder, connection: app, sql: "SELECT id FROM account WHERE owner = $1"}' \
        '- {name: nowhere, connection: other, sql: SELECT 1}'
    checked "some cannot run" 69 "r['negative']['outcome'] == 'passed' and all(r[n]['outcome'] == 'error' and r[n]['error'] for n in ('no_table', 'syntax', 'two', 'placeholder', 'nowhere'))"
    json "... the reason is given" "[i['error'] for i in d['items'] if i['name'] == 'nowhere'] == [\"connection 'other' is not configured\"] and 'nothing_here' in [i['error'] for i in d['items'] if i['name'] == 'no_table'][0]"
    json "... nothing is said about its baseline" "[i['not_needed']['count'] for i in d['items'] if i['name'] == 'syntax'] == [0]"
    sql "UPDATE account SET balance = -1 WHERE id = 1"
    checked "... and one is broken" 1 "r['negative']['outcome'] == 'broken' and r['nowhere']['outcome'] == 'error'"
    checked "... only one by name" 1 "list(r) == ['negative']" negative

    # What writes is refused, and nothing is written.
    invariants '- {name: writes, connection: app, sql: "'"$1"'"}'
    checked "a query that writes" 69 "r['writes']['outcome'] == 'error'"
    invariants '- {name: writes, connection: app, sql: DELETE FROM account}'
    checked "no query at all" 69 "'must be a query' in r['writes']['error']"
    invariants '- {name: rows, connection: app, sql: SELECT id FROM account}'
    checked "... all rows are there" 1 "r['rows']['new'] == 2"

    sql "$2"
    invariants '- {name: many, connection: app, sql: "SELECT id, owner FROM account WHERE id > 2 ORDER BY id"}'
    checked "20 offenders of 1,000" 1 "r['many']['new'] == 1000 and len(r['many']['offenders']) == 20"
    gives "... for people" 1 "$il" check --checks checks
    like "... the rest is counted" "$out" "*1000 new offenders*22  owner=x*and 980 more*"
    is "... once" "$(grep -c 'owner=x' "$work/out")" 20

    # One that hangs ends after its timeout.
    invariants '- {name: hangs, connection: app, timeout: 2s, sql: "'"$3"'"}' "${negative[@]}"
    checked "one that hangs" 1 "r['hangs']['outcome'] == 'error' and r['hangs']['error'] == 'timed out after 2s' and r['negative']['outcome'] == 'broken'"

    # Texts of all kinds reach JUnit as XML.
    sql "UPDATE account SET owner = '<&\"]]>' || $4 WHERE id = 1; DELETE FROM account WHERE id > 2"
    invariants "${negative[@]}" '- {name: nowhere, connection: other, sql: SELECT 1}' \
        '- {name: soft, severity: warning, connection: app, sql: "SELECT 7"}' '- {name: good, connection: app, sql: SELECT 1 WHERE 1 = 0}'
    gives "$engine: JUnit" 1 "$il" check --checks checks --junit out.xml
    junit "... the numbers" "x.attrib['tests'] == '4' and x.attrib['failures'] == '1' and x.attrib['errors'] == '1'"
    junit "... the text" "x.find(\"testcase[@name='negative']/failure\").text == '1: owner=<&\"]]>?é, balance=-1\n'"
    junit "... by outcome" "{c.attrib['name']: [e.tag for e in c] for c in x} == {'negative': ['failure'], 'nowhere': ['error'], 'soft': ['system-out'], 'good': []}"
    gives "... strict" 1 "$il" check --checks checks --junit out.xml --strict
    junit "... a warning is a failure" "[e.tag for e in x.find(\"testcase[@name='soft']\")] == ['failure']"
}

# ---- files

error "no folder" 64 "check: no invariants; pass --checks DIR or configure \`checks\`" "$il" check
error "a folder that does not exist" 64 "checks: cannot read folder nowhere: *" "$il" check --checks nowhere
gives "... stops a server" 64 "$il" serve --allow-root --store memory: --listen "unix:$work/s.sock" --checks nowhere
like "... which says so" "$err" "*interlock: checks: cannot read folder nowhere: No such file or directory"
mkdir -p checks/acme checks/globex
error "an empty one" 64 "check: no invariants*" "$il" check --checks checks
engine=none
invariants '- name: a b' '  connection: app' '  severity: fatal' '  sql: ""' '  schedule: "61 * * * *"' '  timeout: 1ms' '  baseline: ../x' '  query: x' '- name: ok' '  connection: app' \
    '  sql: SELECT 1' '  schedule: {cron: "0 3 * * *", zone: Nowhere/City}' '- name: ok' '  connection: app' '  sql: SELECT 1' '  baseline: none.keys' '- 5'
gives "all faults" 69 "$il" check --checks checks
like "... unknown fields" "$err" "*checks/acme/a.yml:8: \[0\]: unknown key 'query'*"
like "... names" "$err" "*a.yml:1: \[0\].name: 'a b' may contain only letters, digits, '_' and '-'*"
like "... severities" "$err" "*a.yml:3: \[0\].severity: 'fatal' is not one of info, warning, error*"
like "... empty SQL" "$err" "*a.yml:4: \[0\].sql: must not be empty*"
like "... schedules" "$err" "*a.yml:5: \[0\].schedule: *"
like "... timeouts" "$err" "*a.yml:6: \[0\].timeout: must be a duration from 100ms to 1h*"
like "... paths of baselines" "$err" "*a.yml:7: \[0\].baseline: must be a list of keys, or the name of a file in this folder*"
like "... zones" "$err" "*a.yml:12: \[1\].schedule: *Nowhere/City*"
like "... names that exist" "$err" "*a.yml:13: \[2\].name: duplicate name 'ok', already used at checks/acme/a.yml:9*"
like "... missing files" "$err" "*a.yml:16: \[2\].baseline: cannot read none.keys: No such file or directory*"
like "... what is no mapping" "$err" "*a.yml:17: \[3\]: must be a mapping*"
checked "... each is an error" 69 "len(d['items']) == 4 and all(i['outcome'] == 'error' and 'a.yml:' in i['error'] for i in d['items'])"
invariants 'name: ['
checked "a file that is no YAML" 69 "r['a.yml']['outcome'] == 'error'"
invariants 'name: x'
checked "... or no list" 69 "'must be a list of invariants' in r['a.yml']['error']"
invariants '- {name: a, connection: app, sql: SELECT 1}'
# Whatever a connection is by mistake: it is not shown, and no file is created.
ls -A >"$work/before"
for url in postgres:geheim user:geheim@host/db ' postgres://user:geheim@host/db' 'host=db password=geheim'; do
    INTERLOCK_CONNECTION_APP=$url checked "connection $url" 69 "r['a']['outcome'] == 'error' and 'geheim' not in r['a']['error']"
done
is "... creates nothing" "$(ls -A)" "$(cat "$work/before")"
ln -s nowhere checks/initech
checked "a tenant's folder that cannot be read" 69 "r['initech']['error'].endswith('cannot read the file: No such file or directory')"
rm checks/initech
mkdir checks/Bad
echo '- {}' >checks/lost.yml
checked "folders and files out of place" 69 "r['Bad']['outcome'] == r['lost.yml']['outcome'] == 'error' and 'not a tenant id' in r['Bad']['error']"
rm -r checks/Bad checks/lost.yml
printf '%s\n' '- {name: a, connection: app, sql: SELECT 1}' >checks/globex/b.yml
gives "the list" 0 "$il" check --checks checks --list --json
json "... by tenant" "[(i['tenant'], i['name'], i['schedule'], i['timezone'], i['timeout_ms']) for i in d['items']] == [(t, 'a', '0 9 * * 1', 'UTC', 30000) for t in ('acme', 'globex')]"
INTERLOCK_CHECKS=checks gives "... of one tenant" 0 "$il" check --list --tenant globex
like "... for people" "$out" "*globex  a *0 9 \* \* 1*T09:00:00.000Z*"
error "an unknown name" 64 "check: no invariant 'b'" "$il" check --checks checks b
error "--list runs nothing" 64 "check: --list *" "$il" check --checks checks --list --strict
error "a server has its own" 64 "check: --checks and --server cannot be combined*" "$il" check --checks checks --server http://127.0.0.1:1
invariants '- {name: run, connection: app, sql: SELECT 1}' '- {name: results, connection: app, sql: SELECT 1}'
checked "names that are routes" 69 "all(i['error'].endswith(\"'%s' is reserved for the route /checks/%s; choose another name\" % (2 * (i['name'],))) for i in d['items'] if i['tenant'] == 'acme')"

# Limits.
py - <<'END'
with open("checks/acme/a.yml", "w") as f:
    f.write("- {name: list, connection: app, sql: SELECT 1, baseline: [" + ", ".join(map(str, range(10001))) + "]}\n")
    f.write("- {name: file, connection: app, sql: SELECT 1, baseline: many.keys}\n")
    f.write("- {name: bytes, connection: app, sql: SELECT 1, baseline: long.keys}\n")
    f.write("- {name: " + 65 * "n" + ", connection: app, sql: SELECT 1}\n")
    f.write("- {name: sql, connection: app, sql: SELECT " + 65536 * "1" + "}\n")
with open("checks/acme/b.yml", "w") as f:
    f.write("#" * (1 << 20) + "\n")
with open("checks/acme/many.keys", "w") as f:
    f.writelines(f"{i}\n" for i in range(10001))
with open("checks/acme/long.keys", "w") as f:
    f.write("k" * ((1 << 20) + 1))
END
gives "limits" 69 "$il" check --checks checks --tenant acme
like "... keys of a list" "$err" "*:1: \[0\].baseline: too many keys (maximum 10000)*"
like "... keys of a file" "$err" "*:2: \[1\].baseline: many.keys has too many keys (maximum 10000)*"
like "... its bytes" "$err" "*:3: \[2\].baseline: long.keys must be a text file of at most 1048576 bytes*"
like "... a name" "$err" "*:4: \[3\].name: longer than 64 bytes*"
like "... a statement" "$err" "*:5: \[4\].sql: longer than 65536 bytes*"
like "... a file of invariants" "$err" "*b.yml: file too large (maximum 1048576 bytes)*"
rm -r checks/acme && mkdir checks/acme
py -c 'for k in range(6): open(f"checks/acme/{k}.yml", "w").writelines(f"- {{name: n{k}_{i}, connection: app, sql: SELECT 1}}\n" for i in range(1000))'
error "invariants" 64 "checks: too many invariants (maximum 5000)" "$il" check --checks checks --list
rm -r checks/acme && mkdir checks/acme
py -c 'for k in range(1001): open(f"checks/acme/{k}.yml", "w").write(f"- {{name: n{k}, connection: app, sql: SELECT 1}}\n")'
error "files" 64 "checks: too many files (maximum 1000)" "$il" check --checks checks --list

# ---- SQLite

rm -r checks
engine=sqlite
export INTERLOCK_CONNECTION_APP=sqlite:$work/app.db
invariants '- {name: a, connection: app, sql: SELECT 1}'
checked "a file that does not exist" 69 "'cannot open database' in r['a']['error']"
check "... is not created" test ! -e app.db
findings "WITH gone AS (SELECT 1 AS id) DELETE FROM account WHERE id IN (SELECT id FROM gone) RETURNING id" \
    "WITH RECURSIVE n(i) AS (SELECT 3 UNION ALL SELECT i + 1 FROM n WHERE i < 1002) INSERT INTO account SELECT i, 'x', 0 FROM n" \
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i < 0" \
    "char(1) || 'é'"
run "$python" "$here/../cli/on-terminal.py" -- "$il" check --checks checks
like "progress on a terminal" "$out" "*4/4 *negative*"
invariants '- {name: nul, connection: app, sql: "SELECT NULL, 1"}' '- {name: long, connection: app, sql: "SELECT hex(zeroblob(5000)), hex(zeroblob(5000))"}'
checked "a key that is NULL, and a long one" 1 "r['nul']['offenders'] == [{'key': 'NULL', 'text': '1=1'}] and len(r['long']['offenders'][0]['key'].encode()) <= 200"

# ---- PostgreSQL

engine=postgres
postgres_store
unset INTERLOCK_STORE
psql -q -c "CREATE SCHEMA $schema"
export INTERLOCK_CONNECTION_APP="$IL_TEST_POSTGRES&options=-csearch_path%3D$schema"
findings "WITH gone AS (DELETE FROM account RETURNING id) SELECT id FROM gone" \
    "INSERT INTO account SELECT i, 'x', 0 FROM generate_series(3, 1002) AS i" \
    "SELECT pg_sleep(3600)" \
    "chr(1) || 'é'"
export INTERLOCK_CONNECTION_APP="postgres://u:secret@127.0.0.1:1/db"
invariants '- {name: away, connection: app, sql: SELECT 1}'
checked "a server that is away" 69 "r['away']['outcome'] == 'error' and 'secret' not in r['away']['error']"

# ---- history, beside the store

# kept: "tenant name outcome active-runs" of each result in the history of the store.
kept() {
    local text="SELECT tenant || ' ' || name || ' ' || outcome || ' ' || runs FROM check_result ORDER BY started_at_ms, name"
    if [ "$engine" = sqlite ]; then
        py -c 'import sqlite3, sys; print(*[r[0] for r in sqlite3.connect("file:x-check.db?mode=ro", uri=True).execute(sys.argv[1])], sep="\n")' "$text"
    else
        PGOPTIONS="-c search_path=${schema}_check" psql -X -q -At -c "$text"
    fi
}
history() {
    export INTERLOCK_CONNECTION_APP=sqlite:$work/hist.db INTERLOCK_TENANT=acme
    rm -f hist.db
    engine=sqlite py -c 'import sqlite3; d = sqlite3.connect("hist.db"); d.execute("CREATE TABLE t (id INTEGER)"); d.commit()'
    invariants '- {name: empty, connection: app, sql: SELECT id FROM t}' '- {name: away, connection: other, sql: SELECT 1}'
    "$il" run k -- true
    checked "results are kept" 69 "r['empty']['outcome'] == 'passed'"
    is "... one for each" "$(kept | sort)" "$(printf 'acme away error []\nacme empty passed []')"
    py -c 'import sqlite3; d = sqlite3.connect("hist.db"); d.execute("INSERT INTO t VALUES (1)"); d.commit()'
    "$il" run --record nightly -- sleep 1000 &
    server_pid=$!
    await "a run is active" sh -c '"$0" runs --json | grep -q "\"RUNNING\""' "$il"
    checked "... also when one is broken" 1 "r['empty']['outcome'] == 'broken'" empty
    like "... with the run that was active" "$(kept | tail -1)" 'acme empty broken \["*"\]'
    kill "$server_pid" && wait "$server_pid"
    server_pid=
}
engine=sqlite
export INTERLOCK_STORE=$work/x.db
invariants '- {name: a, connection: app, sql: SELECT 1}'
gives "no store yet" 69 "$il" check --checks checks
check "... and none is created" test ! -e x.db -a ! -e x-check.db
history
engine=postgres
export INTERLOCK_STORE="$IL_TEST_POSTGRES&schema=$schema"
psql -q -c "DROP SCHEMA $schema CASCADE"
history
psql -q -c "DROP SCHEMA ${schema}_check CASCADE; CREATE SCHEMA ${schema}_check; CREATE TABLE ${schema}_check.interlock_tables (x int)"
gives "a history that cannot be used" 1 "$il" check --checks checks empty
like "... is reported, and what was found counts" "$err" "*cannot store the results: *"
unset INTERLOCK_STORE INTERLOCK_TENANT
psql -q -c "DROP SCHEMA $schema CASCADE; CREATE SCHEMA $schema"

# ---- the samples, on queue tables

now_sqlite="datetime('now', '-1 hour')" now_postgres="now() - interval '1 hour'"
queue() {
    rm -f app.db
    sql "CREATE TABLE job (id integer PRIMARY KEY, batch_id integer, status text, idempotency_key text, started_at $1, updated_at $1, completed_at $1);
        CREATE TABLE batch (id integer PRIMARY KEY, status text, total integer, completed integer, failed integer);
        INSERT INTO batch VALUES (1, 'COMPLETED', 2, 1, 1), (2, 'RUNNING', 1, 0, 0);
        INSERT INTO job VALUES (1, 1, 'COMPLETED', 'a', $2, $2, $2), (2, 1, 'FAILED', 'b', $2, $2, $2), (3, 2, 'PROCESSING', NULL, $2, CURRENT_TIMESTAMP, NULL), (4, NULL, 'EXECUTING', NULL, CURRENT_TIMESTAMP, $2, NULL), (5, NULL, 'PENDING', NULL, NULL, $2, NULL)"
    gives "$engine: the sample on healthy tables" 0 "$il" check --checks "$sample" --tenant "$3" --json --strict
    json "... six invariants" "[i['outcome'] for i in d['items']] == ['passed'] * 6"
    sql "UPDATE job SET updated_at = $2 WHERE id = 3; UPDATE job SET started_at = $2 WHERE id = 4; UPDATE batch SET completed = 2 WHERE id = 1;
        UPDATE batch SET status = 'COMPLETED' WHERE id = 2; UPDATE job SET idempotency_key = 'a' WHERE id = 2; UPDATE job SET completed_at = NULL WHERE id = 1"
    gives "$engine: the sample on planted ones" 1 "$il" check --checks "$sample" --tenant "$3" --json
    json "... finds each" "{i['name']: [o['key'] for o in i['offenders']] for i in d['items']} == {'stuck_processing': ['3'], 'stuck_executing': ['4'], 'batch_counts': ['1'], 'batch_completed_early': ['2'], 'duplicate_idempotency_key': ['a'], 'completed_without_time': ['1']}"
}
export INTERLOCK_CONNECTION_ACME_QUEUE="$IL_TEST_POSTGRES&options=-csearch_path%3D$schema" INTERLOCK_CONNECTION_GLOBEX_QUEUE=sqlite:$work/app.db
unset INTERLOCK_CONNECTION_APP
queue timestamptz "$now_postgres" acme
engine=sqlite
queue text "$now_sqlite" globex
finish
