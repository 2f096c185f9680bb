#!/bin/bash
# The last 8 digits of an id, and a key for its newest run.
. "$(dirname "$0")/lib.sh" || exit 1

one=0192aaaa-0000-7000-8000-0000deadbee1
two=0192aaaa-0000-7000-8000-0000cafecafe
twin=0192bbbb-0000-7000-8000-0000cafecafe

# Jobs.
"$il" queue push q first --id $one >/dev/null
"$il" queue push q second --id $two >/dev/null
gives "the listing of a queue" 0 "$il" queue list q
is "... has short ids, newest first" "$(tail -n +2 "$work/out" | cut -d' ' -f1 | tr '\n' ' ')" "cafecafe deadbee1 "
gives "... as JSON" 0 "$il" queue list q --json
json "... full ones" "[i['id'] for i in d['items']] == ['$two', '$one']"
gives "queue show" 0 "$il" queue show deadbee1 --json
json "... takes a short one" "d['id'] == '$one' and d['payload'] == 'first'"
gives "queue cancel" 0 "$il" queue cancel deadbee1
is "... too, and says the full one" "$out" "$one CANCELLED"
gives "queue show of an ended one" 0 "$il" queue show deadbee1 --json
json "... finds it" "d['state'] == 'CANCELLED'"
gives "queue retry" 0 "$il" queue retry deadbee1
is "... too" "$out" "$one READY"
error "one that no job has" 1 "queue show: no such job: '00000000'" "$il" queue show 00000000
error "seven digits are not enough" 1 "queue show: no such job: 'eadbee1'" "$il" queue show eadbee1
if [ -z "${IL_TEST_THROUGH_SERVER:-}" ]; then # a server refuses the tenant
    error "another tenant's" 1 "queue show: no such job: 'deadbee1'" "$il" queue show deadbee1 --tenant other
fi
"$il" queue push other third --id $twin >/dev/null
run "$il" queue cancel cafecafe
is "one that two have is refused" "$status" 64
is "... with both" "$err" "interlock: queue cancel: $twin  READY other
interlock: queue cancel: $two  READY q
interlock: queue cancel: the ids of 2 jobs end with 'cafecafe'; use a full id"
gives "... and none is cancelled" 0 "$il" queue list q --state cancelled --json
json "... really" "d['items'] == []"
gives "the full id is always right" 0 "$il" queue cancel $two
"$il" queue push q named --id deadbee1 >/dev/null
gives "an id of the caller's own comes first" 0 "$il" queue show deadbee1 --json
json "... before a short one" "d['id'] == 'deadbee1' and d['payload'] == 'named'"
parent=$("$il" queue push q --is-parent all)
gives "--parent" 0 "$il" queue push q child --parent "${parent: -8}" --json
json "... takes a short one" "d['parent'] == '$parent'"
gives "queue seal" 0 "$il" queue seal "${parent: -8}" --json
json "... too" "d['id'] == '$parent'"

# Live ones are found however old they are; of the others the newest 1,000.
three=0192aaaa-0000-7000-8000-000033333333
"$il" queue push q ended --id $three >/dev/null
"$il" queue cancel $three >/dev/null
seq 1000 | "$il" queue push mass --lines >/dev/null
gives "an old job that still waits" 0 "$il" queue show "${parent: -8}" --json
json "... is found" "d['id'] == '$parent'"
error "one that has ended and is not among the newest" 1 "queue show: no such job: '33333333'" "$il" queue show 33333333
gives "... is found by its full id" 0 "$il" queue show $three

# Runs.
ended() {
    "$il" runs --key "$1" --limit 1 --json | grep -q '"state":"COMPLETED"'
}
gives "a run" 0 "$il" run --record build -- echo one
gives "another" 0 "$il" run --record build -- echo two
gives "and of a longer key" 0 "$il" run --record build-docs -- echo docs
await "all have ended" ended build-docs
run "$il" runs --key build --json
newest=$(py -c 'import json,sys; print(json.load(sys.stdin)["items"][0]["id"])' <"$work/out")
oldest=$(py -c 'import json,sys; print(json.load(sys.stdin)["items"][1]["id"])' <"$work/out")
gives "the listing of runs" 0 "$il" runs --key build
is "... has short ids" "$(tail -n +2 "$work/out" | cut -d' ' -f1 | tr '\n' ' ')" "${newest: -8} ${oldest: -8} "
gives "logs" 0 "$il" logs "${oldest: -8}"
is "... takes a short id" "$out" one
gives "logs KEY" 0 "$il" logs build
is "... is the newest run" "$out" two
gives "logs KEY --json" 0 "$il" logs build --json
json "... says which" "d['id'] == '$newest'"
gives "runs KEY" 0 "$il" runs build --json
json "... is the newest run" "d['id'] == '$newest'"
gives "runs, with a short id" 0 "$il" runs "${oldest: -8}" --json
json "... is that run" "d['id'] == '$oldest'"
gives "runs, with the start of a key" 0 "$il" runs buil --json
json "... is a listing" "[i['key'] for i in d['items']] == ['build-docs', 'build', 'build']"
gives "runs KEY, with an option of a listing" 0 "$il" runs build --limit 9 --json
json "... is one, too" "len(d['items']) == 3"
error "logs of no key" 1 "logs: no such run: 'buil'" "$il" logs buil
error "cancel takes no key" 1 "cancel: no such run: 'build'" "$il" cancel build --reason x
gives "a key that looks like a short id" 0 "$il" run --record "${oldest: -8}" -- echo key
await "... has ended" ended "${oldest: -8}"
gives "... comes first" 0 "$il" logs "${oldest: -8}"
is "... indeed" "$out" key
hold h c --record --grace 1s
run "$il" runs c --json
id=$(py -c 'import json,sys; print(json.load(sys.stdin)["id"])' <"$work/out")
gives "cancel" 0 "$il" cancel "${id: -8}" --reason "not wanted" --wait 20s
is "... takes a short id" "$out" "$id CANCELLED"
reap h
finish
