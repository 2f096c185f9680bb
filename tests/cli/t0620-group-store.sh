#!/usr/bin/env bash
# A SQLite store for a group: created by one command, with the group's modes whatever the umask;
# refused where that cannot work; never the place of API keys. t0625 uses it as two users.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

group=$(id -g) # of this user: root or not, a member
chmod 755 "$work"
store=$work/shared/s.db
modes() {
    stat -c '%a %g' "$@" | sort -u
}

# Creating.
umask 077
gives "a store for a group" 0 "$il" migrate --group "$group" --store "$store"
like "... says so" "$err" "interlock: sqlite:$store is shared by the members of group $group"
is "... its folder is the group's" "$(modes shared)" "2770 $group"
is "... and so are all its files, whatever the umask" "$(modes shared/*)" "660 $group"
is "... which are all there are" "$(cd shared && echo *)" "s.db s.db-lock s.db-shm s.db-wake s.db-wal"
run "$il" migrate --group "$group" --store "$store" --json
is "once more is fine" "$status" 0
json "... as JSON" "d == {'store': 'sqlite:$store', 'group': '$group'}"

# Using.
export INTERLOCK_STORE=$store
gives "it can be used" 0 "$il" run k -- true
# The last connection of another program moves the WAL into the database.
py -c 'import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute("SELECT * FROM il_state"); db.close()' "$store"
rm -f shared/s.db-*
is "only the database is left" "$(ls shared)" s.db
gives "files that were deleted" 0 "$il" run k -- true
is "... are the group's again" "$(modes shared/*)" "660 $group"
chmod 600 shared/s.db-lock shared/s.db-wake
gives "files that were restored with other modes" 0 "$il" run k -- true
is "... get theirs" "$(modes shared/*)" "660 $group"
gives "doctor" 0 "$il" doctor
like "... finds nothing wrong with its mode" "$out" "*ok *file mode *0660 *the members of the group * share it*"
hold holder k
gives "an act of an operator" 0 "$il" break k --now --reason test
is "... is audited there" "$("$il" audit | grep -c break)" 1
reap holder
umask 022

# Not without permission.
mkdir plain
error "a folder that is there and not the group's" 69 "*$work/plain/s.db: *chmod 2770*" "$il" migrate --group "$group" --store "$work/plain/s.db"
is "... is not touched" "$(ls plain)" ""
error "a folder whose parent is missing" 69 "*$work/no/where: No such file or directory" "$il" migrate --group "$group" --store "$work/no/where/s.db"
gives "a private store" 0 "$il" run --store "$work/private.db" k -- true
error "... is not turned into one" 64 "*private.db exists and is not shared with a group*" "$il" migrate --group "$group" --store "$work/private.db"
is "... and stays private" "$(stat -c %a private.db)" 600
error "a group that does not exist" 64 "*no such group: 'no-such-group'*" "$il" migrate --group no-such-group --store "$work/other/s.db"
error "only SQLite has them" 64 "*--group needs a sqlite: store*" "$il" migrate --group "$group" --store "memory:"
error "not the default store" 64 "*--store*" env -u INTERLOCK_STORE "$il" migrate --group "$group"
error "not with --check" 64 "*--check*" "$il" migrate --group "$group" --check
chmod 755 shared
error "a folder that has lost its modes" 69 "$store: *chmod 2770*" "$il" run k -- true
chmod 2777 shared
error "... or is everybody's" 69 "$store: *chmod 2770*" "$il" run k -- true
chmod 3770 shared
error "... or is sticky" 69 "$store: *chmod 2770*" "$il" run k -- true
chmod 2770 shared
(umask 077 && cp shared/s.db accident.db && chmod 660 accident.db)
error "a private store with the mode of a group's" 69 "*accident.db: *a private store has mode 0600" "$il" run --store "$work/accident.db" k -- true

# API keys and their pepper would be the group's.
error "no keys in it" 64 "*shared with group*--data*" "$il" key create
error "no server on it" 64 "*shared with group*--data*" "$il" serve --allow-root --listen "unix:$work/sock"
error "no tables of apps" 64 "*cannot create the tables of campus beside the store of a group*--data*" "$il" campus create-user a@example.org
is "... really" "$(cd shared && echo *)" "s.db s.db-lock s.db-shm s.db-wake s.db-wal"
gives "a private data store beside it" 0 "$il" key create --data "$work/data.db"
is "... is private" "$(stat -c %a data.db)" 600
bg serve "$il" serve --allow-root --listen "unix:$work/sock" --data "$work/data.db"
await "a server with that" test -S "$work/sock"
kill "${pids[serve]}"
reap serve

finish
