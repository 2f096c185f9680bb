#!/bin/bash
# Bad input for `run`: one line that names the problem, the right status, nothing run, nothing
# changed.
. "$(dirname "$0")/lib.sh" || exit 1

gives "a store" 0 "$il" run --holder old old:1 -- true
hold h held:1
before=$(state)
long=$(printf 'k%.0s' {1..512})

gives "a key of 512 bytes is fine" 0 "$il" run "$long" -- true
error "one of 513 is not" 64 "run: 'kkkk*...': *512*" "$il" run "${long}k" -- touch ran
error "an empty key" 64 "run: '': *" "$il" run "" -- touch ran
for key in $'a\nb' $'a\tb' $'\033[31mred' $'del\177' $'c1\302\205'; do
    error "a key with control characters: $(printf %q "$key")" 64 "run: *control*" "$il" run "$key" -- touch ran
done
for key in $'\377\376' $'a\300\200' $'\355\240\200' $'\364\220\200\200' $'cut\303'; do
    error "a key that is not UTF-8: $(printf %q "$key")" 64 "run: *UTF-8*" "$il" run "$key" -- touch ran
done
for key in "ünïcödé" "key with spaces" "a/b:c" "日本語:1" "'" '"' '%s%n' '../../x' '$(touch ran)'; do
    gives "a key like any other: $key" 0 "$il" run "$key" -- true
done
error "-- stands before the command, never before the key" 64 "run: an argument is missing*" "$il" run -- k touch ran
is "nothing of that stayed" "$(state)" "$before"

for ttl in 0 0s 999ms 1y 366d 24h1s 86401s -5s 5 5x "5 s" 99999999999999999999s 1e3s 0x10s ' 5s' '5s ' forever; do
    error "--ttl '$ttl'" 64 "run: --ttl: *'$ttl'*" "$il" run --ttl "$ttl" k -- touch ran
done
for ttl in 1s 1000ms 24h 1d 1440m; do
    gives "--ttl $ttl" 0 "$il" run --ttl "$ttl" k -- true
done
for wait in -1s 1y 367d x 5; do
    error "--wait '$wait'" 64 "run: --wait: *'$wait'*" "$il" run --wait "$wait" k -- touch ran
done
for timeout in -1s forever x 5; do
    error "--timeout '$timeout'" 64 "run: --timeout: '*'*" "$il" run --timeout "$timeout" k -- touch ran
done
error "--grace x" 64 "run: --grace: 'x'*" "$il" run --grace x k -- touch ran
error "--settle 25h" 64 "run: --settle: '25h'*" "$il" run --settle 25h k -- touch ran
error "--on-conflict x" 64 "run: --on-conflict: 'x' is not one of reject|skip|join|queue|replace-pending|cancel-running" "$il" run --on-conflict x k -- touch ran
error "--tenant with a newline" 64 "*--tenant: *" "$il" run --tenant $'a\nb' k -- touch ran
error "--tenant of 65 bytes" 64 "*--tenant: *" "$il" run --tenant "${long:0:65}" k -- touch ran
error "--config that is not there" 64 "*no-such.yml: *" "$il" run --config no-such.yml k -- touch ran
error "a bad \$INTERLOCK_TTL" 64 "\$INTERLOCK_TTL: 'never'*" env INTERLOCK_TTL=never "$il" run k -- touch ran
error "memory: keeps nobody apart" 64 "run: *memory:*" "$il" run --store memory: k -- touch ran
error "an engine that is not there" 64 "*'mysql:'*" "$il" run --store mysql://user:secret@host/db k -- touch ran
check "a password is not shown" test "$(grep -c secret "$work/err")" = 0
error "an unknown option of the URL" 64 "*option*" "$il" run --store "sqlite:$work/x.db?cache=shared" k -- touch ran
error "?clock=test without a clock" 64 "*clock*" "$il" run --store "sqlite:$work/x.db?clock=test" k -- touch ran
check "nothing was run" test ! -e ran
is "nothing changed" "$(state)" "$before"
let_go h
is "the holder noticed nothing" "$status" 0
finish
