#!/usr/bin/env bash
# A network partition between two nodes: the isolated holder stops before the other side gets the
# key, on each engine with a server. Three network namespaces: the server's and one for each node,
# connected by a bridge; a node is isolated by taking its link down.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

if [ "$(id -u)" -ne 0 ] || ! command -v ip >/dev/null || ! ip netns add il-try-$$ 2>/dev/null; then
    echo "1..0 # SKIP needs root and network namespaces"
    exit 0
fi
ip netns del il-try-$$
net=il-$$

remove_net() {
    local ns
    for ns in server a b; do
        ip netns pids "$net-$ns" 2>/dev/null | xargs -r kill -KILL 2>/dev/null
        ip netns del "$net-$ns" 2>/dev/null
    done
    if [ -n "${pg:-}" ]; then
        rm -rf "$pg"
    fi
}
trap 'remove_net; cleanup' EXIT

# Addresses of 192.0.2.0/24, which is for documentation: they exist in these namespaces only.
make_net() {
    ip netns add "$net-server"
    ip -n "$net-server" link set lo up
    ip -n "$net-server" link add bridge type bridge
    ip -n "$net-server" addr add 192.0.2.1/24 dev bridge
    ip -n "$net-server" link set bridge up
    local i=2 ns
    for ns in a b; do
        ip netns add "$net-$ns"
        ip -n "$net-$ns" link set lo up
        ip -n "$net-server" link add "to-$ns" type veth peer name eth netns "$net-$ns"
        ip -n "$net-server" link set "to-$ns" master bridge up
        ip -n "$net-$ns" addr add "192.0.2.$i/24" dev eth
        ip -n "$net-$ns" link set eth up
        i=$((i + 1))
    done
}

in_net() {
    local ns=$1
    shift
    ip netns exec "$net-$ns" "$@"
}

start_postgres() {
    local bin user=postgres
    bin=$(dirname "$(find /usr/lib/postgresql -name initdb | sort -V | tail -n 1)")
    id -u postgres >/dev/null 2>&1 || user=nobody
    pg=$(mktemp -d)
    chown "$user" "$pg"
    as=(setpriv "--reuid=$(id -u "$user")" "--regid=$(id -g "$user")" --clear-groups)
    (cd "$pg" && "${as[@]}" "$bin/initdb" -D "$pg/data" -U postgres -A trust --no-sync >/dev/null 2>&1)
    echo "host all all 192.0.2.0/24 trust" >>"$pg/data/pg_hba.conf"
    cd "$pg" && in_net server "${as[@]}" "$bin/pg_ctl" -D "$pg/data" -l "$pg/log" -w -o "-c listen_addresses=192.0.2.1 -k '$pg'" start >/dev/null
    cd "$work" || exit 1
}

start_redis() {
    in_net server redis-server --bind 192.0.2.1 --port 6379 --protected-mode no --dir "$work" --save '' --daemonize yes \
        --logfile "$work/redis.log" --pidfile "$work/redis.pid" >/dev/null
}

# worker FILE: a line with the time every 20 ms, until it is stopped.
cat >worker <<'END'
import sys, time
with open(sys.argv[1], "w") as f:
    while True:
        f.write("%d\n" % time.monotonic_ns())
        f.flush()
        time.sleep(0.02)
END

# partition ENGINE URL
partition() {
    local engine=$1
    export INTERLOCK_STORE=$2
    rm -f a.ticks b.ticks
    bg a ip netns exec "$net-a" "$il" run --ttl 3s --grace 500ms k -- "$python" worker a.ticks
    await "$engine: a holds the key" test -s a.ticks
    bg b ip netns exec "$net-b" "$il" run --ttl 3s --wait 60s k -- "$python" worker b.ticks
    await "$engine: b waits for it" sh -c "ip netns exec $net-b '$il' locks --waiters --json | grep -q '\"items\": *\[ *{'"
    ip -n "$net-server" link set to-a down
    await "$engine: b has it" test -s b.ticks
    reap a
    is "$engine: the one that is cut off loses it" "$status" 76
    if [ "$(tail -n 1 a.ticks)" -lt "$(head -n 1 b.ticks)" ]; then
        pass "$engine: ... and has stopped before the other one began"
    else
        fail "$engine: ... and has stopped before the other one began" "a until $(tail -n 1 a.ticks), b from $(head -n 1 b.ticks)"
    fi
    gives "$engine: nothing is to be had for it: it fails at once, or in time" 69 in_net a timeout 20 "$il" run k2 -- true
    ip -n "$net-server" link set to-a up
    await "$engine: when the network is back" in_net a "$il" run k2 -- true
    kill -TERM "${pids[b]}"
    reap b
}

make_net
start_redis
partition redis "redis://192.0.2.1:6379"
start_postgres
partition postgres "postgres://postgres@192.0.2.1/postgres"
finish
