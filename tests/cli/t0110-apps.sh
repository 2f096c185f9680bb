#!/bin/bash
# Apps: what apps.def lists is all that the binary knows of them. interlock-toy is built with another
# apps.def (tests/app/apps): without the runner, and with an app `toy` that only tests have. `check`
# stays: it runs the toy's invariants.
. "$(dirname "$0")/lib.sh" || exit 1
toy=${IL_TEST_TOY:?the binary with other apps}
tables=$here/../../tools/app-tables
socket=$work/http.sock

# unlike NAME TEXT PATTERN
unlike() {
    # shellcheck disable=SC2053
    if [[ $2 == $3 ]]; then
        fail "$1" "$2"
    else
        pass "$1"
    fi
}

# ---- the generator ----
mkdir -p apps/one apps/two
printf '/* comment */\nX(one)\nX(two)\n' >apps/apps.def
touch apps/one/options.def apps/two/options.def apps/two/commands.def
is "names" "$("$tables" names apps/apps.def)" "$(printf 'one\ntwo')"
is "a table of both" "$("$tables" options apps/apps.def)" "$(printf '#include "apps/one/options.def"\n#include "apps/two/options.def"')"
is "a table of one" "$("$tables" commands apps/apps.def)" '#include "apps/two/commands.def"'
is "a table of none" "$("$tables" config apps/apps.def)" ""
printf 'X(one)\n' >apps/apps.def
is "a line less" "$("$tables" commands apps/apps.def)" ""
printf '/* none */\n' >apps/apps.def
gives "no apps at all" 0 "$tables" names apps/apps.def
is "... " "$out" ""
printf 'X(one)\nX(three)\n' >apps/apps.def
gives "an app without a folder" 1 "$tables" names apps/apps.def
like "... is named" "$err" "*X(three)*does not exist"
printf 'X(one)\nX(two, 2)\n' >apps/apps.def
gives "not a row" 1 "$tables" names apps/apps.def
like "... its line is named" "$err" "*apps.def:2: expected X(name)"

# ---- the line of the toy ----
cp -r "$here/../app/apps" toy_apps
for kind in commands options config exits; do
    is "$kind of check and the toy" "$("$tables" "$kind" toy_apps/apps.def)" "$(printf '#include "apps/%s/%s.def"\n' check "$kind" toy "$kind")"
done
sed -i '/^X(toy)$/d' toy_apps/apps.def
is "without its line: one app" "$("$tables" names toy_apps/apps.def)" "check"
sed -i '/^X(check)$/d' toy_apps/apps.def
for kind in commands options config exits events metrics runs; do
    is "... without both: no $kind" "$("$tables" "$kind" toy_apps/apps.def)" ""
done

# ---- layers: a command of an app is part of the command line, the rest of the app is not ----
mkdir -p tree/include tree/src/cli tree/src/apps/one
touch tree/src/cli/cli.h tree/src/apps/one/one.h
printf '#include "cli/cli.h"\n#include "apps/one/one.h"\n' >tree/src/apps/one/cmd_one.c
gives "a command of an app" 0 "$here/../../tools/check-layers" "$work/tree"
printf '#include "cli/cli.h"\n' >tree/src/apps/one/other.c
gives "another file of it" 1 "$here/../../tools/check-layers" "$work/tree"
is "... may not include the command line" "$err" "src/apps/one/other.c:1: apps may not include cli (\"cli/cli.h\")"
rm tree/src/apps/one/other.c
printf '#include "apps/one/one.h"\n' >tree/src/cli/help.c
gives "the command line itself" 1 "$here/../../tools/check-layers" "$work/tree"
is "... knows no app" "$err" "src/cli/help.c:1: src/cli knows no app: it may not include \"apps/one/one.h\""

# ---- an app that is gone ----
gives "help" 0 "$toy" --help
like "... has no pipelines" "${out//[[:space:]]/ }" "* runs *"
case $out in
*pipeline* | *trigger* | *demo*) fail "... and no other command of them" "$out" ;;
*) pass "... and no other command of them" ;;
esac
for command in pipelines trigger demo; do
    error "$command" 64 "unknown command '$command'*" "$toy" "$command"
done
error "an option of another command" 64 "serve: unknown option '--pipelines'*" "$toy" serve --pipelines x
printf 'pipelines: x\n' >bad.yml
error "a key" 64 "bad.yml:1: unknown key 'pipelines'*" "$toy" config check bad.yml
gives "completion" 0 "$toy" completion bash
like "... knows the new ones" "$out" "*'toy count') words='--to *"
like "... and not those that are gone" "${out/trigger/}" "*'runs') *"
gives "the main page" 0 "$toy" debug man
like "... has the new command" "$out" "*interlock?-toy*"
gives "the exit statuses" 0 "$toy" debug docs exits
like "... in the order of their numbers" "$out" "*| 2 | *| 3 | \`toy count\` | the count is even |*| 64 | *"
gives "the error codes" 0 "$toy" debug docs http-errors
like "... with the app's" "$out" "*TOY_NOT_FOUND*"
unlike "... and none of the runner" "$out" "*PIPELINE_NOT_FOUND*"
gives "the routes" 0 "$toy" debug docs app-routes toy
like "... of the app" "$out" "*GET /api/v1/toy/greetings/{name}*| read | Greet |"
gives "routes that are gone" 64 "$toy" debug docs app-routes pipeline
gives "the exit statuses" 0 "$toy" debug docs exits
like "... have the app's command in its groups" "$out" "*| 69 | all but *\`toy count\`* |*"

# ---- the same without its line: $il is built from the same sources ----
gives "the commands" 0 "$toy" --help
like "... with the toy's" "$out" "*toy*"
gives "... and without" 0 "$il" --help
unlike "... none of it" "$out" "*toy*"
error "a command of it" 64 "unknown command 'toy'*" "$il" toy count
error "an option of it" 64 "serve: unknown option '--toy-greeting'*" "$il" serve --toy-greeting x
printf 'toy: {source: {retries: 1}}\n' >bad.yml
error "a key of it" 64 "bad.yml:1: unknown key 'toy*" "$il" config check bad.yml
gives "a table of its routes" 64 "$il" debug docs app-routes toy
for table in commands options config exits metrics server-metrics log-events routes http-errors; do
    gives "$table" 0 "$il" debug docs "$table"
    unlike "... none of the toy" "${out,,}" "*toy*"
done
for table in server-metrics log-events; do
    gives "$table with the toy" 0 "$toy" debug docs "$table"
    like "... has its own" "$out" "*toy[_.]*"
done

# ---- its commands ----
gives "a command" 0 "$toy" toy count
is "... settings" "$out" "3 command 2"
is "... no progress without a terminal" "$err" ""
gives "an exit status of its own" 3 "$toy" toy count --to 4
run "$python" "$here/on-terminal.py" -- "$toy" toy count --to 5
like "progress on a terminal" "$out" "*"$'\r\e[K1/5 counting\\\\n'"*"$'\r\e[K5/5 counting\\\\n\r\e[K5 command 2'"*"
run "$python" "$here/on-terminal.py" -- "$toy" -q toy count --to 5
like "... not with -q" "$out" $'5 command 2'*'status 0'
run "$python" "$here/on-terminal.py" -- sh -c 'stty cols 12; "$0" toy count --to 1' "$toy"
like "... as wide as the terminal" "$out" "*"$'\r\e[K1/1 countin\r\e[K'"*"

# ---- nested keys ----
# value KEY [OPTION...]: its value and origin.
value() {
    local key=$1
    shift
    "$toy" config --json "$@" | py -c 'import json, sys
print(*[i["value"] + " " + i["source"] for i in json.load(sys.stdin)["items"] if i["key"] == sys.argv[1]])' "$key"
}
printf 'toy:\n  source:\n    type: database\n    retries: 7\ntoy_greeting: hi\n' >toy.yml
is "a default" "$(value toy.source.type)" "command default"
is "a file" "$(value toy.source.type --config toy.yml)" "database toy.yml:3"
is "... a number" "$(value toy.source.retries --config toy.yml)" "7 toy.yml:4"
printf 'toy: {source: {type: database}}\n' >flow.yml
is "in one line" "$(value toy.source.type --config flow.yml)" "database flow.yml:1"
is "the environment" "$(INTERLOCK_TOY_SOURCE_RETRIES=9 value toy.source.retries --config toy.yml)" "9 \$INTERLOCK_TOY_SOURCE_RETRIES"
gives "config show" 0 "$toy" config
like "... has them" "$out" "*toy.source.type *command *default*"
gives "config check" 0 "$toy" config check toy.yml
is "... counts them" "$out" "toy.yml: 3 keys, no errors"
gives "config --json" 0 "$toy" config --json
json "every variable is named after its key" "all(i['env'] == 'INTERLOCK_' + i['key'].upper().replace('.', '_') for i in d['items'])"

# refused NAME YAML PATTERN
refused() {
    printf '%b' "$2" >bad.yml
    error "$1" 64 "bad.yml:$3" "$toy" config check bad.yml
}
refused "a misspelt key" 'toy:\n  source:\n    tpye: command\n' "3: unknown key 'toy.source.tpye' (did you mean 'toy.source.type'?)"
refused "a misspelt section" 'toy:\n  sorce:\n    type: command\n' "3: unknown key 'toy.sorce.type' (did you mean 'toy.source.type'?)"
refused "a bad choice" 'toy: {source: {type: magic}}\n' "1: toy.source.type: 'magic' is not one of command|database"
refused "a bad number" 'toy: {source: {retries: 11}}\n' "1: toy.source.retries: '11' is not a number from 0 to 10"
refused "a bad share" 'toy: {source: {share: 1.5}}\n' "1: toy.source.share: '1.5' is not a number from 0.1 to 1"
refused "a value for a section" 'toy:\n  source: command\n' "2: toy.source: expected a section, with keys such as toy.source.type"
refused "a section for a value" 'toy_greeting: {text: x}\n' "1: unknown key 'toy_greeting.text'*"
refused "twice" 'toy: {source: {retries: 1}}\ntoy: {source: {retries: 2}}\n' "2: toy.source.retries: set twice"
INTERLOCK_TOY_SOURCE_TYPE=magic error "a bad variable" 64 "\$INTERLOCK_TOY_SOURCE_TYPE: 'magic' is not one of *" env INTERLOCK_TOY_SOURCE_TYPE=magic "$toy" config

# ---- its routes and settings ----
gives "a setting that the app refuses" 64 "$toy" serve --allow-root --listen "unix:$socket" --toy-greeting rude
like "... its key is named" "$err" "*interlock: toy_greeting: must not be rude"
INTERLOCK_API_KEY=$("$toy" key create --tenant default --admin --json | py -c 'import json, sys; print(json.load(sys.stdin)["key"])')
export INTERLOCK_API_KEY
"$toy" serve --allow-root --listen "unix:$socket" --config toy.yml >"$work/server.log" 2>&1 </dev/null &
server_pid=$!
await "the server listens" test -S "$socket" || cat "$work/server.log"
server=http+unix:$socket
gives "a route" 0 "$toy" toy ask --server "$server" Ada
json "... with the settings" "d == {'greeting': 'hi', 'name': 'Ada', 'retries': 7, 'permille': 500}"
error "an error of the app" 1 "toy ask: *obody to greet*" "$toy" toy ask --server "$server" nobody

# reload YAML LINE: read the configuration again; LINE appears in the log.
reload() {
    printf '%b' "$1" >toy.yml
    kill -HUP "$server_pid"
    await "log: $2" grep -q "$2" "$work/server.log"
}
reload 'toy: {source: {retries: 8}}\ntoy_greeting: rude\n' 'toy_greeting: must not be rude'
gives "a bad reload" 0 "$toy" toy ask --server "$server" Ada
json "... changes nothing" "d['greeting'] == 'hi' and d['retries'] == 7"
reload 'toy: {source: {retries: 8, type: database, share: 0.25}}\ntoy_greeting: hey\n' 'config.reloaded'
await "the new greeting" sh -c '"$0" toy ask --server "$1" Ada | grep -q hey' "$toy" "$server"
gives "a reload" 0 "$toy" toy ask --server "$server" Ada
json "... changes the settings" "d['retries'] == 8 and d['permille'] == 250"
reload 'toy: {source: {type: command}}\n' 'toy.source.type has changed and takes effect after a restart'
kill "$server_pid"
wait "$server_pid" 2>/dev/null
is "it stops" "$?" 0
server_pid=
finish
