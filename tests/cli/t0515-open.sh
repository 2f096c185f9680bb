#!/bin/bash
# open: a program that names no store, il_open(NULL, ...), uses the one that the command uses, and
# says the same if there is none.
. "$(dirname "$0")/lib.sh" || exit 1
unset INTERLOCK_STORE
opens=${IL_TEST_OPENS:?the program}
mkdir -p "$XDG_CONFIG_HOME/interlock"
user=$XDG_CONFIG_HOME/interlock/config.yml

# value KEY: as `interlock config show` has it.
value() {
    "$il" config show --json | py -c '
import json, sys
for i in json.load(sys.stdin)["items"]:
    if i["key"] == sys.argv[1]:
        print(i["value"])' "$1"
}

# same NAME STORE: the program takes a key in this store, which is the one that `config show` names,
# and in the tenant that it names; the command finds it there.
n_keys=0
same() {
    local key
    n_keys=$((n_keys + 1))
    key=key-$n_keys
    gives "$1" 0 "$opens" "$key"
    is "... the store that config shows" "$(value store)" "$2"
    gives "... where the command finds it" 0 "$il" locks --json
    json "... the key" "'$key' in [i['key'] for i in d['items']]"
    gives "... in the tenant that config shows" 0 env -i "HOME=$HOME" "$il" locks --json --store "$(value store)" --tenant "$(value tenant)"
    json "... the key" "'$key' in [i['key'] for i in d['items']]"
}

# both NAME STATUS PATTERN [VARIABLE=VALUE...]: the command and the program fail in the same way, and tell no secret.
both() {
    local name=$1 expected=$2 pattern=$3 told
    shift 3
    error "$name: the command" "$expected" "$pattern" env "$@" "$il" locks
    told=$err
    error "$name: the program" "$expected" "$pattern" env "$@" "$opens" key
    is "... in the same words" "$err" "$told"
    check "... without secrets" test "${err/hunter2/}" = "$err"
}

# The default, which is created as the command creates it.
gives "without IL_OPEN_EXISTING the default store is created; with it" 69 "$opens" key "" existing
check "... not" test ! -e "$XDG_STATE_HOME"
same "the default store" "sqlite:$XDG_STATE_HOME/interlock/interlock.db"
is "... its folder is its owner's only" "$(stat -c %a "$XDG_STATE_HOME/interlock")" 700
gives "... and now it exists" 0 "$opens" key "" existing
(
    unset XDG_STATE_HOME
    same "without XDG_STATE_HOME" "sqlite:$HOME/.local/state/interlock/interlock.db"
    exit "$n_failed"
) >sub.out
is "the default store below HOME" "$(grep -c '^not ok' sub.out)" 0

# What reads the files is loaded if there is one.
LD_DEBUG=files "$opens" unread >debug 2>&1
check "without a file, libyaml is not loaded" sh -c "grep -q libinterlock debug && ! grep -q libyaml debug"
printf 'tenant: read\n' >"$user"
LD_DEBUG=files "$opens" read >debug 2>&1
check "... with one it is" grep -q libyaml debug

# Files.
printf 'store: rel.db\nteenant: ignored\nusage:\n  source:\n    type: x\nconnections: {a: b}\n' >"$user"
gives "keys of the command alone are not looked at" 0 "$opens" other
check "a path in a file starts at its folder" test -e "$XDG_CONFIG_HOME/interlock/rel.db"
printf 'store: rel.db\ntenant: from-user\nranks: [first, second]\n' >"$user"
same "the user's file" "sqlite:$XDG_CONFIG_HOME/interlock/rel.db"
printf 'store: named.db\nstore_timeout: 2s\n' >named.yml
export INTERLOCK_CONFIG=$work/named.yml
same "\$INTERLOCK_CONFIG" "sqlite:$work/named.db"
export INTERLOCK_STORE=$work/env.db
same "\$INTERLOCK_STORE" "sqlite:$work/env.db"
export INTERLOCK_TENANT=from-env
same "\$INTERLOCK_TENANT" "sqlite:$work/env.db"
gives "the caller's tenant wins" 0 "$opens" mine from-caller
gives "... there it is" 0 "$il" locks --json --tenant from-caller
json "... the key" "[i['key'] for i in d['items']] == ['mine']"
export INTERLOCK_STORE='' INTERLOCK_TENANT=''
same "an empty variable counts as none" "sqlite:$work/named.db"
unset INTERLOCK_STORE INTERLOCK_TENANT INTERLOCK_CONFIG

# What cannot be read, or is wrong, opens nothing.
for bad in 'store: "x' 'store: a.db\nstore: b.db' 'store:' 'tenant: [a, b]' 'store: a.db\nserver: http://h:1' 'server: x' 'store_timeout: 11m' \
    'store_timeout: x' 'ranks: [a:b]' 'just text' 'tenant: "a\\nb"' 'a: {b: {c: {d: {e: {f: 1}}}}}' 'store: " postgres://u:hunter2@h/db"'; do
    printf '%b\n' "$bad" >"$user"
    both "$bad" 64 "*"
    case $bad in *postgres*) ;; *) like "... which names the file" "$err" "*$user*" ;; esac
done
rm "$user"
both "a file that is missing" 64 "none.yml: No such file or directory" INTERLOCK_CONFIG=none.yml
both "a folder" 64 "$work: Is a directory" INTERLOCK_CONFIG="$work"
both "a bad tenant" 64 "\$INTERLOCK_TENANT: *" INTERLOCK_TENANT="$(printf 'x%.0s' {1..65})"
both "no server" 64 "\$INTERLOCK_SERVER: *" INTERLOCK_SERVER=x
both "a store and a server" 64 "*cannot be combined*" INTERLOCK_SERVER=http://127.0.0.1:9 INTERLOCK_STORE=x.db
both "an unknown scheme" 64 "*" INTERLOCK_STORE=mysql://u:hunter2@h/db
both "what may contain a password" 64 "*invalid store; use a path or a URL*" INTERLOCK_STORE='host=h password=hunter2'
both "a bad API key" 64 "*" INTERLOCK_SERVER=http://127.0.0.1:9 INTERLOCK_API_KEY=$'hunter2\nx'
both "nobody listens" 69 "http://127.0.0.1:9: *" INTERLOCK_SERVER=http://127.0.0.1:9 INTERLOCK_API_KEY=hunter2
printf 'tenant: before\n' >"$user"
gives "a caller's tenant does not make up for a bad configuration" 64 env INTERLOCK_TENANT=$'a\nb' "$opens" key good
rm "$user"

# A server, in the tenant of the API key.
export INTERLOCK_STORE=$work/x.db
. "$here/through-server.sh"
unset INTERLOCK_STORE
gives "a server" 0 "$opens" served
gives "... where the command finds it" 0 "$il" locks --json
json "... the key" "[i['key'] for i in d['items']] == ['served']"
printf 'store: rel.db\n' >"$user"
gives "... wins over the store of a file" 0 "$opens" served-2
gives "... as with the command" 0 "$il" locks --json
json "... the keys" "[i['key'] for i in d['items']] == ['served', 'served-2']"
INTERLOCK_SERVER='' both "... unless there is another place" 64 "*" INTERLOCK_STORE=mysql://x
rm "$user"

finish
