#!/bin/bash
# --on-conflict join: returns the output and the status of the running command.
. "$(dirname "$0")/lib.sh" || exit 1

mkfifo up go
bg runner "$il" run --on-conflict join k -- sh -c 'exec 3<>go; echo "first line"; printf "no newline"; echo oops >&2; echo up >up; read -r _ <&3; echo " end"; exit 6'
read -r -t "$limit" _ <>up || fail "the runner starts"
for i in 1 2; do
    command=(touch ran)
    [ $i = 1 ] || command=(no-such-command) # it is not needed
    bg "joiner$i" "$il" run -q --on-conflict join k -- "${command[@]}"
    await "joined" grep -q "first line" "joiner$i.out"
done
echo go 1<>go
reap runner
is "the runner's own status" "$status" 6
is "... and output" "$(cat runner.out)" $'first line\nno newline end'
for i in 1 2; do
    reap "joiner$i"
    is "joiner $i: the same status" "$status" 6
    check "... the same output" cmp runner.out "joiner$i.out"
    check "... the same stderr" cmp runner.err "joiner$i.err"
done
check "the command of the joiners was not run" test ! -e ran
gives "when nobody runs, it runs itself" 3 "$il" run --on-conflict join k -- sh -c 'echo mine; exit 3'
is "... as if without join" "$out" mine

hold plain k
error "who did not offer to be joined" 75 "k is held by *; it cannot be joined: *" "$il" run --on-conflict join k -- touch ran
bg waiter "$il" run -q --on-conflict join --wait 30s k -- echo "then me"
await "queued" waits_for k 1
let_go plain
reap waiter
is "... is waited for, if asked" "$status" 0
is "... and then it runs" "$(cat waiter.out)" "then me"

bg runner "$il" run --on-conflict join k -- sh -c 'exec 3<>go; echo up >up; echo start; read -r _ <&3'
read -r -t "$limit" _ <>up
bg joiner "$il" run --on-conflict join --json k -- touch ran
await "joined" grep -q start joiner.out
kill -TERM "${pids[joiner]}"
reap joiner
is "a joiner may leave" "$status" 143
check "... and the runner goes on" kill -0 "${pids[runner]}"
bg joiner "$il" run -q --on-conflict join --json k -- touch ran
await "joined" grep -q start joiner.out
"$il" break k --reason x >/dev/null 2>&1
reap runner
is "the runner is broken" "$status" 76
reap joiner
is "its joiner gets the same" "$status" 76

# A reader that goes away does not stop the others, and the command sees it.
run bash -c '"$0" run -q --on-conflict join k -- yes | head -n 1; echo "${PIPESTATUS[0]}"' "$il"
is "a closed pipe ends it as without us" "$out" $'y\n141'
# Much output, binary.
head -c 3000000 /dev/urandom >random
bg runner "$il" run --on-conflict join k -- sh -c 'exec 3<>go; echo start; echo up >up; read -r _ <&3; cat random'
read -r -t "$limit" _ <>up
bg joiner "$il" run --on-conflict join k -- touch ran
await "joined" grep -q start joiner.out
echo go 1<>go
reap runner
check "3 MB of anything at the runner" cmp runner.out <(echo start && cat random)
reap joiner
is "... the joiner ends well" "$status" 0
check "... and has the same" cmp runner.out joiner.out
run find "$XDG_STATE_HOME/interlock" -type f -perm /077
is "the kept output is private" "$out" ""
finish
