#!/bin/bash
# campus: sample data, commands on a store and through a server, refusals, old skills, and events of
# broken invariants.
. "$(dirname "$0")/lib.sh" || exit 1
socket=$work/http.sock

# field NAME: of the last output.
field() {
    printf '%s' "$out" | py -c "import json, sys; print(json.load(sys.stdin)['$1'])"
}
# count SQL: in the tables of the campus.
count() {
    py -c "import sqlite3, sys; db = sqlite3.connect(sys.argv[1], timeout=20); print(*db.execute(sys.argv[2]).fetchone() or ()); db.commit()" "$work/x-campus.db" "$1"
}

# ---- no data ----
error "a storm without data" 1 "campus storm: no sample data; run \`interlock campus seed\` first" "$il" campus storm --time 100ms

# ---- data ----
gives "seed" 0 "$il" campus seed --json
json "... what was written" "d == {'tenant': 'default', 'users': 64, 'tournaments': 4, 'sessions': 12}"
gives "its known debt breaks nothing" 0 "$il" check --json
json "... and is counted" "{i['name']: i['known'] for i in d['items']}['campus.skill_level'] == 14"

# ---- commands on a store ----
gives "a user" 0 "$il" campus create-user --credits 100 --json ada@example.com
ada=$(field id)
gives "a tournament" 0 "$il" campus create-tournament --campus north --cost 60 --json cup
cup=$(field id)
error "it is a draft" 1 "tournament $cup is not open for enrollment: its state is DRAFT" "$il" campus enroll "$cup" "$ada"
gives "it opens" 0 "$il" campus transition "$cup" ENROLLMENT_OPEN
gives "enroll" 0 "$il" campus enroll --json "$cup" "$ada"
json "... the cost" "(d['cost'], d['status']) == (60, 'APPROVED')"
error "once only" 1 "user $ada is already enrolled in tournament $cup" "$il" campus enroll "$cup" "$ada"
error "an unknown tournament" 1 "tournament none not found" "$il" campus enroll none "$ada"
error "an unknown user" 1 "user none not found" "$il" campus enroll "$cup" none
error "an edge that does not exist" 1 "tournament $cup cannot go from ENROLLMENT_OPEN to DRAFT" "$il" campus transition "$cup" DRAFT
error "a value out of range" 64 "campus assess: VALUE must be from 40 to 99, with at most one decimal" "$il" campus assess l passing 100
gives "show the user" 0 "$il" campus user --json "$ada"
json "... has paid" "d['credit_balance'] == 40"
gives "for people" 0 "$il" campus user "$ada"
like "... a line for each field" "$out" "*credit_balance*40*"

gives "list tournaments" 0 "$il" campus tournaments --limit 2 --json
json "... as many as asked for" "len(d['items']) == 2 and d['next'] == d['items'][1]['id']"
gives "... the next page" 0 "$il" campus tournaments --cursor "$(field next)" --json
json "... is the rest" "len(d['items']) == 3 and d['next'] is None"
gives "list licenses" 0 "$il" campus skills --json seed-user-001
json "... with their skills" "[len(i['football_skills']) for i in d['items']] == [29] and d['next'] is None"
error "of nobody" 1 "user none not found" "$il" campus badges none

# ---- old skills ----
gives "normalise-skills, dry run" 0 "$il" campus normalise-skills --json
json "... only counts" "d['applied'] is False and d['entries'] >= 232 and d['licenses'] >= 8"
gives "... again" 0 "$il" campus normalise-skills --json
json "... nothing has changed" "d['entries'] >= 232"
gives "--apply" 0 "$il" campus normalise-skills --apply --json
json "... the same number" "d['applied'] is True and d['entries'] >= 232"
gives "--apply again" 0 "$il" campus normalise-skills --apply --json
json "... nothing is left" "d == {'applied': True, 'licenses': 0, 'entries': 0}"
gives "check" 0 "$il" check --json
json "... no debt, and none of the baseline is reported" "all(i['known'] == 0 and i['not_needed']['count'] == 0 for i in d['items'])"

# ---- a broken invariant ----
count "UPDATE users SET xp_balance = xp_balance + 1 WHERE id = '$ada'" >/dev/null
gives "a lost update" 1 "$il" check
is "... is a system event" "$(count "SELECT count(*), min(level), min(text) FROM system_events WHERE type = 'INVARIANT_BROKEN'")" "1 ERROR campus.reward_balance: 1 new offenders, first: $ada"

# ---- through a server ----
key=$("$il" key create --tenant default --admin --json | py -c 'import json, sys; print(json.load(sys.stdin)["key"])')
env -u INTERLOCK_SERVER "$il" serve --allow-root --store "$work/x.db" --log-level error --listen "unix:$socket" >"$work/server.log" 2>&1 </dev/null &
server_pid=$!
await "the server listens" test -S "$socket" || cat "$work/server.log"
export -n INTERLOCK_STORE
export INTERLOCK_SERVER=http+unix:$socket INTERLOCK_API_KEY=$key
gives "unenroll" 0 "$il" campus unenroll --json "$cup" "$ada"
json "... half of the cost back" "(d['refund'], d['status']) == (30, 'WITHDRAWN')"
error "once only" 1 "*user $ada is not enrolled in tournament $cup" "$il" campus unenroll "$cup" "$ada"
gives "show the user" 0 "$il" campus user --json "$ada"
json "... the refund" "d['credit_balance'] == 70"
error "seed needs a store" 64 "campus seed*" "$il" campus seed
gives "the lost update is found by the server, too" 1 "$il" check campus.reward_balance
is "... another event" "$(count "SELECT count(*) FROM system_events WHERE type = 'INVARIANT_BROKEN'")" 2
kill "$server_pid"
wait "$server_pid" 2>/dev/null
finish
