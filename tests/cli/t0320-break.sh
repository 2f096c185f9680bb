#!/bin/bash
# break: takes a key from its holder.
. "$(dirname "$0")/lib.sh" || exit 1

error "before anything has run" 1 "break: key 'k' is not held" env -u INTERLOCK_STORE "$il" break k --reason x
check "... nothing is made" test ! -e "$XDG_STATE_HOME"
gives "a store" 0 "$il" run k -- true
error "nobody holds it" 1 "break: key 'k' is not held" "$il" break k --reason x
hold h k --grace 1s --holder me
run "$il" why --json k
fence=$(py -c 'import json,sys; print(json.load(sys.stdin)["leases"][0]["fence"])' <"$work/out")
before=$(state)
error "a reason is needed" 64 "break: --reason TEXT is missing" "$il" break k
error "... and must say something" 64 "break: --reason: *" "$il" break k --reason ""
error "... in a line" 64 "*" "$il" break k --reason $'a\nb'
error "... not a novel" 64 "break: --reason: *" "$il" break k --reason "$(printf 'x%.0s' {1..257})"
error "no key" 64 "break: an argument is missing*" "$il" break --reason x
error "a bad key" 64 "break: *control*" "$il" break --reason x $'k\001'
error "another fence" 1 "break: no lease of 'k' has fence 12345" "$il" break k --reason x --fence 12345
for bad in 0 x -1 9007199254740992 99999999999999999999; do
    error "--fence $bad" 64 "break: --fence: *" "$il" break k --reason x --fence "$bad"
done
is "nothing changed" "$(state)" "$before"
gives "this fence" 0 "$il" break k --reason "a test" --fence "$fence"
like "... is told" "$out" "broken: k, held by me for *, fence $fence"
like "... and what follows" "$err" "interlock: the key becomes free when the holder releases it*"
reap h
is "its holder is stopped" "$status" 76
is "nothing is held" "$(state)" $'il_lease []\nil_waiter []'

hold h k --grace 1s --holder me2
gives "as JSON" 0 "$il" break k --reason x --json
json "... a listing" "d['next'] is None and [(i['key'], i['holder']) for i in d['items']] == [('k', 'me2')] and d['items'][0]['fence'] > $fence"
reap h
error "broken already" 1 "break: key 'k' is not held" "$il" break k --reason x

# At once: the key is free although its holder may still work.
mkfifo up
bg deaf "$il" run --ttl 30s --grace 5s k -- sh -c 'trap "" TERM; echo up >up; exec sleep 300'
read -r -t "$limit" _ <>up
gives "--now" 0 "$il" break k --reason x --now
is "... without a note" "$err" ""
gives "... and it is free at once" 0 "$il" run k -- true
check "... while the holder is being stopped" kill -0 "${pids[deaf]}"
kill -KILL "${pids[deaf]}"
reap deaf 2>/dev/null

# All that hold it together.
hold a doc --shared --grace 1s
hold b doc --shared --grace 1s
gives "all readers" 0 "$il" break doc --reason x
is "... both" "$(grep -c "^broken: doc" "$work/out")" 2
reap a
reap b
# The next in the queue gets it when the holder has gone, not before.
hold h k --grace 1s
bg w "$il" run --wait 60s k -- echo next
await "queued" waits_for k 1
gives "with a queue" 0 "$il" break k --reason x
reap h
reap w
is "the next one runs" "$(cat w.out)" next
gives "a store that is not there" 69 "$il" break --store "$work/no.db" k --reason x
check "... is not made" test ! -e no.db
finish
