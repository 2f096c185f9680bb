#!/bin/bash
# A SQLite store, and tenants and keys on each engine, are upgraded with all their data when the
# next version (a fictitious one, tests/next) opens them; this version then refuses them.
. "$(dirname "$0")/lib.sh" || exit 1
next=${IL_TEST_NEXT:?the binary of the next version}
N=6 # processes that upgrade at once

# sql TEXT: what a statement on the store's file returns.
sql() {
    py - "$INTERLOCK_STORE" "$1" <<'END'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=20)
print(*(" ".join(str(c) for c in row) for row in db.execute(sys.argv[2])), sep="\n")
END
}
# catalogue: all tables and indexes.
catalogue() {
    sql "SELECT type, name, sql FROM sqlite_schema ORDER BY type, name"
}
# at_once ARGUMENTS...: as many of the next version; how many of them succeeded.
at_once() {
    local i done=0 all=()
    for ((i = 0; i < N; i++)); do
        "$next" "$@" >/dev/null 2>"$work/err.$i" &
        all+=($!)
    done
    for i in "${all[@]}"; do
        wait "$i" && done=$((done + 1))
    done
    echo $done
}

# ---- the store

INTERLOCK_STORE=$work/fresh.db "$next" locks >/dev/null 2>&1
gives "a new store of the next version" 0 env "INTERLOCK_STORE=$work/fresh.db" "$next" run k -- true
fresh=$(INTERLOCK_STORE=$work/fresh.db catalogue)
hold holder k --record
is "this version makes version 1" "$(sql "SELECT version, min_version FROM il_state")" "1 1"
is "the next one upgrades it, several at once" "$(at_once locks)" $N
is "... to its version" "$(sql "SELECT version, min_version, (SELECT user_version FROM pragma_user_version) FROM il_state")" "2 2 2"
is "... as one that is made anew" "$(catalogue)" "$fresh"
is "... with what was there" "$(sql "SELECT key, next FROM il_lease")" "k 7"
error "which this one refuses" 69 "*version 2 was written by a newer Interlock; this one supports 1*" "$il" locks
let_go holder
gives "... unless it was open already" 0 "$next" run k -- true
sql "UPDATE il_state SET min_version = 1"
gives "... or it says that this one may use it" 0 "$il" run k -- true
sql "PRAGMA user_version = -3"
error "a negative version is damage" 69 "*malformed" "$il" locks

# ---- tenants and keys

tenants() {
    "$1" tenant list --json | py -c 'import json,sys; print(*(i["id"] for i in json.load(sys.stdin)["items"]))'
}
# upgrades NAME VERSIONS: VERSIONS prints version and min_version of the tables.
upgrades() {
    gives "$1: a tenant" 0 "$il" tenant create acme
    gives "... and a key" 0 "$il" key create --tenant acme --name first
    is "... in version 1" "$($2)" "1 1"
    before=$("$il" key list --json; "$il" audit --json)
    is "... are upgraded, by several at once" "$(at_once key list --tenant acme)" $N
    is "... to the next version" "$($2)" "2 2"
    is "... with what was there" "$(tenants "$next")" "acme"
    is "... keys and audit as they were" "$("$next" key list --json; "$next" audit --json)" "$before"
    gives "... and what is new" 0 "$next" tenant create late
}
versions_sqlite() {
    sql "SELECT version, min_version FROM il_data_meta"
}
versions_postgres() {
    psql -qAt -F ' ' -c "SELECT version, min_version FROM ${schema}_admin.data_meta"
}
export INTERLOCK_STORE=$work/data.db
upgrades SQLite versions_sqlite
sql "UPDATE il_state SET min_version = 1"
error "this one refuses them" 69 "*data tables*newer Interlock; this one supports 1*" "$il" tenant list
postgres_store
upgrades PostgreSQL versions_postgres
psql -q -c "UPDATE $schema.state SET min_version = 1"
error "this one refuses them" 69 "*data tables*newer Interlock; this one supports 1*" "$il" tenant list
finish
