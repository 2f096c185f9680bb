#!/bin/bash
# on_success, on_failure and on_lost of run and queue work.
. "$(dirname "$0")/lib.sh" || exit 1

cat >note <<'END'
#!/bin/sh
# Keeps its input, environment and arguments.
cat >"$WHERE/input"
env >"$WHERE/env"
echo "$@" >"$WHERE/args"
echo called >>"$WHERE/calls"
END
chmod +x note
export WHERE=$work
has_input() { # EXPRESSION: of the JSON that the last hook got
    cp input out
    json "$1" "$2"
}
n_calls() {
    if [ -e calls ]; then wc -l <calls; else echo 0; fi
}

# Success, failure, lost lease.
gives "a success" 0 "$il" run --on-success ./note --on-failure false k -- sh -c 'echo $INTERLOCK_FENCE >fence; echo data'
is "... its output is its own" "$out $err" "data "
has_input "... tells the hook" "d['event'] == 'success' and d['key'] == 'k' and d['fence'] == $(cat fence) and d['outcome'] == 'exited' and d['exit_status'] == 0 and d['message'] is None and d['run'] is None and d['command'] == 'sh' and d['ran_ms'] >= 0 and d['holder']"
check "... in its environment, too" grep -qx INTERLOCK_EVENT=success env
check "... with the key" grep -qx INTERLOCK_KEY=k env
check "... the exit status" grep -qx INTERLOCK_EXIT_STATUS=0 env
check "... and the fence" grep -qx "INTERLOCK_FENCE=$(cat fence)" env
gives "a failure" 3 "$il" run --on-failure '["./note", "one two", "$HOME"]' k -- sh -c 'exit 3'
has_input "... tells the hook" "d['event'] == 'failure' and d['exit_status'] == 3"
is "... whose arguments no shell has seen" "$(cat args)" 'one two $HOME'
gives "a timeout" 77 "$il" run --timeout 100ms --on-failure ./note k -- sleep 60
has_input "... is one" "d['event'] == 'failure' and d['outcome'] == 'timeout' and 'longer than' in d['message']"
gives "a recorded run" 0 "$il" run --record --on-success ./note k -- true
run "$il" runs k --json
id=$(py -c 'import json,sys; print(json.load(sys.stdin)["id"])' <"$work/out")
has_input "... tells its id" "d['run'] == '$id'"
rm -f calls
hold h k --on-lost ./note --on-failure ./note --ttl 10s --grace 1s
gives "a lease that is broken" 0 "$il" break k --now --reason "a test"
reap h
is "... is lost" "$status" 76
has_input "... tells the hook" "d['event'] == 'lost' and d['exit_status'] == 76 and 'lease' in d['message']"
is "... one hook" "$(n_calls)" 1

# No secrets.
printf 'on_failure: ./note\n' >config.yml
run env INTERLOCK_API_KEY=sk_secret INTERLOCK_DATA=postgres://user:secret@nowhere/x "$il" --config config.yml run k -- false
is "a hook of the configuration" "$status" 1
check "... knows the facts" grep -qx INTERLOCK_EVENT=failure env
check "... and no secrets" sh -c '! grep -q secret env'
check "... and no other variables of ours" sh -c '! grep -q "^INTERLOCK_STORE=" env'
gives "in the environment" 1 env INTERLOCK_ON_FAILURE='["./note","env"]' "$il" run k -- false
is "... too" "$(cat args)" env

# Nothing was run, so nothing is told.
rm -f calls
hold h k
gives "a key that is held" 75 "$il" run --on-success ./note --on-failure ./note --on-lost ./note k -- true
gives "a command that is not there" 127 "$il" run --on-success ./note --on-lost ./note other -- nocommand
is "no hook" "$(n_calls)" 0
let_go h

# Hooks that go wrong.
gives "one that fails" 0 "$il" run --on-success '["sh","-c","echo oops >&2; exit 4"]' k -- true
is "... is reported, and what it says passed on" "$err" "oops
interlock: k: hook on_success (sh) failed: exit status 4"
gives "one that prints a lot at once" 0 "$il" run --on-success '["seq","6000"]' k -- true
is "... is passed on to the last line" "$(tail -n 1 <<<"$err")" 6000
run "$il" run --json --on-success false k -- true
py -c 'import json,sys; d=json.loads(sys.stdin.read().splitlines()[-1]); assert d["hook_failed"] is True and d["exit_status"] == 0, d' <"$work/err"
is "... with --json, too" $? 0
gives "one that is missing" 5 "$il" run --on-failure ./nohook k -- sh -c 'exit 5'
is "... is reported" "$err" "interlock: k: hook on_failure (./nohook) failed: command not found"
for bad in '[' '[]' '[1]' '[""]' '["x",2]'; do
    error "--on-success $bad" 64 "run: on_success: '${bad//\[/\\[}' is neither a program nor a JSON array of strings" "$il" run --on-success "$bad" k -- touch no
done
check "... runs nothing" test ! -e no

# One that hangs delays nobody, and ends in time, with what it has started.
mkfifo up
bg slow "$il" run --on-success '["sh","-c","sleep 300 & echo $! >\"$WHERE/sleeper\"; echo $$ >\"$WHERE/up\"; trap \"\" TERM; while :; do sleep 1; done"]' k -- true
read -r -t "$limit" hook_pid <>up
gives "the key is free while a hook hangs" 0 "$il" run k -- true
reap slow
is "it is ended" "$status" 0
is "... after ten seconds" "$(cat slow.err)" "interlock: k: hook on_success (sh) failed: killed after 10 s"
check "... really" sh -c "! kill -0 $hook_pid 2>/dev/null"
check "... and what it has started" sh -c '! kill -0 $(cat sleeper) 2>/dev/null'
bg stopped "$il" run --on-success '["sh","-c","echo $$ >\"$WHERE/up\"; while :; do sleep 1; done"]' k -- true
read -r -t "$limit" hook_pid <>up
kill -TERM "${pids[stopped]}"
reap stopped
is "a signal ends it, too" "$(cat stopped.err)" "interlock: k: hook on_success (sh) failed: stopped by a signal"

# A wrapper that is killed calls no hook, and one that is killed later leaves none behind.
rm -f calls
hold h k --on-failure ./note --on-lost ./note --ttl 1s
kill -KILL "${pids[h]}"
reap h 2>/dev/null
gives "after a wrapper was killed" 0 "$il" run --wait 20s k -- true
is "... no hook was called" "$(n_calls)" 0
bg killed "$il" run --on-success '["sh","-c","echo $$ >\"$WHERE/up\"; while :; do sleep 1; done"]' k -- true
read -r -t "$limit" hook_pid <>up
kill -KILL "${pids[killed]}"
reap killed 2>/dev/null
await "a hook whose wrapper is killed ends" sh -c "! kill -0 $hook_pid 2>/dev/null"

# Jobs.
push() {
    "$il" queue push "$@" >/dev/null
}
push q one --id job-1
gives "a job that finishes" 0 "$il" -q queue work q --drain --on-success ./note --on-failure false -- true
has_input "... tells the hook" "d['event'] == 'success' and d['queue'] == 'q' and d['job_id'] == 'job-1' and d['job_attempt'] == 1 and d['outcome'] == 'finished' and d['worker']"
rm -f calls
push q two --id job-2 --max-attempts 2
gives "a job that is retried" 0 "$il" -q queue work q --drain --on-failure ./note -- sh -c 'exit 3'
is "... tells nobody" "$(n_calls)" 0
"$il" queue retry job-2 >/dev/null
gives "... until it has failed for good" 0 "$il" -q queue work q --drain --on-failure ./note -- sh -c 'exit 3'
has_input "... then it does" "d['event'] == 'failure' and d['job_id'] == 'job-2' and d['job_attempt'] == 2 and d['outcome'] == 'failed' and d['message'] == 'exit status 3'"
is "... once" "$(n_calls)" 1
push q three
gives "a hook that fails" 0 "$il" queue work q --drain --on-success false -- true
like "... is reported and counted" "$err" "interlock: q: hook on_success (false) failed: exit status 1
interlock: q: 1 job in *: 1 finished; 1 hook failed"
gives "... and its job is finished" 0 "$il" queue stats q --json
json "... in the store" "d['items'][0]['totals']['completed'] == 2 and d['items'][0]['running'] == 0"
finish
