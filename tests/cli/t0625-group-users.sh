#!/usr/bin/env bash
# Two accounts on one store of a group: root and www-data exclude and wake each other, whoever comes
# first, whatever their umasks; a third account is refused, and told why.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

if [ "$(id -u)" -ne 0 ] || ! getent passwd www-data >/dev/null; then
    echo "1..0 # SKIP needs root, and an account www-data"
    exit 0
fi
chmod 755 "$work"
install -m 755 "$il" interlock
mkdir -m 700 web && chown www-data web
# as_user NAME USER UMASK: a command that is `interlock` as this user.
as_user() {
    cat >"$work/$1" <<END
#!/bin/sh
umask $3
export HOME=$work/web XDG_STATE_HOME=$work/web XDG_CONFIG_HOME=$work/web
exec setpriv --reuid=$2 --regid=$(id -gn "$2") --init-groups "$work/interlock" "\$@"
END
    chmod 755 "$work/$1"
}
root=$work/root-interlock web=$work/web-interlock
as_user root-interlock root 077
as_user web-interlock www-data 077
as_user other-interlock nobody 022
if ! "$web" --version >/dev/null; then
    fail "www-data can use $work"
    finish
fi
umask 000 # the fifos of hold() are for both
export INTERLOCK_STORE=$work/shared/s.db

error "whoever is no member cannot create it" 64 "*only root and members of the group 'www-data'*" "$work/other-interlock" migrate --group www-data
gives "root creates it" 0 "$root" migrate --group www-data
gives "it has nothing to ask" 0 "$root" run k -- true
gives "... and www-data neither" 0 "$web" run k -- true
for command in "run k -- true" "locks" "why k"; do
    # shellcheck disable=SC2086
    error "a third account: ${command%% *}" 69 "$INTERLOCK_STORE: permission denied: *group 'www-data'*" "$work/other-interlock" $command
done

# excluded HOLDER OTHER: what one holds the other does not get, but waits for and is woken.
excluded() {
    local holder=$1 other=$2 name
    name="$(basename "$1") and $(basename "$2")"
    il=$holder
    hold holder k --ttl 5s
    gives "$name: held" 75 "$other" run k -- true
    bg waiter "$other" run --wait 60s k -- true
    await "$name: waits" waits_for k 1
    is "$name: they share the file that wakes" \
        "$(awk '/s.db-wake$/ {print $4, $5}' "/proc/${pids[holder]}/maps" "/proc/${pids[waiter]}/maps" | sort -u | wc -l)" 1
    let_go holder
    reap waiter
    is "$name: gets it" "$status" 0
    hold holder k --ttl 1s
    kill -KILL "${pids[holder]}"
    gives "$name: after kill -9" 0 "$other" run --wait 60s k -- true
    reap holder
}
# Only the database stays: the last connection of another program moves the WAL into it.
remove_files() {
    py -c 'import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute("SELECT * FROM il_state"); db.close()' "$INTERLOCK_STORE"
    rm -f shared/s.db-*
}
all_of_group() {
    is "$1" "$(stat -c '%a %G' shared/* | sort -u)" "660 www-data"
}
excluded "$root" "$web"
excluded "$web" "$root"
all_of_group "all files are the group's"

# Files that are created anew, first by one, then by the other.
for first in "$web" "$root"; do
    remove_files
    gives "$(basename "$first") comes first" 0 "$first" run k -- true
    all_of_group "... and the files are the group's"
    il=$first
    if [ "$first" = "$root" ]; then excluded "$root" "$web"; else excluded "$web" "$root"; fi
done

# Each checkpoints what it has written when it closes the store, and the other goes on from there.
for one in "$web" "$root"; do
    two=$root
    [ "$one" = "$root" ] && two=$web
    gives "$(basename "$one") writes" 0 "$one" queue push --file /etc/services q
    seq 300 | "$one" queue push --lines q >/dev/null
    is "... and checkpoints" "$(stat -c %s shared/s.db-wal)" 0
    gives "$(basename "$two") goes on" 0 "$two" queue purge --state ready q --json
    json "... with all of it" "d['purged'] == 301"
done
all_of_group "nothing has changed hands"

# Another boot.
py - "$INTERLOCK_STORE" <<'END'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("UPDATE il_state SET boot_id = '00000000-0000-0000-0000-000000000000@' || substr(boot_id, instr(boot_id, '@') + 1)")
db.commit()
END
gives "after a reboot" 0 "$web" run k -- true
excluded "$root" "$web"

finish
