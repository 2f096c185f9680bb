#!/bin/bash
# locks: lists holders, page by page.
. "$(dirname "$0")/lib.sh" || exit 1

error "a store that is not there is not made by looking" 69 "*x.db: No such file*" "$il" locks
check "... not at all" test ! -e x.db
gives "the default store, before anything has run" 0 env -u INTERLOCK_STORE "$il" locks
is "... nothing on stdout" "$out" ""
is "... nobody, and why" "$err" "interlock: no leases; the store does not exist yet"
gives "as JSON" 0 env -u INTERLOCK_STORE "$il" locks --json
json "... an empty page" "d == {'items': [], 'next': None}"
check "... and nothing was made" test ! -e "$XDG_STATE_HOME"
gives "nobody holds" 0 "$il" run k -- true
gives "locks" 0 "$il" locks
is "... nothing on stdout" "$out" ""
like "... a note on stderr" "$err" "interlock: no leases"
gives "locks --json" 0 "$il" locks --json
json "... an empty page" "d == {'items': [], 'next': None}"
gives "-q" 0 "$il" -q locks
is "... no note" "$err" ""

# Seven keys at once, one process each.
for i in 1 2 3 4 5; do
    hold "h$i" "event:$i" --ttl 60s
done
hold s doc:1 --shared
hold p "pool" --permits 3 --tenant other
gives "locks" 0 "$il" locks
is "... a headline and a line for each of this tenant" "$(wc -l <"$work/out")" 7
like "... with its headings" "$out" "KEY *HOLDER *FENCE *MODE *AGE *EXPIRES *WAITERS*"
gives "by prefix" 0 "$il" locks event:
is "... five" "$(wc -l <"$work/out")" 6
gives "another tenant" 0 "$il" locks --tenant other --json
json "... its own only" "[i['key'] for i in d['items']] == ['pool'] and d['items'][0]['tenant'] == 'other' and d['items'][0]['mode'] == 'permit' and d['items'][0]['permits'] == 3"
gives "locks --json" 0 "$il" locks --json
json "... sorted by key" "[i['key'] for i in d['items']] == ['doc:1'] + ['event:%d' % n for n in range(1, 6)]"
json "... every field that scripts rely on" "all(set('key tenant holder fence mode acquired_at expires_at age_ms ttl_ms waiters meta'.split()) <= set(i) for i in d['items'])"
json "... of the right types" "all(type(i['fence']) is int and type(i['age_ms']) is int and i['ttl_ms'] in (30000, 60000) and time.match(i['acquired_at']) and time.match(i['expires_at']) and i['acquired_at'] < i['expires_at'] and i['waiters'] == 0 for i in d['items'])"
json "... meta says who" "all(i['meta']['pid'] > 1 and i['meta']['command'].startswith('sh -c') and i['meta']['host'] and i['meta']['user'] and i['meta']['cwd'] == '$work' for i in d['items'])"
json "... fences differ" "len({i['fence'] for i in d['items']}) == 6"
json "... modes" "[i['mode'] for i in d['items']] == ['shared'] + 5 * ['exclusive']"

# Pages.
seen=
cursor=
for page in 1 2 3 4; do
    if [ -z "$cursor" ]; then
        run "$il" locks --json --limit 2
    else
        run "$il" locks --json --limit 2 --cursor "$cursor"
    fi
    seen+=$(py -c 'import json,sys; print("".join(i["key"] + " " for i in json.load(sys.stdin)["items"]), end="")' <"$work/out")
    cursor=$(py -c 'import json,sys; print(json.load(sys.stdin)["next"] or "")' <"$work/out")
    [ -n "$cursor" ] || break
done
is "page by page, all of them, each once" "$seen" "doc:1 event:1 event:2 event:3 event:4 event:5 "
is "... in three pages" "$page" 3
gives "a page for people" 0 "$il" locks --limit 2
like "... says how to go on" "$err" "interlock: more items: --cursor '*'"
next=${err#*--cursor \'}
next=${next%\'}
gives "... and that works" 0 "$il" locks --limit 4 --cursor "$next"
like "... with the rest" "$out" "*event:2*event:5*"
error "a bad cursor is named" 64 "locks: --cursor: 'zzz' is not a cursor from a listing" "$il" locks --cursor zzz
for cursor in zzz "" ":" "12" "xyz:key" "ffffffffffffffffff:k" $'1:a\nb' "-1:k"; do
    error "a cursor that no listing gave: $(printf %q "$cursor")" 64 "locks: --cursor: *" "$il" locks --cursor "$cursor"
done
for limit_ in 0 -1 1001 x 1.5; do
    error "--limit $limit_" 64 "locks: --limit: *" "$il" locks --limit "$limit_"
done
error "a prefix with control characters" 64 "locks: *control*" "$il" locks $'a\nb'
gives "a prefix that is like a pattern" 0 "$il" locks --json '%'
json "... is not one" "d['items'] == []"

# Waiters.
bg w1 "$il" run --wait 60s event:1 -- true
await "queued" waits_for event:1 1
bg w2 "$il" run --wait 60s --shared event:1 -- true
await "queued" waits_for event:1 2
gives "locks --waiters" 0 "$il" locks --waiters --json
json "... in the order in which they came" "[i['mode'] for i in d['items']] == ['exclusive', 'shared'] and d['items'][0]['ticket'] < d['items'][1]['ticket']"
json "... with what there is to know" "all(0 < i['remaining_ms'] <= 60000 and i['key'] == 'event:1' and time.match(i['queued_at']) and i['state'] == 'waiting' for i in d['items'])"
gives "for people" 0 "$il" locks --waiters
like "... with its headings" "$out" "KEY *HOLDER *TICKET *MODE *WAITING *GIVES UP IN *WHO*pid * on * (true)"
bg watch "$il" locks --watch
listed_again() { [ "$(grep -c ^KEY watch.out)" -ge 2 ]; }
await "locks --watch lists again and again" listed_again
kill "${pids[watch]}"
reap watch
is "... until a signal" "$status" 143
error "--watch --report" 64 "locks: --watch cannot be combined with --report" "$il" locks --watch --report
gives "the lease knows how many" 0 "$il" locks --json event:1
json "... two" "d['items'][0]['waiters'] == 2"

# The lock order. A nested run belongs to the same unit of work.
rm -f "$work/order.db"
order=$work/order.db
gives "nothing learned yet" 0 "$il" run --store "$order" k -- true
gives "... no edges" 0 "$il" locks --order --store "$order"
is "... and says so" "$err" "interlock: no lock order has been learned"
gives "... within a prefix" 0 "$il" locks --order --store "$order" t
is "... and says so" "$err" "interlock: no lock order has been learned for classes within t"
gives "one order" 0 "$il" run -q --store "$order" a:1 -- "$il" run -q --store "$order" b:1 -- true
gives "locks --order" 0 "$il" locks --order --store "$order"
like "... with its headings" "$out" "HELD *THEN *ORDER *HELD AT *THEN AT*a *b *learned *"
is "... nothing is wrong" "$err" ""
gives "the other order" 0 "$il" run -q --store "$order" b:2 -- "$il" run -q --store "$order" a:2 -- true
gives "locks --order" 0 "$il" locks --order --store "$order"
like "... both are marked" "$out" "*a *b *INVERTED *b *a *INVERTED*"
like "... and counted" "$err" "interlock: 2 INVERTED: *"
gives "--json" 0 "$il" locks --order --json --store "$order"
json "... an edge for each order" "[(i['from'], i['to'], i['inverted'], i['declared']) for i in d['items']] == [('a', 'b', True, False), ('b', 'a', True, False)] and d['next'] is None"
gives "with ranks" 0 env INTERLOCK_RANKS=a,b "$il" locks --order --store "$order" --limit 1
like "... the declared one is marked" "$out" "*a *b *declared, INVERTED*"
like "... and how to go on" "$err" "*more items: --cursor 'a:b'*"
gives "... which works" 0 "$il" locks --order --json --store "$order" --cursor a:b
json "... with the rest" "[i['from'] for i in d['items']] == ['b']"
error "a bad cursor" 64 "locks: --cursor: 'zzz' is not a cursor from a listing" "$il" locks --order --store "$order" --cursor zzz
error "either" 64 "locks: --order cannot be combined with --waiters or --report" "$il" locks --order --waiters

for h in h1 h2 h3 h4 h5 s p; do
    let_go $h
done
reap w1
reap w2
is "nothing is held in the end" "$(state)" $'il_lease []\nil_waiter []'
run "$il" locks >/dev/full
gives "a listing that cannot be written" 74 sh -c "'$il' locks --json >/dev/full"
like "... says so" "$err" "interlock: cannot write to standard output: *"
finish
