#!/bin/bash
# history, and the end of why: what happened to a key, asked the next morning.
. "$(dirname "$0")/lib.sh" || exit 1

if [ -z "${IL_TEST_THROUGH_SERVER:-}" ]; then
    error "a store that is not there is not made by looking" 69 "*x.db: No such file*" "$il" history k
    gives "the default store, before anything has run" 0 env -u INTERLOCK_STORE "$il" history k
    is "... nothing happened" "$out" "k: nothing happened in the last week"
    is "... and why" "$err" "interlock: the store does not exist yet"
    gives "another tenant" 0 "$il" run --tenant other k -- true
    gives "... has a history of its own" 0 "$il" history --tenant other k
fi
gives "a run that went well" 0 "$il" run k -- true
gives "... leaves nothing" 0 "$il" history k --json
json "... an empty page" "d == {'items': [], 'next': None}"
gives "... nothing to say of it" 0 "$il" why k
is "... but that it is free" "$out" "k is free"

# Last night: the report is refused, and nobody reads its mail.
has() {
    "$il" history "$1" --json >"$work/history.json" || return 1
    py -c 'import json, sys; d = json.load(sys.stdin)["items"]; sys.exit(not eval(sys.argv[1]))' "$2" <"$work/history.json"
}
hold night report --ttl 60s
night_pid=${pids[night]}
gives "refused" 75 "$il" run report -- true --nightly
gives "... again" 75 "$il" run report -- true --nightly
await "both are kept" has report "[(i['event'], i['count']) for i in d] == [('refused', 2)]"
gives "... skipped" 0 "$il" run --on-conflict skip report -- true --nightly
gives "... waited for in vain" 75 "$il" run --wait 100ms report -- true --nightly
gives "another program" 75 "$il" run report -- true --weekly
# (A waiter asks twice; a server counts that once, unless it has reported in between. It reports in
# order: when the last refusal is there, so are all others.)
await "they are one event, and the other program is one" has report "len(d) == 2 and d[0]['count'] == 1 and d[1]['count'] in (4, 5)"
count=$(py -c 'import json, sys; print(json.load(sys.stdin)["items"][1]["count"])' <"$work/history.json")
let_go night

# The next morning: the key is free, its holder long gone.
gives "why" 0 "$il" why report
like "... says why it did not run" "$out" "report is free*History, newest first:*refused at 20??-??-?? ??:??:?? UTC to \`true --weekly\` on * by *: held by pid $night_pid on * (\`sh -c *\`) since *refused $count times between 20??-??-?? ??:??:?? and *UTC to \`true --nightly\` on * by *: held by pid $night_pid on *since *"
gives "why as JSON" 0 "$il" why --json report
json "... has the events" "[i['count'] for i in d['events']] == [1, $count] and d['state'] == 'free'"
gives "history" 0 "$il" history report
like "... lists both" "$out" "report, newest first:*--weekly*--nightly*"
gives "history as JSON" 0 "$il" history --json report
json "... with all fields" "all(time.match(i[n]) for i in d['items'] for n in ('first_at', 'last_at', 'since')) and d['items'][1]['first_at'] < d['items'][1]['last_at']"
json "... the caller, without a process id" "d['items'][0]['meta']['command'] == 'true --weekly' and 'pid' not in d['items'][0]['meta'] and d['items'][0]['meta']['host']"
json "... and the holder, with its own" "d['items'][0]['other']['pid'] == $night_pid and d['items'][0]['fence'] > 0"
gives "one by one" 0 "$il" history --json --limit 1 report
json "... the newest first" "[i['count'] for i in d['items']] == [1] and d['next']"
next=$(py -c 'import json,sys; print(json.load(sys.stdin)["next"])' <"$work/out")
gives "... and so on" 0 "$il" history --json --limit 1 --cursor "$next" report
json "... the last one" "[i['count'] for i in d['items']] == [$count] and d['next'] is None"
error "a bad cursor" 64 "history: *cursor*" "$il" history --cursor x report
gives "another key" 0 "$il" history report2
is "... has its own" "$out" "report2: nothing happened in the last week"

# A holder that dies.
hold dead d1 --ttl 3s
dead_pid=${pids[dead]}
kill -KILL "$dead_pid"
reap dead 2>/dev/null
await "its lease runs out" has d1 "[i['event'] for i in d] == ['expired']"
gives "why" 0 "$il" why d1
like "... says whose it was" "$out" "d1 is free*expired at 20* UTC without a renewal: held by pid $dead_pid on * (\`sh -c *\`) since *"
gives "the next run" 0 "$il" run d1 -- true
check "... does not count it twice" has d1 "len(d) == 1"

# Somebody breaks it.
hold h b1 --ttl 12s --grace 1s # it hears of the break when it renews
gives "break" 0 "$il" break b1 --reason "stuck since noon"
reap h
gives "history" 0 "$il" history b1
like "... says who, why and whose" "$out" "b1, newest first:*broken at 20* UTC by \`interlock break\` on * by *: held by pid *since *; stuck since noon"

# Recorded runs, and idempotency keys.
mkfifo go
bg first "$il" run --record r1 -- sh -c 'exec 3<>go; : >up; read -r _ <&3'
await "a recorded run" test -e up
gives "another one" 75 "$il" run --record r1 -- true
await "is refused, too" has r1 "[(i['event'], i['count']) for i in d] == [('refused', 1)] and d[0]['holder']"
echo go 1<>go
reap first
attempt='[ ! -e began ] || exit 9; exec 3<>go; : >began; read -r _ <&3'
bg first "$il" once o1 -- sh -c "$attempt"
await "an idempotency key" test -e began
gives "while the first attempt runs" 75 "$il" once o1 -- sh -c "$attempt"
await "is an event, too" has o1 "len(d) == 1 and d[0]['reason'] == 'the first attempt was still running' and d[0]['other']['pid'] > 1"
echo go 1<>go
reap first

error "no key" 64 "history: an argument is missing*" "$il" history
error "a bad key" 64 "history: *control*" "$il" history $'a\nb'
finish
