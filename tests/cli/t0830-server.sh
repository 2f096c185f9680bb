#!/bin/bash
# --server: every command through `interlock serve`, on a separate store.
. "$(dirname "$0")/lib.sh" || exit 1
socket=$work/http.sock

# start_server: on the store $work/x.db; $server_pid.
start_server() {
    rm -f "$socket"
    env -u INTERLOCK_SERVER -u INTERLOCK_API_KEY "$il" serve --allow-root --store "$work/x.db" --log-level error --listen "unix:$socket" >"$work/server.log" 2>&1 </dev/null &
    server_pid=$!
    await "the server listens" test -S "$socket" || cat "$work/server.log"
}
stop_server() {
    kill -"$1" "$server_pid"
    wait "$server_pid" 2>/dev/null
}

error "nobody listens" 69 "http://127.0.0.1:9: *" "$il" locks --server http://127.0.0.1:9
error "a server and a store" 64 "--store and --server cannot be combined*" "$il" locks --store y.db --server http://127.0.0.1:9
error "a URL with a user" 64 "*remove the user*INTERLOCK_API_KEY*" "$il" locks --server http://me:secret@127.0.0.1:9
like "... and the password is not shown" "$err" "*[!s][!e][!c][!r][!e][!t]*"

key=$("$il" key create --tenant default --admin --json | py -c 'import json, sys; print(json.load(sys.stdin)["key"])')
start_server
export -n INTERLOCK_STORE
export INTERLOCK_SERVER=http+unix:$socket
error "no key" 69 "http+unix:$socket: *INTERLOCK_API_KEY*" "$il" locks
INTERLOCK_API_KEY=sk_default_wrong error "a wrong key" 69 "http+unix:$socket: *INTERLOCK_API_KEY*" \
    env INTERLOCK_API_KEY=sk_default_wrong "$il" locks
export INTERLOCK_API_KEY=$key

# ---- run ----
gives "a command under a lease" 7 "$il" run k -- sh -c 'test -n "$INTERLOCK_FENCE" && exit 7'
hold first k --ttl 2s
error "a second one is told who holds it" 75 "*k*is held by*" "$il" run k -- true
gives "locks" 0 "$il" locks --json
json "... one, with what it is doing" "len(d['items']) == 1 and d['items'][0]['key'] == 'k' and d['items'][0]['meta']['command'].startswith('sh -c')"
gives "why" 0 "$il" why --json k
json "... who holds it" "d['holders'][0]['key'] == 'k' if 'holders' in d else True"
bg second "$il" run --wait 20s k -- sh -c 'echo second'
await "the second waits" waits_for k 1
sleep 3 # longer than the ttl of 2 s: it is renewed through the server
gives "still held" 75 "$il" run k -- true
let_go first
reap second
is "the one that waited came next" "$status $(cat "$work/second.out")" "0 second"

hold third k --ttl 3s
gives "break" 0 "$il" break --now --reason "a test" k
reap third
is "its command was stopped" "$status" 76

# ---- queues, once, cache, runs ----
gives "push" 0 "$il" queue push mail '{"to": "x"}'
gives "push bytes that are no text" 0 sh -c "printf 'a\\000\\377b' | '$il' queue push mail -"
gives "work" 0 "$il" queue work --drain mail -- sh -c 'od -An -c >>"$1"' sh "$work/payloads"
like "... each payload to the byte" "$(cat "$work/payloads")" '*{*"*t*o*"*:*"*x*"*}*a*\\0*377*b*'
gives "the queue is empty" 0 "$il" queue stats --json mail
json "... two were completed" "d['items'][0]['totals']['completed'] == 2"
gives "once" 3 "$il" once order:1 -- sh -c 'echo made; exit 3'
error "another command with its key" 65 "order:1: *used for another command*" "$il" once order:1 -- sh -c 'echo again'
gives "once more" 3 "$il" once order:1 -- sh -c 'echo made; exit 3'
is "... the same answer" "$out" made
# ---- what a server is not asked ----
error "a server behind a server" 64 "serve: *" "$il" serve --allow-root
error "keys" 64 "key list: *cannot be used with a server*" "$il" key list
error "tenants" 64 "tenant list: *cannot be used with a server*" "$il" tenant list
error "the audit" 64 "audit: *cannot be used with a server*" "$il" audit
gives "... unless it is told where it is" 0 "$il" audit --data "$work/x.db"
error "doctor" 64 "doctor: *cannot be used with a server*" "$il" doctor
error "migrate" 64 "migrate: *cannot be used with a server*" "$il" migrate
error "guards" 64 "*need a postgres: store*" "$il" guard
error "another tenant" 64 "*to tenant 'default', not 'acme'*" "$il" locks --tenant acme
error "what is no server" 64 "--server: *http://HOST:PORT*" "$il" locks --server 127.0.0.1:7600
error "a path behind it" 69 "*no server is listening on the socket*" "$il" locks --server "$INTERLOCK_SERVER/x"
gives "cache get" 0 "$il" cache get --ttl 1m page -- sh -c 'echo built'
gives "... a hit" 0 "$il" cache get --ttl 1m page -- sh -c 'echo built again'
is "... the same value" "$out" built
gives "a recorded run" 0 "$il" run --record r -- sh -c 'echo hello; echo world >&2'
gives "runs" 0 "$il" runs --json
json "... is there" "d['items'][0]['key'] == 'r' and d['items'][0]['state'] == 'COMPLETED'"
gives "logs" 0 "$il" logs "$(py -c 'import json; print(json.load(open("out"))["items"][0]["id"])')"
like "... what it said" "$out" "*hello*"

# ---- keys that may do less ----
# key_of OPTION...: make a key.
key_of() {
    "$il" key create --data "$work/x.db" --json --tenant default "$@" | py -c 'import json, sys; print(json.load(sys.stdin)["key"])'
}
INTERLOCK_API_KEY=$(key_of --role read)
gives "a key that may read" 0 "$il" locks
error "... and nothing else" 64 "*needs the role 'write'*lock:acquire*" "$il" run r -- true
error "... not break" 64 "*needs the role 'write'*" "$il" queue push mail x
INTERLOCK_API_KEY=$(key_of --role write --prefix app:)
gives "a key with a prefix" 0 "$il" run app:1 -- true
error "... beyond it" 64 "*outside its prefix*" "$il" run other -- true
error "... a queue beyond it is not there" 1 "*no such queue: 'mail'*" "$il" queue work --drain mail -- true
error "... nor may it administer" 64 "*needs the role 'operator'*" "$il" queue pause app:q
hold fifth app:2 --ttl 2s
"$il" key revoke --data "$work/x.db" --reason "a test" "$("$il" key list --data "$work/x.db" --json |
    py -c 'import json, sys; print(json.load(sys.stdin)["items"][-1]["id"])')" >/dev/null
reap fifth
is "its key is revoked: the command ends before its lease does" "$status" 76
error "... and nothing starts" 69 "*INTERLOCK_API_KEY*" "$il" run app:1 -- true
INTERLOCK_API_KEY=$key

# ---- the server goes away ----
hold fourth k --ttl 3s
stop_server KILL
reap fourth
is "the server is killed: the command ends before its lease does" "$status" 76
error "nothing starts" 69 "http+unix:$socket: *" "$il" run k -- true
start_server
gives "it is back, and so is everything else" 0 "$il" run --wait 10s k -- true
stop_server TERM
finish
