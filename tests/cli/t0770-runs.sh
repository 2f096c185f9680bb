#!/bin/bash
# run --record, runs, logs, cancel.
. "$(dirname "$0")/lib.sh" || exit 1

# last KEY: the newest run of a key as $id, its JSON in $work/out.
last() {
    run "$il" runs --key "$1" --limit 1 --json
    id=$(py -c 'import json,sys; print(json.load(sys.stdin)["items"][0]["id"])' <"$work/out")
}
# recorded NAME KEY EXPRESSION: of d, the newest run.
recorded() {
    last "$2"
    json "$1" "[d := d['items'][0]] and $3"
}
has_state() {
    "$il" runs --key "$1" --limit 1 --json | grep -q "\"state\":\"$2\""
}

gives "before there is anything" 0 env -u INTERLOCK_STORE "$il" runs
like "... is said" "$err" "interlock: no matching runs; the store does not exist yet"
gives "a plain run" 0 "$il" run plain -- true
gives "... is not recorded" 0 "$il" runs --json
json "... at all" "d == {'items': [], 'next': None}"

gives "a recorded run" 0 "$il" run --record k -- sh -c 'echo out; echo err >&2; echo $INTERLOCK_RUN >run-id; echo $INTERLOCK_FENCE >fence'
is "... its output is passed on" "$out $err" "out err"
last k
is "... it knows its id" "$(cat run-id)" "$id"
recorded "... is complete" k "d['state'] == 'COMPLETED' and d['key'] == 'k' and d['tenant'] == 'default' and d['trigger'] == 'manual' and d['by'] and d['error'] is None and d['fence'] == $(cat fence) and d['log_bytes'] == 8 and d['duration_ms'] >= 0"
recorded "... has times" k "all(time.match(d[t]) for t in ('created_at', 'started_at', 'ended_at', 'updated_at'))"
gives "logs" 0 "$il" logs "$id"
is "... both streams" "$(sort "$work/out" | tr '\n' ' ')" "err out "
gives "logs as JSON" 0 "$il" logs "$id" --json
json "... one object" "d['id'] == '$id' and d['offset'] == 0 and d['ended'] is True and sorted(d['text'].split()) == ['err', 'out']"
gives "logs --follow of what has ended" 0 "$il" logs -f "$id"
gives "its lease is given back" 0 "$il" run k -- true
gives "--trigger, --by" 0 "$il" run --record --trigger cron --by ann --keep 1h k -- true
recorded "... are kept" k "d['trigger'] == 'cron' and d['by'] == 'ann'"
run "$il" run --record --json j -- sh -c 'exit 3'
py -c 'import json,sys; d=json.loads(sys.stdin.read()); assert d["outcome"]=="exited" and d["exit_status"]==3 and d["run"], d' <"$work/err"
is "--json names the run" $? 0

# How it ends.
gives "a failure" 3 "$il" run --record k -- sh -c 'exit 3'
recorded "... is FAILED" k "d['state'] == 'FAILED' and d['error'] == 'exit status 3'"
gives "a signal" 137 "$il" run --record k -- sh -c 'kill -9 $$'
recorded "... too" k "d['state'] == 'FAILED' and d['error'] == 'killed by signal 9'"
gives "a timeout" 77 "$il" run --record --timeout 100ms k -- sleep 60
recorded "... is TIMEOUT" k "d['state'] == 'TIMEOUT' and '100ms' in d['error']"
hold h k --record
recorded "at work" k "d['state'] == 'RUNNING' and d['ended_at'] is None and d['duration_ms'] is None"
kill -TERM "${pids[h]}"
reap h
recorded "a signal to the wrapper is INTERRUPTED" k "d['state'] == 'INTERRUPTED'"
hold h k --record --ttl 1s
kill -KILL "${pids[h]}"
reap h 2>/dev/null
await "a wrapper that is killed" has_state k FAILED
recorded "... may have crashed" k "d['error'] == 'lease expired - worker may have crashed'"
gives "the key is free again" 0 "$il" run --wait 10s k -- true
hold h k --record --ttl 10s --grace 1s
gives "broken" 0 "$il" break k --reason "a test"
reap h
is "... ends it" "$status" 76
await "... CANCELLED" has_state k CANCELLED
recorded "... with the reason" k "'a test' in d['error']"
run "$il" run --record --holder me k -- nocommand
is "a command that is not there" "$status" 127
recorded "... is FAILED" k "d['state'] == 'FAILED' and d['error'].startswith('cannot start the command')"
hold h k --record
gives "127: a missing command ends nobody else's run" 127 "$il" run --record --on-conflict cancel-running k -- nocommand
let_go h
is "... which goes on" "$status" 0
printf '#!/no/such/interpreter\n' >script
chmod +x script
gives "one without an interpreter" 126 "$il" run --record k -- ./script
recorded "... is FAILED" k "d['state'] == 'FAILED' and d['error'].startswith('cannot start the command')"

# A long log: its tail.
run "$il" run --record big -- sh -c 'head -c 3000000 /dev/zero | tr "\0" x; echo; echo the end'
is "much output" "$status $(wc -c <"$work/out")" "0 3000009"
last big
run "$il" logs "$id"
check "... its tail is kept" test "$(wc -c <"$work/out")" -le 1048576
is "... to the end" "$(tail -n 1 "$work/out")" "the end"
check "... and what is missing is said" sh -c "grep -q 'bytes were discarded' err || head -n 1 out | grep -q 'interlock: [0-9]* bytes discarded'"
gives "logs that nobody reads to their end" 0 sh -c '{ "$0" logs "$1" 2>&3; echo $? >&3; } 3>cut | head -c 10' "$il" "$id"
is "... end with them" "$(tail -n 2 cut)" $'interlock: cannot write to standard output: Broken pipe\n74'
run "$il" run --record esc -- printf '\033[31mred\n'
last esc
run "$python" "$here/on-terminal.py" -- "$il" logs "$id"
like "a terminal is not told what to do" "$out" '*\x1b?31mred*'

# Cancel, follow.
hold h c --record --grace 1s
last c
bg follow "$il" logs -f "$id"
gives "cancel" 0 "$il" cancel "$id" --reason "not wanted" --wait 20s
is "... has ended it" "$out" "$id CANCELLED"
reap h
is "... its wrapper says so" "$status" 75
like "... in words" "$(cat h.err)" "interlock: c: run cancelled: not wanted"
recorded "... with the reason" c "d['state'] == 'CANCELLED' and d['error'] == 'not wanted'"
reap follow
is "... and whoever follows it is done" "$status" 0
gives "cancel of what has ended" 0 "$il" cancel "$id" --reason again --json
json "... is as it is" "d['state'] == 'CANCELLED' and d['error'] == 'not wanted'"
hold h c --record --grace 1s
last c
gives "cancel without a wait" 0 "$il" cancel "$id" --reason x
like "... asks" "$out" "$id *"
reap h
bg deaf "$il" run --record --ttl 30s --grace 5s c -- sh -c 'trap "" TERM; touch deaf-up; exec sleep 300'
await "a deaf one" test -e deaf-up
last c
error "a wait that is too short" 77 "cancel: the run did not end within --wait" "$il" cancel "$id" --reason x --wait 100ms
kill -KILL "${pids[deaf]}"
reap deaf 2>/dev/null
mkfifo say
exec 7<>say
bg talk "$il" run --record talk -- sh -c 'while read -r line <"$0"; do echo "$line"; [ "$line" != bye ] || exit 0; done' "$work/say"
await "it runs" has_state talk RUNNING
last talk
bg follow "$il" logs --follow "$id"
echo one >&7
await "what is said is followed" grep -q one follow.out
echo bye >&7
exec 7>&-
reap talk
reap follow
is "... to the end" "$(cat follow.out)" $'one\nbye'

# Conflicts.
hold h x --record
last x
running=$id
error "reject" 75 "x is held by *, run $id, fence *" "$il" run --record x -- touch no
for policy in reject skip join; do
    run "$il" run --record --json --on-conflict $policy x -- touch no
    py -c 'import json,sys; d=json.loads(sys.stdin.read()); assert d["run"] == sys.argv[1], d' "$id" <"$work/err"
    is "$policy: --json names the run that is there" $? 0
done
error "... with another status" 9 "x is held by *" "$il" run --record -E 9 x -- touch no
error "a plain run, too" 75 "x is held by *" "$il" run x -- touch no
gives "skip" 0 "$il" run --record --on-conflict skip x -- touch no
like "... is said" "$err" "interlock: x: run $running is running; skipped"
check "nothing was run" test ! -e no
error "--wait that runs out" 75 "*" "$il" run --record --wait 100ms x -- touch no
recorded "... is CANCELLED" x "d['state'] == 'CANCELLED'"
bg q1 "$il" run --record --on-conflict queue x -- echo q1
await "one waits" has_state x PENDING
recorded "... in the queue" x "d['position'] == 1 and d['started_at'] is None and d['fence'] is None"
first=$id
bg q2 "$il" run --record --on-conflict queue x -- echo q2
await "two wait" sh -c "[ \$('$il' runs --key x --state pending --json | grep -o PENDING | wc -l) = 2 ]"
last x
gives "one that waits is cancelled" 0 "$il" cancel "$id" --reason "no more"
reap q2
is "... its wrapper ends" "$status" 75
like "... and says why" "$(cat q2.err)" "interlock: *no more*"
bg r1 "$il" run --record --on-conflict replace-pending x -- echo r1
reap q1
is "replace-pending cancels who waits" "$status" 75
run "$il" runs --key x --state cancelled --json
json "... with the reason" "any(i['id'] == '$first' and i['error'].startswith('replaced by run') for i in d['items'])"
let_go h
reap r1
is "... and gets its turn" "$status $(cat r1.out)" "0 r1"
hold h x --record --grace 1s
bg r2 "$il" run --record --on-conflict cancel-running x -- echo r2
reap h
is "cancel-running stops it" "$status" 75
reap r2
is "... and runs" "$status $(cat r2.out)" "0 r2"

# Join.
mkfifo jgo
bg j1 "$il" run --record --on-conflict join y -- sh -c 'echo from the first; read -r _ <"$0"; exit 6' "$work/jgo"
await "one at work" has_state y RUNNING
last y
first=$id
bg j2 "$il" run --record --on-conflict join y -- echo no
await "... joined" sh -c "'$il' runs --key y --json | grep -q '\"joined\":1'"
echo go >jgo
reap j1
reap j2
is "join gives its output and exit status" "$status $(cat j2.out)" "6 from the first"
recorded "... and is no run of its own" y "d['id'] == '$first'"
bg j1 "$il" run --record y -- sh -c 'touch j1-up; read -r _ <"$0"' "$work/jgo"
await "one that cannot be joined" test -e j1-up
error "... is in the way" 75 "*cannot be joined*" "$il" run --record --on-conflict join y -- echo no
echo go >jgo
reap j1

# Lists.
gives "a page" 0 "$il" runs --limit 2 --json
json "... newest first" "len(d['items']) == 2 and d['items'][0]['key'] == 'y' and d['next'] is not None"
next=$(py -c 'import json,sys; print(json.load(sys.stdin)["next"])' <"$work/out")
gives "the next" 0 "$il" runs --limit 2 --cursor "$next" --json
json "... goes on" "len(d['items']) == 2"
gives "by prefix" 0 "$il" runs bi --json
json "... only those" "[i['key'] for i in d['items']] == ['big']"
error "an unknown id" 1 "runs: no such run: '00000000-0000-4000-8000-000000000000'*" \
    "$il" runs 00000000-0000-4000-8000-000000000000
error "... as JSON" 1 "runs: no such run: 'nothing', and no runs with that key prefix" "$il" runs nothing --json
gives "by prefix and a state that none has" 0 "$il" runs bi --state pending --json
json "... is an empty listing" "d == {'items': [], 'next': None}"
gives "by state" 0 "$il" runs --state failed,timeout --json
json "... only those" "{i['state'] for i in d['items']} == {'FAILED', 'TIMEOUT'}"
gives "complete is completed" 0 "$il" runs --state complete --json
json "... too" "{i['state'] for i in d['items']} == {'COMPLETED'}"
gives "for people" 0 "$il" runs --key k
like "... a table" "$out" "ID *KEY *STATE *k *FAILED*"
error "a state that is none" 64 "runs: --state: 'dead' is not one of *" "$il" runs --state dead
error "a cursor that is none" 64 "runs: --cursor: *" "$il" runs --cursor x
error "a key and a prefix" 64 "runs: --key and*" "$il" runs --key k k
error "logs of nothing" 1 "logs: no such run: 'nobody'" "$il" logs nobody
error "cancel of nothing" 1 "cancel: no such run: 'nobody'" "$il" cancel nobody --reason x
error "cancel without a reason" 64 "cancel: --reason TEXT is missing" "$il" cancel "$first"
error "a reason with control characters" 64 "cancel: *control*" "$il" cancel "$first" --reason $'a\nb'
error "logs --json --follow" 64 "logs: --json *" "$il" logs --json -f "$first"
gives "another tenant" 1 "$il" logs "$first" --tenant other

error "--record --shared" 64 "run: --record cannot be combined*" "$il" run --record --shared k -- true
error "--record --permits" 64 "run: --record cannot be combined*" "$il" run --record --permits 2 k -- true
for policy in queue replace-pending cancel-running; do
    error "$policy without --record" 64 "run: --on-conflict $policy needs --record" "$il" run --on-conflict $policy k -- true
done
error "--trigger without --record" 64 "run: --trigger, --by and --keep need --record" "$il" run --trigger x k -- true
finish
