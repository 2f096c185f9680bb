#!/bin/bash
# interlock usage: days, ranges, CSV, bars on a terminal, warm, rebuild, and the same through a server.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
export INTERLOCK_STORE=sqlite:$work/store.db TZ=Asia/Tokyo

# has NAME PATTERN, lacks NAME PATTERN: a line of the last output, or message, matches (grep -E).
has() {
    check "$1" grep -Eq -- "$2" "$work/out" "$work/err"
}
lacks() {
    check "$1" eval "! grep -Eq -- '$2' '$work/out'"
}

gives "without a source" 64 "$il" usage day 2025-01-15
export INTERLOCK_USAGE_SOURCE_TYPE=generator
gives "a day" 0 "$il" usage day 2025-01-15
has "... with its totals" "2025-01-15  yes"
has "... by user" "^USER "
gives "... as JSON" 0 "$il" usage day 2025-01-15 --json
json "... it adds up" "sum(u['spend_micros'] for u in d['by_user']) == d['metrics']['spend_micros'] and d['is_complete'] and not d['stale']"
gives "today is not complete" 0 "$il" usage day today --json
json "... and fresh" "not d['is_complete'] and not d['stale']"
gives "a day that is not to be built" 1 "$il" usage day 2025-01-16 --no-build
gives "not a date" 64 "$il" usage day 2025-02-30
gives "the future" 64 "$il" usage day 9999-01-01

gives "a range" 0 "$il" usage range 2025-01-14 2025-01-16
has "... with a total" "^total "
lacks "... without bars" "#"
gives "... by user" 0 "$il" usage range 2025-01-14 2025-01-16 --by user
has "... with a total" "^total "
gives "... as JSON" 0 "$il" usage range 2025-01-14 2025-01-16 --json
json "... every day" "[i['date'] for i in d['days']] == ['2025-01-14', '2025-01-15', '2025-01-16']"
gives "... as CSV" 0 "$il" usage range 2025-01-14 2025-01-16 --csv
has "... with a header" "^date,state,is_complete,updated_at,api_requests,"
has "... with micro-units" "^2025-01-15,fresh,true,.*\.[0-9]{6},"
gives "JSON and CSV" 64 "$il" usage range 2025-01-14 2025-01-16 --json --csv
gives "91 days" 64 "$il" usage range 2025-01-01 2025-04-01
gives "the wrong way round" 64 "$il" usage range 2025-01-02 2025-01-01
gives "bars on a terminal" 0 "$python" "$IL_TEST_SOURCE/tests/cli/on-terminal.py" -- "$il" usage range 2025-01-14 2025-01-16
has "... are drawn" "####"

INTERLOCK_USAGE_SOURCE_COST=1s bg builder "$il" usage day 2025-01-20 --json
await "another process builds a day" eval '"$il" locks usage_day: | grep -q 2025-01-20'
gives "a day that another process builds" 0 "$il" usage day 2025-01-20 --json
check "... is waited for without a word" test ! -s "$work/err"
reap builder
is "... and built there" "$status" 0

gives "a range in advance" 0 "$il" usage warm 2025-02-01 2025-02-10
has "... is told" "10 days ready, 0 failed"
gives "... is there" 0 "$il" usage day 2025-02-10 --no-build
gives "a rebuild" 0 "$il" usage rebuild 2025-02-01 2025-02-02 --force --json
json "... of these days" "sorted((i['date'], i['status']) for i in d['items']) == [('2025-02-01', 'OK'), ('2025-02-02', 'OK')]"
gives "the current day" 0 "$il" usage refresh --json
json "... is built" "not d['is_complete']"
INTERLOCK_USAGE_SOURCE_FAIL_PERCENT=100 gives "a source that fails" 1 "$il" usage day 2025-03-01
has "... is told" "the source failed"
INTERLOCK_USAGE_SOURCE_FAIL_PERCENT=100 gives "... in a range" 1 "$il" usage range 2025-02-27 2025-03-01
has "... which lists it" "3 missing"
INTERLOCK_USAGE_SOURCE_FAIL_PERCENT=100 gives "... and in advance" 1 "$il" usage warm 2025-02-27 2025-02-28
# the largest amount, of which no user has a share
export INTERLOCK_USAGE_SOURCE_TYPE=command
document='{"metrics": {"spend_micros": 9223372036854775807}, "by_user": {"a\u202eb": {}}}'
INTERLOCK_USAGE_SOURCE_COMMAND="printf %s '$document' #" \
    gives "the largest amount" 0 "$il" usage range 2025-03-05 2025-03-05
has "... is shown" "^total .* 9223372036854\.78"
document=$(py -c 'import json
print(json.dumps({"metrics": {}, "by_user": {f"u{i:02}": {"spend": 1} for i in range(12)} | {"zoe": {"spend": 9.5}}}))')
INTERLOCK_USAGE_SOURCE_COMMAND="printf %s '$document' #" gives "a day of 13 users" 0 "$il" usage day 2025-03-06
has "... has the largest spend" "^zoe .* 9\.50"
has "... and says what is left out" "^and 3 more"
export INTERLOCK_USAGE_SOURCE_TYPE=generator
gives "... with a bar" 0 "$python" "$IL_TEST_SOURCE/tests/cli/on-terminal.py" -- "$il" usage range 2025-03-05 2025-03-05
has "... that is long" "##########"
gives "... by user" 0 "$il" usage range 2025-03-05 2025-03-05 --by user
has "... with a name that cannot turn the line around" 'a\\xe2\\x80\\xaeb'
cp "$work/out" "$work/by-user"
ADMIN_ANALYTICS_CACHE_GRACE_PERIOD_MINUTES=61 gives "a bad setting" 64 "$il" usage day 2025-01-15
has "... is named" "ADMIN_ANALYTICS_CACHE_GRACE_PERIOD_MINUTES"
gives "metrics without a server" 64 "$il" usage metrics

gives "the invariant of the days" 0 "$il" check usage.complete_early
py -c 'import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as db:
    db.execute("UPDATE daily_usage_cache SET updated_at = (unixepoch(date) + 86399) * 1000 WHERE date = ?", ("2025-02-05",))' "$work/store-usage.db"
gives "... finds a day that was complete too early" 1 "$il" check usage.complete_early --json
json "... by its date" "[o['key'] for o in d['items'][0]['offenders']] == ['2025-02-05']"

# A server on the same store; the commands are its clients.
key=$("$il" key create --admin --json | py -c 'import json, sys; print(json.load(sys.stdin)["key"])')
bg server "$il" serve --allow-root --listen "unix:$work/socket"
await "the server listens" test -S "$work/socket"
export INTERLOCK_SERVER="http+unix:$work/socket" INTERLOCK_API_KEY=$key
unset INTERLOCK_STORE INTERLOCK_USAGE_SOURCE_TYPE
gives "a day of a server" 0 "$il" usage day 2025-01-15 --json
json "... the same" "d['date'] == '2025-01-15' and d['is_complete']"
gives "a range of a server" 0 "$il" usage range 2025-01-14 2025-01-16
has "... with a total" "^total "
gives "... as CSV" 0 "$il" usage range 2025-01-14 2025-01-16 --by model --csv
has "... by model" "^model,api_requests"
gives "... the day of the largest amount" 0 "$il" usage range 2025-03-05 2025-03-05 --by user
check "... has the same total" cmp "$work/out" "$work/by-user"
gives "a rebuild of a server" 0 "$il" usage rebuild 2025-02-01 2025-02-03 --force
has "... is a run" "COMPLETED"
gives "a second one" 75 "$il" usage warm 2025-02-01 2025-02-03
gives "metrics of a server" 0 "$il" usage metrics
has "... with the rates" "^cacheHitRate +[01]\.[0-9]{4}"
gives "refresh of a server" 0 "$il" usage refresh
kill "${pids[server]}"
reap server
is "the server stops" "$status" 0
finish
