#!/bin/bash
# trigger, runs RUN, logs and cancel for pipelines: directly on a store, executed here or by a
# server; and through a server.
. "$(dirname "$0")/lib.sh" || exit 1
socket=$work/http.sock
mkdir -p "$work/p/default"
export INTERLOCK_PIPELINES=$work/p INTERLOCK_PIPELINE_TTL=3s

# pipeline ID: its file, from standard input.
pipeline() {
    {
        echo "pipeline_id: $1"
        cat
    } >"$work/p/default/$1.yml"
}
pipeline hello <<'END'
parameters: {who: world}
steps:
- step_id: say
  type: command
  run: [printf, "hello %s\n", "{who}"]
- step_id: env
  type: command
  depends_on: [say]
  shell: true
  run: echo "run $INTERLOCK_RUN_ID fence $INTERLOCK_FENCE who $INTERLOCK_PARAM_who more $INTERLOCK_PARAM_more"; test -z "$SECRET_OF_THE_SERVER"
END
pipeline broken <<'END'
steps:
- {step_id: no, type: command, shell: true, run: "echo out; echo err >&2; exit 3"}
END
pipeline strict <<'END'
on_conflict: reject
parameters: {day: null}
steps:
- {step_id: wait, type: command, shell: true, run: 'until [ -e "$HOME/go" ]; do sleep 0.05; done'}
END
pipeline long <<'END'
steps:
- {step_id: wait, type: command, shell: true, run: 'echo begun; until [ -e "$HOME/go" ]; do sleep 0.05; done'}
END
export SECRET_OF_THE_SERVER=42

# ---- mistakes ----
error "no folder" 64 "trigger: *--pipelines*" env -u INTERLOCK_PIPELINES "$il" trigger hello
error "no such pipeline" 1 "trigger: *no pipeline 'helo'*" "$il" trigger helo
error "a parameter without a value" 64 "trigger: --param 'x' *NAME=VALUE*" "$il" trigger hello --param x
error "... given twice" 64 "trigger: *twice*" "$il" trigger hello -p who=a -p who=b
error "a parameter that is needed" 64 "trigger: *day*" "$il" trigger strict

# ---- executed here ----
gives "a run, executed here" 0 "$il" trigger hello --here --follow --param who=you --param more=x
like "... its output" "$out" "*say | hello you*env | run * fence * who you more x*"
id=$(head -n 1 <<<"$out")
gives "the run" 0 "$il" runs "$id" --json
json "... as its run shows it" "d['pipeline_logging_id'] == '$id' and d['status'] == 'COMPLETED' and d['trigger_type'] == 'cli' and d['parameters']['who'] == 'you' and [s['status'] for s in d['steps']] == ['COMPLETED', 'COMPLETED'] and d['fence'] > 0 and d['duration_ms'] >= 0"
gives "... for people" 0 "$il" runs "$id"
like "... with its steps" "$out" "*COMPLETED*STEP*say*env*"
gives "its log" 0 "$il" logs "$id"
like "... is kept" "$out" "*say | hello you*"
gives "nothing holds the lock" 0 "$il" why pipeline:hello
like "... any more" "$out" "pipeline:hello is free*"
gives "one that fails" 1 "$il" trigger broken --here
like "... and why" "$err" "*FAILED*no*"
gives "... both outputs are kept" 0 "$il" logs "$("$il" runs --key pipeline:broken --json | py -c 'import json, sys; print(json.load(sys.stdin)["items"][0]["id"])')"
like "... apart" "$out" "*no | out*no ! err*"

# ---- hooks ----
printf '#!/bin/sh\ncat >"$1"\nenv >"$1.env"\necho "what it prints is discarded"\n' >"$work/note"
chmod +x "$work/note"
for end in well badly; do
    pipeline "ends_$end" <<END
on_success: [$work/note, $work/well.json]
on_failure: [$work/note, $work/badly.json]
on_lost: [$work/note, $work/lost.json]
steps:
- {step_id: "do", type: command, shell: true, run: 'test "$end" = well'}
END
done
gives "a pipeline with hooks" 0 "$il" trigger ends_well --here
id=$out
cp "$work/well.json" "$work/out"
json "... tells its end" "d['event'] == 'success' and d['class'] == 'pipeline' and d['name'] == 'ends_well' and d['tenant'] == 'default' and d['key'] == 'pipeline:ends_well' and d['run'] == '$id' and d['outcome'] == 'COMPLETED' and d['fence'] > 0 and d['ran_ms'] >= 0 and d['message'] is None"
check "... in the environment, too" grep -qx "INTERLOCK_RUN=$id" "$work/well.json.env"
check "... and no secrets" sh -c '! grep -q SECRET "$1"' sh "$work/well.json.env"
check "... once" test ! -e "$work/badly.json"
gives "one that fails" 1 "$il" trigger ends_badly --here
cp "$work/badly.json" "$work/out"
json "... tells that" "d['event'] == 'failure' and d['name'] == 'ends_badly' and d['outcome'] == 'FAILED' and 'do' in d['message']"
check "... once" test ! -e "$work/lost.json"
pipeline hangs <<'END'
on_success: [sleep, "300"]
steps:
- {step_id: do, type: command, run: ["true"]}
END
bg hangs "$il" trigger hangs --here
is_free() { "$il" why pipeline:hangs | grep -q 'is free'; }
is_completed() { "$il" runs --key pipeline:hangs --json | grep -q COMPLETED; }
await "a run with a hook that hangs has ended" is_completed
check "... and its lock is free" is_free
kill -KILL "${pids[hangs]}"
reap hangs 2>/dev/null
for bad in 'x' '[]' '["", a]' '{a: b}'; do
    printf 'pipeline_id: bad\non_failure: %s\nsteps: [{step_id: a, type: command, run: ["true"]}]\n' "$bad" >"$work/p/default/bad.yml"
    gives "on_failure: $bad" 1 "$il" pipelines check "$work/p/default/bad.yml"
    like "... is refused" "$out$err" "*on_failure: *"
done
rm "$work/p/default/bad.yml" "$work"/p/default/ends_*.yml "$work/p/default/hangs.yml"

# ---- left in the store for a server ----
gives "a trigger without a server" 0 "$il" trigger hello
like "... says that nobody executes it" "$err" "*no server runs pipelines on this store*--here*"
first=$out
gives "... until --here does" 0 "$il" trigger hello --here --follow
like "... that very run" "$out" "$first*"
like "... to its end" "$err" "*run $first: COMPLETED*"
gives "a trigger of a long one" 0 "$il" trigger long --json
json "... waits" "d['status'] == 'PENDING' and d['pipeline_id'] == 'long' and d['tenant_id'] == 'default' and 'no server' in d['message']"
id=$(py -c 'import json, sys; print(json.load(sys.stdin)["pipeline_logging_id"])' <<<"$out")
gives "a second one" 0 "$il" trigger long --json
json "... is told its id" "d['pipeline_logging_id'] == '$id' and d['status'] == 'RUNNING' and 'no server' in d['message']"
gives "it has not ended" 77 "$il" trigger long --wait 100ms
like "... and says so" "$err" "*did not end within --wait*"

"$il" serve --allow-root --log-level error --listen "unix:$socket" >"$work/server.log" 2>&1 </dev/null &
server_pid=$!
await "the server listens" test -S "$socket" || cat "$work/server.log"
is_running() { "$il" runs "$1" --json | grep -q '"status": *"RUNNING"'; }
await "a server executes it" is_running "$id"
begun() { "$il" logs "$1" | grep -q 'wait | begun'; }
await "... its output is there while it runs" begun "$id"
gives "a trigger beside a server" 0 "$il" trigger long --json
json "... finds it running" "d['pipeline_logging_id'] == '$id' and 'already running' in d['message']"
gives "cancel" 0 "$il" cancel "$id" --reason "a test" --wait 20s
like "... it has ended" "$out" "$id CANCELLED*"
gives "strict" 0 "$il" trigger strict -p day=1
like "... is left to the server" "$err" "*triggered successfully*"
error "reject says who is in the way" 75 "trigger: *strict is already running*" env INTERLOCK_LOCK_ACQUISITION_RETRIES=0 "$il" trigger strict -p day=1
gives "... the history of its key, too" 0 "$il" history --json pipeline:strict
json "... with the trigger" "[(i['event'], i['count'], i['meta']['pipeline'], i['meta']['trigger']) for i in d['items']] == [('refused', 1, 'strict', 'cli')]"

# ---- through the server ----
key=$("$il" key create --tenant default --json | py -c 'import json, sys; print(json.load(sys.stdin)["key"])')
through() { env -u INTERLOCK_STORE -u INTERLOCK_PIPELINES INTERLOCK_API_KEY="$key" "$il" --server "http+unix:$socket" "$@"; }
error "no such pipeline there" 1 "trigger: *nope*" through trigger nope
error "--here is for stores" 64 "trigger: --here*" through trigger hello --here
gives "through the server" 0 through trigger hello --follow --param who=there --by ann
like "... its output" "$out" "*say | hello there*"
id=$(head -n 1 <<<"$out")
gives "... the run" 0 through runs "$id" --json
json "... by whom" "d['trigger_by'] == 'ann' and d['trigger_type'] == 'api' and d['status'] == 'COMPLETED' and len(d['steps']) == 2"
gives "one that fails there" 1 through trigger broken --wait 20s
like "... and why" "$err" "*FAILED*"
gives "a long one" 0 through trigger long
id=$out
await "... runs" is_running "$id"
gives "cancel through it" 0 through cancel "$id" --reason "enough" --wait 20s
like "... it has ended there, too" "$out" "$id CANCELLED*"
touch "$work/go"
kill -TERM "$server_pid"
wait "$server_pid"
is "the server ends" "$?" 0
finish
