#!/usr/bin/env bash
# key, tenant, audit without a server: keys are created and shown once, listed without secrets,
# revoked; each act is recorded.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# Looking makes nothing.
error "a store that was named must be there" 69 "*x.db*" "$il" key list
gives "... the default one need not" 0 env -u INTERLOCK_STORE "$il" key list
like "... and has no key" "$err" "*no key*"
run env -u INTERLOCK_STORE "$il" key list --json
json "... in JSON, too" "d == {'items': [], 'next': None}"
check "... and is not made" test ! -e "$work/state/interlock"
gives "a store where nobody made a key" 0 "$il" run k -- true
run "$il" audit --json
json "... has nothing to show" "d == {'items': [], 'next': None}"

# Made and shown once.
run "$il" key create --tenant acme --name "Acme's \"first\"" --permission admin:usage --permission queue:claim --prefix pipeline: --expires-in 30d --json
is "a key is made" "$status" 0
json "... of the form that is promised" "re.fullmatch('sk_acme_[A-Za-z0-9_-]{43}', d['key'])"
json "... with id, tenant and permissions" "d['tenant'] == 'acme' and d['permissions'] == ['admin:usage', 'queue:claim'] and len(d['id']) == 36"
json "... and the rest" "d['name'] == 'Acme\'s \"first\"' and d['role'] == 'none' and d['prefix'] == 'pipeline:' and d['expires_at'].endswith('Z')"
secret=$(py -c 'import json; print(json.load(open("out"))["key"])')
id=$(py -c 'import json; print(json.load(open("out"))["id"])')
run "$il" key create
is "another, for people" "$status" 0
like "... is alone on standard output" "$out" "sk_default_???????????????????????????????????????????"
like "... and explained on standard error" "$err" "interlock: created key * of tenant default, role write; *once"
run "$il" -q key create --admin
is "quietly" "$err" ""
like "... an admin's" "$out" "sk_default_*"
gives "of each role" 0 "$il" key create --role operator
error "a role that there is not" 64 "*--role*" "$il" key create --role root
error "two of them" 64 "*cannot be combined*" "$il" key create --role read --admin
error "a bad tenant" 64 "key create: *tenant*" "$il" key create --tenant Acme
error "a bad permission" 64 "key create: a permission *" "$il" key create --permission "a b"
run "$il" key create --permission lock_get --permission admin:usgae
is "a misspelt permission" "$status" 64
like "... is refused" "$err" "interlock: key create: unknown permission 'admin:usgae'; did you mean 'admin:usage'?"$'\n'"known: * admin:usage *queue:claim *"
is "... each is listed once" "$(tail -n 1 "$work/err" | tr ' ' '\n' | sort | uniq -d)" ""
run "$il" key create --permission zzz
like "... without a suggestion if none is near" "$err" "interlock: key create: unknown permission 'zzz'"$'\n'"known: *"
gives "names of routes, and what includes a permission" 0 env "INTERLOCK_STORE=$work/names.db" "$il" key create --permission lock_get --permission admin:usage:write:more
many=()
for i in {1..17}; do
    many+=(--permission "admin:usage:p$i")
done
error "too many permissions" 64 "key create: *16*" "$il" key create "${many[@]}"
error "a prefix that is too long" 64 "*--prefix*" "$il" key create --prefix "$(printf '%257s' x)"
error "nothing to keep it in" 64 "key create: a memory store *" env INTERLOCK_STORE=memory: "$il" key create
for file in "$work"/x.db*; do
    check "the secret is not in ${file##*/}" sh -c "! grep -qaF '${secret#sk_acme_}' '$file'"
done
is "... which is nobody else's to read" "$(stat -c %a "$work"/x.db* | sort -u)" 600

# Listed.
run "$il" key list --json
json "all are listed" "len(d['items']) == 4 and d['next'] is None"
json "... without secrets" "not any('key' in i or 'hash' in i for i in d['items']) and 'sk_' not in json.dumps(d)"
json "... all about them" "sorted(d['items'][0]) == sorted(['id', 'tenant', 'name', 'role', 'permissions', 'prefix', 'created_at', 'expires_at', 'used_at', 'revoked_at'])"
run "$il" key list --tenant acme --json
json "those of a tenant" "[i['id'] for i in d['items']] == ['$id']"
run "$il" key list --limit 3 --json
json "a page" "len(d['items']) == 3 and d['next'] == d['items'][2]['id']"
next=$(py -c 'import json; print(json.load(open("out"))["next"])')
run "$il" key list --limit 3 --cursor "$next" --json
json "... and the next" "len(d['items']) == 1 and d['next'] is None"
run "$il" key list --limit 1
like "for people, too" "$err" "*--cursor '*'"
error "a bad cursor" 64 "key list: *" "$il" key list --cursor nonsense

# Revoked.
error "revoking needs a reason" 64 "*--reason*" "$il" key revoke "$id"
error "... and the right tenant" 1 "key revoke: no such API key*" "$il" key revoke --tenant default --reason x "$id"
error "... and a key" 1 "key revoke: no such API key*" "$il" key revoke --reason x 00000000-0000-7000-8000-000000000000
run "$il" key revoke --reason "it leaked" "$id" --json
json "revoked" "d == {'id': '$id', 'revoked': True}"
gives "again" 0 "$il" key revoke --reason "really" "$id"
run "$il" key list --tenant acme --json
json "... for good" "d['items'][0]['revoked_at'] is not None"

# Tenants.
run "$il" tenant create globex --name Globex --requests-per-second 100 --jobs 1000 --json
json "a tenant" "d['id'] == 'globex' and d['limits']['requests_per_second'] == 100 and d['limits']['locks'] == 0"
error "... is made once" 1 "tenant create: tenant globex already exists" "$il" tenant create globex
error "... and has a proper name" 64 "tenant create: *" "$il" tenant create "a;b"
gives "changed" 0 "$il" tenant set globex --jobs 5 --runs 3 --runs-per-day 50 --bytes 9000 --triggers-per-minute 7 --triggers-per-hour 70
run "$il" tenant list --json
json "... but for what was not named" "[i for i in d['items'] if i['id'] == 'globex'][0]['limits'] == {'requests_per_second': 100, 'burst': 0, 'waiters': 0, 'streams': 0, 'locks': 0, 'jobs': 5, 'triggers_per_minute': 7, 'triggers_per_hour': 70, 'runs': 3, 'runs_per_day': 50, 'bytes': 9000}"
json "a key makes its tenant" "[i['id'] for i in d['items']] == ['acme', 'default', 'globex']"
error "one that there is not" 1 "tenant set: no such tenant: *" "$il" tenant set nobody --jobs 5
error "more runs than a tenant may have" 64 "*--runs*0 to 50*" "$il" tenant create wide --runs 51
error "... by a change, too" 64 "*--runs*0 to 50*" "$il" tenant set globex --runs 1000
error "... by default" 64 "*LIMIT_RUNS*1 to 50*" env INTERLOCK_LIMIT_RUNS=51 "$il" config show

# Audit.
run "$il" audit --json
json "what was done is written down, newest first" "[i['action'] for i in d['items']] == ['tenant.set', 'tenant.create', 'key.revoke', 'key.revoke', 'key.create', 'key.create', 'key.create', 'key.create']"
json "... by whom, to what, why" "(lambda i: i['who'] == 'cli:$(id -un)' and i['what'] == '$id' and i['tenant'] == 'acme' and i['reason'] == 'it leaked' and i['outcome'] == 'OK')(d['items'][3])"
json "... and no secret" "'sk_' not in json.dumps(d)"
run "$il" audit --action key.create --tenant default --limit 2 --json
json "a page of some" "len(d['items']) == 2 and d['next'] == str(d['items'][1]['seq'])"
next=$(py -c 'import json; print(json.load(open("out"))["next"])')
run "$il" audit --action key.create --tenant default --limit 2 --cursor "$next" --json
json "... and the rest" "len(d['items']) == 1 and d['next'] is None"
error "a bad cursor" 64 "audit: --cursor: *" "$il" audit --cursor x
gives "for people" 0 "$il" audit
like "... a table" "$out" "*key.revoke*it leaked*"

# Acts on the store are written down, too, whether they succeed or not.
INTERLOCK_STORE=$work/acts.db
gives "a job" 0 "$il" queue push mail --id j1 x
gives "cancelled" 0 "$il" queue cancel j1 --reason "wrong address"
gives "made ready again" 0 "$il" queue retry j1
gives "paused" 0 "$il" queue pause mail --reason "no network"
gives "resumed" 0 "$il" queue resume mail
gives "set" 0 "$il" queue set mail --max-attempts 1
gives "purged" 0 "$il" queue purge mail --state ready
gives "a schedule" 0 "$il" queue cron set nightly mail '@daily' x
gives "... and gone" 0 "$il" queue cron remove nightly
error "what is not there" 1 "*" "$il" queue cancel nothing --reason why
gives "a job of a queue" 0 "$il" --tenant acme queue push other --id j2 x
gives "... of another tenant" 0 "$il" --tenant acme queue cancel j2
hold r recorded --record --grace 1s
run "$il" runs --json
gives "a run is cancelled" 0 "$il" cancel "$(py -c 'import json; print(json.load(open("out"))["items"][0]["id"])')" --reason "wrong date" --wait 20s
hold h key --holder me
gives "broken" 0 "$il" break key --reason "it hangs" --now
run "$il" audit --json
json "every act, newest first" "[i['action'] for i in d['items']] == ['lock.break', 'run.cancel', 'job.cancel', 'job.cancel', 'cron.remove', 'cron.set', 'queue.purge', 'queue.set', 'queue.resume', 'queue.pause', 'job.retry', 'job.cancel']"
json "... by whom" "{i['who'] for i in d['items']} == {'cli:$(id -un)'}"
json "... to what, why" "[(i['what'], i['reason']) for i in d['items'] if i['action'] in ('lock.break', 'queue.pause')] == [('key', 'it hangs'), ('mail', 'no network')]"
json "... whose" "[i['tenant'] for i in d['items'][:4]] == ['default', 'default', 'acme', 'default']"
json "... how it ended" "[i['outcome'] for i in d['items'][:4]] == ['OK', 'OK', 'OK', 'NOT_FOUND']"
gives "another data store" 0 env INTERLOCK_DATA="$work/other.db" "$il" queue pause mail --reason x
run "$il" audit --data "$work/other.db" --json
json "... has it" "[i['action'] for i in d['items']] == ['queue.pause']"
mkdir "$work/folder.db"
run env INTERLOCK_DATA="$work/folder.db" "$il" queue resume mail
is "what cannot be recorded has happened" "$status" 0
like "... and is said" "$err" "interlock: cannot write queue resume to the audit log: *"
INTERLOCK_STORE=$work/x.db

# A pepper of one's own, another place, Redis.
printf 'a pepper of sixteen bytes and more\n' >pepper
chmod 644 pepper
error "a pepper that others can read" 64 "*chmod 600*" "$il" key create --data "$work/d.db" --pepper-file pepper
chmod 600 pepper
gives "a data store and a pepper" 0 "$il" key create --data "$work/d.db" --pepper-file pepper
check "... in a file of its own" test -e "$work/d.db"
error "... which other peppers do not fit" 64 "*pepper*" "$il" key create --data "$work/d.db"
gives "... but looking needs none" 0 "$il" key list --data "$work/d.db"
mkdir conf && mv pepper conf/pepper && printf 'data: ../d.db\npepper_file: pepper\n' >conf/config.yml
run "$il" --config conf/config.yml key list --json
json "from the configuration" "len(d['items']) == 1"
gives "... made, too" 0 "$il" --config conf/config.yml key create
run env INTERLOCK_DATA="$work/d.db" "$il" key list --json
json "from the environment" "len(d['items']) == 2"
gives "Redis has them in the state folder" 0 env INTERLOCK_STORE=redis://127.0.0.1:1 "$il" key create
check "... in a file" test -e "$work/state/interlock/data.db"
is "... and a folder of the user's own" "$(stat -c %a "$work/state/interlock")" 700
error "a server is no store" 64 "key create: *cannot be used with a server*" env -u INTERLOCK_STORE "$il" --server http://127.0.0.1:1 key create

# The process that makes a key cannot be looked into, and leaves no core.
if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
    strace -f -o trace "$il" key create >/dev/null 2>&1
    check "no core file has it" grep -q 'prctl(PR_SET_DUMPABLE, SUID_DUMP_DISABLE)' trace
fi

# PostgreSQL, in a schema beside the store's; the store need not be there.
postgres_store
export PGOPTIONS="-c client_min_messages=error"
run "$il" key list --json
json "nothing there yet" "d == {'items': [], 'next': None}"
error "... to revoke" 1 "key revoke: *" "$il" key revoke --reason x "$id"
gives "a key in a database" 0 "$il" key create --tenant acme
is "... in a schema of its own" "$(psql -qAt -c "SELECT count(*) FROM ${schema}_admin.api_key")" 1
is "... hashed" "$(psql -qAt -c "SELECT hash ~ '^[0-9a-f]{64}\$' FROM ${schema}_admin.api_key")" t
gives "... where the store is made then" 0 "$il" run k -- true
run "$il" key list --json
json "... and the key still is" "len(d['items']) == 1"
psql -q -c "DROP SCHEMA $schema, ${schema}_admin CASCADE"
gives "whoever owns the database" 0 "$il" migrate
is "... makes these tables, too" "$(psql -qAt -c "SELECT count(*) FROM ${schema}_admin.api_key")" 0
error "no password in what is said" 69 "*" env INTERLOCK_STORE="postgres://user:secret@127.0.0.1:1/db" "$il" key create
is "... really" "$(grep -c secret "$work/err")" 0
finish
