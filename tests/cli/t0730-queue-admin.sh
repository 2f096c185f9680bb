#!/bin/bash
# queue list, show, retry, cancel, pause, resume, purge, stats, set.
. "$(dirname "$0")/lib.sh" || exit 1

push() {
    "$il" queue push "$@"
}
ids() {
    py -c 'import json,sys; print(" ".join(i["id"] for i in json.load(sys.stdin)["items"]))' <"$work/out"
}
cursor() {
    py -c 'import json,sys; print(json.load(sys.stdin)["next"])' <"$work/out"
}

# Before there is anything. Nothing is made by looking.
for command in "list q" "stats q" "pause q" "resume q" "purge q --state failed" "retry --all-failed q"; do
    read -ra words <<<"$command"
    error "${words[0]}: no store yet" 1 "queue ${words[0]}: no such queue: 'q'" env -u INTERLOCK_STORE "$il" queue "${words[@]}"
done
for command in show cancel retry; do
    error "$command: no store yet" 1 "queue $command: no such job: 'j'" env -u INTERLOCK_STORE "$il" queue "$command" j
done
check "nothing was made" test ! -e "$XDG_STATE_HOME"
gives "a store that was named" 69 "$il" queue list q --store "$work/no.db"
gives "another queue" 0 "$il" queue set other
for command in "list q" "stats q" "pause q" "resume q" "purge q --state failed" "retry --all-failed q"; do
    read -ra words <<<"$command"
    error "${words[0]}: no such queue" 1 "queue ${words[0]}: no such queue: 'q'" "$il" queue "${words[@]}"
done
gives "the beginning of a name is not the name" 1 "$il" queue stats othe
gives "no job in it" 0 "$il" queue list other
is "... is said" "$err" "interlock: no matching jobs in other"
gives "... as JSON" 0 "$il" queue list other --json
json "... is an empty list" "d == {'items': [], 'next': None}"

# List.
a=$(push q a)
b=$(push q b --delay 1h)
c=$(push q c --priority 7)
gives "a listing" 0 "$il" queue list q
like "... for people" "$out" "ID *STATE *ATTEMPT *
${c: -8} *READY *0/5 *7 *
${b: -8} *SCHEDULED *
${a: -8} *READY *"
gives "... as JSON" 0 "$il" queue list q --json
is "... newest first" "$(ids)" "$c $b $a"
json "... items" "all(set(('id', 'queue', 'state', 'attempt', 'priority', 'run_at', 'payload', 'result', 'error', 'created_at', 'started_at', 'completed_at', 'updated_at', 'progress', 'message')) <= set(i) for i in d['items']) and d['next'] is None"
json "... with what they carry" "[(i['payload'], i['payload_bytes'], i['result']) for i in d['items']] == [('c', 1, None), ('b', 1, None), ('a', 1, None)]"
gives "a page" 0 "$il" queue list q --limit 2 --json
is "... of two" "$(ids)" "$c $b"
next=$(cursor)
gives "the next page" 0 "$il" queue list q --limit 2 --cursor "$next" --json
is "... is the rest" "$(ids)" "$a"
gives "... for people" 0 "$il" queue list q --limit 2
like "... says how to go on" "$err" "interlock: more items: --cursor '*'"
for pair in "ready:$c $a" "READY:$c $a" "pending:$c $a" "scheduled:$b" "Scheduled,ready:$c $b $a" "failed:" "running:" "processing,executing:"; do
    gives "--state ${pair%%:*}" 0 "$il" queue list q --state "${pair%%:*}" --json
    is "... lists those" "$(ids)" "${pair#*:}"
done
for bad in frozen "ready,," "" "ready,frozen"; do
    error "--state '$bad'" 64 "queue list: --state: *" "$il" queue list q --state "$bad"
done
error "a cursor that is none" 64 "queue list: --cursor: 'frob' is not a cursor from a listing" "$il" queue list q --cursor frob
for bad in 0 1001 x; do
    error "--limit $bad" 64 "queue list: --limit: *" "$il" queue list q --limit "$bad"
done

# Show.
gives "show" 0 "$il" queue show "$a"
like "... for people" "$out" "id *$a*state *READY*payload (1 byte)
a"
error "show nothing" 1 "queue show: no such job: 'nobody'" "$il" queue show nobody
error "an id with control characters" 64 "queue show: *" "$il" queue show $'a\nb'
d=$(push q $'\033[31mred')
run "$python" "$here/on-terminal.py" -- "$il" queue show "$d"
like "a terminal is not told what to do" "$out" '*\x1b?31mred*'
gives "... away with it" 0 "$il" queue cancel "$d"

# Cancel, retry.
gives "cancel" 0 "$il" queue cancel "$a"
is "... is told" "$out" "$a CANCELLED"
gives "... again" 0 "$il" queue cancel "$a" --json
json "... is as it is" "d['state'] == 'CANCELLED' and d['id'] == '$a'"
gives "retry" 0 "$il" queue retry "$a"
is "... is ready again" "$out" "$a READY"
gives "retry of what is put off" 0 "$il" queue retry "$b" --json
json "... is due" "d['state'] == 'READY'"
error "a reason with control characters" 64 "queue cancel: *control*" "$il" queue cancel "$a" --reason $'x\ny'
gives "work" 0 "$il" queue work q --once -- true
gives "which" 0 "$il" queue list q --state completed --json
done=$(ids)
error "retry of a finished job" 1 "queue retry: *" "$il" queue retry "$done"
u=$(push q x --unique-key key)
gives "a unique one, cancelled" 0 "$il" queue cancel "$u"
v=$(push q y --unique-key key)
error "... when its key is taken" 1 "queue retry: unique key of job $u is in use by job $v" "$il" queue retry "$u"
error "... as JSON" 1 "queue retry: *$v" "$il" queue retry "$u" --json

# Failed ones.
gives "one attempt" 0 "$il" queue set dead --max-attempts 1
seq 1 3 | "$il" queue push dead --lines >/dev/null
"$il" -q queue work dead --drain -- false 2>/dev/null
gives "failed ones" 0 "$il" queue list dead --state failed --json
json "... three" "len(d['items']) == 3 and all(i['error'] == 'exit status 1' for i in d['items'])"
gives "--all-failed" 0 "$il" queue retry --all-failed dead
is "... is told" "$out" "3 jobs due now"
gives "... none left" 0 "$il" queue retry --all-failed dead --json
json "... as JSON" "d == {'retried': 0, 'duplicates': 0}"

# Purge.
"$il" -q queue work dead --drain -- false 2>/dev/null
error "purge of what runs" 64 "queue purge: *" "$il" queue purge dead --state running
error "purge without a state" 64 "queue purge: --state S is missing" "$il" queue purge dead
error "purge of no state" 64 "queue purge: --state: *" "$il" queue purge dead --state frozen
gives "purge --older" 0 "$il" queue purge dead --state failed --older 1h
is "... leaves the young ones" "$out" "0 jobs deleted"
gives "purge" 0 "$il" queue purge dead --state failed,completed
is "... is told" "$out" "3 jobs deleted"
seq 1 1500 | "$il" queue push dead --lines >/dev/null
gives "purge of many" 0 "$il" queue purge dead --state ready --json
json "... all of them" "d == {'purged': 1500}"
gives "what was purged" 0 "$il" audit --action queue.purge --json
json "... is recorded once, in however many steps" "[i['outcome'] for i in d['items']] == ['OK'] * 3 + ['BAD_REQUEST']"

# Pause and resume.
gives "pause" 0 "$il" queue pause q --reason "too hot"
is "... is told" "$out" "q paused"
gives "... shown" 0 "$il" queue stats q --json
json "... with the reason" "d['items'][0]['paused'] is True and d['items'][0]['reason'] == 'too hot'"
gives "... for people" 0 "$il" queue stats
like "... too" "$out" "*q *paused*"
gives "resume" 0 "$il" queue resume q
is "... is told" "$out" "q resumed"
gives "resume as JSON" 0 "$il" queue resume q --json
json "... the queue" "d['name'] == 'q' and d['paused'] is False and d['reason'] is None"
error "a reason with control characters" 64 "queue pause: *control*" "$il" queue pause q --reason $'x\ny'

# Stats.
gives "stats" 0 "$il" queue stats --json
json "... all queues, by name" "[i['name'] for i in d['items']] == ['dead', 'other', 'q'] and d['next'] is None"
json "... have fields" "all(set(('scheduled', 'ready', 'running', 'failed', 'oldest_ms', 'workers', 'totals', 'settings', 'tenant')) <= set(i) for i in d['items'])"
gives "a page of them" 0 "$il" queue stats --limit 2 --json
json "... two" "[i['name'] for i in d['items']] == ['dead', 'other']"
next=$(cursor)
gives "... and the rest" 0 "$il" queue stats --cursor "$next" --json
json "... one" "[i['name'] for i in d['items']] == ['q'] and d['next'] is None"
gives "one, for people" 0 "$il" queue stats q
like "... all about it" "$out" "queue *q
scheduled *totals *pushed*strategy *pessimistic*keep-failed *30d"
error "a cursor that is none" 64 "queue stats: --cursor: *" "$il" queue stats --cursor $'\001'

# Settings.
gives "set" 0 "$il" queue set s --rate 100/1m --group-limit 3 --strategy optimistic --max-attempts 7 --lease 10s --backoff 2s \
    --backoff-max 10m --keep 1d --keep-failed forever --processing-timeout 1m --executing-timeout 30s --json
json "... all of them" "d['settings'] == {'strategy': 'optimistic', 'max_attempts': 7, 'lease_ms': 10000, 'backoff_ms': 2000, 'backoff_max_ms': 600000, 'group_limit': 3, 'rate_n': 100, 'rate_ms': 60000, 'keep_ms': 86400000, 'keep_failed_ms': None, 'processing_timeout_ms': 60000, 'executing_timeout_ms': 30000}"
gives "set nothing" 0 "$il" queue set s
like "... shows them" "$out" "strategy *optimistic*rate *100/1m*keep-failed *forever"
gives "a rate by unit" 0 "$il" queue set s --rate 5/s --keep 1h30m --json
json "... and a duration of two" "d['settings']['rate_n'] == 5 and d['settings']['rate_ms'] == 1000 and d['settings']['keep_ms'] == 5400000"
gives "no limits" 0 "$il" queue set s --rate none --group-limit none --json
json "... any more" "d['settings']['rate_n'] is None and d['settings']['group_limit'] is None and d['settings']['max_attempts'] == 7"
for bad in 5 /1s 5/ 0/1s x/1s 5/0 5/x -1/1s 99999999999/1s; do
    error "--rate $bad" 64 "queue set: --rate: *" "$il" queue set s --rate "$bad"
done
error "--rate beyond" 64 "queue set: *" "$il" queue set s --rate 10001/1s
for bad in 0 -1 x; do
    error "--group-limit $bad" 64 "queue set: --group-limit: *" "$il" queue set s --group-limit "$bad"
done
error "--lease" 64 "queue set: --lease: *" "$il" queue set s --lease 1ms
error "--strategy" 64 "queue set: --strategy: *" "$il" queue set s --strategy hopeful
error "--max-attempts" 64 "queue set: --max-attempts: *" "$il" queue set s --max-attempts 0
error "a bad name" 64 "queue set: *" "$il" queue set $'a\nb'
# Groups.
gives "a group limit" 0 "$il" queue set g --group-limit 1
push g 1 --group x >/dev/null
push g 2 --group x >/dev/null
push g 3 --group y >/dev/null
gives "... is kept" 0 "$il" queue work g -j 3 --drain -- sh -c 'n=$(cat); case $n in 3) exit 0 ;; esac; mkdir held || touch both; sleep 0.1; rmdir held'
check "... one of a group at a time" test ! -e both
# Tenants are apart.
gives "another tenant" 1 "$il" queue stats q --tenant other
gives "... sees no job of ours" 1 "$il" queue show "$b" --tenant other
finish
