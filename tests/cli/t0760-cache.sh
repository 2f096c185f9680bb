#!/bin/bash
# cache: one builds, the others wait or get the stale value.
. "$(dirname "$0")/lib.sh" || exit 1

error "nothing there" 1 "cache get: no value for key 'k'" env -u INTERLOCK_STORE "$il" cache get k
check "nothing was made" test ! -e "$XDG_STATE_HOME"
: >builds
build='echo build >>"$0"; echo "value $(wc -l <"$0")"'
gives "a build" 0 "$il" cache get k -- sh -c "$build" "$work/builds"
is "... prints the value" "$out" "value 1"
gives "a hit" 0 "$il" cache get k -- sh -c "$build" "$work/builds"
is "... builds nothing" "$out" "value 1"
gives "... without a command" 0 "$il" cache get k
is "... too" "$out" "value 1"
gives "... as JSON" 0 "$il" cache get k --json
json "... the value" "d['key'] == 'k' and d['value'] == 'value 1\n' and d['state'] == 'fresh' and d['negative'] is False and 0 < d['remaining_ms'] <= 300000 and d['age_ms'] >= 0"
head -c 200000 /dev/urandom >blob
run "$il" cache get bin -- cat blob
check "a binary value" cmp "$work/out" blob
run "$il" cache get bin
check "... is kept as it is" cmp "$work/out" blob
gives "... as JSON" 0 "$il" cache get bin --json
json "... in base64" "d['value'] is None and len(d['value_base64']) > 200000"
gives "an empty value" 0 "$il" cache get empty -- true
gives "... is one" 0 "$il" cache get empty
is "... and is empty" "$out" ""
gives "--json with a command" 64 "$il" cache get --json k -- true

# Time.
gives "--ttl" 0 "$il" cache get short --ttl 1ms -- echo one
sleep 0.05
gives "... is over" 1 "$il" cache get short
gives "--grace" 0 "$il" cache get stale --ttl 1ms --grace 1h -- echo one
sleep 0.05
gives "... stale" 0 "$il" cache get stale --json
json "... and usable" "d['state'] == 'stale' and d['value'] == 'one\n'"
gives "... a command builds a new one" 0 "$il" cache get stale --ttl 1h -- echo two
is "... which is printed" "$out" two

# A command that fails.
gives "a failure" 3 "$il" cache get bad -- sh -c 'echo partial; echo why >&2; exit 3'
is "... its output" "$out" partial
is "... its errors" "$err" why
gives "... not cached" 1 "$il" cache get bad
gives "a stale value" 0 sh -c 'echo old | "$0" cache fill err --ttl 1ms --grace 1h' "$il"
sleep 0.05
gives "--stale-if-error" 0 "$il" cache get err --stale-if-error -- sh -c 'echo partial; exit 3'
is "... gives the old one" "$out" old
like "... and says so" "$err" "interlock: err: the command failed (3); printing the previous value"
gives "... without" 3 "$il" cache get err -- sh -c 'echo partial; exit 3'
is "... does not" "$out" partial
gives "--stale-if-error without an old one" 3 "$il" cache get nothing --stale-if-error -- sh -c 'exit 3'
gives "--negative-ttl" 4 "$il" cache get neg --negative-ttl 1h -- sh -c 'echo not there; exit 4'
gives "... is kept" 4 "$il" cache get neg -- sh -c 'touch built'
is "... with its output" "$out" "not there"
check "... nothing is built" test ! -e built
gives "... as JSON" 4 "$il" cache get neg --json
json "... says so" "d['negative'] is True and d['code'] == 4"
gives "--timeout" 77 "$il" cache get slow --timeout 100ms -- sleep 60
gives "a command that is not there" 127 "$il" cache get none -- nocommand
gives "killed" 137 "$il" cache get killed -- sh -c 'kill -9 $$'
gives "... not kept" 1 "$il" cache get killed

# Fill, drop, stats.
run "$il" cache fill f --ttl 1h <<<"filled"
is "fill" "$status$out$err" 0
gives "... is there" 0 "$il" cache get f
is "... as it is" "$out" filled
run "$il" cache fill f --json <<<"again"
json "fill as JSON" "d == {'key': 'f', 'bytes': 6}"
gives "... replaces" 0 "$il" cache get f
is "... the value" "$out" again
run "$il" cache fill f --ttl 1h --grace 1h <<<"graceful"
gives "drop --stale" 0 "$il" cache drop f --stale
gives "... is stale" 0 "$il" cache get f --json
json "... but there" "d['state'] == 'stale' and d['value'] == 'graceful\n'"
gives "drop" 0 "$il" cache drop f
gives "... is gone" 1 "$il" cache get f
gives "drop of nothing" 0 "$il" cache drop f --json
json "... is fine" "d == {'dropped': 'f'}"
head -c 1048577 /dev/zero >big
run "$il" cache fill f <big
is "a value over the limit" "$status $err" "64 interlock: cache fill: the value is larger than 1048576 bytes"
run "$il" cache get large -- cat big
is "... from a command" "$status $(wc -c <"$work/out")" "0 1048577"
is "... is printed, not kept" "$err" "interlock: large: value larger than 1 MiB, not cached"
run "$il" cache get huge -- head -c 100000000 /dev/zero
is "far too large" "$status $(wc -c <"$work/out")" "65 0"
for n in 1 2 3; do
    "$il" cache fill "s:$n" --ttl 1h <<<"123456789"
done
gives "stats" 0 "$il" cache stats s: --json
json "... by prefix" "d == {'entries': 3, 'bytes': 30, 'fresh': 3, 'stale': 0, 'negative': 0, 'building': 0}"
gives "... for people" 0 "$il" cache stats
like "... of all" "$out" "entries *bytes *fresh *building *0"
gives "... of a store that is not there" 0 env -u INTERLOCK_STORE "$il" cache stats

# Several at once: one builds.
: >builds
mkfifo go
# go: let the command that reads it go on.
go() { timeout "$limit" sh -c 'echo go >go'; }
bg leader "$il" cache get one -- sh -c 'echo build >>"$0"; touch leading; read -r _ <go; echo built' "$work/builds"
await "one builds" test -e leading
gives "... is counted" 0 "$il" cache stats one --json
json "... as building" "d['building'] == 1 and d['entries'] == 0"
error "--wait 0" 75 "one: another process is building the value" "$il" cache get one --wait 0 -- sh -c 'echo build >>"$0"' "$work/builds"
error "... without a command" 75 "cache get: another process is building 'one'" "$il" cache get one --wait 0
for n in $(seq 1 8); do
    bg "n$n" "$il" cache get one --wait 30s -- sh -c 'echo build >>"$0"; echo mine' "$work/builds"
done
bg looker "$il" cache get one --wait 30s
go
for n in leader $(seq -f n%g 1 8) looker; do
    reap "$n"
    is "$n" "$status $(cat "$n.out")" "0 built"
done
is "... one build" "$(wc -l <builds)" 1
# A stale value is given while somebody builds; a builder that dies makes room; a drop while it is built.
echo old | "$il" cache fill two --ttl 1ms --grace 1h
sleep 0.05
rm -f leading
bg leader "$il" cache get two --ttl 1h --lease 2s -- sh -c 'touch leading; read -r _ <go; echo new'
await "one builds" test -e leading
gives "meanwhile" 0 "$il" cache get two -- echo other
is "... the old one" "$out" old
gives "... dropped" 0 "$il" cache drop two
go
reap leader
is "... its builder gets what it has built" "$status $(cat leader.out)" "0 new"
like "... and is told" "$(cat leader.err)" "interlock: two: value not cached: it was dropped or filled during the build"
gives "... it is not cached" 1 "$il" cache get two
# The build is void at the next renewal, a third of the lease after the drop at the latest; the command lives on after the lease.
rm -f leading
bg leader "$il" cache get two --lease 1s -- sh -c 'touch leading; read -r _ <go; sleep 1; echo new'
await "one builds" test -e leading
gives "... dropped" 0 "$il" cache drop two
await "... which its builder has seen" sh -c "\"$il\" cache stats two --json | grep -q '\"building\":0'"
go
reap leader
is "... goes on for as long as it takes" "$status $(cat leader.out)" "0 new"
# Filled meanwhile: everybody gets the same, also if the command fails.
for end in "echo mine" "exit 3"; do
    rm -f leading
    bg leader "$il" cache get two -- sh -c "touch leading; read -r _ <go; $end"
    await "one builds" test -e leading
    echo filled | "$il" cache fill two --ttl 1h
    go
    reap leader
    is "filled while it is built ($end)" "$status $(cat leader.out)" "0 filled"
    "$il" cache drop two
done
rm -f leading
bg dies "$il" cache get three --lease 1s -- sh -c 'touch leading; sleep 300'
await "one builds" test -e leading
kill -KILL "${pids[dies]}"
reap dies 2>/dev/null
gives "a builder that has died" 0 "$il" cache get three --wait 20s -- echo again
is "... is replaced" "$out" again

# Whoever waits for a build does not wait for the reader of its builder's output.
mkfifo slow
exec 4<>slow # open for reading, and nobody reads
bg blocked sh -c '"$0" cache get four -- cat "$1" >slow' "$il" "$work/big"
await "a value that is not cached" grep -q "not cached" blocked.err
gives "... whose reader is slow: the next one builds" 0 "$il" cache get four --wait 5s -- echo next
check "... who gets all of it" sh -c 'test "$(head -c 1048577 <&4 | wc -c)" = 1048577'
reap blocked
exec 4<&-

for pair in "ttl 0" "ttl x" "grace -1s" "wait x" "negative-ttl 0" "lease 999ms" "timeout x"; do
    read -r option value <<<"$pair"
    error "--$option $value" 64 "cache get: --$option: *" "$il" cache get "--$option" "$value" k -- true
done
error "a bad key" 64 "cache get: *control*" "$il" cache get $'k\001'
error "... to fill" 64 "cache fill: *control*" "$il" cache fill $'k\001'
error "... to drop" 64 "cache drop: *control*" "$il" cache drop $'k\001'
error "... to count" 64 "cache stats: *control*" "$il" cache stats $'k\001'
error "memory" 64 "cache get: store 'memory:'*" "$il" cache get --store memory: k -- true
gives "a lock has other keys" 0 "$il" run k -- true
finish
