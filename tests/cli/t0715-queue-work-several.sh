#!/bin/bash
# queue work: several queues with weights, what it says, and what it leaves behind.
. "$(dirname "$0")/lib.sh" || exit 1

n_workers() {
    "$il" queue stats "$1" --json | py -c 'import json,sys; print(json.load(sys.stdin)["items"][0]["workers"])'
}
push() {
    "$il" queue push "$@" >/dev/null
}

for n in 1 2 3 4 5 6 7 8; do
    push a "a$n"
    push b "b$n"
done
gives "two queues" 0 "$il" -q queue work a b --weight a=3 --drain -- sh -c 'cat; echo " $INTERLOCK_QUEUE" >>order; cat'
is "... by weight" "$(head -n 8 order | tr -d ' \n')" aabaaaba
is "... all of both" "$(sort order | uniq -c | tr -d ' \n')" 8a8b
push a=b x
push c y
gives "a queue with an equals sign" 0 "$il" queue work a=b c -w a=b=2 -w c=1 --drain -- sh -c 'echo "$INTERLOCK_QUEUE"; test "$INTERLOCK_QUEUE" = c'
is "... has a weight, too" "$(sort "$work/out" | tr '\n' ' ')" "a=b c "
like "the summary says what became of them" "$(tail -n 1 "$work/err")" "interlock: a=b, c: 2 jobs in *: 1 finished, 1 will be retried"
push c y
gives "a queue drained without trouble" 0 "$il" queue work c --drain -- true
is "... gives cron nothing to mail" "$err" ""
error "a weight of no queue of ours" 64 "queue work: --weight 'd=2': not one of the given queues" "$il" queue work a -w d=2 --drain -- true
for bad in a a= a=0 a=x a=1001 =3; do
    error "--weight $bad" 64 "queue work: --weight '$bad'*" "$il" queue work a -w "$bad" --drain -- true
done
error "one queue twice" 64 "queue work: queue 'a' is named twice" "$il" queue work a b a --drain -- true
error "one that is not there" 1 "queue work: no such queue: 'nope'; *" "$il" queue work a nope --drain -- true
gives "--create makes all of them" 0 "$il" queue work new1 new2 --create --drain -- true
gives "... as queues" 0 "$il" queue stats --json
json "... really" "{'new1', 'new2'} <= {i['name'] for i in d['items']}"

# One that waits for two queues takes from either.
bg w "$il" queue work a b -- sh -c 'cat; echo'
push b one
await "a job of the second" grep -q one w.out
push a two
await "a job of the first" grep -q two w.out
is "it is a worker of the first" "$(n_workers a)" 1
is "... and of the second" "$(n_workers b)" 1
kill -TERM "${pids[w]}"
reap w
is "a signal ends it" "$status" 0
is "its row is gone" "$(n_workers a) $(n_workers b)" "0 0"
like "... with a summary" "$(tail -n 1 w.err)" "interlock: a, b: 2 jobs in *: 2 finished"
bg w "$il" queue work a --json -- true
push a x
await "a job with --json" grep -q '"outcome":"finished"' w.err
kill -TERM "${pids[w]}"
reap w
is "... has no summary" "$(grep -c ' job in ' w.err)" 0
bg w "$il" queue work a -- sleep 60
push a x
is_running() { "$il" queue list a --state running --json | grep -q RUNNING; }
await "one at work" is_running
kill -KILL "${pids[w]}"
reap w 2>/dev/null
is "a killed worker's row stays for a while" "$(n_workers a)" 1

# On a terminal it says what it does.
bg t "$python" "$here/on-terminal.py" "waiting for jobs in a, b" "\\x03" -- "$il" queue work a b -- true
reap t
like "on a terminal it says that it waits" "$(cat t.out)" "*interlock: waiting for jobs in a, b*interlock: a, b: * job*status 0"
bg t "$python" "$here/on-terminal.py" -- "$il" queue work a b --drain -- true
reap t
like "on a terminal --drain has a summary, whatever it did" "$(cat t.out)" "*interlock: a, b: * job*"

# Messages say the attempt and when the next one is due.
push m x --max-attempts 2 --id mail-1
run "$il" queue work m --drain -- sh -c 'exit 3'
like "a first failure" "$err" "interlock: m: job mail-1 failed (exit status 3), attempt 1 of 2; retrying in *s
interlock: m: 1 job in *: 1 will be retried"
"$il" queue retry mail-1 >/dev/null
run "$il" queue work m --drain -- sh -c 'exit 3'
like "the last one" "$err" "interlock: m: job mail-1 failed (exit status 3), attempt 2 of 2; will not be retried
interlock: m: 1 job in *: 1 failed"
is "--drain succeeds" "$status" 0
push m x --max-attempts 1
gives "--fail-on-failed" 1 "$il" queue work m --drain --fail-on-failed -- false
push m x --max-attempts 2
gives "... not for a job that is retried" 0 "$il" queue work m --drain --fail-on-failed -- false
push s x
run "$il" queue work s --drain --snooze 1h -- sh -c 'exit 75'
like "later" "$err" "interlock: s: job * snoozed (exit status 75), attempt 1 of 5; due in *
*"
push j x
run "$il" queue work j --drain --json -- false
py -c 'import json,sys; d=json.loads(sys.stdin.read()); assert d["outcome"] == "retrying" and 0 < d["due_in_ms"] <= 3600000 and d["attempt"] == 1, d' <"$work/err"
is "--json says when it is due" $? 0
finish
