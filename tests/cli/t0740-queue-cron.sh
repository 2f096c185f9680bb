#!/bin/bash
# queue cron: schedules.
. "$(dirname "$0")/lib.sh" || exit 1

gives "no schedules" 0 env -u INTERLOCK_STORE "$il" queue cron list
is "... is said" "$err" "interlock: no schedules"
gives "cron set" 0 "$il" queue cron set nightly reports '0 3 * * *' '{"kind": "full"}'
like "... says when" "$out" "nightly: next tick at ????-??-??T03:00:00.000Z"
is "... and nothing else" "$err" ""
gives "... as JSON" 0 "$il" queue cron set hourly reports @hourly --missed all --priority -3 --max-attempts 2 --json
json "... the entry" "d['name'] == 'hourly' and d['queue'] == 'reports' and d['schedule'] == '@hourly' and d['missed'] == 'all' and d['priority'] == -3 and d['max_attempts'] == 2 and d['ticks'] == 0 and time.match(d['next_at']) and d['last_at'] is None"
gives "its queue is there" 0 "$il" queue work reports --drain -- cat
gives "without a payload" 0 "$il" queue cron set empty other '*/5 * * * 1-5'
like "... that is said" "$err" "interlock: queue cron set: the jobs of this schedule have no payload"
run "$il" queue cron set piped other '1 1 1 1 *' - <<<"from stdin"
is "a payload from stdin" "$status" 0
printf 'x\377' >blob
gives "... from a file" 0 "$il" queue cron set filed other '1 1 1 1 *' --file blob --json
json "... that is not UTF-8" "d['payload'] is None and d['payload_base64'] == 'eP8='"
gives "list" 0 "$il" queue cron list --json
json "... by name" "[i['name'] for i in d['items']] == ['empty', 'filed', 'hourly', 'nightly', 'piped'] and d['next'] is None"
json "... with payloads" "d['items'][3]['payload'] == '{\"kind\": \"full\"}' and d['items'][4]['payload'] == 'from stdin\n'"
gives "list, one page" 0 "$il" queue cron list --limit 2 --json
json "... has a next" "len(d['items']) == 2 and d['next'] is not None"
next=$(py -c 'import json,sys; print(json.load(sys.stdin)["next"])' <"$work/out")
gives "the next page" 0 "$il" queue cron list --limit 9 --cursor "$next" --json
json "... goes on" "[i['name'] for i in d['items']] == ['hourly', 'nightly', 'piped']"
gives "list of a queue" 0 "$il" queue cron list other
is "... only those" "$(cut -d' ' -f1 <"$work/out" | tr '\n' ' ')" "NAME empty filed piped "
error "list of a queue that is not there" 1 "queue cron list: no such queue: 'nope'" "$il" queue cron list nope
gives "change it" 0 "$il" queue cron set nightly reports '30 4 * * *' p
like "... says when" "$out" "nightly: next tick at ????-??-??T04:30:00.000Z"
gives "remove" 0 "$il" queue cron remove nightly
error "... again" 1 "queue cron remove: no such schedule: 'nightly'" "$il" queue cron remove nightly
gives "remove as JSON" 0 "$il" queue cron remove hourly --json
json "... says it" "d == {'removed': 'hourly'}"
gives "what is left" 0 "$il" queue cron list --json
json "... three" "len(d['items']) == 3"

for bad in "" "x" "* * * *" "* * * * * *" "60 * * * *" "* 24 * * *" "* * 0 * *" "* * * 13 *" "*/0 * * * *" "5-1 * * * *" "@never" "1,,2 * * * *"; do
    error "schedule '$bad'" 64 "queue cron set: *" "$il" queue cron set bad q "$bad" p
done
error "one that never fires" 64 "queue cron set: *" "$il" queue cron set bad q '0 0 30 2 *' p
error "control characters in it" 64 "queue cron set: *" "$il" queue cron set bad q $'0 0 * * *\n' p
error "... in the name" 64 "queue cron set: *" "$il" queue cron set $'b\001' q '@daily' p
error "... in the queue" 64 "queue cron set: *" "$il" queue cron set bad $'q\001' '@daily' p
error "no schedule" 64 "queue cron set: an argument is missing*" "$il" queue cron set bad q
error "--missed" 64 "queue cron set: --missed: 'some' is not one of skip|one|all" "$il" queue cron set bad q @daily p --missed some
error "--file and a payload" 64 "queue cron set: --file and*" "$il" queue cron set bad q @daily p --file blob
head -c 1048577 /dev/zero >big
error "a payload over the limit" 64 "queue cron set: the payload is larger*" "$il" queue cron set bad q @daily --file big
error "a cursor that is none" 64 "queue cron list: --cursor: *" "$il" queue cron list --cursor $'\001'
gives "nothing came of it" 0 "$il" queue cron list --json
json "... three still" "len(d['items']) == 3"

# Time zones.
gives "a zone" 0 "$il" queue cron set zoned other '30 4 * * *' p --timezone Asia/Tokyo --json
json "... is part of the schedule" "d['schedule'] == 'CRON_TZ=Asia/Tokyo 30 4 * * *' and d['next_at'].endswith('T19:30:00.000Z')"
gives "... which may be written so" 0 "$il" queue cron set zoned other 'CRON_TZ=Asia/Tokyo 30 5 * * *' p
like "... too" "$out" "zoned: next tick at ????-??-??T20:30:00.000Z"
gives "... and is listed so" 0 "$il" queue cron list other
like "... for people" "$out" "*CRON_TZ=Asia/Tokyo 30 5 \* \* \**"
error "an unknown zone" 64 "queue cron set: unknown time zone 'Mars/Base'; use a name such as Europe/Berlin" "$il" queue cron set bad q @daily p --timezone Mars/Base
error "... one that is a path" 64 "queue cron set: '../UTC' is not a time zone name*" "$il" queue cron set bad q @daily p --timezone ../UTC
error "two zones" 64 "queue cron set: --timezone and CRON_TZ= cannot be combined" "$il" queue cron set bad q 'CRON_TZ=UTC @daily' p --timezone UTC
error "a zone without a schedule" 64 "queue cron set: 'CRON_TZ=UTC' needs a time zone and a schedule*" "$il" queue cron set bad q CRON_TZ=UTC p
gives "no zone is left" 0 "$il" queue cron remove zoned

# A worker on a machine without tzdata pushes the tick that is due, once; whoever has it goes on.
at_time() { # SECONDS COMMAND...: that much later
    local shift=$1
    shift
    env "ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0" "LD_PRELOAD=${IL_TEST_WALL_CLOCK:?}" WALL_CLOCK_SHIFT="$shift" "$@"
}
next_of() {
    "$il" queue cron list --json | py -c 'import json,sys; print([i["next_at"] for i in json.load(sys.stdin)["items"] if i["name"] == sys.argv[1]][0])' "$1"
}
gives "once a day, in a zone" 0 "$il" queue cron set tokyo zones 'CRON_TZ=Asia/Tokyo 0 12 * * *' noon --missed one
due=$(next_of tokyo)
ahead=$(($(date -d "$due" +%s) - $(date +%s) + 2))
gives "a worker without time zones" 0 at_time "$ahead" env TZDIR="$work" "$il" queue work zones --drain -- cat
is "... pushes the tick" "$out" noon
like "... and leaves the next" "$(next_of tokyo)" "*:??.001Z"
gives "... for a minute later" 0 at_time $((ahead + 90)) env TZDIR="$work" "$il" queue work zones --drain -- cat
is "... without another job" "$out" ""
gives "a worker with time zones" 0 at_time $((ahead + 180)) "$il" queue work zones --drain -- cat
is "... has no other job either" "$out" ""
is "... and knows the next tick" "$(next_of tokyo)" "$(date -u -d "$due + 1 day" +%Y-%m-%dT%H:%M:%S).000Z"

# A tick pushes one job, however many look: a worker's claim makes it, when the wall clock says so.
gives "every minute" 0 "$il" queue cron set minutely ticks '* * * * *' tick --json
next=$(py -c 'import json,sys,datetime; t=json.load(sys.stdin)["next_at"]; print(int(datetime.datetime.fromisoformat(t.replace("Z","+00:00")).timestamp()) - int(__import__("time").time()))' <"$work/out")
ahead=$((next + 2))
for n in 1 2 3 4; do
    bg "w$n" env "ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0" "LD_PRELOAD=${IL_TEST_WALL_CLOCK:?}" WALL_CLOCK_SHIFT="$ahead" "$il" queue work ticks --drain -- cat
done
for n in 1 2 3 4; do
    reap "w$n"
done
is "four workers, one tick, one job" "$(cat w?.out)" tick
finish
