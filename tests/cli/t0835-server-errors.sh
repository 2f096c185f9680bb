#!/bin/bash
# Errors with --store and with --server: the same text and exit status for the same history.
. "$(dirname "$0")/lib.sh" || exit 1
socket=$work/http.sock
unset INTERLOCK_STORE
mkdir -p "$work/p/default"
export INTERLOCK_PIPELINES=$work/p INTERLOCK_RANKS=a,b INTERLOCK_LIMIT_RUNS=1 INTERLOCK_LOCK_ACQUISITION_RETRIES=0
cat >"$work/p/default/strict.yml" <<'END'
pipeline_id: strict
on_conflict: reject
steps:
- {step_id: wait, type: command, shell: true, run: 'until [ -e "$HOME/go" ]; do sleep 0.05; done'}
END
sed 's/strict/other/' "$work/p/default/strict.yml" >"$work/p/default/other.yml"

# The same history on two stores: a.db directly, b.db through a server.
key=$("$il" key create --data "$work/b.db" --store "$work/b.db" --tenant default --admin --json |
    py -c 'import json, sys; print(json.load(sys.stdin)["key"])')
"$il" serve --allow-root --log-level error --store "$work/b.db" --listen "unix:$socket" >"$work/server.log" 2>&1 </dev/null &
server_pid=$!
await "the server listens" test -S "$socket" || cat "$work/server.log"
direct=(env INTERLOCK_STORE="$work/a.db")
through=(env -u INTERLOCK_PIPELINES INTERLOCK_SERVER="http+unix:$socket" INTERLOCK_API_KEY="$key")

# plain TEXT: without what differs from run to run.
plain() {
    sed -E -e 's/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/UUID/g' -e 's/[0-9]{13,}/NUMBER/g' \
        -e 's/(for|after) [0-9.]+ ?m?s/\1 TIME/g' -e 's/pid [0-9]+/pid PID/g' <<<"$1"
}

# same NAME STATUS PATTERN ARG...: on both, with this exit status, and this on stderr.
same() {
    local name=$1 expected=$2 pattern=$3 first
    shift 3
    error "$name" "$expected" "$pattern" "${direct[@]}" "$il" "$@"
    first=$(plain "$err")
    error "... through a server" "$expected" "$pattern" "${through[@]}" "$il" "$@"
    is "... the same line" "$(plain "$err")" "$first"
}

# both ARG...: on both, successfully.
both() {
    gives "$*" 0 "${direct[@]}" "$il" "$@"
    gives "... through a server" 0 "${through[@]}" "$il" "$@"
}

# hold_both KEY: until let_go_both.
hold_both() {
    local store=("${direct[@]}") name
    for name in direct through; do
        mkfifo "$work/$name.up" "$work/$name.go"
        bg "$name" "${store[@]}" "$il" run --holder one "$1" -- \
            sh -c 'exec 3<>"$2"; echo $$ >"$1"; read -r _ <&3' sh "$work/$name.up" "$work/$name.go"
        read -r -t "$limit" _ <>"$work/$name.up" || fail "$name holds $1" "$(cat "$work/$name.err")"
        store=("${through[@]}")
    done
}
let_go_both() {
    local name
    for name in direct through; do
        let_go "$name"
        is "$name: what held it ends" "$status" 0
        rm "$work/$name.up" "$work/$name.go"
    done
}

# ---- leases ----
hold_both b:1
same "held" 75 "b:1 is held by pid *holder one, fence *" run b:1 -- true
same "held, and another number of permits" 75 "b:1 is held by *" run --permits 3 b:1 -- true
same "not within the wait" 75 "b:1 is held by *" run --wait 100ms b:1 -- true
let_go_both
same "not held" 1 "break: *" break --reason "a test" b:1
same "against the lock order" 78 "'a:1': 'a:1' (rank 1, *must be locked before 'b:1'*" run b:1 -- "$il" run a:1 -- true
same "a key that is none" 64 "*key*" run "$(printf 'a\001')" -- true

# The second one that waits closes the cycle.
for store in direct through; do
    declare -n words=$store
    waits() { "${words[@]}" "$il" locks --waiters --json "$1" | grep -q '"key": *"'"$1"'"'; }
    holds() { "${words[@]}" "$il" locks --json "$1" | grep -q '"key": *"'"$1"'"'; }
    rm -f "$work/go"
    bg y "${words[@]}" "$il" run c:y -- sh -c 'until [ -e "$HOME/go" ]; do sleep 0.02; done; "$1" run --wait 20s c:x -- true' sh "$il"
    await "$store: one holds" holds c:y
    bg x "${words[@]}" "$il" run c:x -- "$il" run --wait 20s c:y -- true
    await "$store: the other waits" waits c:y
    touch "$work/go"
    reap y
    is "$store: a deadlock is told" "$status" 75
    like "$store: ... with its cycle" "$(cat "$work/y.err")" "interlock: 'c:x': * waits for 'c:x', held by *; * waits for 'c:y', held by *"
    if [ "$store" = direct ]; then
        first=$(plain "$(cat "$work/y.err")")
    else
        is "... the same line" "$(plain "$(cat "$work/y.err")")" "$first"
    fi
    reap x
done
rm -f "$work/go"

# ---- runs, idempotency, queues ----
same "no such run" 1 "*no such run: 'nope'*" runs nope
same "no log" 1 "logs: no such run: 'nope'" logs nope
same "nothing to cancel" 1 "cancel: no such run: 'nope'" cancel --reason "a test" nope
both once order:1 -- true
same "another command with its key" 65 "order:1: *another command*" once order:1 -- false
both queue push --id j1 mail x
same "another payload with its id" 65 "queue push: *" queue push --id j1 mail y
same "no such job" 1 "queue retry: no such job: 'nope'" queue retry nope
same "a job without children" 1 "queue seal: *" queue seal j1
same "no such queue" 1 "queue work: no such queue: 'nope'; use --create*" queue work --drain nope -- true

# ---- pipelines ----
both trigger strict
same "a pipeline that runs" 75 "trigger: Pipeline strict is already running: ????????-*" trigger strict
same "the tenant's limit" 75 "trigger: the tenant has reached its limit of 1 concurrent pipeline runs" trigger other
error "no such pipeline" 1 "trigger: *nope*" "${through[@]}" "$il" trigger nope
touch "$work/go"
kill -TERM "$server_pid"
wait "$server_pid"
finish
