#!/bin/bash
# container.sh ARCHIVE: build the container of deploy/container from a source archive, and use it. No
# registry is needed: the base is a system that mmdebstrap makes. As root, or through `buildah
# unshare`. Output is TAP.
set -u
archive=$1
work=$(mktemp -d "${TMPDIR:-/tmp}/interlock-container-XXXXXX")
network=
namespace=
server=
. "$(dirname "$0")/tap.sh" || exit 1
export LC_ALL=C.UTF-8 BUILDAH_ISOLATION=chroot
storage=(--root "$work/storage" --runroot "$work/run" --storage-driver vfs)

# Whatever still runs in the test network is ours: $namespace is that network, once it exists.
cleanup() {
    local process
    exec 2>/dev/null # the shell reports what is killed
    for process in /proc/[0-9]*; do
        if [ -n "$namespace" ] && [ "$(readlink "$process/ns/net" 2>/dev/null)" = "$namespace" ]; then
            kill -KILL "${process#/proc/}"
        fi
    done
    wait
    buildah "${storage[@]}" rm --all >/dev/null 2>&1
    rm -rf "$work"
}
trap cleanup EXIT

base_image() {
    local suite base
    suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    mmdebstrap --variant=minbase --mode=root --quiet "$suite" "$work/base.tar" &&
        base=$(buildah "${storage[@]}" from scratch) &&
        buildah "${storage[@]}" add --quiet "$base" "$work/base.tar" / &&
        buildah "${storage[@]}" config --cmd /bin/bash "$base" &&
        buildah "${storage[@]}" commit --quiet --rm "$base" interlock-test-base &&
        rm "$work/base.tar"
}

image() {
    mkdir "$work/source" && tar -xf "$archive" -C "$work/source" --strip-components=1 &&
        buildah "${storage[@]}" build --format docker --pull-never \
            --build-arg BASE=localhost/interlock-test-base -t interlock-test \
            -f "$work/source/deploy/container/Containerfile" "$work/source"
}

# setting EXPRESSION: of the image's configuration, as Python sees it; a list as lines.
setting() {
    buildah "${storage[@]}" inspect --type image interlock-test | python3 -c '
import json, sys
config = json.load(sys.stdin)["Docker"]["config"]
value = eval(sys.argv[1], {"config": config})
print("\n".join(value) if isinstance(value, list) else value)' "$1"
}

# in_container CONTAINER [--OPTION...] -- COMMAND...: in the test network.
in_container() {
    local name=$1
    local options=()
    shift
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    nsenter --net="/proc/$network/ns/net" buildah "${storage[@]}" run "${options[@]}" "$name" "$@"
}

# inside COMMAND...: in the container under test, as its user.
inside() {
    in_container "$container" "${environment[@]}" -- "$@"
}

# eventually COMMAND...: it succeeds within two minutes.
eventually() {
    local tries
    for ((tries = 0; tries < 120; tries++)); do
        "$@" && return 0
        read -r -t 1 up <&"${NETWORK[0]}" # nothing comes: a pause
    done
    return 1
}

# starts: the server, with the image's own command; it leaves its process id in its volume.
starts() {
    # shellcheck disable=SC2016  # $$ and $@ are the inner shell's
    inside sh -c 'echo $$ >/var/lib/interlock/pid; exec "$@"' sh "${start[@]}" >"$work/server.log" 2>&1 &
    server=$!
    eventually inside "${health[@]}" || { cat "$work/server.log" && return 1; }
}

postgres_image() {
    local name=postgres-test
    buildah "${storage[@]}" from --pull-never --name "$name" interlock-test-base &&
        buildah "${storage[@]}" run "$name" -- sh -c \
            'apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install postgresql'
}

# stops: the server in the container exits with 0 after TERM.
stops() {
    local pid status
    pid=$(inside cat /var/lib/interlock/pid) && kill -TERM "$pid" && wait "$server"
    status=$?
    server=
    return "$status"
}

check "a base image" base_image || finish
check "the image is built" image || finish

is "its user has no rights" "$(setting 'config["User"]')" 7600:7600
is "its state is a volume" "$(setting 'list(config["Volumes"])')" /var/lib/interlock
mapfile -t start < <(setting 'config["Entrypoint"] + config["Cmd"]')
mapfile -t health < <(setting 'config["Healthcheck"]["Test"][1:]')

container=$(buildah "${storage[@]}" from --pull-never --add-host postgres:127.0.0.1 interlock-test)
environment=()
coproc NETWORK { exec unshare --net sh -c 'ip link set lo up && echo up && exec sleep infinity'; }
# shellcheck disable=SC2153  # coproc sets it
network=$NETWORK_PID
read -r up <&"${NETWORK[0]}"
is "a network" "$up" up || finish
new=$(readlink "/proc/$network/ns/net")
if [ -z "$new" ] || [ "$new" = "$(readlink /proc/self/ns/net)" ]; then
    echo "# the network is not a new one"
    exit 1
fi
namespace=$new

is "commands run as that user" "$(inside id -u)" 7600
check "... who cannot change the system" inside sh -c '! touch /usr/bin/x /etc/x 2>/dev/null'
is "a command runs under a lease" \
    "$(inside interlock run nightly -- sh -c 'interlock locks --json | grep -c nightly')" 1
is "no compiler is in the image" "$(inside sh -c 'command -v gcc make || true')" ""
check "every library can be loaded" inside sh -c '! interlock --version | grep "not installed"'

check "the server starts, and its health check passes" starts
check "... with the store" inside curl -fsS http://127.0.0.1:7600/ready
key=$(inside interlock key create --admin --json | sed -n 's/.*"key": *"\([^"]*\)".*/\1/p')
check "a key is created in the container" test -n "$key"
check "... and gets a lease over HTTP" inside curl -fsS -H "X-API-Key: $key" -H 'Content-Type: application/json' \
    -d '{"key":"nightly","holder":"me"}' http://127.0.0.1:7600/api/v1/locks/acquire
is "the log has no key" "$(grep -c 'sk_' "$work/server.log")" 0
check "the server stops" stops

# The example with PostgreSQL: the environment that compose.yml gives the server.
environment=(--env PGPASSWORD=secret)
environment+=(--env "$(sed -n 's/^ *\(INTERLOCK_STORE\): /\1=/p' "$work/source/deploy/container/compose.yml")")
check "a container with PostgreSQL" postgres_image
in_container postgres-test -- sh -c 'exec setpriv --reuid=postgres --regid=postgres --clear-groups \
    /usr/lib/postgresql/*/bin/postgres -D /etc/postgresql/*/main -c dynamic_shared_memory_type=mmap -c ssl=off' >"$work/postgres.log" 2>&1 &
check "PostgreSQL answers" eventually in_container postgres-test -- su postgres -c \
    "psql -c \"CREATE ROLE interlock LOGIN PASSWORD 'secret'\" -c 'CREATE DATABASE interlock OWNER interlock'" ||
    cat "$work/postgres.log"
check "the server starts with it" starts
check "... and can use it" inside curl -fsS http://127.0.0.1:7600/ready
check "a command runs under a lease there" inside interlock run nightly -- \
    sh -c 'interlock locks --json | grep nightly && interlock doctor | grep server_version'
check "the server stops, too" stops
finish
