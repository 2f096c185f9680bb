#!/bin/bash
# The exit status of `run`: the command's own, or the status of the failure that prevented it.
. "$(dirname "$0")/lib.sh" || exit 1

for n in 0 1 2 7 42 64 75 100 125 255; do
    gives "the command's own status $n" $n "$il" run k -- sh -c "exit $n"
    is "... without a word" "$out$err" ""
done
for pair in TERM:143 KILL:137 INT:130 HUP:129 USR1:138 SEGV:139 PIPE:141 ABRT:134; do
    gives "killed by ${pair%:*}" "${pair#*:}" "$il" run k -- sh -c "kill -${pair%:*} \$\$; sleep 9"
done
is "nothing is held after all that" "$(state)" $'il_lease []\nil_waiter []'

error "command not found" 127 "no-such-command: command not found" "$il" run k -- no-such-command
error "command not found by path" 127 "/no/such/command: *" "$il" run k -- /no/such/command
error "below a file" 127 "/etc/passwd/x: *" "$il" run k -- /etc/passwd/x
error "an empty command" 127 "*command not found" "$il" run k -- ""
printf 'echo hi\n' >"$work/plain"
error "not executable" 126 "*/plain: Permission denied" "$il" run k -- "$work/plain"
error "a directory" 126 "*: Is a directory" "$il" run k -- "$work"
printf '#!/no/such/interpreter\n' >"$work/script"
chmod +x "$work/script"
error "its interpreter is missing" 126 "*/script: interpreter not found" "$il" run k -- "$work/script"
printf 'exit 3\n' >"$work/no-magic"
chmod +x "$work/no-magic"
gives "a script without #! runs as sh would" 3 "$il" run k -- "$work/no-magic"
mkdir -p "$work/bin"
printf 'x\n' >"$work/bin/denied"
PATH=$work/bin:$PATH error "found in PATH, but not executable" 126 "denied: Permission denied" "$il" run k -- denied
is "nothing is held after all that" "$(state)" $'il_lease []\nil_waiter []'

hold a held
error "75: somebody else has it" 75 "held is held by pid ${pids[a]} on * (sh -c *...) for *, holder *, fence *; see: interlock why held" "$il" run held -- touch ran
error "75 is -E" 99 "held is held by*" "$il" run -E 99 held -- touch ran
error "75 is --conflict-exit-code" 0 "held is held by*" "$il" run --conflict-exit-code=0 held -- touch ran
gives "-q: without a word" 75 "$il" run -q held -- touch ran
is "... on either" "$out$err" ""
error "75: also if the command is missing" 75 "held is held by*" "$il" run held -- no-such-command
gives "skip: also if the command is missing" 0 "$il" run -q --on-conflict skip held -- no-such-command
error "127: a missing command does not wait for its turn" 127 "no-such-command: command not found" \
    "$il" run --wait 1h held -- no-such-command
gives "skip: as if all were well" 0 "$il" run -q --on-conflict skip held -- touch ran
gives "skip says why" 0 "$il" run --on-conflict skip held -- touch ran
like "... in a line" "$err" "interlock: held is held by *skipped"
gives "--json: held" 75 "$il" run --json held -- touch ran
cp "$work/err" "$work/out"
json "... is told as JSON only" "d['outcome'] == 'held' and d['fence'] is None and d['exit_status'] == 75 and d['ran_ms'] == 0 and d['message'].startswith('held is held by pid ${pids[a]} on ')"
gives "--json: skipped" 0 "$il" run --json --on-conflict skip held -- touch ran
cp "$work/err" "$work/out"
json "... is told as JSON only" "d['outcome'] == 'skipped' and d['fence'] is None and d['message'].endswith('; skipped')"
gives "--json: what cannot be joined" 75 "$il" run --json --on-conflict join held -- touch ran
cp "$work/err" "$work/out"
json "... is told as JSON only" "d['outcome'] == 'held' and 'it cannot be joined' in d['message']"
check "nothing was run" test ! -e ran
let_go a
is "the holder's own status" "$status" 0
gives "then it is free" 0 "$il" run held -- touch ran
check "and it ran" test -e ran

error "64: no key" 64 "run: an argument is missing*" "$il" run
error "64: no command" 64 "run: no command given*" "$il" run k
error "64: no command after --" 64 "run: no command given*" "$il" run k --
error "64: -E beyond a status" 64 "run: --conflict-exit-code: '256'*" "$il" run -E 256 k -- true
gives "the -- may be left out" 5 "$il" run k sh -c 'exit 5'
gives "options of the command stay its own" 0 "$il" run k -- echo --ttl 0 --help
is "... all of them" "$out" "--ttl 0 --help"
gives "after the key they are the command's, without --" 0 "$il" run k echo --ttl --help
is "... as well" "$out" "--ttl --help"

error "69: a folder that is not there" 69 "/no/such/folder/x.db: *" "$il" run --store /no/such/folder/x.db k -- touch ran2
check "nothing was run" test ! -e ran2

start=$SECONDS
error "77: it takes too long" 77 "k: the command took longer than 200ms and was stopped" \
    "$il" run --timeout 200ms --grace 1s k -- sleep 100
check "... at once" test $((SECONDS - start)) -le 5
gives "0 is no timeout" 0 "$il" run --timeout 0 k -- true
error "77: deaf to TERM" 77 "*took longer*" "$il" run --timeout 200ms --grace 200ms k -- \
    sh -c 'trap "" TERM; exec sleep 300'
gives "--json: what came of it" 7 "$il" run --json k -- sh -c 'echo data; exit 7'
is "... stdout is the command's" "$out" data
cp "$work/err" "$work/out"
json "... an object on stderr" "d['key'] == 'k' and d['outcome'] == 'exited' and d['exit_status'] == 7 and d['fence'] > 0 and len(d['holder']) == 36 and d['ran_ms'] >= 0 and d['message'] is None and len(d) == 7"
gives "--json of a timeout" 77 "$il" run --json --timeout 100ms k -- sleep 100
cp "$work/err" "$work/out"
json "... is told as JSON only" "d['outcome'] == 'timeout' and d['exit_status'] == 77 and d['fence'] > 0 and 'took longer than 100ms' in d['message']"
gives "--json of an error" 127 "$il" run --json k -- no-such-command
like "... which stays text" "$err" $'interlock: no-such-command: command not found\n{*'
tail -n 1 "$work/err" >"$work/out"
json "... before the object" "d['outcome'] == 'failed' and d['fence'] > 0 and d['ran_ms'] == 0 and d['message'] is None"
finish
