#!/bin/bash
# On a terminal: the command has the foreground, Ctrl-C reaches it, Ctrl-Z is handled, and the
# terminal is restored.
. "$(dirname "$0")/lib.sh" || exit 1
pty=$here/on-terminal.py

# on_tty [EXPECT SEND]... -- COMMAND...: $out, $last is the line with the status.
on_tty() {
    run "$python" "$pty" "$@"
    last=$(tail -n 1 <<<"$out")
}

on_tty ready '\x03' -- "$il" run k -- sh -c 'trap "echo got INT; exit 42" INT; echo ready; while :; do sleep 0.02; done'
is "Ctrl-C reaches the command" "$last" "status 42"
is "... once" "$(grep -c "got INT" <<<"$out")" 1
on_tty ready '\x03' -- "$il" run k -- sh -c 'echo ready; while :; do sleep 0.02; done'
is "Ctrl-C ends it" "$last" "status 130"
on_tty ready '\x1c' -- "$il" run k -- sh -c 'echo ready; while :; do sleep 0.02; done'
is "Ctrl-\\ ends it" "$last" "status 131"
on_tty ready '\x1a' continuing '\x03' -- "$il" run k -- sh -c 'echo ready; exec sleep 100'
like "Ctrl-Z is answered" "$out" "*cannot be suspended*continuing*"
is "... and it goes on" "$last" "status 130"
on_tty name: 'Ada\n' -- "$il" run k -- sh -c 'printf name:; read -r name; echo "hello $name"'
like "the command reads from the terminal" "$out" "*hello Ada*"
is "... and ends well" "$last" "status 0"
on_tty -- "$il" run k -- sh -c 'ps -o stat= -p $$'
like "it is in the foreground" "$out" "*+*"

# Afterwards the shell has its terminal back, with its modes.
on_tty again: 'text\n' -- bash -c '"$0" run k -- sh -c "stty -echo; exit 3"; echo "was $?"; stty | grep -c -- -echo; printf again:; read -r x; echo "read $x"' "$il"
like "the shell goes on in the foreground" "$out" "*was 3*read text*"
on_tty ready '\x03' again: 'text\n' -- bash -c 'trap : INT; "$0" run k -- sh -c "stty -echo; echo ready; sleep 9"; echo "was $?"; stty -a | tr " ;" "\n\n" | grep -x -e "-\?echo"; printf again:; read -r x; echo "read $x"' "$il"
like "after Ctrl-C as well" "$out" "*was 130*read text*"
check "... with the modes as they were" grep -qx echo <<<"$out"
on_tty -- bash -c '"$0" run k -- seq 3 | cat; echo "${PIPESTATUS[0]}"' "$il"
like "in a pipeline" "$out" "1*2*3*0*"

# Waiting is ended by Ctrl-C, and nobody stays in the queue.
hold h held
on_tty -- "$il" run --wait 100ms held -- true
is "waiting in vain on a terminal" "$last" "status 75"
like "... says for whom" "$out" "*interlock: waiting for held, held by pid ${pids[h]} on * (sh -c *...) for *, holder *; 0 ahead*"
is "... once" "$(grep -c "waiting for held" <<<"$out")" 1
on_tty -- "$il" run -q --wait 100ms held -- true
check "... not with -q" sh -c "! grep -q 'waiting for' out"
on_tty -- "$il" run --json --wait 100ms held -- true
check "... not with --json" sh -c "! grep -q 'waiting for' out"
run "$il" run --wait 100ms held -- true
check "... not in a file" sh -c "! grep -q 'waiting for' err"
on_tty -- "$il" run --wait 100ms free -- true
check "... not for a free key" sh -c "! grep -q 'waiting for' out"
"$python" "$pty" @queued '\x03' -- "$il" run --wait 60s held -- echo no >tty.out &
reader=$!
await "queued" waits_for held 1
touch queued
wait $reader
is "Ctrl-C while waiting" "$(tail -n 1 tty.out)" "status 130"
is "nobody waits" "$(n_waiters held)" 0
let_go h

# Colours and tables only on a terminal.
hold h held
TERM=xterm on_tty -- "$il" why held
like "why is coloured on a terminal" "$out" "*"$'\033['"*"
NO_COLOR=1 TERM=xterm on_tty -- "$il" why held
check "... unless NO_COLOR" test "$(grep -c $'\033' <<<"$out")" = 0
TERM=dumb on_tty -- "$il" why held
check "... or a dumb terminal" test "$(grep -c $'\033' <<<"$out")" = 0
run "$il" why held
check "... or a file" test "$(grep -c $'\033' "$work/out")" = 0
# A UUID does not fit a narrow terminal: it is cut there, and nowhere else.
TERM=dumb on_tty -- sh -c 'stty cols 80; exec "$0" locks' "$il"
check "a table fits the terminal" test "$(LC_ALL=C.UTF-8 wc -L <<<"${out%status*}")" -le 80
like "... the holder is cut" "$out" "KEY *HOLDER *held *… *exclusive*"
TERM=dumb on_tty -- sh -c 'stty cols 200; exec "$0" locks' "$il"
check "... not on a wide one" sh -c "! grep -q … out"
TERM=dumb on_tty -- sh -c 'stty cols 20; exec "$0" locks' "$il"
like "... something of it always stays" "$out" "*held  ???????… *"
TERM=dumb on_tty -- sh -c 'stty cols 80; "$0" locks | cat' "$il"
check "... never in a pipe" sh -c "! grep -q … out"
on_tty -- "$il" locks --json
like "JSON is indented for people" "$out" $'{\n  "items"*'
let_go h
is "nothing is held" "$(state)" $'il_lease []\nil_waiter []'
finish
