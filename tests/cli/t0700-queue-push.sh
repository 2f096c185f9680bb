#!/bin/bash
# queue push: payloads, options, refused input.
. "$(dirname "$0")/lib.sh" || exit 1

# job ID EXPRESSION: a Python expression over d, the job, is true.
job() {
    local name=$1 id=$2
    run "$il" queue show --json "$id"
    json "$name" "$3"
}

gives "a payload as an argument" 0 "$il" queue push q hello
id=$out
like "... its id is printed" "$id" "????????-????-7???-????-????????????"
is "... and nothing else" "$(wc -l <"$work/out")" 1
job "... the job" "$id" "d['payload'] == 'hello' and d['state'] == 'READY' and d['queue'] == 'q' and d['attempt'] == 0 and d['priority'] == 0 and d['tenant'] == 'default'"
job "... has times" "$id" "all(time.match(d[k]) for k in ('created_at', 'run_at', 'updated_at')) and d['started_at'] is None and d['completed_at'] is None"
job "... and no result yet" "$id" "d['result'] is None and d['result_bytes'] is None"
run "$il" queue push q - <<<"from stdin"
job "-: standard input" "$out" "d['payload'] == 'from stdin\n'"
run "$il" queue push q <<<"from stdin too"
job "nothing: standard input" "$out" "d['payload'] == 'from stdin too\n'"
printf 'a\0b\377' >bin
run "$il" queue push q --file bin
job "--file, and it is not UTF-8" "$out" "d['payload'] is None and d['payload_base64'] == 'YQBi/w=='"
run "$il" queue push q ""
job "an empty payload" "$out" "d['payload'] in ('', None)"
gives "as JSON" 0 "$il" queue push q hi --json
json "... the item" "d['duplicate'] is False and d['id'] and d['queue'] == 'q' and d['state'] == 'READY' and d['payload'] == 'hi' and d['payload_bytes'] == 2 and d['result'] is None and d['result_bytes'] is None"

# Options.
gives "--id" 0 "$il" queue push q p --id mine
is "... is printed" "$out" mine
gives "... pushed again" 0 "$il" queue push q p --id mine
is "... is the same job" "$out" mine
gives "... as JSON" 0 "$il" queue push q p --id mine --json
json "... was there already" "d['duplicate'] is True and d['id'] == 'mine'"
error "... with another payload" 65 "queue push: *" "$il" queue push q other --id mine
gives "--priority" 0 "$il" queue push q p --priority -5
job "... may be negative" "$out" "d['priority'] == -5"
gives "--delay" 0 "$il" queue push q p --delay 1h
job "... is not due" "$out" "d['state'] == 'SCHEDULED' and d['run_at'] > d['created_at']"
gives "--run-at" 0 "$il" queue push q p --run-at 2099-02-28T23:59:60.5+01:00
job "... is that time" "$out" "d['run_at'] == '2099-02-28T23:00:00.500Z' and d['state'] == 'SCHEDULED'"
gives "--run-at, past" 0 "$il" queue push q p --run-at 2001-01-01T00:00:00Z
job "... is due" "$out" "d['state'] == 'READY'"
gives "--group, --max-attempts" 0 "$il" queue push q p --group g1 --max-attempts 2
job "... are kept" "$out" "d['group'] == 'g1' and d['max_attempts'] == 2"
gives "--unique-key" 0 "$il" queue push q p --unique-key u1
first=$out
gives "... again" 0 "$il" queue push q other --unique-key u1
is "... gives the first" "$out" "$first"
like "... and says so" "$err" "interlock: queue push: *unique key*"
gives "... as JSON" 0 "$il" queue push q other --unique-key u1 --json
json "... too, without the payload of the other" "d['duplicate'] is True and d['id'] == '$first' and d['payload'] is None and d['payload_bytes'] is None"
gives "... in another queue" 0 "$il" queue push q2 p --unique-key u1
check "... is another job" test "$out" != "$first"
gives "--unique-for" 0 "$il" queue push q p --unique-key u2 --unique-for 1h
first=$out
gives "... cancelled" 0 "$il" queue cancel "$first"
gives "... and still taken" 0 "$il" queue push q p --unique-key u2 --unique-for 1h
is "... by the first" "$out" "$first"

# Parents.
gives "--children" 0 "$il" queue push q p --children 2
parent=$out
job "... is a parent" "$parent" "d['state'] == 'RUNNING' and d['children'] == {'total': 0, 'completed': 0, 'failed': 0}"
for n in 1 2; do
    gives "child $n" 0 "$il" queue push q "c$n" --parent "$parent"
done
job "... has them" "$parent" "d['children']['total'] == 2"
error "... and no third" 75 "queue push: *" "$il" queue push q c3 --parent "$parent"
error "a parent that is none" 1 "queue push: *" "$il" queue push q c --parent mine
error "a parent that does not exist" 1 "queue push: no such job: 'nobody'" "$il" queue push q c --parent nobody
gives "--is-parent" 0 "$il" queue push q p --is-parent
open=$out
gives "... sealed without children" 0 "$il" queue seal "$open"
is "... is done" "$out" "$open COMPLETED"
gives "... again" 0 "$il" queue seal "$open"
error "to seal what is no parent" 1 "queue seal: *" "$il" queue seal mine
error "to seal nothing" 1 "queue seal: no such job: 'nobody'" "$il" queue seal nobody

# Lines.
seq 1 250 >numbers
run "$il" queue push lines --lines <numbers
is "--lines" "$status" 0
is "... prints the ids" "$(sort -u "$work/out" | wc -l)" 250
gives "... are jobs" 0 "$il" queue stats lines --json
json "... all of them" "d['items'][0]['ready'] == 250"
gives "... from a file, as JSON" 0 "$il" queue push lines2 --lines --file numbers --json
json "... a listing" "len(d['items']) == 250 and d['next'] is None and not any(i['duplicate'] for i in d['items'])"
printf 'a\n\n\nb' >few
gives "... without empty ones" 0 "$il" queue push lines3 --lines --file few
is "... is two" "$(wc -l <"$work/out")" 2
gives "no lines at all" 0 "$il" queue push lines3 --lines
is "... is no job" "$out" ""
run "$python" "$here/on-terminal.py" -- sh -c '"$0" queue push lines4 --lines --file numbers >ids' "$il"
like "on a terminal it says how far it is" "$out" "*100 jobs pushed*250 jobs pushed*status 0"
is "... beside what it prints" "$(wc -l <ids)" 250

# What is refused, and changes nothing.
"$il" queue stats --json >before
head -c 1048577 /dev/zero >big
error "a payload over the limit" 64 "queue push: the payload is larger than 1048576 bytes" "$il" queue push q --file big
head -c 1048576 /dev/zero >largest
error "a line over the limit" 64 "queue push: line 1 is longer than 1048576 bytes" "$il" queue push q --lines --file big
{ printf '\n\n'; cat big; } >third
error "... is counted as an editor does" 64 "queue push: line 3 is longer than 1048576 bytes" "$il" queue push q --lines --file third
error "a file that is not there" 64 "queue push: cannot read nofile: *" "$il" queue push q --file nofile
error "a folder" 64 "queue push: *" "$il" queue push q --file /
error "--file and a payload" 64 "queue push: --file and PAYLOAD cannot be combined" "$il" queue push q p --file few
error "--lines and a payload" 64 "queue push: --lines and a payload*" "$il" queue push q p --lines
error "--lines and --id" 64 "queue push: --lines *" "$il" queue push q --lines --id x
error "--lines and --unique-key" 64 "queue push: --lines *" "$il" queue push q --lines --unique-key x
error "--delay and --run-at" 64 "queue push: --delay and --run-at cannot be combined" "$il" queue push q p --delay 1s --run-at 2030-01-01T00:00:00Z
error "--unique-for alone" 64 "queue push: --unique-for needs --unique-key" "$il" queue push q p --unique-for 1s
for bad in -1s 5 x "" 367d; do
    error "--delay '$bad'" 64 "queue push: --delay: *" "$il" queue push q p --delay "$bad"
done
for bad in tomorrow 2026-02-29T00:00:00Z 2026-01-01 2026-01-01T24:00:00Z 2026-13-01T00:00:00Z 2026-01-01T00:00:00 \
    2026-01-01T00:00:00.Z 2026-01-01T00:00:00+1:00 1969-12-31T23:59:59Z 2026-01-01T00:00:00Zx; do
    error "--run-at $bad" 64 "queue push: --run-at: *" "$il" queue push q p --run-at "$bad"
done
for bad in 1001 -1001 x 1.5; do
    error "--priority $bad" 64 "queue push: --priority: *" "$il" queue push q p --priority "$bad"
done
for bad in 0 1001 -1; do
    error "--max-attempts $bad" 64 "queue push: --max-attempts: *" "$il" queue push q p --max-attempts "$bad"
done
error "--children 0" 64 "queue push: --children: *" "$il" queue push q p --children 0
error "control characters in a unique key" 64 "queue push: *control*" "$il" queue push q p --unique-key $'a\nb'
error "... in a group" 64 "queue push: *control*" "$il" queue push q p --group $'a\001b'
error "... in an id" 64 "queue push: *" "$il" queue push q p --id $'a\tb'
error "... in the name of a queue" 64 "queue push: *control*" "$il" queue push $'q\n' p
error "a queue without a name" 64 "queue push: *" "$il" queue push "" p
error "one that is too long" 64 "queue push: *longer*" "$il" queue push "$(printf 'x%.0s' {1..129})" p
error "no queue" 64 "queue push: an argument is missing*" "$il" queue push
error "an argument too many" 64 "queue push: unexpected argument 'c'" "$il" queue push a b c
"$il" queue stats --json >after
check "nothing was pushed" cmp <(py -c 'import json,sys
for i in json.load(open(sys.argv[1]))["items"]: print(i["name"], i["totals"]["pushed"])' before) <(py -c 'import json,sys
for i in json.load(open(sys.argv[1]))["items"]: print(i["name"], i["totals"]["pushed"])' after)
gives "the largest payload" 0 "$il" queue push large --file largest

# Concurrently, one job per unique key.
for n in $(seq 1 16); do
    bg "p$n" "$il" queue push race "p$n" --unique-key only
done
for n in $(seq 1 16); do
    reap "p$n"
done
is "sixteen at once, one job" "$(cat p?.out p??.out | sort -u | wc -l)" 1
finish
