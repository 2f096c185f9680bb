#!/usr/bin/env bash
# doctor --checklist: the pipelines that apps register (the toy has one), their constraints in the
# database, and when their invariants were last checked.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
toy=${IL_TEST_TOY:?the binary with other apps}

# checklist STATUS [OPTION...]: of the toy, as JSON.
checklist() {
    local expected=$1
    shift
    gives "$engine: the checklist${*:+ with ${*%% *}}" "$expected" "$toy" doctor --checklist --json "$@"
}

# constraints NAME STATE STATE: those of course_seats and booking_course.
constraints() {
    json "$engine: $1" "d['pipelines'][0]['constraints'] == [{'name': 'course_seats', 'state': $2, 'table': 'course'}, {'name': 'booking_course', 'state': $3, 'table': 'booking'}]"
}

# ---- what the app says

engine=memory
checklist 0 --store memory:
json "one pipeline" "[(p['name'], p['summary']) for p in d['pipelines']] == [('toy.courses', 'creates and locks courses')]"
json "... the rows that it locks" "d['pipelines'][0]['locks'] == [{'name': 'course', 'state': 'rank 10'}, {'name': 'booking', 'state': 'rank 20'}]"
json "... an answer to each question" "[i['name'] for i in d['pipelines'][0]['checklist']] == [i['name'] for i in d['items']]"
json "... as it was given" "{i['name']: (i['state'], i['evidence']) for i in d['pipelines'][0]['checklist'] if i['state']} == {'row lock': ('yes', 'tests/app/t-toy.py'), 'JSON under its lock': ('not applicable', 'no JSON'), 'race test': ('no', None)}"
constraints "a memory store has no tables to look at" None None
json "... and no history" "d['pipelines'][0]['invariants'] == [{'name': 'toy.' + n, 'state': 'never checked', 'checked_at': None} for n in ('overbooked', 'blank_codes')]"
gives "for people" 0 "$toy" doctor --checklist --store memory:
like "... below the questions" "${out//  / }" "*13. three indexes*PIPELINE*PART*NAME*STATE*DETAIL*toy.courses*lock*course*rank 10*constraint*course_seats*unknown*course*invariant*toy.overbooked*never checked*"
gives "a server cannot be asked" 0 "$toy" doctor --checklist --json --server http://127.0.0.1:1
constraints "... but the app's answers are known" None None
gives "the bundled apps" 0 "$il" doctor --checklist --json --store memory:
json "... answer every question" "all(i['state'] for p in d['pipelines'] for i in p['checklist'])"
json "... with evidence that exists" "all(__import__('os').path.exists('$here/../../' + i['evidence'].split()[0]) for p in d['pipelines'] for i in p['checklist'] if (i['evidence'] or '').startswith(('tests/', 'docs/', 'src/')))"

# ---- SQLite

engine=sqlite
export INTERLOCK_STORE=sqlite:$work/store.db
checklist 0
constraints "no tables yet" None None
sql() {
    py -c 'import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); d.executescript(sys.argv[2]); d.commit()' "$@"
}
"$toy" serve --allow-root --listen "unix:$work/http.sock" >"$work/server.log" 2>&1 </dev/null &
server_pid=$!
await "the server has created them" test -S "$work/http.sock" || cat "$work/server.log"
kill "$server_pid" && wait "$server_pid"
checklist 0
constraints "as the app created them" "'found'" "'found'"
gives "its invariants are checked" 0 "$toy" check
checklist 0
json "... and the checklist says when" "all(i['state'] == 'passed' and i['checked_at'].startswith('20') for i in d['pipelines'][0]['invariants'])"
sql store-toy.db "INSERT INTO course VALUES ('default', 'a b', 1)"
gives "one is broken" 0 "$toy" check toy.blank_codes
checklist 0
json "... the last result counts" "[i['state'] for i in d['pipelines'][0]['invariants']] == ['passed', 'broken']"
checklist 0 --tenant other
json "... of this tenant" "[i['state'] for i in d['pipelines'][0]['invariants']] == ['never checked'] * 2"
sql store-toy.db "DROP TABLE booking; CREATE TABLE booking (tenant TEXT, id TEXT, code TEXT)"
checklist 1
constraints "one is missing" "'found'" "'missing'"
is "... and counted" "$err" "interlock: 1 constraint of pipelines missing"
sql planted.db "CREATE TABLE course (tenant TEXT, code TEXT, seats INT, CONSTRAINT course_other CHECK (seats >= 0))"
checklist 1 --connection ./planted.db
constraints "another database" "'missing'" "'no table'"
sql empty.db "CREATE TABLE t (id INTEGER PRIMARY KEY)"
checklist 0 --connection ./empty.db
constraints "one without these tables" "'no table'" "'no table'"
checklist 0 --connection ./empty.db --table t
json "a single table: no pipelines" "d['pipelines'] == []"

# ---- PostgreSQL

engine=postgres
postgres_store
gives "its tables are created" 0 "$toy" migrate
checklist 0
constraints "as the app created them" "'found'" "'found'"
psql -q -c "ALTER TABLE ${schema}_toy.booking DROP CONSTRAINT booking_course"
checklist 1
constraints "one is missing" "'found'" "'missing'"
checklist 1 --connection "$IL_TEST_POSTGRES&options=-csearch_path%3D${schema}_toy"
constraints "by a connection" "'found'" "'missing'"
finish
