#!/bin/bash
# locks --report: percentiles, thresholds and exit statuses of logged row locks.
. "$(dirname "$0")/lib.sh" || exit 1

# line PIPELINE ENTITY CALLER WAIT_MS HOLD_MS [OUTCOME]
line() {
    printf '{"ts":"2026-01-01T00:00:00.000Z","event":"%slock_acquired","pipeline":"%s","caller":"%s","entity":"%s","table":"t","key":"7","lock_wait_ms":%s,"lock_hold_ms":%s,"query_count":3,"attempt":1,"outcome":"%s","constraint":null,"place":"a.c:1","tags":{}}\n' \
        "${1:+$1.}" "$1" "$3" "$2" "$4" "$5" "${6:-committed}"
}

for i in $(seq 100 -1 1); do
    line booking User create "0.$(printf %03d "$i")" "$i.5"
done >fine.log
gives "nothing exceeds a threshold" 0 "$il" locks --report fine.log
is "... no message" "$err" ""
like "... a heading" "$out" "PIPELINE *ENTITY *CALLER *COUNT *WAIT P50 *WAIT P95 *WAIT P99 *WAIT MAX *HOLD P50*HOLD MAX *ROLLBACKS *STATUS*"
like "... exact percentiles" "$(sed -n 2p "$work/out" | tr -s ' ')" "booking User create 100 0.050 0.095 0.099 0.100 50.500 95.500 99.500 100.500 0.0% ok"
is "... one group" "$(wc -l <"$work/out")" 2
check "... and no store was made" test ! -e "$XDG_STATE_HOME" -a ! -e x.db
run "$il" locks --report <fine.log
is "from standard input" "$status $(wc -l <"$work/out")" "0 2"
run "$il" locks --report --json - <fine.log
is "... or -" "$status" 0
json "as JSON" "d['status'] == 'ok' and d['lines'] == d['locks'] == 100 and d['bad_lines'] == d['other_lines'] == d['dropped'] == 0 and d['bad'] == []"
json "... the group" "d['groups'] == [{'pipeline': 'booking', 'entity': 'User', 'caller': 'create', 'count': 100, 'wait_ms': {'p50': 0.05, 'p95': 0.095, 'p99': 0.099, 'max': 0.1}, 'hold_ms': {'p50': 50.5, 'p95': 95.5, 'p99': 99.5, 'max': 100.5}, 'integrity_rollbacks': 0, 'integrity_rollback_percent': 0.0, 'status': 'ok', 'findings': []}]"
line "" User "" 1 2 >one.log
gives "one lock without a pipeline and a caller" 0 "$il" locks --report one.log
like "... all percentiles are its own" "$(sed -n 2p "$work/out" | tr -s ' ')" "- User - 1 1.000 1.000 1.000 1.000 2.000 2.000 2.000 2.000 0.0% ok"

# Thresholds: exceeded only by more than the value.
report() {
    "$il" locks --report feed.log
}
for entity in UserLicense:200 Semester:500; do
    name=${entity%:*} ms=${entity#*:}
    line p "$name" c 0 "$ms" >feed.log
    run report
    is "a hold of $name of $ms ms" "$status $(tail -n 1 "$work/out" | grep -c ok)" "0 1"
    line p "$name" c 0 "$ms.001" >feed.log
    run report
    is "... and longer" "$status $(tail -n 1 "$work/out")" "1 warning: p $name c: the P95 of holds is $ms.001 ms, more than $ms ms"
    { for _ in $(seq 19); do line p "$name" c 0 1; done; line p "$name" c 0 1999; } >feed.log
    run report
    is "... which one in twenty may be" "$status" 0
    line p "$name" c 1999 0 >feed.log
    run report
    is "... a wait is no hold" "$status" 0
done
line p Other c 0 1999 >feed.log
run report
is "other entities have no limit" "$status" 0
line p Other c 2000 2000 >feed.log
run report
is "2000 ms are not critical" "$status" 0
line p Other c 2000.001 0 >feed.log
run report
is "a longer wait is" "$status $(tail -n 1 "$work/out")" "2 critical: p Other c: a wait of 2000.001 ms (line 1) exceeds 2000 ms"
{ line p A c 0 1; line p Other c 0 2500; line p UserLicense c 0 300; } >bad.log
gives "a longer hold, beside a warning" 2 "$il" locks --report bad.log
like "... both are named" "$out" "*critical: p Other c: a hold of 2500.000 ms (line 2) exceeds 2000 ms
warning: p UserLicense c: the P95*"
gives "... as JSON" 2 "$il" locks --report --json bad.log
json "... with levels" "d['status'] == 'critical' and [g['status'] for g in d['groups']] == ['ok', 'critical', 'warning'] and d['groups'][1]['findings'] == [{'level': 'critical', 'text': 'a hold of 2500.000 ms (line 2) exceeds 2000 ms'}]"
for i in $(seq 20); do
    line p A c 0 1 "$([ "$i" = 7 ] && echo violation || echo rolled_back)"
done >rollbacks.log
gives "5 % integrity rollbacks" 0 "$il" locks --report rollbacks.log
line p A c 0 1 violation >>rollbacks.log
gives "more" 1 "$il" locks --report rollbacks.log
like "... are a warning" "$out" "*warning: p A c: 9.5 % integrity rollbacks, more than 5 %"
for other in refused conflict unknown; do
    line p A c 0 1 $other >feed.log
    run report
    is "outcome $other is none" "$status" 0
done
gives "other thresholds: rollbacks" 0 "$il" locks --report --rollbacks 10 rollbacks.log
gives "... critical" 1 "$il" locks --report --critical 3s bad.log
gives "... holds" 0 "$il" locks --report --critical 3s --hold-p95 User=1h,UserLicense=300ms bad.log
gives "... no limits for holds" 0 "$il" locks --report --critical 3s --hold-p95 none bad.log
gives "... of another entity" 1 "$il" locks --report --critical 3s --hold-p95 Other=2s bad.log
gives "everything is critical" 2 "$il" locks --report --critical 0 fine.log

# Lines that are not valid, and those about something else.
{
    line p A c 0 1
    echo 'not JSON'
    echo
    echo '{"event":"started","n":1}'
    echo '{"event":"unlock_acquired"}'
    echo '[1]'
    line p A c -1 1
    line p A c '"1"' 1
    line p A c 0 1e300
    line p A c 0 1 lost
    line p A c 0 1 | sed 's/"entity":"A",//'
    line p A c 0 1 | tr -d '}'
    printf '{"event":"lock_acquired\0"}\n'
    printf '{"event":"lock_acquired","x":"\xff"}\n'
    head -c 70000 /dev/zero | tr '\0' x
    echo
    printf '\033[31m\n'
    line p A c 0 1 | tr -d '\n'
} >mixed.log
gives "invalid lines do not stop it" 0 "$il" locks --report mixed.log
like "... two locks remain" "$(sed -n 2p "$work/out" | tr -s ' ')" "p A c 2 *"
like "... each is named" "$err" "interlock: mixed.log:2: not JSON; line ignored
interlock: mixed.log:6: not a JSON object; line ignored
interlock: mixed.log:7: 'lock_wait_ms' is missing or not a non-negative number; line ignored
interlock: mixed.log:8: *
interlock: mixed.log:9: 'lock_hold_ms' is missing*
interlock: mixed.log:10: unknown outcome 'lost'; line ignored
interlock: mixed.log:11: 'entity' is missing or not a string; line ignored
interlock: mixed.log:12: not JSON; line ignored
interlock: mixed.log:13: not JSON; line ignored
interlock: mixed.log:14: not JSON; line ignored
interlock: mixed.log: 2 more bad lines ignored"
gives "-q" 0 "$il" -q locks --report mixed.log
is "... no messages" "$err" ""
gives "as JSON" 0 "$il" locks --report --json mixed.log
json "... all are counted" "d['lines'] == 17 and d['locks'] == 2 and d['other_lines'] == 2 and d['bad_lines'] == 12 and [b['line'] for b in d['bad']] == [2, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16] and d['bad'][10]['error'] == 'longer than 65,536 bytes'"
gives "an empty file" 0 "$il" locks --report /dev/null
is "... says so" "$out$err" "interlock: /dev/null: found no locks in 0 lines"
gives "... as JSON" 0 "$il" locks --report --json /dev/null
json "... no groups" "d['status'] == 'ok' and d['groups'] == [] and d['lines'] == 0"
line $'a\\u001b[31m' 'A\u0007' '\ud83d\ude00' 0 1 >feed.log
run report
is "control characters" "$status" 0
check "... do not reach the terminal" sh -c "! LC_ALL=C grep -q '$(printf '[\001-\010\013-\037\177]')' '$work/out'"

# Many groups, many lines.
py - >many.log <<'END'
row = '{"event":"p.lock_acquired","pipeline":"p","caller":"c%d","entity":"E","lock_wait_ms":%.3f,"lock_hold_ms":%.3f,"outcome":"committed"}'
for i in range(5000):
    print(row % (i, 0.5, 1))
for i in range(100000):
    print(row % (0, i / 1000, (i * 7919 % 100000) / 1000))
END
gives "more groups than there may be" 0 "$il" locks --report --json many.log
json "... are left out and counted" "len(d['groups']) == 4096 and d['dropped'] == 904 and d['locks'] == 104096"
json "... exact in a group of 100,001" "[g[name] for g in d['groups'] if g['caller'] == 'c0' for name in ('wait_ms', 'hold_ms')] == 2 * [{'p50': 49.999, 'p95': 94.999, 'p99': 98.999, 'max': 99.999}]"
like "... and a message" "$err" "interlock: many.log: 904 locks ignored: more than 4096 groups"

# Usage.
error "a file that is missing" 64 "locks: cannot open none.log: No such file or directory" "$il" locks --report none.log
error "a folder" 64 "locks: $work: cannot read the log: Is a directory" "$il" locks --report "$work"
for option in --waiters "--limit 3" "--cursor x"; do
    # shellcheck disable=SC2086
    error "--report $option" 64 "locks: --report cannot be combined with *" "$il" locks --report $option fine.log
done
for option in "--critical 1s" "--rollbacks 5" "--hold-p95 A=1s"; do
    # shellcheck disable=SC2086
    error "$option without --report" 64 "locks: --hold-p95, --critical and --rollbacks need --report" "$il" locks $option
done
for bad in A A= =1s A=x A=forever A=1s,B; do
    error "--hold-p95 $bad" 64 "locks: --hold-p95: '*' is not *" "$il" locks --report --hold-p95 "$bad" fine.log
done
error "--rollbacks 101" 64 "locks: --rollbacks: *" "$il" locks --report --rollbacks 101 fine.log
error "--critical x" 64 "locks: --critical: *" "$il" locks --report --critical x fine.log
error "two files" 64 "locks: unexpected argument *" "$il" locks --report fine.log one.log
gives "a report that cannot be written" 74 sh -c "'$il' locks --report '$work/fine.log' >/dev/full"
finish
