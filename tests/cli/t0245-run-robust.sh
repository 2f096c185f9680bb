#!/bin/bash
# Robustness: the reader of our output, the time of a signal and our inherited state must not
# matter.
. "$(dirname "$0")/lib.sh" || exit 1
pty=$here/on-terminal.py
mkfifo up full broken

# Descriptor 9 is a pipe that is full and stays so, 7 is one that nobody reads.
exec 9<>full 8<>broken
exec 7>broken 8<&-
py - <<'END'
import os
os.set_blocking(9, False)
for n_bytes in (4096, 1):
    try:
        while True:
            os.write(9, b"x" * n_bytes)
    except BlockingIOError:
        pass
os.set_blocking(9, True)
END

# on_tty [EXPECT SEND]... -- COMMAND...: $out, $last is the line with the status.
on_tty() {
    run "$python" "$pty" "$@"
    last=$(tail -n 1 <<<"$out")
}
# parent_of PID, is_in STATE PID
parent_of() { ps -o ppid= -p "$1" | tr -d ' '; }
is_in() { [[ $(ps -o stat= -p "$2") == "$1"* ]]; }

# Nobody reads stderr, and the pipe is full.
"$il" run --ttl 3s --grace 300ms k -- sh -c 'echo $$ >up; exec sleep 60' 2>&9 </dev/null &
pids[full]=$!
read -r -t "$limit" command_pid <>up
kill -KILL "${pids[full]}"
reap full 2>/dev/null
await "the command ends" test ! -e "/proc/$command_pid" && pass "stderr is full: an orphaned command is stopped"
gives "... and one that was suspended goes on" 3 timeout 15 \
    sh -c '"$0" run k2 -- sh -c "kill -STOP \$\$; exit 3" 2>&9' "$il"
gives "... and leftovers are ended" 4 timeout 15 \
    sh -c '"$0" run --grace 300ms k2 -- sh -c "sleep 60 & exit 4" 2>&9' "$il"

# Nobody can read stderr any more: the message is lost, the status is not.
unread() {
    local name=$1 expected=$2
    shift 2
    gives "stderr is broken: $name" "$expected" \
        sh -c 'exec env --default-signal=PIPE "$@" 2>&7' sh "$il" run "$@"
}
unread "timeout" 77 --timeout 100ms k3 -- sleep 60
unread "leftovers" 3 --grace 300ms k3 -- sh -c 'sleep 60 & exit 3'
unread "no such command" 127 k3 -- ./nonexistent
unread "--json" 5 --json k3 -- sh -c 'exit 5'
hold h k3
unread "held" 75 k3 -- true
unread "skipped" 0 --on-conflict skip k3 -- true
let_go h

# A signal for a command that has ended, while the wrapper still waits for the store.
hold h k4
reaper=$(parent_of "$command_pid")
exec 6<>x.db-lock
flock 6
echo go 1<>h.go
await "the reaper was let go" is_in Z "$reaper"
kill -USR1 "${pids[h]}"
kill -ALRM "${pids[h]}"
flock -u 6
exec 6<&-
reap h
is "signals after the command's end are moot" "$status" 0

# Ctrl-C ends the loop around us, whether the command had the terminal or not.
cat >loop.sh <<'END'
for i in 1 2; do
    echo "round $i"
    "$@"
    echo "went on after $?"
done
END
on_tty ready '\x03' -- bash loop.sh "$il" run k5 -- sh -c 'echo ready; exec sleep 60'
is "Ctrl-C ends the script" "$last" "status -2"
check "... at once" test "$(grep -c "round\|went" <<<"$out")" = 1
sed 's:"$@":& </dev/null:' loop.sh >unlent.sh
on_tty ready '\x03' -- bash unlent.sh "$il" run k5 -- sh -c 'echo ready; exec sleep 60'
is "... also when the command did not have the terminal" "$last" "status -2"
on_tty ready '\x1c' -- bash -c '"$0" run k5 -- sh -c "echo ready; exec sleep 60"; echo "was $?"' "$il"
like "Ctrl-\\ is still 131" "$out" "*was 131*"
on_tty ready '\x03' ready '\x03' -- bash loop.sh "$il" run k5 -- bash -c 'trap "exit 7" INT; echo ready; while :; do read -rt 0.02; done'
is "a command that answers Ctrl-C itself does not" "$(grep -c "went on after 7" <<<"$out")" 2
hold h k5
"$python" "$pty" @queued '\x03' -- bash loop.sh "$il" run --wait 60s k5 -- true >tty.out &
reader=$!
await "queued" waits_for k5 1
touch queued
wait $reader
is "Ctrl-C while waiting ends the script, too" "$(tail -n 1 tty.out)" "status -2"

let_go h

# A stopped wrapper: the shell has taken the terminal, and it is not taken from it at the command's end.
# It is at its prompt by then: `bgd` says that it has gone on, `ended` that the run is over.
# shellcheck disable=SC2016
echo 'kill -STOP $(ps -o ppid= -p $PPID); until [ -e go.on ]; do sleep 0.02; done' >stop.sh
# shellcheck disable=SC2016
IL=$il PS1='prompt> ' "$python" "$pty" 'prompt> ' '"$IL" run k5 -- sh stop.sh\n' Stopped 'bg; touch bgd\n' @ended \
    'echo still-$((1 + 1))\n' still-2 'exit\n' -- env LC_ALL=C bash --norc --noprofile -i >tty.out &
reader=$!
await "it goes on in the background" test -e bgd
touch go.on
is_free() { [ -z "$("$il" -q locks k5)" ]; }
await "the run ends" is_free
touch ended
wait $reader
like "the shell keeps the terminal it has taken" "$(cat tty.out)" "*still-2*status 0"

# The same --holder twice.
hold h k6 --holder me
error "a holder that is in use" 75 "holder 'me' is already in use for this key (pid ${pids[h]} on *)" \
    "$il" run --holder me k6 -- touch ran
gives "... and the key is still held" 75 "$il" run k6 -- touch ran
check "nothing was run" test ! -e ran
let_go h
is "... by one that ends well" "$status" 0
hold h k6 --holder joined --on-conflict join
gives "with join" 75 "$il" run --holder joined --on-conflict join k6 -- touch ran
bg joiner "$il" run --on-conflict join --json k6 -- touch ran
watches() { find "/proc/$1/fd" -lname '*inotify*' | grep -q .; }
await "joined" watches "${pids[joiner]}"
let_go h
reap joiner
is "... the first can still be joined" "$status" 0
check "... which is what happened" grep -q '"joined"' joiner.err

# A reaper that was stopped while the wrapper waited.
hold h k7
bg waiter "$il" run --wait 60s k7 -- sh -c 'exit 6'
await "queued" waits_for k7 1
reaper=$(ps -o pid= --ppid "${pids[waiter]}" | tr -d ' ')
kill -STOP "$reaper"
await "stopped" is_in T "$reaper"
let_go h
reap waiter
is "a reaper stopped while waiting goes on" "$status" 6

# Started with SIGCHLD ignored.
gives "race with SIGCHLD ignored" 0 timeout 15 env --ignore-signal=CHLD "$il" race 2 --expect 2 -- true
gives "run with SIGCHLD ignored" 5 timeout 15 env --ignore-signal=CHLD "$il" run k7 -- sh -c 'exit 5'

# Output that cannot be written.
join="run --on-conflict join"
error "join: no space for the output" 74 "k8: cannot write the output: *" \
    sh -c '"$0" '"$join"' k8 -- echo text >/dev/full' "$il"
error "... a status of its own stays" 4 "k8: cannot write the output: *" \
    sh -c '"$0" '"$join"' k8 -- sh -c "echo text; exit 4" >/dev/full' "$il"
gives "join: stderr is closed" 0 \
    sh -c '"$0" '"$join"' k8 -- sh -c "head -c 300000 /dev/zero >&2 && echo done" 2>&-' "$il"
is "... and the command does not see that" "$out" "done"
mkfifo go
# shellcheck disable=SC2086
bg runner "$il" $join k8 -- sh -c 'exec 3<>go; echo text; echo up >up; read -r _ <&3; exit 4'
read -r -t "$limit" _ <>up
error "a joiner without space" 74 "k8: cannot write the output: *" sh -c '"$0" '"$join"' k8 -- true >/dev/full' "$il"
echo go 1<>go
reap runner
is "... and the runner ends as always" "$status" 4

# Nobody reads stdout: one signal is enough.
# shellcheck disable=SC2086
env --default-signal=INT "$il" $join k9 -- sh -c 'echo text; echo up >up; exec sleep 60' >&9 </dev/null &
pids[blocked]=$!
read -r -t "$limit" _ <>up
kill -TERM "${pids[blocked]}"
reap blocked
is "join: one TERM ends it, though nobody reads the output" "$status" 143

# One run within another.
cat >count.py <<'END'
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
open("up", "w").write("up\n")
while signal.sigwait({signal.SIGTERM}):
    open("terms", "a").write("TERM\n")
END
bg outer "$il" run --grace 500ms o -- "$il" run --grace 500ms i -- "$python" count.py
read -r -t "$limit" _ <>up
gives "break" 0 "$il" break o --reason x
reap outer
is "the outer one is lost" "$status" 76
is "the command of the inner one got one TERM" "$(cat terms)" TERM
nest=()
for i in 1 2 3 4 5 6 7 8; do
    nest+=("$il" run "d$i" -- sh -c 'echo "${INTERLOCK_HOLDER%%/*}"; exec "$@"' sh)
done
run "${nest[@]}" true
is "eight deep: the root stays the same" "$(sort -u <<<"$out" | wc -l)" 1
is "... for all of them" "$(wc -l <<<"$out")" 8
finish
