#!/bin/bash
# interlock demo: the printed commands work, a killed server is restarted, and nothing is left
# behind.
. "$(dirname "$0")/lib.sh" || exit 1
export TMPDIR=$work/tmp
mkdir "$TMPDIR"
env -u INTERLOCK_STORE "$il" demo >"$work/demo.out" 2>"$work/demo.err" </dev/null &
demo=$!
pids[demo]=$demo
await "it says what to do" grep -q 'Ctrl-C' "$work/demo.out"
eval "$(grep -o 'export KEY=.*' "$work/demo.out")"
ask() { curl -s -H "X-API-Key: $KEY" "$@"; }
value() { py -c "import json, sys; print(json.load(sys.stdin)['$1'])"; }

link=$(sed -n 's/.*#link=\([A-Za-z0-9_-]*\).*/\1/p' "$work/demo.out")
sign_in() {
    curl -s -o /dev/null -w '%{http_code}' -H 'X-Interlock-Page: 1' -H 'Content-Type: application/json' \
        -d "{\"link\":\"$link\"}" "$URL/ui/session"
}
gives "the link signs in" 0 sign_in
is "..." "$out" 200
gives "... once" 0 sign_in
is "..." "$out" 401

eval "$(grep -o 'demo() {.*}' "$work/demo.out")"
gives "a line to try" 0 demo pause-holder
like "... says what to watch" "$out" '*"watch":"Its lease of 5s expires.*'
gives "trigger" 0 ask -XPOST "$URL/pipelines/run/slow"
json "... is new" "d['status'] == 'PENDING'"
id=$(value pipeline_logging_id <<<"$out")
gives "trigger again" 0 ask -XPOST "$URL/pipelines/run/slow"
json "... the same run" "d['status'] == 'RUNNING' and d['pipeline_logging_id'] == '$id'"
running() { ask "$URL/pipelines/runs/$id" | grep -q '"status":"RUNNING"'; }
await "it runs" running
gives "the checks" 0 ask -XPOST "$URL/pipelines/run/export_and_check"
checks=$(value pipeline_logging_id <<<"$out")
gives "... run" 0 ask "$URL/pipelines/runs/$checks?wait=20s"
completed() { ask "$URL/pipelines/runs/$checks" | grep -q '"status":"COMPLETED","trigger_type'; }
await "... and pass" completed

server=$(grep -o 'kill -9 [0-9]*' "$work/demo.out" | cut -d' ' -f3)
kill -9 "$server"
await "a new server runs" grep -q 'Started a new one' "$work/demo.out"
failed() { ask "$URL/pipelines/runs/$id" | grep -q '"status":"FAILED"'; }
await "the run has failed" failed
gives "... and says why" 0 ask "$URL/pipelines/runs/$id"
like "... " "$out" "*worker may have crashed*"
gives "the key is free" 0 ask -XPOST "$URL/pipelines/run/slow"
id=$(value pipeline_logging_id <<<"$out")
await "... and it runs again" running
kill -INT "$demo"
wait "$demo"
is "Ctrl-C ends it" "$?" 0
unset 'pids[demo]'
is "nothing is left" "$(ls "$TMPDIR")" ""
is "no complaint" "$(cat "$work/demo.err")" ""
finish
