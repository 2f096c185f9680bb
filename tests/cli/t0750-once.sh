#!/bin/bash
# once: one effect and one answer per key.
. "$(dirname "$0")/lib.sh" || exit 1

# count: how often `effect` has happened.
count() {
    wc -l <"$work/effects" | tr -d ' '
}
: >effects
script='echo effect >>"$0"; echo out1; echo err1 >&2; echo out2; exit 3'
gives "the first time" 3 "$il" once k -- sh -c "$script" "$work/effects"
is "... its output" "$out" $'out1\nout2'
is "... its errors" "$err" err1
gives "the second time" 3 "$il" once k -- sh -c "$script" "$work/effects"
is "... the same output" "$out" $'out1\nout2'
is "... the same errors" "$err" err1
is "... one effect" "$(count)" 1
run sh -c '"$0" once order -- sh -c "for n in 1 2 3; do echo o\$n; sleep 0.05; echo e\$n >&2; sleep 0.05; done" 2>&1' "$il"
is "interleaved" "$out" $'o1\ne1\no2\ne2\no3\ne3'
run sh -c '"$0" once order -- sh -c "for n in 1 2 3; do echo o\$n; sleep 0.05; echo e\$n >&2; sleep 0.05; done" 2>&1' "$il"
is "... the same again" "$out" $'o1\ne1\no2\ne2\no3\ne3'
head -c 500000 /dev/urandom >blob
run "$il" once binary -- cat blob
check "binary output" cmp "$work/out" blob
run "$il" once binary -- cat blob
check "... again" cmp "$work/out" blob
gives "no output" 0 "$il" once silent -- true
gives "... again" 0 "$il" once silent -- true
is "... is none" "$out$err" ""

printf '#!/bin/sh\necho paid\n' >pay
chmod +x pay
gives "a script" 0 "$il" once gone -- ./pay
rm pay
gives "... that is gone meanwhile" 0 "$il" once gone -- ./pay
is "... the same again" "$out" paid

# Another request with the key.
error "another command" 65 "k: key already used for another command or fingerprint" "$il" once k -- true
gives "--fingerprint" 0 "$il" once --fingerprint a f -- echo hi
gives "... the same" 0 "$il" once --fingerprint a f -- echo hi
is "... the answer" "$out" hi
error "... another" 65 "f: key already used for another command or fingerprint" "$il" once --fingerprint b f -- echo hi
error "... none" 65 "f: *" "$il" once f -- echo hi
gives "words are not run together" 0 "$il" once words -- echo a b
error "... 'a b' is not a b" 65 "words: *" "$il" once words -- echo "a b"
gives "a lock has other keys" 0 "$il" run k -- true
gives "so has another tenant" 0 "$il" once --tenant t k -- true

# What is no answer.
: >effects
gives "--only-success, a failure" 1 "$il" once --only-success s -- sh -c 'echo effect >>"$0"; exit 1' "$work/effects"
gives "... is tried again" 1 "$il" once --only-success s -- sh -c 'echo effect >>"$0"; exit 1' "$work/effects"
is "... two effects" "$(count)" 2
gives "killed by a signal" 137 "$il" once sig -- sh -c '[ -e ok ] && exit 0; kill -9 $$'
touch ok
gives "... is tried again" 0 "$il" once sig -- sh -c '[ -e ok ] && exit 0; kill -9 $$'
rm ok
gives "--timeout" 77 "$il" once --timeout 200ms time -- sh -c '[ -e ok ] && exit 0; sleep 60'
touch ok
gives "... is tried again" 0 "$il" once --timeout 200ms time -- sh -c '[ -e ok ] && exit 0; sleep 60'
gives "a command that is not there" 127 "$il" once none -- nocommand
bg t "$il" once term -- sh -c 'trap "exit 9" TERM; touch up; sleep 300 & wait'
await "it runs" test -e up
kill -TERM "${pids[t]}"
reap t
is "a command that is told to end" "$status" 9
rm -f up
bg t "$il" once term -- sh -c 'trap "exit 9" TERM; touch up; sleep 300 & wait'
await "... is run again" test -e up
kill -KILL "${pids[t]}"
reap t 2>/dev/null

# Too much.
run "$il" once big -- head -c 1100000 /dev/zero
is "more than can be kept" "$(wc -c <"$work/out") $status" "1100000 0"
is "... that is said" "$err" "interlock: big: output larger than 1 MiB; only the exit status is kept"
gives "... again" 0 "$il" once big -- head -c 1100000 /dev/zero
is "... there is none" "$out" ""
like "... that is said, too" "$err" "interlock: big: the output of the first run was too large*"

# A running first attempt.
mkfifo go
bg first "$il" once busy -- sh -c 'touch began; read -r _ <go; echo answer' sh
await "it runs" test -e began
error "somebody is at it" 75 "busy: the first attempt is still running" "$il" once busy -- sh -c 'touch began; read -r _ <go; echo answer' sh
error "... --wait" 75 "busy: *" "$il" once --wait 100ms busy -- sh -c 'touch began; read -r _ <go; echo answer' sh
error "... another command" 65 "busy: *" "$il" once --wait 10s busy -- true
bg second "$il" once --wait 20s busy -- sh -c 'touch began; read -r _ <go; echo answer' sh
bg third "$il" once --wait forever busy -- sh -c 'touch began; read -r _ <go; echo answer' sh
bg fourth "$il" once --wait forever busy -- sh -c 'touch began; read -r _ <go; echo answer' sh
await "it has started" grep -qx interlock "/proc/${pids[fourth]}/comm"
kill -INT "${pids[fourth]}"
reap fourth
is "a wait is ended by a signal" "$status" 130
echo go >go
for name in first second third; do
    reap $name
    is "$name" "$status $(cat $name.out)" "0 answer"
done

# A first attempt that dies.
rm -f began
bg dies "$il" once --lease 1s dead -- sh -c 'touch began; sleep 300'
await "it runs" test -e began
kill -KILL "${pids[dies]}"
reap dies 2>/dev/null
error "its claim is still there" 75 "dead: *" "$il" once --lease 1s dead -- sh -c 'touch began; sleep 300'
run "$il" once --lease 1s --wait 20s --timeout 100ms dead -- sh -c 'touch began; sleep 300'
is "... and is taken over" "$status" 77

# Thirty-two at once.
: >effects
for n in $(seq 1 32); do
    bg "n$n" "$il" once --wait 60s all -- sh -c 'echo effect >>"$0"; sleep 0.1; echo "the answer of $$"; exit 5' "$work/effects"
done
for n in $(seq 1 32); do
    reap "n$n"
    [ "$status" = 5 ] || fail "caller $n" "status $status"
done
is "thirty-two at once: one effect" "$(count)" 1
is "... one answer" "$(cat n?.out n??.out | sort | uniq -c | sed 's/  *//' | cut -d' ' -f1-4)" "32 the answer of"

# JSON, --keep, bad input.
run "$il" once --json j -- sh -c 'exit 4'
py -c 'import json,sys; d=json.loads(sys.stdin.read()); assert d["outcome"]=="exited" and d["exit_status"]==4 and d["fence"]>0 and d["key"]=="j", d' <"$work/err"
is "--json" $? 0
run "$il" once --json j -- sh -c 'exit 4'
py -c 'import json,sys; d=json.loads(sys.stdin.read()); assert d["outcome"]=="replayed" and d["exit_status"]==4 and d["fence"] is None and d["ran_ms"]==0, d' <"$work/err"
is "... again" $? 0
gives "--keep" 0 "$il" once --keep 1ms short -- echo a
sleep 0.05
gives "... is over" 0 "$il" once --keep 1h short -- echo b
is "... so it is run anew" "$out" b
error "a bad key" 64 "once: *control*" "$il" once $'k\001' -- true
error "a key that is too long" 64 "once: key longer than 255 bytes" "$il" once "$(printf 'x%.0s' {1..256})" -- true
gives "the longest" 0 "$il" once "$(printf 'x%.0s' {1..255})" -- true
error "no command" 64 "once: no command given*" "$il" once k
error "memory" 64 "once: store 'memory:'*" "$il" once --store memory: k -- true
for pair in "lease 999ms" "lease 25h" "keep 0" "wait x" "timeout -1s" "grace x"; do
    read -r option value <<<"$pair"
    error "--$option $value" 64 "once: --$option: *" "$il" once "--$option" "$value" k -- true
done
error "a grace that does not fit" 64 "once: --grace 1s is more than a third of the TTL of 1s" "$il" once --lease 1s --grace 1s k -- true
run sh -c '"$0" once binary -- cat blob | head -c 10 | wc -c' "$il"
is "a reader that goes away" "$out" 10
finish
