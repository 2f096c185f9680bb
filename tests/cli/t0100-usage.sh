#!/bin/bash
# First steps: help, version, no command, an unknown command.
. "$(dirname "$0")/lib.sh" || exit 1

version=$(cat "$IL_TEST_SOURCE/VERSION")
gives "--version" 0 "$il" --version
is "... says it" "${out%%$'\n'*}" "interlock $version"
like "... and the libraries it runs with" "$out" "*"$'\n'"SQLite 3.*, jansson 2.*, libyaml 0.*"
like "... those that are loaded, too" "$out" "*  libpq *[1-9].*  hiredis *[0-9].*  openssl *[1-9].*  libcurl *[7-9].*\
  libmicrohttpd *0.9*  libsodium *1.*  libxml2 *2.*  utf8proc *2.*  ncurses *6.*"
check "... each with a version" sh -c '! grep -E "unknown|not installed" out'
gives "-V" 0 "$il" -V
gives "--version as JSON" 0 "$il" --version --json
json "... is an object" "d['version'] == '$version' and {'sqlite', 'jansson', 'libyaml', 'libpq', 'hiredis', 'openssl', 'libcurl'} < set(d['libraries'])"

gives "--help" 0 "$il" --help
is "... says nothing on stderr" "$err" ""
check "... fits a screen" test "$(wc -l <"$work/out")" -le 60
check "... is not wider than 80 columns" test "$(wc -L <"$work/out")" -le 80
check "... has no colours in a file" test "$(grep -c $'\033' "$work/out")" = 0
for command in run once lock unlock queue cache runs logs cancel locks why history break race bench serve key tenant audit config completion help; do
    like "... names $command" "$out" "*  $command *"
done
check "debug and reaper are hidden" test "$(grep -cE '^  (debug|reaper)' "$work/out")" = 0

families=(queue "queue cron" cache key tenant)
commands=(run once lock unlock runs logs cancel locks why history break race bench config completion help "queue push" "queue work"
    "queue list" "queue show" "queue retry" "queue cancel" "queue seal" "queue pause" "queue resume" "queue purge"
    "queue stats" "queue set" "queue cron set" "queue cron list" "queue cron remove" "cache get" "cache fill"
    "cache drop" "cache stats" "key create" "key list" "key revoke" "tenant create" "tenant list" "tenant set" audit)
for command in "${commands[@]}" "${families[@]}"; do
    read -ra words <<<"$command"
    gives "$command --help" 0 "$il" "${words[@]}" --help
    like "... starts with the usage" "$out" "Usage: interlock $command*"
    cp "$work/out" "$work/expected"
    gives "$command -h" 0 "$il" "${words[@]}" -h
    check "... is the same" cmp "$work/out" "$work/expected"
    gives "help $command" 0 "$il" help "${words[@]}"
    check "... is the same" cmp "$work/out" "$work/expected"
done
gives "queue --help names its commands" 0 "$il" queue --help
for command in push work list show retry cancel seal pause resume purge stats set "cron set" "cron remove"; do
    like "... $command" "$out" "*  $command *"
done
for family in "${families[@]}"; do
    read -ra words <<<"$family"
    error "$family alone" 64 "$family: no command given; see interlock $family --help" "$il" "${words[@]}"
    error "$family frob" 64 "unknown command '$family frobnicate'; see interlock $family --help" "$il" "${words[@]}" frobnicate
    error "$family --frob" 64 "$family: unknown option '--frob'*" "$il" "${words[@]}" --frob
done
error "nearly a command of a family" 64 "unknown command 'queue psuh' (did you mean 'queue push'?)*" "$il" queue psuh
error "two words in one" 64 "unknown command 'queue push'*" "$il" "queue push" q
error "help for an unknown command of a family" 64 "help: unknown command 'queue nope'*" "$il" help queue nope
# examples FILE: those that a help text has, each on one line.
examples() {
    sed -n '/^Examples/,/^$/p' "$1" | sed -n ':a; /\\$/{N; s/\\\n *//; ba}; s/^  //p'
}
# All that exists but the work: options and arguments are parsed, then --help wins.
interlock() {
    "$il" --help "$@" >/dev/null
}
touch menu.json
# all_commands: every command, also those of apps, and of families.
all_commands() {
    local command
    "$il" --help | LC_ALL=C sed -n 's/^  \([a-z][a-z-]*\)  .*/\1/p' | while read -r command; do
        echo "$command"
        "$il" "$command" --help | LC_ALL=C sed -n '/^Commands/,/^$/s/^  \([a-z][a-z -]*[a-z]\)  .*/'"$command"' \1/p'
    done
}
mapfile -t all < <(all_commands)
check "all commands are known" test ${#all[@]} -ge 80
for command in "${all[@]}"; do
    read -ra words <<<"$command"
    "$il" "${words[@]}" --help >"$work/help"
    examples "$work/help" >"$work/examples"
    check "$command --help fits a screen" test "$(wc -l <"$work/help")" -le 40
    check "... is not wider than 80 columns" test "$(wc -L <"$work/help")" -le 80
    check "... has one or two examples" grep -qx '[12]' <(wc -l <"$work/examples")
    while IFS= read -r line; do
        eval "$line" >"$work/parsed" 2>&1 </dev/null
        is "... $line" "$(cat "$work/parsed")" ""
        like "... is one of it" "$line" "*interlock*$command*"
    done <"$work/examples"
done
gives "help options" 0 "$il" help options
like "... has the common options" "$out" "*--store URL*--server URL*--tenant*--config*--json*--quiet*--help*--version*"
check "... fits a screen" test "$(wc -l <"$work/out")" -le 40
check "... is not wider than 80 columns" test "$(wc -L <"$work/out")" -le 80
gives "help" 0 "$il" help
for command in help completion; do
    run "$il" "$command" --help
    check "$command --help shows only what applies" sh -c "! grep -qE 'store|tenant|json|Durations' out"
    error "$command --json" 64 "$command: --json *" "$il" "$command" --json bash
done
gives "config --help" 0 "$il" config --help
check "... has no durations" sh -c "! grep -q Durations out"
gives "run --help" 0 "$il" run --help
like "... has them" "$out" "*Durations are *1h, 1d*"
like "... and defaults" "$out" "*reject|skip|join|queue|replace-pending|cancel-running*(default: reject)*(default: 75)*"
gives "help wins over other arguments" 0 "$il" run --ttl 5s --help

error "no command" 64 "no command*--help" "$il"
error "an unknown command" 64 "unknown command 'frobnicate'*" "$il" frobnicate
error "nearly a command" 64 "unknown command 'lokcs'*did you mean 'locks'*" "$il" lokcs
error "the reaper is no command for people" 64 "reaper: *queue work*" "$il" reaper q h 1 1 1 talk -- /bin/true true
error "help for an unknown command" 64 "help: unknown command 'nope'*" "$il" help nope
error "an unknown option before the command" 64 "unknown option '--frob'*" "$il" --frob locks
error "-- without a command" 64 "*'--'*" "$il" -- run
error "an empty command" 64 "unknown command ''*" "$il" ""
error "a command with control characters" 64 "*unknown command*" "$il" $'a\033[31mb\n'

for command in "${commands[@]}"; do
    read -ra words <<<"$command"
    error "$command: unknown option" 64 "$command: unknown option '--frobnicate'*" "$il" "${words[@]}" --frobnicate
    error "$command: unknown letter" 64 "$command: unknown option '-Z'*" "$il" "${words[@]}" -Z
done
error "nearly an option" 64 "run: unknown option '--waiit'*did you mean '--wait'*" "$il" run --waiit 5s k -- true
error "long options are not abbreviated" 64 "*unknown option '--ver'*" "$il" --ver
error "a flag with a value" 64 "*--json takes no value*" "$il" locks --json=yes
error "an option without its value" 64 "run: --ttl needs a value*" "$il" run --ttl
error "an empty value" 64 "run: --ttl: *" "$il" run --ttl "" k -- true
error "too many arguments" 64 "why: unexpected argument 'b'*" "$il" why a b
error "too few" 64 "why: an argument is missing*" "$il" why
error "locks with two prefixes" 64 "locks: unexpected argument 'b'*" "$il" locks a b

# Options may stand before the command, too.
gives "a store to look at" 0 "$il" run k -- true
gives "--json before the command" 0 "$il" --json locks
json "... counts" "d == {'items': [], 'next': None}"
gives "... between the words of a command" 0 "$il" queue --json stats
json "... too" "d == {'items': [], 'next': None}"
gives "-q clustered with nothing else" 0 "$il" -q locks
is "... is quiet" "$err" ""
finish
