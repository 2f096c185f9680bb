#!/bin/bash
# Unusable stores: status 69, one line that names the file, nothing run, the file unchanged.
. "$(dirname "$0")/lib.sh" || exit 1

gives "a store" 0 "$il" run k -- true
cp x.db good.db
# refused NAME FILE PATTERN: by every command; the file stays as it is.
refused() {
    local before
    before=$(cksum "$2" 2>/dev/null)
    error "$1: run" 69 "$3" "$il" run --store "$2" k -- touch ran
    error "$1: locks" 69 "$3" "$il" locks --store "$2"
    error "$1: why" 69 "$3" "$il" why --store "$2" k
    error "$1: break" 69 "$3" "$il" break --store "$2" k --reason x
    error "$1: bench" 69 "$3" "$il" bench --store "$2" --seconds 1
    is "$1: the file is as it was" "$(cksum "$2" 2>/dev/null)" "$before"
}
mkdir dir.db
refused "a directory" "$work/dir.db" "$work/dir.db is a folder, not a database*"
check "nothing was put into it" rmdir dir.db
head -c 20000 /dev/urandom >garbage.db
refused "garbage" "$work/garbage.db" "$work/garbage.db: *"
py -c "
import sqlite3
db = sqlite3.connect('x.db'); db.execute('PRAGMA wal_checkpoint(TRUNCATE)'); db.close()"
head -c 5000 x.db >cut.db
refused "cut short" "$work/cut.db" "$work/cut.db: *"
cp x.db newer.db
py -c "
import sqlite3
db = sqlite3.connect('newer.db'); db.execute('PRAGMA user_version = 99'); db.execute('PRAGMA wal_checkpoint(TRUNCATE)'); db.close()"
refused "newer" "$work/newer.db" "$work/newer.db: *newer*"
py -c "
import sqlite3
db = sqlite3.connect('foreign.db'); db.execute('CREATE TABLE t (x)'); db.commit(); db.close()"
refused "somebody else's" "$work/foreign.db" "$work/foreign.db *"
refused "a device" /dev/null "/dev/null: not a regular file"
refused "a path below a file" "$work/good.db/x.db" "$work/good.db/x.db: Not a directory"
ln -s loop.db loop.db
refused "a loop of links" "$work/loop.db" "$work/loop.db: *"
long=$work/$(printf 'x%.0s' {1..300}).db
refused "a name that is too long" "$long" "/*: File name too long"
check "nothing was run" test ! -e ran

# Without privileges.
if [ "$(id -u)" = 0 ]; then
    drop="setpriv --reuid 65534 --regid 65534 --clear-groups"
else
    drop=
fi
chmod 755 "$work"
cp x.db readonly.db
chmod 444 readonly.db
cp x.db unreadable.db
chmod 000 unreadable.db
mkdir closed
chmod 755 closed
install -m 755 "$il" "$work/interlock"
il_before=$il
il=$work/interlock
# as_nobody COMMAND...
as_nobody() {
    # shellcheck disable=SC2086
    $drop env HOME=/ "$@"
}
for command in "run k -- true" "locks" "why k" "break k --reason x"; do
    # shellcheck disable=SC2086
    error "read-only: ${command%% *}" 69 "$work/readonly.db: Permission denied" as_nobody "$il" --store "$work/readonly.db" $command
    # shellcheck disable=SC2086
    error "unreadable: ${command%% *}" 69 "$work/unreadable.db: Permission denied" as_nobody "$il" --store "$work/unreadable.db" $command
done
if [ -n "$drop" ]; then
    error "a folder that may not be written" 69 "$work/closed/x.db: Permission denied" as_nobody "$il" --store "$work/closed/x.db" run k -- true
    is "... stays empty" "$(ls closed)" ""
fi
il=$il_before

# A new store is private.
umask 000
gives "a new store" 0 "$il" run --store "$work/private.db" k -- true
is "... is the owner's alone" "$(stat -c %a private.db private.db-lock private.db-wake | sort -u)" 600
umask 022
gives "a relative path" 0 "$il" run --store rel.db k -- true
check "... is here" test -e rel.db
gives "a path with spaces and quotes" 0 "$il" run --store "$work/a 'b\".db" k -- true
check "... as it is" test -e "$work/a 'b\".db"

# Limits of the process are errors, not deaths.
limited() {
    bash -c "ulimit -c 0; ulimit $1 $2; shift 2; exec \"\$@\"" - "$@"
}
head -c 300000 /dev/zero >large
for n in 1 50 200; do
    error "files of $n KiB" 69 "$work/small$n.db*: *" limited -f $n "$il" queue push --store "$work/small$n.db" q --file large
done
gives "... without the limit" 0 "$il" queue push --store "$work/small200.db" q --file large
gives "... and a command has the signal as it was" 153 limited -c 0 "$il" run --store rel.db k -- sh -c 'kill -XFSZ $$'
died=
for n in $(seq 5 22); do
    limited -n "$n" "$il" tenant create --store "$work/few$n.db" t >/dev/null 2>&1
    status=$?
    [ $status -lt 128 ] || died="$died $n: $status"
done
is "few descriptors" "$died" ""
finish
