#!/bin/bash
# bench: measures the current store, and leaves nothing behind.
. "$(dirname "$0")/lib.sh" || exit 1

gives "bench" 0 "$il" bench --seconds 1 --threads 2
like "... a table" "$out" "sqlite:*MEASUREMENT*CALLERS*PAIRS/S*P50*P90*P99*MAX*alone*together*handover*"
is "nothing stays" "$(state)" $'il_lease []\nil_waiter []'
gives "as JSON, in memory" 0 "$il" bench --store memory: --seconds 1 --threads 1 --json
json "... a listing" "d['next'] is None and d['store'] == 'memory:' and [i['name'] for i in d['items']] == ['alone', 'together', 'handover'] and all(i['pairs'] > 0 and i['pairs_per_s'] > 0 and 0 < i['p50_us'] <= i['p90_us'] <= i['p99_us'] <= i['max_us'] for i in d['items'])"
bg b "$il" bench --seconds 60
measuring() { "$il" locks --json | grep -q '"key":'; }
await "it measures" measuring
kill -INT "${pids[b]}"
reap b
is "interrupted: 130" "$status" 130
is "... without a table" "$(cat b.out)" ""
is "... and nothing stays" "$(state)" $'il_lease []\nil_waiter []'
for bad in 0 x 3601 -1; do
    error "--seconds $bad" 64 "bench: --seconds: *" "$il" bench --seconds "$bad"
    error "--threads $bad" 64 "bench: --threads: *" "$il" bench --threads "${bad/3601/257}"
done
error "an argument" 64 "bench: unexpected argument 'x'*" "$il" bench x
error "a store that cannot be" 69 "/no/such/x.db: *" "$il" bench --store /no/such/x.db --seconds 1
finish
