#!/bin/bash
# Keys that are held: modes, permits, waiting.
. "$(dirname "$0")/lib.sh" || exit 1

hold r1 doc --shared
gives "shared beside shared" 0 "$il" run --shared doc -- true
error "exclusive beside shared" 75 "doc is held by*" "$il" run doc -- touch ran
error "permits beside shared" 75 "doc is held by*" "$il" run --permits 2 doc -- touch ran
hold r2 doc --shared
let_go r1
error "the other reader still has it" 75 "doc is held by*" "$il" run doc -- touch ran
let_go r2
gives "then a writer" 0 "$il" run doc -- true

hold p1 pool --permits 2
gives "one permit is free" 0 "$il" run --permits 2 pool -- true
hold p2 pool --permits 2
error "none is free" 75 "pool is held by*" "$il" run --permits 2 pool -- touch ran
error "another number of permits" 65 "*pool*" "$il" run --permits 3 pool -- touch ran
before=$(state)
error "... waiting does not help" 65 "*pool*" "$il" run --wait 5s --permits 3 pool -- touch ran
is "nothing changed" "$(state)" "$before"
let_go p1
gives "one came back" 0 "$il" run --permits 2 pool -- true
let_go p2
error "--shared and --permits" 64 "run: --shared and --permits cannot be combined" "$il" run --shared --permits 2 k -- touch ran
for bad in 0 -1 x 1000001 1.5 ""; do
    error "--permits '$bad'" 64 "run: --permits: *" "$il" run --permits "$bad" k -- touch ran
done

hold h key
error "waiting in vain" 75 "key is held by*" "$il" run --wait 200ms key -- touch ran
bg w "$il" run --wait 30s key -- echo my turn
await "queued" waits_for key 1
let_go h
reap w
is "waiting for it" "$status" 0
is "... and then it ran" "$(cat w.out)" "my turn"
hold h key
bg w "$il" run --wait forever key -- echo my turn
await "queued" waits_for key 1
run "$il" locks --waiters --json key
json "forever has no deadline" "d['items'][0]['remaining_ms'] is None"
let_go h
reap w
is "waiting for ever" "$status" 0
hold h key
INTERLOCK_WAIT=100ms error "\$INTERLOCK_WAIT is heard" 75 "key is held by*" "$il" run key -- touch ran
let_go h

# The same holder again is a late copy.
gives "a holder of our own" 0 "$il" run --holder job-1 key -- true
error "... cannot be used twice" 76 "*key*" "$il" run --holder job-1 key -- touch ran
gives "... but for another key" 0 "$il" run --holder job-1 key2 -- true
for bad in "" $'a\nb' "$(printf 'x%.0s' {1..257})" $'\377'; do
    error "--holder $(printf %q "${bad:0:20}")" 64 "run: --holder: *" "$il" run --holder "$bad" k -- touch ran
done

# Two that wait for each other: one of them is told.
mkfifo d1.up d2.up d.go
bg d1 "$il" run a1 -- sh -c 'exec 3<>d.go; echo up >d1.up; read -r _ <&3; exec "$0" run --wait 20s b1 -- true' "$il"
read -r -t "$limit" _ <>d1.up
bg d2 "$il" run b1 -- sh -c 'echo up >d2.up; exec "$0" run --wait 20s a1 -- true' "$il"
read -r -t "$limit" _ <>d2.up
await "queued" waits_for a1 1
echo go 1<>d.go
reap d1
first=$status
reap d2
is "a deadlock: one is refused, the other goes on" "$((first + status))" 75
like "... and told the cycle" "$(cat d1.err d2.err)" "*a1*"

# Declared order.
export INTERLOCK_RANKS=first,second
gives "in order" 0 "$il" run first:1 -- "$il" run second:1 -- true
error "against it" 78 "*first*" "$il" run -q second:1 -- "$il" run first:1 -- touch ran
unset INTERLOCK_RANKS
check "nothing that was refused has run" test ! -e ran
is "nothing is held" "$(state)" $'il_lease []\nil_waiter []'

# Tenants never meet.
hold t tenant-key --tenant one
gives "another tenant, the same key" 0 "$il" run --tenant two tenant-key -- true
error "the same tenant" 75 "*" "$il" run --tenant one tenant-key -- true
let_go t
finish
