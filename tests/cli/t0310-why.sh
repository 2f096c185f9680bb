#!/bin/bash
# why: is a key free, and if not, why not.
. "$(dirname "$0")/lib.sh" || exit 1

error "a store that is not there is not made by looking" 69 "*x.db: No such file*" "$il" why k
gives "the default store, before anything has run" 0 env -u INTERLOCK_STORE "$il" why k
is "... free" "$out" "k is free"
is "... and why" "$err" "interlock: the store does not exist yet"
is "nothing was made" "$(ls)" $'err\nout'
gives "a store" 0 "$il" run k -- true
gives "free" 0 "$il" why k
is "... says so" "$out" "k is free"
gives "free as JSON" 0 "$il" why k --json
json "... an object" "d == {'key': 'k', 'state': 'free', 'free_in_ms': 0, 'leases': [], 'waiters': [], 'events': []}"

hold h k --ttl 40s --holder my-job
hold h2 k2
gives "held" 0 "$il" why k
like "... by whom, and how to end it" "$out" "k is held*holder *my-job*since *ago*last renewed*ttl 40s*mode *exclusive*fence *pid *host *user *command *sh -c*cwd *If the holder died, the key is free in *interlock run --wait*interlock break k --reason*"
gives "held as JSON" 0 "$il" why --json k
json "... the lease" "d['state'] == 'held' and 0 < d['free_in_ms'] <= 40000 and len(d['leases']) == 1 and d['leases'][0]['holder'] == 'my-job' and d['waiters'] == []"
bg w1 "$il" run --wait 60s k -- true
await "queued" waits_for k 1
bg w2 "$il" run --wait forever k -- true
await "queued" waits_for k 2
gives "who waits" 0 "$il" why k
like "... in order" "$out" "*2 waiting, first come first served*1 *exclusive*2 *exclusive*never*"
gives "who waits as JSON" 0 "$il" why --json k
json "... both" "len(d['waiters']) == 2 and d['waiters'][1]['remaining_ms'] is None"
gives "not those of a longer key" 0 "$il" why --json k2
json "... none" "d['waiters'] == []"
let_go h
reap w1
reap w2
let_go h2

hold a pool --permits 3
hold b pool --permits 3
gives "permits" 0 "$il" why pool
like "... counted" "$out" "pool is held: 2 of 3 permits are taken*"
let_go a
let_go b
hold a doc --shared
hold b doc --shared
gives "shared" 0 "$il" why doc
like "... counted" "$out" "doc is held by 2*"
let_go a
let_go b

# A holder that was stopped has missed its renewals.
hold z zombie --ttl 2s --grace 0
kill -STOP "${pids[z]}"
late() { "$il" why zombie | grep -q "missed a renewal"; }
await "missed" late && pass "a holder that does not renew is called probably dead"
kill -CONT "${pids[z]}"
let_go z 2>/dev/null

error "a bad key" 64 "why: *control*" "$il" why $'a\nb'
error "no key" 64 "why: an argument is missing*" "$il" why
error "an empty key" 64 "why: '': *" "$il" why ""
gives "a key that looks like an option" 0 "$il" why -- --json
is "... is a key" "$out" "--json is free"
# What a holder wrote about itself cannot harm a terminal.
gives "meta with escapes" 0 "$il" run esc -- sh -c "'$il' why esc" $'\033]0;evil\007'
check "... comes out harmless" test "$(grep -c $'[\033\007]' "$work/out")" = 0
finish
