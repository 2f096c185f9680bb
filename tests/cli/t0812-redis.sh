#!/usr/bin/env bash
# Command output for a Redis store: doctor, and locks of classic clients.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

redis() { redis-cli -s "$work/redis.sock" "$@"; }
bg server redis-server --port 0 --unixsocket "$work/redis.sock" --dir "$work" --save '' --appendonly no
await "the server is up" redis PING

# ---- doctor
level() { echo "[(i['level'], i['value']) for i in d['items'] if i['name'] == '$1']"; }
export INTERLOCK_STORE="redis+unix://$work/redis.sock"
gives "a store" 0 env INTERLOCK_STORE="$INTERLOCK_STORE?max_ttl=120" "$il" run k -- true
gives "it is looked at" 0 "$il" doctor --json
json "max_ttl is the store's, not the URL's" "$(level max_ttl) == [('note', '120 s')]"
json "wake-ups are heard" "$(level wake-ups) == [('ok', 'working')]"
redis ACL SETUSER deaf on '>pw' '~{il}*' '&{il}:wake' +@all -subscribe >/dev/null
gives "a user who may not subscribe" 0 env INTERLOCK_STORE="redis+unix://deaf:pw@$work/redis.sock" "$il" doctor --json
json "... is told so, and what to allow" "$(level wake-ups) == [('warning', 'refused')] and any('&{il}:wake' in i['means'] for i in d['items'])"
redis CONFIG SET maxmemory-policy allkeys-lru >/dev/null
gives "an eviction policy is explained" 1 "$il" doctor --json
json "... as what is bad" "[i['name'] for i in d['items'] if i['level'] == 'bad'] == ['maxmemory-policy']"
error "... and refused by the others" 69 "*maxmemory-policy is allkeys-lru*noeviction*" "$il" why k
error "... also where there is no store yet" 69 "*maxmemory-policy is allkeys-lru*noeviction*" env INTERLOCK_STORE="$INTERLOCK_STORE?prefix=none" "$il" doctor
redis CONFIG SET maxmemory-policy noeviction >/dev/null

# Something in between that answers otherwise: a number or nothing where a text should be.
cat >"$work/odd.py" <<'END'
import os, socket, sys, threading
real, path = sys.argv[1], sys.argv[2]
odd = [(b"$9\r\nmaxmemory\r\n", b":9\r\n"), (b"$4\r\nsave\r\n$0\r\n\r\n", b"$4\r\nsave\r\n*-1\r\n")]
def pump(a, b, change):
    while data := a.recv(1 << 16):
        for was, is_now in odd if change else []:
            data = data.replace(was, is_now)
        b.sendall(data)
    b.shutdown(socket.SHUT_RDWR)
server = socket.socket(socket.AF_UNIX)
server.bind(path + ".new")
server.listen()
os.rename(path + ".new", path)
while True:
    client, upstream = server.accept()[0], socket.socket(socket.AF_UNIX)
    upstream.connect(real)
    threading.Thread(target=pump, args=(client, upstream, False), daemon=True).start()
    threading.Thread(target=pump, args=(upstream, client, True), daemon=True).start()
END
bg odd "$python" "$work/odd.py" "$work/redis.sock" "$work/odd.sock"
await "it listens" test -S "$work/odd.sock"
gives "odd answers are left out" 0 env INTERLOCK_STORE="redis+unix://$work/odd.sock" "$il" doctor --json
json "... and the rest is told" "$(level maxmemory) == [] and $(level max_ttl) == [('note', '120 s')]"

# ---- locks of classic clients
export INTERLOCK_STORE="redis+unix://$work/redis.sock?prefix=c&classic=yes"
key=pipeline:daily
"$il" run k -- true
redis SET pipeline_lock:default:daily their-run NX EX 300 >/dev/null
gives "why of a classic client's lock" 0 "$il" why $key
like "... who, and until when" "$out" "$key is held*holder *their-run*classic client*the key is free in *To wait for it*"
check "... no age, no fence, and nothing that does not work" test "$(grep -c -E 'since|renewed|fence|break|forever' "$work/out")" = 0
gives "locks shows it" 0 "$il" locks
like "... without fence and age" "$out" "*$key *their-run *- *classic client's *-*"
error "break says what it is, and how to end it" 1 "break: 'pipeline:daily' is held by their-run, a classic Redis client*--now*" "$il" break $key --reason test
long=$(printf 'x%.0s' {1..480})
redis SET "pipeline_lock:default:$long" their-run NX EX 300 >/dev/null
error "... also of a long key" 1 "break: 'pipeline:xxx*' is held by their-run, a classic *; use --now to delete its lock" "$il" break "pipeline:$long" --reason test
redis DEL "pipeline_lock:default:$long" >/dev/null
redis PERSIST pipeline_lock:default:daily >/dev/null
gives "why of one without an expiry" 0 "$il" why $key
like "... says so" "$out" "*It has no expiry*"
redis DEL pipeline_lock:default:daily >/dev/null
printf 'a\0b' | redis -x SET pipeline_lock:default:daily >/dev/null
gives "one with bytes that cannot be shown" 0 "$il" why $key
like "... as hex" "$out" "*holder *0x610062*"
gives "the way that break says works" 0 "$il" break $key --reason test --now
like "... and says whose it was" "$out" "broken: $key, held by 0x610062, a classic Redis client*"
check "... the string is gone" test "$(redis EXISTS pipeline_lock:default:daily)" = 0
gives "... and the key is free" 0 "$il" run $key -- true

# ---- a server that does not answer: the lease ends, the command, and at once the wrapper, however long the store may take
export INTERLOCK_STORE="redis+unix://$work/redis.sock" INTERLOCK_STORE_TIMEOUT=10m INTERLOCK_GRACE=100ms
kinds=("run --ttl 1s" "run --ttl 1s --record" "run --ttl 1s --on-conflict join" "once --lease 1s" "cache get --lease 1s")
for i in "${!kinds[@]}"; do
    read -ra words <<<"${kinds[i]}"
    bg "w$i" "$il" "${words[@]}" "silent-$i" -- sh -c "touch up-$i; exec sleep 600"
    await "${kinds[i]}" test -e "up-$i"
done
bg e "$il" run --ttl 1s silent-e -- sh -c 'touch up-e; until [ -e go ]; do sleep 0.02; done; exit 5'
await "one that ends by itself" test -e up-e
kill -STOP "${pids[server]}"
touch go
reap e
is "one that ends by itself: its own status" "$status" 5
like "... and what becomes of the lease" "$(cat e.err)" "interlock: silent-e: cannot release the lease, it will expire: *"
for i in "${!kinds[@]}"; do
    reap "w$i"
    is "${kinds[i]}: lost" "$status" 76
done
kill -CONT "${pids[server]}"
finish
