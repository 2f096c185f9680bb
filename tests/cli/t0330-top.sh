#!/bin/bash
# interlock top, on a real terminal: that of tmux.
. "$(dirname "$0")/lib.sh" || exit 1
export LC_ALL=C.UTF-8
tm() { tmux -f /dev/null -S "$work/tmux" "$@"; }
trap 'tm kill-server 2>/dev/null; cleanup' EXIT
keys() { tm send-keys -t top "$@"; }
pane() { tm capture-pane -p -t top; }
# shows TEXT, lacks TEXT, ordered A B: of what is on the screen
shows() { pane | grep -qF -- "$1"; }
lacks() { ! shows "$1"; }
ordered() { pane | grep -oE "$1|$2" | head -1 | grep -qE "^$1"; }
sees() { await "$1" "${@:2}" && pass "$1"; }
tmux=
is_closed() { [ -z "$tmux" ] || ! kill -0 "$tmux" 2>/dev/null; }
# start OPTION...: top in a new terminal of 100 columns and 24 rows. The tmux of the terminal before must be gone: while
# it exits it would still take this one.
start() {
    await "the terminal before is closed" is_closed
    rm -f "$work/status"
    tm new-session -d -s top -x 100 -y 24 \
        "$(printf '%q ' "$il" "$@" top --interval 100ms); echo \"status \$?\" >'$work/status'"
    tmux=$(tm display-message -p -t top '#{pid}')
}
# ends KEY: it quits with status 0
ends() {
    keys "$1"
    await "it quits" test -s "$work/status"
    is "... with status 0" "$(cat "$work/status")" "status 0"
}

hold first alpha --ttl 60s --holder anna
hold second beta --ttl 60s --holder bert
"$il" queue push mails hello >/dev/null
error "not a terminal" 64 "top: standard input and output must be a terminal*" "$il" top

start
sees "the overview counts" shows "locks 2"
sees "... and finds no problem" shows "no problems"
sees "the keys are named" shows "q quit"
keys 2
sees "locks" shows "anna"
sees "... sorted by key" ordered anna bert
keys r
sees "... reversed" ordered bert anna
keys r
keys '>'
sees "another column" shows "sorted by HOLDER"
keys /
keys -l bert
sees "a filter" lacks "anna"
sees "... is shown" shows "1 match bert"
keys -l x
sees "... that nothing matches says so" shows "no matching rows"
keys Enter
keys /
keys Escape
sees "... and removed" shows "anna"
hold third gamma --ttl 60s --holder cora
sees "a new lock appears" shows "cora"
let_go third
sees "... and goes" lacks "cora"
keys Down
keys w
sees "why" shows "beta is held"
keys Escape
sees "... and back" shows "sorted by HOLDER"
tm resize-window -t top -x 60 -y 10
sees "a smaller window" shows "q quit"
sees "... still has the rows" shows "bert"
tm resize-window -t top -x 100 -y 24
for size in 20x3 8x2 3x1 100x24; do
    tm resize-window -t top -x "${size%x*}" -y "${size#*x}"
done
sees "tiny ones in between do no harm" shows "sorted by HOLDER"
keys 3
sees "runs" shows "[3 runs]"
sees "... of which there are none" shows "no runs; record one with"
keys 4
sees "queues" shows "mails"
keys b
sees "a queue is not a lock" shows "select a lock first"
"$il" queue pause mails --reason 'bad weather' >/dev/null
sees "a pause is seen" shows "bad weather"
keys 1
sees "... and is a problem" shows "paused queue"

keys 2
sees "locks again" shows "anna"
keys Up
keys b
sees "it asks for a reason" shows "reason to break alpha:"
keys Enter
keys -l 'stücK'
keys BSpace
keys -l k
sees "... which can be edited" shows "alpha: stück"
keys Enter
sees "it asks again" shows "break alpha, held by anna? y/n"
keys n
sees "no" shows "break cancelled"
check "... leaves the lease" grep -q '"state":"held"' <("$il" why --json alpha)
keys b
sees "a reason" shows "reason to break alpha:"
keys -l stuck
keys Enter
sees "again" shows "y/n"
keys y
sees "yes" shows "broken: alpha, held by anna"
reap first
like "... the holder learns the reason" "$(cat "$work/first.err")" "*stuck*"
like "... and the audit log" "$("$il" audit --json)" "*lock.break*alpha*stuck*"
ends q

start --store "$work/x.db"
sees "an explicit store" shows "locks 1"
keys C-c
await "Ctrl-C quits" test -s "$work/status"

# Through a server that goes away and comes back.
key=$("$il" key create --tenant default --admin --json |
    py -c 'import json, sys; print(json.load(sys.stdin)["key"])')
serve() {
    bg server "$il" serve --allow-root --log-level error --listen "unix:$work/http.sock"
    await "the server listens" test -S "$work/http.sock"
}
serve
export INTERLOCK_API_KEY=$key
store=$INTERLOCK_STORE
unset INTERLOCK_STORE
start --server "http+unix:$work/http.sock"
export INTERLOCK_STORE=$store
sees "through a server" shows "locks 1"
keys 2
sees "... its locks" shows "bert"
kill -KILL "${pids[server]}"
reap server 2>/dev/null
sees "it is gone" shows "connection lost"
sees "... the rows stay" shows "bert"
rm -f "$work/http.sock"
serve
sees "it is back" lacks "connection lost"
keys Enter
sees "why through the server" shows "beta is held"
ends q
let_go second
finish
