#!/bin/bash
# race: starts a command N times at once, and counts.
. "$(dirname "$0")/lib.sh" || exit 1

# The one that runs ends when all others have been refused: it is the last child of the race.
# shellcheck disable=SC2016
race=(sh -c 'echo $$ >race.pid; exec "$0" race "$@"' "$il")
# shellcheck disable=SC2016
last='echo x >>ran; until [ "$(pgrep -c -P "$(cat race.pid)")" -le 1 ]; do sleep 0.02; done'

gives "with a key one runs" 0 "${race[@]}" 12 --key k -- sh -c "$last"
is "... really" "$(wc -l <ran)" 1
like "... and that is told" "$out" "*1 *0 *ran*11 *75 *refused*1 of 12 ran, expected 1*"
rm ran
gives "as JSON" 0 "${race[@]}" 5 --key k --json -- sh -c "$last"
json "... all there is" "d['n'] == 5 and d['ran'] == 1 and d['refused'] == 4 and d['not_started'] == 0 and d['expected'] == 1 and d['ok'] is True and type(d['fastest_ms']) is int and type(d['slowest_ms']) is int and d['fastest_ms'] <= d['slowest_ms'] and sum(e['count'] for e in d['exits']) == 5"
rm ran
gives "without a key all run, and that is not as expected" 1 "$il" race 6 -- sh -c 'echo x >>ran'
is "... all of them" "$(wc -l <ran)" 6
like "... said in the last line" "$out" "*6 of 6 ran, expected 1*"
gives "--expect" 0 "$il" race 6 --expect 6 -- true
gives "--expect 0" 0 "$il" race 3 --expect 0 -- sh -c 'exit 75'
gives "what cannot start did not run" 1 "$il" race 2 -- /no/such/command
like "... and that is noted" "$err" "*could not start*--verbose*"
gives "--verbose lets them speak" 0 "$il" race 2 --expect 2 -v -- echo hello
is "... all" "$(grep -c '^hello$' "$work/out")" 2
gives "the store that was chosen" 0 "${race[@]}" --store "$work/other.db" 3 --key k -- sh -c "$last"
check "... was used" test -e other.db
gives "the tenant that was chosen" 0 "${race[@]}" --tenant t 2 --key k -- sh -c "$last"
gives "a permit each" 0 env INTERLOCK_WAIT=10s "$il" race 4 --expect 4 --key k -- true

for bad in 0 -1 x 1001 1.5 ""; do
    error "N '$bad'" 64 "race: *" "$il" race "$bad" -- touch no
done
error "no N" 64 "race: an argument is missing*" "$il" race
error "no command" 64 "race: no command given*" "$il" race 3
error "a bad key" 64 "race: *control*" "$il" race 3 --key $'a\nb' -- touch no
error "--expect x" 64 "race: --expect: *" "$il" race 3 --expect x -- touch no
check "nothing was run" test ! -e no

# Signals: TERM is passed on; a command that is deaf to it is killed by the second one.
mkfifo up
bg r "$il" race 3 -- sh -c 'echo up >up; exec sleep 100'
read -r -t "$limit" _ <>up
kill -TERM "${pids[r]}"
reap r
like "TERM ends the racers, and they are counted" "$(cat r.out)" "*143 *ran*3 of 3 ran*"
like "... but the race is not won" "$status $(cat r.err)" "143 interlock: race: stopped by SIGTERM*"
# As Ctrl-C does it: INT for all of them. One runs, which is what is expected.
one_left() { [ "$(pgrep -c -P "${pids[r]}")" = 1 ]; }
for form in "" --json; do
    # shellcheck disable=SC2086
    bg r setsid "$il" race 3 $form --key k -- sh -c 'echo up >up; exec sleep 100'
    read -r -t "$limit" _ <>up
    await "the others are refused" one_left
    kill -INT -- "-${pids[r]}"
    reap r
    like "Ctrl-C is no success" "$status $(cat r.err)" "130 interlock: race: stopped by SIGINT*"
done
cp r.out "$work/out"
json "... in JSON either" "d['ran'] == 1 and d['ok'] is False"
bg r "$il" race 2 -- sh -c 'trap "" TERM INT; echo up >>ups; exec sleep 300'
both_up() { [ "$(wc -l <ups)" = 2 ]; }
await "both are up" both_up
kill -TERM "${pids[r]}"
kill -INT "${pids[r]}"
reap r
like "the second signal kills" "$(cat r.out)" "*137 *ran*2 of 2 ran*"
is "nothing is held" "$(state)" $'il_lease []\nil_waiter []'
finish
