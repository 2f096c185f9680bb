#!/bin/bash
# config: which value applies, and where it comes from. Later sources override earlier ones:
# defaults, /etc, the user's file, --config, the environment, flags.
. "$(dirname "$0")/lib.sh" || exit 1
unset INTERLOCK_STORE
mkdir -p "$XDG_CONFIG_HOME/interlock"
user=$XDG_CONFIG_HOME/interlock/config.yml

# value KEY [OPTION...]: "VALUE SOURCE" as JSON has it.
value() {
    local key=$1
    shift
    "$il" config --json "$@" | py -c '
import json, sys
for i in json.load(sys.stdin)["items"]:
    if i["key"] == sys.argv[1]:
        print(i["value"], i["source"])' "$key"
}

gives "config" 0 "$il" config
like "... a table" "$out" "KEY *VALUE *SOURCE*store *sqlite:$XDG_STATE_HOME/interlock/interlock.db *default*tenant *default*ttl *30s*"
gives "config show is the same" 0 "$il" config show
is "the default" "$(value tenant)" "default default"
printf 'tenant: from-user\nttl: 11s\n' >"$user"
is "the user's file" "$(value tenant)" "from-user $user:1"
is "... with its line" "$(value ttl)" "11s $user:2"
printf '# a comment\n\ntenant: from-named\n' >named.yml
is "--config" "$(value tenant --config named.yml)" "from-named named.yml:3"
is "... over the user's file, which still counts" "$(value ttl --config named.yml)" "11s $user:2"
export INTERLOCK_CONFIG=$work/named.yml
is "\$INTERLOCK_CONFIG" "$(value tenant)" "from-named $work/named.yml:3"
printf 'tenant: other\n' >other.yml
is "--config wins over it" "$(value tenant --config other.yml)" "other other.yml:1"
export INTERLOCK_TENANT=from-env
is "the environment" "$(value tenant)" "from-env \$INTERLOCK_TENANT"
is "a flag" "$(value tenant --tenant from-flag)" "from-flag --tenant"
export INTERLOCK_TENANT=
is "an empty variable counts as none" "$(value tenant)" "from-named $work/named.yml:3"
unset INTERLOCK_CONFIG INTERLOCK_TENANT

# They do what they say.
printf 'tenant: t1\nttl: 12s\nwait: 100ms\nranks: [first, second]\nstore_timeout: 2s\ngrace: 1s\nstore: rel.db\n' >"$user"
gives "a run with it" 0 "$il" run k -- sh -c "'$il' locks --json"
json "... tenant and ttl" "d['items'][0]['tenant'] == 't1' and d['items'][0]['ttl_ms'] == 12000"
check "a relative store starts at its file" test -e "$XDG_CONFIG_HOME/interlock/rel.db"
error "ranks count" 78 "*" "$il" run -q second:1 -- "$il" run first:1 -- true
gives "--ttl wins" 0 "$il" run --ttl 44s k -- sh -c "'$il' locks --json"
json "... there" "d['items'][0]['ttl_ms'] == 44000"
gives "config --json" 0 "$il" config --json
json "... a listing of every key" "[i['key'] for i in d['items']] == ['store', 'server', 'tenant', 'ttl', 'wait', 'grace', 'on_success', 'on_failure', 'on_lost', 'store_timeout', 'ranks', 'data', 'pepper_file', 'listen', 'metrics_listen', 'log_level', 'log_format', 'shutdown', 'connections_max', 'connections_per_address', 'body_max', 'request_timeout', 'limit_requests_per_second', 'limit_burst', 'limit_waiters', 'limit_streams', 'limit_locks', 'limit_jobs', 'login_failures', 'audit_keep', 'limit_triggers_per_minute', 'limit_triggers_per_hour', 'limit_runs', 'limit_runs_per_day', 'limit_bytes', 'checks', 'check_keep', 'demo.folder', 'liverc_url', 'ingest_concurrency', 'ingest_lock_timeout_seconds', 'ingest_max_duration_seconds', 'ingest_race_fetch_concurrency', 'ingest_request_delay_ms', 'ingest.schedule', 'ingest.tracks', 'ingest.days', 'pipelines', 'pipeline_ttl', 'pipeline_lock_timeout_seconds', 'lock_acquisition_retries', 'lock_acquisition_retry_delay_seconds', 'lock_metrics_enabled', 'lock_expiration_alert_threshold', 'runs_max', 'runs_shutdown', 'runs_keep', 'run_dir', 'pipeline_env', 'usage.source.type', 'usage.source.url', 'usage.source.header_variable', 'usage.source.connection', 'usage.source.query', 'usage.source.command', 'usage.source.timeout', 'usage.source.cost', 'usage.source.fail_percent', 'usage.current_day_ttl_minutes', 'usage.grace_period_minutes', 'usage.historical_ttl_days', 'usage.wait', 'usage.lease', 'usage.parallel', 'usage.keep_days'] and d['next'] is None and all(set(i) == {'key', 'value', 'source', 'env'} for i in d['items'])"
json "... lists with commas" "[i['value'] for i in d['items'] if i['key'] == 'ranks'] == ['first,second']"
rm "$user"

gives "config path" 0 "$il" config path
like "... the files in order" "$out" "FILE *STATE*/etc/interlock/config.yml*$user *missing*"
gives "config path --json" 0 "$il" config path --json --config named.yml
json "... with states" "[i['file'] for i in d['items']] == ['/etc/interlock/config.yml', '$user', 'named.yml'] and d['items'][2]['state'] == 'read'"

# bad NAME TEXT PATTERN: refused by `check`, and by a command that needs it, with file and line.
bad() {
    printf '%b' "$2" >bad.yml
    error "$1" 64 "bad.yml:$3" "$il" config check bad.yml
    error "... when it is used" 64 "bad.yml:$3" "$il" locks --config bad.yml
}
bad "an unknown key" 'ttl: 5s\nteenant: x\n' "2: unknown key 'teenant' (did you mean 'tenant'?)"
bad "a value out of range" 'ttl: 0\n' "1: ttl: '0'*"
bad "given twice" 'ttl: 5s\nttl: 6s\n' "2: ttl: set twice"
bad "no value" 'ttl:\n' "1: ttl: no value given"
bad "a list for one" 'ttl: [5s]\n' "1: ttl: expected one value, not a list"
bad "not a mapping" 'just text\n' "1: *"
bad "not YAML" 'ttl: "5s\n' "*"
bad "a tab" '\tttl: 5s\n' "*"
bad "two documents" 'ttl: 5s\n---\nttl: 6s\n' "2: *single document*"
bad "an alias" 'ttl: &a 5s\nwait: *a\n' "2: *"
bad "nested" 'a: {b: {c: {d: {e: {f: 1}}}}}\n' "1: *"
bad "an unknown nested key" 'usage:\n  sauce: x\n' "2: unknown key 'usage.sauce'*"
bad "a NUL" 'ttl: "a\\0b"\n' "1: *"
bad "ranks with a colon" 'ranks: [a:b]\n' "1: ranks: *"
bad "control characters in a tenant" 'tenant: "a\\nb"\n' "1: tenant: *"
printf 'ttl: 5s\nranks:\n  - a\n  - b\n' >good.yml
gives "config check of a good one" 0 "$il" config check good.yml
is "... says so" "$out" "good.yml: 2 keys, no errors"
gives "as JSON" 0 "$il" config check good.yml --json
json "... an object" "d == {'file': 'good.yml', 'ok': True, 'keys': 2, 'error': None}"
gives "a bad one as JSON" 64 "$il" config check bad.yml --json
json "... an object, too" "d['ok'] is False and d['error'].startswith('bad.yml:1')"
: >empty.yml
gives "an empty file is fine" 0 "$il" config check empty.yml
error "check without a file" 64 "config: check needs a FILE" "$il" config check
error "check of what is not there" 64 "none.yml: No such file or directory" "$il" config check none.yml
error "check of a folder" 64 "*: Is a directory" "$il" config check "$work"
error "an unknown word" 64 "config: 'frob' is not one of show|path|check" "$il" config frob
head -c 1100000 /dev/zero | tr '\0' '#' >huge.yml
error "a huge file" 64 "huge.yml: file larger than 1 MiB" "$il" config check huge.yml
for pair in INTERLOCK_TTL=x INTERLOCK_WAIT=-1 INTERLOCK_GRACE=x INTERLOCK_STORE_TIMEOUT=0 INTERLOCK_RANKS=a,,b "INTERLOCK_TENANT=$(printf 'x%.0s' {1..65})"; do
    error "a bad \$${pair%%=*}" 64 "\$${pair%%=*}: *" env "$pair" "$il" locks
done
gives "path works while the configuration is broken" 0 env INTERLOCK_TTL=x "$il" config path
printf 'teenant: x\n' >"$user"
gives "... and so do help" 0 "$il" help run
gives "... and completion" 0 "$il" completion bash
error "... but nothing that uses it" 64 "$user:1: unknown key*" "$il" locks
rm "$user"

gives "a password is not shown" 0 "$il" config --store 'postgres://user:hunter2@host/db?password=hunter2'
check "... anywhere" sh -c "! grep -q hunter2 out err"
is "... of a URL in the URL" "$(value store --store 'postgres://me@h/db?host=x&listen=postgres%3A%2F%2Fme%3Ahunter2%40h%2Fdb&max=3')" "postgres://me@h/db?host=x&listen=***&max=3 --store"
is "... without a user" "$(value store --store 'redis://hunter2@h:6379/1')" "redis://***@h:6379/1 --store"
is "... and with an @ further on" "$(value store --store 'rediss://hunter2@h:6379/?prefix=a@b')" "rediss://***@b --store"
is "... nor one that was written wrongly" "$(value store --store 'redis:hunter2@h')" "redis:***@h --store"
is "a user is no password" "$(value store --store 'postgres://me@h:5432/db')" "postgres://me@h:5432/db --store"
is "... nor is an @ in a path" "$(value store --store 'sqlite:///a@b/c.db')" "sqlite:///a@b/c.db --store"
for odd in ' postgres://u:hunter2@h/db' 'host=h password=hunter2'; do
    for command in "locks --store" "doctor --schema --connection"; do
        # shellcheck disable=SC2086  # words of a command
        error "$command '$odd' is not taken for a path" 64 "*invalid *postgres://*" "$il" $command "$odd"
        check "... nor shown" test "${err/hunter2/}" = "$err"
    done
done
printf 'connections:\n  postgres://u:hunter2@h/db: x\n' >odd.yml
error "a URL as the name of a connection" 64 "*invalid name:*" "$il" locks --config odd.yml
check "... is not shown" test "${err/hunter2/}" = "$err"
# shellcheck disable=SC2088
is "~ is the home folder" "$(value store --store '~/x.db')" "sqlite:$work/x.db --store"
is "a bare path is SQLite" "$(value store --store /a/b.db)" "sqlite:/a/b.db --store"
is "without XDG_STATE_HOME" "$(env -u XDG_STATE_HOME "$il" config --json | grep -o 'sqlite:[^"]*')" "sqlite:$work/.local/state/interlock/interlock.db"
gives "the default store is made, folder and all" 0 env XDG_STATE_HOME="$work/new/state" "$il" run k -- true
check "... for its owner only" test "$(stat -c %a "$work/new/state/interlock")" = 700

# ---- connections ----
cat >"$user" <<'END'
connections:
  demo: data/demo.db
  big: postgres://me:secret@db/warehouse
  filed: {url_file: url}
  told: {url_env: TOLD_URL}
END
is "a connection: a path is relative to the file" "$(value connections.demo)" "sqlite:$XDG_CONFIG_HOME/interlock/data/demo.db $user:2"
is "... its password is not shown" "$(value connections.big)" "postgres://me:***@db/warehouse $user:3"
is "... in a file" "$(value connections.filed)" "$XDG_CONFIG_HOME/interlock/url $user:4"
is "... in a variable" "$(value connections.told)" "\$TOLD_URL $user:5"
is "the environment wins" "$(INTERLOCK_CONNECTION_DEMO=/x.db value connections.demo)" "sqlite:/x.db \$INTERLOCK_CONNECTION_DEMO"
printf 'connections: {"a b": x}\n' >"$user"
error "a name that will not do" 64 "*connections: invalid name 'a b'*" "$il" config
printf 'connections: {a: {uri: x}}\n' >"$user"
error "a member that there is not" 64 "*connections.a.uri: *url_file*" "$il" config
printf 'connections: {a: {url_file: x, url_env: y}}\n' >"$user"
error "two of them" 64 "*connections.a: set twice*" "$il" config
printf 'lock_expiration_alert_threshold: 2\n' >"$user"
error "a share beyond 1" 64 "*lock_expiration_alert_threshold*'2' is not a number*" "$il" config
rm "$user"
finish
