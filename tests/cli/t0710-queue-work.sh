#!/bin/bash
# queue work: what a command gets, and how its exit status is interpreted.
. "$(dirname "$0")/lib.sh" || exit 1

push() {
    "$il" queue push "$@"
}
# job NAME ID EXPRESSION
job() {
    local name=$1 id=$2
    run "$il" queue show --json "$id"
    json "$name" "$3"
}

error "no such queue" 1 "queue work: no such queue: 'q'; use --create to create it" "$il" queue work q --drain -- true
gives "--create" 0 "$il" queue work q --create --drain -- true
gives "... there it is" 0 "$il" queue stats q

# What it gets.
id=$(push q 'the payload')
gives "a job" 0 "$il" queue work q --drain -- sh -c '
    cat; echo; echo "$INTERLOCK_QUEUE $INTERLOCK_JOB_ID $INTERLOCK_JOB_ATTEMPT"
    echo "$INTERLOCK_JOB_TOKEN" >token; echo "$INTERLOCK_FENCE" >fence; echo "$INTERLOCK_DEADLINE" >deadline'
is "its output is passed on" "$out" "the payload
q $id 1"
is "... nothing else is said" "$err" ""
check "the fence is the token" cmp token fence
check "the deadline is to come" test "$(cat deadline)" -gt "$(date +%s)000"
job "it is finished" "$id" "d['state'] == 'COMPLETED' and d['result'] == 'the payload\nq $id 1\n' and d['token'] == $(cat token) and d['attempt'] == 1 and time.match(d['completed_at']) and d['error'] is None"
head -c 300000 /dev/urandom >blob
id=$(push q --file blob)
gives "a large payload that is not read" 0 "$il" queue work q --drain -- true
job "... is fine" "$id" "d['state'] == 'COMPLETED'"
id=$(push q --file blob)
run "$il" queue work q --drain -- cat
check "... and one that is" cmp "$work/out" blob
job "... is the result" "$id" "d['result'] is None and len(d['result_base64']) == 400000"
id=$(push q x)
gives "-q" 0 "$il" -q queue work q --drain -- echo quiet
is "... passes nothing on" "$out$err" ""
job "... but keeps it" "$id" "d['result'] == 'quiet\n'"
id=$(push q x)
run "$il" queue work q --drain -- head -c 2000000 /dev/zero
is "a large result" "$(wc -c <"$work/out")" 2000000
like "... is cut" "$err" "interlock: q: job $id printed more than 1 MiB; result truncated"
job "... to its beginning" "$id" "len(d['result']) == 1048576 and d['state'] == 'COMPLETED'"

# What its exit status means.
gives "few attempts" 0 "$il" queue set q --max-attempts 2 --backoff 1ms --backoff-max 1ms
id=$(push q x)
run "$il" queue work q --once -- sh -c 'echo "some words" >&2; echo "last words" >&2; exit 3'
is "a failure" "$status" 1
like "... stderr is passed on, and it is said" "$err" "some words
last words
interlock: q: job $id failed (exit status 3), attempt 1 of 2; retrying in *s"
job "... is tried again" "$id" "d['state'] in ('SCHEDULED', 'READY') and d['attempt'] == 1 and d['error'] == 'exit status 3: some words\nlast words'"
run "$il" queue work q --once -- sh -c 'head -c 2000000 /dev/zero; kill -9 $$'
is "... for the last time" "$err" "interlock: q: job $id failed (killed by signal 9), attempt 2 of 2; will not be retried"
job "... then it has failed" "$id" "d['state'] == 'FAILED' and d['attempt'] == 2 and d['error'] == 'killed by signal 9'"
id=$(push q x)
run "$il" queue work q --once --snooze 1h -- sh -c 'exit 75'
is "75" "$status" 1
job "... puts it off, and counts no attempt" "$id" "d['state'] == 'SCHEDULED' and d['attempt'] == 0"
gives "... made due" 0 "$il" queue retry "$id"
is "... is said" "$out" "$id READY"
run "$il" queue work q --once -- sh -c 'echo bad data >&2; exit 65'
job "65 fails it at once" "$id" "d['state'] == 'FAILED' and d['attempt'] == 1 and d['error'] == 'exit status 65: bad data'"
id=$(push q x)
run "$il" queue work q --once -- sh -c 'printf "\377\001 text %s" "$(head -c 6000 /dev/zero | tr "\0" x)" >&2; exit 1'
job "an error that is no text" "$id" "d['error'].startswith('exit status 1: xxx') and len(d['error']) < 4096"
run "$il" queue work q --once -- sh -c 'printf "\377\001 text" >&2; exit 1'
job "... is made one" "$id" "d['error'] == 'exit status 1: ?? text'"
id=$(push q x)
run "$il" queue work q --once --timeout 200ms -- sleep 60
job "--timeout" "$id" "d['error'] == 'timed out after 200ms' and d['state'] in ('SCHEDULED', 'READY')"
run "$il" queue work q --once -- true
is "--once, finished" "$status" 0
gives "--once --drain without a job" 1 "$il" queue work q --once --drain -- true
run "$il" queue purge q --state failed
id=$(push q x)
run "$il" queue work q --once --json -- sh -c 'exit 3'
py -c 'import json,sys; d = json.loads(sys.stdin.read()); assert d["outcome"] == "retrying" and d["message"] == "exit status 3" and d["attempt"] == 1 and d["queue"] == "q" and d["ran_ms"] >= 0, d' <"$work/err"
is "--json" $? 0
gives "the rest" 0 "$il" queue work q --once -- true

# The command.
error "a command that is not there" 127 "nocommand: command not found" "$il" queue work q -- nocommand
error "one that cannot be executed" 126 "/etc/passwd: *" "$il" queue work q -- /etc/passwd
printf '#!/no/such/interpreter\n' >script
chmod +x script
id=$(push q x)
run "$il" queue work q -- ./script
is "one whose interpreter is missing" "$status" 126
job "... is not the job's fault" "$id" "d['state'] in ('SCHEDULED', 'READY') and d['attempt'] == 0"
gives "no command" 64 "$il" queue work q
gives "memory" 64 "$il" queue work q --store memory: -- true
error "--once -j 2" 64 "queue work: --once *" "$il" queue work q --once -j 2 -- true
for bad in 0 257 x; do
    error "-j $bad" 64 "queue work: --jobs: *" "$il" queue work q -j "$bad" -- true
done
error "a grace that does not fit" 64 "queue work: --grace 11s is more than a third of the lease of 30s" "$il" queue work q --grace 11s -- true
gives "the rest, again" 0 "$il" queue work q --drain -- true

# Order, several at once, several workers.
for n in 3 1 2; do
    push order "$n" --priority "$n" >/dev/null
done
run "$il" queue work order --drain -- sh -c 'cat; echo'
is "by priority" "$out" "1
2
3"
gives "forty jobs" 0 sh -c 'seq 1 40 | "$0" queue push many --lines' "$il"
mkdir ran
bg w1 "$il" queue work many -j 4 --drain -- sh -c 'read -r n; mkdir "ran/$n" || touch twice'
bg w2 "$il" queue work many -j 4 --drain -- sh -c 'read -r n; mkdir "ran/$n" || touch twice'
reap w1
reap w2
is "two workers: each once" "$(find ran -mindepth 1 | wc -l) $(ls twice 2>/dev/null)" "40 "
gives "all finished" 0 "$il" queue stats many --json
json "... in the store, too" "d['items'][0]['totals']['completed'] == 40 and d['items'][0]['ready'] == 0 and d['items'][0]['failed'] == 0"
mkfifo meet
push pair x >/dev/null
push pair y >/dev/null
gives "-j 2: two at once" 0 "$il" queue work pair -j 2 --drain -- sh -c 'if [ "$(cat)" = x ]; then echo hi >meet; else read -r _ <meet; fi'

# Children, and jobs that push jobs.
parent=$(push family p --children 2)
push family c1 --parent "$parent" >/dev/null
push family c2 --parent "$parent" >/dev/null
gives "children" 0 "$il" queue work family --drain -- true
job "... complete their parent" "$parent" "d['state'] == 'COMPLETED' and d['children'] == {'total': 2, 'completed': 2, 'failed': 0}"
push chain 3 >/dev/null
run env IL="$il" "$il" queue work chain --drain -- sh -c 'n=$(cat); echo $n; [ $n = 0 ] || "$IL" -q queue push chain $((n - 1)) >/dev/null'
is "a job that pushes the next" "$(tr '\n' ' ' <"$work/out")" "3 2 1 0 "
mkfifo met
push fan parent >/dev/null
gives "--drain: what is pushed by a job that still runs" 0 timeout -k 1 "$limit" env IL="$il" "$il" queue work fan -j 2 --drain -- \
    sh -c 'if [ "$(cat)" = parent ]; then "$IL" queue push fan child >/dev/null; read -r _ <met; else echo >met; fi'

# It waits for jobs, and leaves nothing of a command behind.
bg w "$il" queue work wait --create --once -- cat
await "a worker" "$il" queue stats wait
push wait late >/dev/null
reap w
is "a job that comes later" "$(cat w.out)" late
push left x >/dev/null
run "$il" queue work left --drain -- sh -c 'sleep 300 & echo $! >sleeper'
check "what it leaves in the background is ended" sh -c "! kill -0 \$(cat sleeper) 2>/dev/null"
# Rate and group limits hold back, and --drain waits for those.
gives "a rate" 0 "$il" queue set slow --rate 2/200ms
seq 1 5 | "$il" queue push slow --lines >/dev/null
gives "--drain waits for a rate" 0 "$il" queue work slow -j 4 --drain -- true
gives "... all are done" 0 "$il" queue stats slow --json
json "... at the end" "d['items'][0]['totals']['completed'] == 5"
gives "a pause" 0 "$il" queue pause slow --reason maintenance
push slow x >/dev/null
gives "--drain does not wait for a pause" 0 "$il" queue work slow --drain -- touch paused-ran
check "... and runs nothing" test ! -e paused-ran
finish
