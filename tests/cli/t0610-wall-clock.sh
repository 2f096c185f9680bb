#!/bin/bash
# The wall clock jumps by a day in either direction while the binary runs: no lease is freed or
# extended.
. "$(dirname "$0")/lib.sh" || exit 1

# Prefixes a command: its wall clock is a day off, and no other clock. (AddressSanitizer wants to be the first library
# otherwise.)
off=(env "ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0" "LD_PRELOAD=${IL_TEST_WALL_CLOCK:?}")
ahead=("${off[@]}" WALL_CLOCK_SHIFT=86400)

run "${ahead[@]}" date +%s
check "the clock really is off" test "$out" -gt "$(($(date +%s) + 80000))"

for shift in 86400 -86400; do
    day=("${off[@]}" "WALL_CLOCK_SHIFT=$shift")
    hold real "real$shift" --ttl 2s
    gives "$shift: it is held for everybody" 75 "${day[@]}" "$il" run "real$shift" -- touch no
    gives "$shift: and seen to be held" 0 "${day[@]}" "$il" locks --json "real$shift"
    json "... its age is right" "0 <= d['items'][0]['age_ms'] < 60000"
    gives "$shift: a fence is a greater one all the same" 0 "${day[@]}" "$il" run "free$shift" -- \
        sh -c "echo \$INTERLOCK_FENCE"
    first=$out
    gives "... also the next" 0 "$il" run "free$shift" -- sh -c "echo \$INTERLOCK_FENCE"
    check "... which is greater" test "$out" -gt "$first"

    # A holder whose clock is off renews for longer than its ttl, and keeps the key.
    bg "off$shift" "${day[@]}" "$il" run --ttl 1s "off$shift" -- sh -c "echo up >up$shift; while :; do sleep 0.02; done"
    await "$shift: a holder with such a clock" test -s "up$shift"
    gives "... keeps its key beyond the ttl" 75 "$il" run --wait 1500ms "off$shift" -- touch no

    # Killed with everything below, it is dead; the key is free after the ttl, not a day later.
    kill -KILL "${pids[real]}"
    gives "$shift: a dead holder's key is free after its ttl" 0 "${day[@]}" "$il" run --wait 20s "real$shift" -- true

    # The log of a run is written while it runs, not a day later.
    bg "log$shift" "${day[@]}" "$il" run --record "log$shift" -- sh -c "echo up; until [ -e go$shift ]; do sleep 0.02; done"
    run_id() { "$il" runs --key "log$shift" --json | sed -n 's/.*"id":"\([^"]*\)".*/\1/p'; }
    await "$shift: a recorded run" sh -c "'$il' runs --key 'log$shift' --json | grep -q RUNNING"
    await "... its log" sh -c "'$il' logs $(run_id) | grep -q up"
    touch "go$shift"
    reap "log$shift"
    is "... its end" "$status" 0
done

# A clock so far ahead (the year 2279) that no fence could follow it, in an old store and a new one.
far=("${off[@]}" WALL_CLOCK_SHIFT=8000000000)
gives "a fence under the usual clock" 0 "$il" run far -- sh -c "echo \$INTERLOCK_FENCE"
first=$out
gives "... under one beyond all fences" 0 "${far[@]}" "$il" run far -- \
    sh -c "echo \$INTERLOCK_FENCE"
check "... is greater" test "$out" -gt "$first"
check "... and follows the counter, not the clock" test "$out" -lt "$((first + 86400000000))"
gives "... also in a new store" 0 "${far[@]}" "$il" --store "sqlite:$PWD/far.db" run far -- \
    sh -c "echo \$INTERLOCK_FENCE"
check "... where fences begin" test "$out" -ge 1 -a "$out" -lt 9007199254740992
check "nothing ran that should not" test ! -e no
finish
