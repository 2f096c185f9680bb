#!/bin/bash
# in-chroot.sh: install the packages of /packages in a system that has none of their dependencies, use
# them, and remove them without a trace. Output is TAP.
set -u
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
work=$(mktemp -d /tmp/interlock-packages-XXXXXX)
server=

. /packages/tap.sh || exit 1

cleanup() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null
    fi
}
trap cleanup EXIT

# as_user COMMAND...: with a home of its own and no rights.
as_user() {
    setpriv --reuid=65534 --regid=65534 --clear-groups env -i HOME="$work/home" PATH=/usr/bin:/bin \
        LC_ALL=C.UTF-8 "$@"
}

# apt COMMAND...: dependencies only, so that what works here needs nothing that is recommended.
apt() {
    apt-get -qq -y --no-install-recommends "$@"
}

# traces: what is installed, and every file that is not a cache, a log or this test's.
traces() {
    dpkg-query -W -f '${Package} ${Status}\n'
    find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /packages \
        -o -path /var/cache -o -path /var/log -o -path /var/lib/apt -o -path /var/lib/dpkg \) \
        -prune -o -print | LC_ALL=C sort
}

# ask PATH: the answer of the server at $address, with its head.
ask() {
    exec 3<>"/dev/tcp/${address%:*}/${address##*:}" || return 1
    printf 'GET %s HTTP/1.1\r\nHost: %s\r\nAccept: */*\r\nConnection: close\r\n\r\n' "$1" "$address" >&3
    cat <&3
    exec 3>&-
}

# answers PATH PATTERN: 200, and the pattern somewhere in the answer.
answers() {
    ask "$1" >"$work/answer"
    head -c 2000 "$work/answer"
    head -n 1 "$work/answer" | grep -q '^HTTP/1.1 200 ' && grep -q -- "$2" "$work/answer"
}

start_server() {
    local line
    coproc LOG { as_user interlock serve --listen 127.0.0.1:0 --store "sqlite:$work/home/served.db" 2>&1; }
    # shellcheck disable=SC2153  # coproc sets it
    server=$LOG_PID
    while IFS= read -r -t 30 line <&"${LOG[0]}"; do
        echo "$line" >>"$work/server.log"
        if [[ $line =~ listening\ on\ (http://)?([0-9.]+:[0-9]+) ]]; then
            address=${BASH_REMATCH[2]}
            return 0
        fi
    done
    cat "$work/server.log"
    return 1
}

# stops: the server ends by itself when it is told to.
stops() {
    local status
    pkill --parent "$server" -TERM -x interlock 2>/dev/null || kill -TERM "$server"
    wait "$server"
    status=$?
    server=
    return $status
}

mkdir -m 0755 "$work/home" && chown 65534:65534 "$work/home" && chmod 0755 "$work"
traces >"$work/before"

check "the command is installed" apt install /packages/interlock_*.deb /packages/interlock-doc_*.deb
is "a lease is held while a command runs" \
    "$(cd "$work/home" && as_user interlock run nightly-report -- sh -c 'interlock locks --json | grep -c nightly-report')" 1
check "a second command is refused" test 75 = \
    "$(cd "$work/home" && as_user interlock run k -- sh -c 'interlock run k -- true; echo $?' 2>/dev/null)"
check "--version works" as_user interlock --version
for file in bash-completion/completions/interlock.bash zsh/vendor-completions/_interlock \
    fish/vendor_completions.d/interlock.fish man/man1/interlock.1.gz man/man1/interlock-run.1.gz \
    man/man7/interlock-options.7.gz doc/interlock/README.md doc/interlock/docs/INSTALL.md \
    doc/interlock/docs/examples/once.c doc/interlock/docs/images/overview-light.png; do
    check "there is /usr/share/$file" test -s "/usr/share/$file"
done
check "the completion for bash can be loaded" bash -c '. /usr/share/bash-completion/completions/interlock.bash'
unit=$(dpkg -L interlock | grep '/interlock\.service$')
check "the unit starts the installed binary" grep -q '^ExecStart=/usr/bin/interlock serve' "$unit"
is "the unit is not enabled" "$(find /etc/systemd -name 'interlock*' 2>/dev/null)" ""

address=
check_server() {
    check "the server answers /health" answers /health '"status"'
    check "... has the admin page" answers /ui/ 'app\.js'
    check "... and can use its store" answers /ready .
    check "... stops when it is told to" stops
}
if start_server; then
    check_server
else
    check "the server starts" cat "$work/server.log" /nonexistent
fi

check "the library is installed" apt install /packages/libinterlock0_*.deb /packages/libinterlock-dev_*.deb
example=/usr/share/doc/interlock/docs/examples/once.c
cd "$work" || exit 1
shared() {
    # shellcheck disable=SC2046  # words
    cc -o shared $example $(pkg-config --cflags --libs interlock) && ldd shared &&
        ldd shared | grep -q libinterlock.so.0 && ./shared memory:
}
static() {
    # shellcheck disable=SC2046  # words
    cc -o static $example $(pkg-config --cflags interlock) -Wl,--as-needed -l:libinterlock.a \
        $(pkg-config --static --libs interlock) && ldd static && ! ldd static | grep interlock &&
        ./static memory:
}
all_static() {
    # shellcheck disable=SC2046  # words
    cc -static -o all-static $example $(pkg-config --static --cflags --libs interlock) &&
        ! ldd all-static && ./all-static memory:
}
check "a program is built with the shared library" shared
check "... and with the static one" static
check "... and with static libraries only" all_static

# As systemd leaves it, when the service has run.
mkdir -p /var/lib/private/interlock && touch /var/lib/private/interlock/interlock.db &&
    ln -s private/interlock /var/lib/interlock
check "everything is removed" apt purge --autoremove interlock interlock-doc libinterlock0 libinterlock-dev
rmdir --ignore-fail-on-non-empty /var/lib/private 2>/dev/null
traces >"$work/after"
check "... and nothing is left behind" diff "$work/before" "$work/after"
rm -rf "$work"
finish
