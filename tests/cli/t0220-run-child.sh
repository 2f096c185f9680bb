#!/bin/bash
# What the command inherits: stdin, arguments, environment, process group, descriptors.
. "$(dirname "$0")/lib.sh" || exit 1

printf 'one\0two\nthree' >"$work/data"
"$il" run k -- cat <"$work/data" >"$work/copy"
check "stdin and stdout are passed through as they are" cmp "$work/data" "$work/copy"
seq 1 100000 >"$work/large"
cp "$work/large" "$work/large2"
"$il" run k -- cat <"$work/large" | cmp - "$work/large2"
is "... also large ones, through pipes" "$?" 0
echo rest >"$work/rest"
is "what the command does not read stays" "$({ "$il" run k -- head -c 2 && cat; } < <(printf 'ab'; printf 'cd') | tr -d '\n')" "abcd"
run "$il" run k -- sh -c 'echo to-out; echo to-err >&2'
is "stdout stays stdout" "$out" to-out
is "stderr stays stderr" "$err" to-err
gives "a closed stdin" 0 sh -c "exec <&-; exec '$il' run k -- true"
gives "closed stdout and stderr" 0 sh -c "exec >&- 2>&-; exec '$il' run k -- true"

run "$il" run k -- printf '[%s]' "a b" "" "*" $'new\nline' "'" '"' -- --
is "arguments are not touched" "$out" "[a b][][*]["$'new\nline'"]['][\"][--][--]"
cd /usr || exit 1
run "$il" run k -- pwd
is "the working folder is the same" "$out" /usr
cd "$work" || exit 1
umask 027
run "$il" run k -- sh -c umask
is "the umask is the same" "$out" 0027
umask 022

export KEEP=kept INTERLOCK_FENCE=1 INTERLOCK_KEY=old
now_ms=$(date +%s%3N)
run "$il" run --ttl 20s --holder me-1 'event:101' -- sh -c 'echo "$KEEP|$INTERLOCK_KEY|$INTERLOCK_HOLDER|$INTERLOCK_FENCE|$INTERLOCK_DEADLINE"'
unset KEEP INTERLOCK_FENCE INTERLOCK_KEY
IFS='|' read -r keep key holder fence deadline <<<"$out"
is "the environment is passed on" "$keep" kept
is "INTERLOCK_KEY" "$key" event:101
is "INTERLOCK_HOLDER" "$holder" me-1
check "INTERLOCK_FENCE is a new one" test "$fence" -gt 1000000
check "INTERLOCK_DEADLINE is within the ttl" test "$deadline" -gt "$now_ms" -a "$deadline" -le $((now_ms + 21000))
run "$il" run k -- sh -c 'echo "$INTERLOCK_HOLDER"'
like "a holder is made up: a UUID of version 7" "$out" "????????-????-7???-????-????????????"
run "$il" run k -- sh -c 'echo "$INTERLOCK_FENCE"'
check "the next fence is greater" test "$out" -gt "$fence"
parent=$("$il" run k -- sh -c "echo \$INTERLOCK_HOLDER; '$il' run other -- sh -c 'echo \$INTERLOCK_HOLDER'" | tr '\n' ' ')
like "a nested run is PARENT/NEW" "$parent" "*-* *-*/*-* "
is "... of its parent" "${parent%% *}" "$(cut -d' ' -f2 <<<"$parent" | cut -d/ -f1)"
error "a nested run for its own parent's key is told so" 75 "*" "$il" run -q self -- "$il" run --wait 10s self -- true
like "... at once" "$err" "*'self'*"

run "$il" run k -- sh -c 'echo $$; ps -o pgid= -p $$'
is "the command leads a process group of its own" "$(tail -n 1 <<<"$out" | tr -d ' ')" "$(head -n 1 <<<"$out")"
run sh -c 'ls /proc/self/fd'
direct=$out
run "$il" run k -- sh -c 'ls /proc/self/fd'
is "it inherits no descriptor of ours" "$out" "$direct"
run "$il" run --on-conflict join k -- sh -c 'ls /proc/self/fd'
is "... with join, too" "$out" "$direct"
run sh -c "exec 7</dev/null; exec '$il' run k -- sh -c 'test -e /proc/self/fd/7 && echo there'"
is "... but those of the caller" "$out" there
# Less 32 and 33, the C library's own, which the sanitizers' runtime ignores.
run "$il" run k -- sh -c 'grep -E "^Sig(Blk|Ign)" /proc/self/status | cut -f2'
for set in $out; do
    is "no signal is blocked or ignored" "$((0x$set & ~0x180000000))" 0
done

# What the command leaves behind in the background is ended, with a word about it.
run "$il" run k -- sh -c 'sleep 987 & echo $!'
check "a process left behind is gone" test ! -e "/proc/$out"
like "... and that is said" "$err" "*stopping 1 process left behind by the command*"
run "$il" run -q k -- sh -c 'sleep 987 & echo $!'
is "... not with -q" "$err" ""
run "$il" run k -- sh -c 'setsid sleep 986 >/dev/null 2>&1 & echo $!'
check "also one in a session of its own" test ! -e "/proc/$out"
run "$il" run k -- bash -c 'echo text > >(sleep 0.05; cat)'
is "one that is about to end may end" "$out" text
is "nothing is held" "$(state)" $'il_lease []\nil_waiter []'
finish
