#!/bin/bash
# completion: valid scripts for each shell, with all commands and options.
. "$(dirname "$0")/lib.sh" || exit 1

for shell in bash zsh fish; do
    gives "completion $shell" 0 "$il" completion $shell
    cp "$work/out" "$work/completion.$shell"
    is "... without a word on stderr" "$err" ""
    for word in run once queue cache runs logs cancel locks why history break race bench config push work cron fill ttl on-conflict \
        reason cursor seconds unique-for negative-ttl; do
        check "... knows $word" grep -qw -- "$word" "$work/completion.$shell"
    done
    # (debug is also a level of the server's log)
    check "... not what is hidden" sh -c "! grep -qwE 'reaper' '$work/completion.$shell'"
done
check "bash can read it" bash -n "$work/completion.bash"
if command -v zsh >/dev/null; then
    check "zsh can read it" zsh -n "$work/completion.zsh"
fi
if command -v fish >/dev/null; then
    check "fish can read it" fish -n "$work/completion.fish"
fi

# complete WORD...: what bash offers for the last word.
complete_() {
    bash -c '
        . "$0"
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
        _interlock
        printf "%s\n" "${COMPREPLY[@]}" | LC_ALL=C sort | tr "\n" " "
    ' "$work/completion.bash" "$@"
}
is "a command" "$(complete_ interlock lo)" "lock locks logs "
is "all commands" "$(complete_ interlock "" | tr ' ' '\n' | grep -vc -e ^- -e '^$')" 34
is "an option" "$(complete_ interlock run --on)" "--on-conflict --on-failure --on-lost --on-success "
is "its values" "$(complete_ interlock run --on-conflict "")" "cancel-running join queue reject replace-pending skip "
is "a command of a family" "$(complete_ interlock queue pu)" "purge push "
is "... with its option" "$(complete_ interlock queue push --uni)" "--unique-for --unique-key "
is "... of its level" "$(complete_ interlock queue cron "" | tr ' ' '\n' | grep -v ^- | tr '\n' ' ')" "list remove set "
is "... not that of another family" "$(complete_ interlock cache push --uni)" " "
is "the same word with and without a family" "$(complete_ interlock cancel --wa)$(complete_ interlock queue cancel --wa)" "--wait  "
is "options of another command are not offered" "$(complete_ interlock locks --tt)" " "
is "common options everywhere" "$(complete_ interlock why --js)" "--json "
like "a shell for completion" "$(complete_ interlock completion "")" "*bash *fish *zsh *"
is "commands for help" "$(complete_ interlock help be)" "bench "
is "an option before the command of a family" "$(complete_ interlock queue --json pus)" "push "
is "the value of a common option is not taken for the command" "$(complete_ interlock --store x loc)" "lock locks "

# Names that only the store knows.
# names LINE: what bash offers at the end of this line, where it takes words with a `:` apart.
names() {
    bash -c '
        . "$0"
        COMP_LINE=$1 COMP_POINT=${#1} COMPREPLY=()
        read -ra COMP_WORDS <<<"${1//:/ : }"
        [[ $1 == *[[:space:]:] ]] && COMP_WORDS+=("")
        COMP_WORDS[0]=$2 COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _interlock
        printf "%s\n" "${COMPREPLY[@]}" | grep -v "^-" | LC_ALL=C sort | tr "\n" " "
    ' "$work/completion.bash" "$1" "$il"
}
is "without a store" "$(names "interlock why ")" ""
hold h1 event:101
hold h2 event:102
hold h3 nightly
hold h4 "two words"
is "keys" "$(names "interlock why ")" "event:101 event:102 nightly "
is "... that begin like this" "$(names "interlock break ni")" "nightly "
is "... after a colon" "$(names "interlock unlock event:")" "101 102 "
is "... in another store" "$(names "interlock --store $work/other.db why ")" ""
is "... of a command with options" "$(names "interlock run --ttl 5s e")" "event:101 event:102 "
for i in 1 2 3 4; do let_go "h$i"; done
gives "a queue" 0 "$il" queue set mail
gives "... and another" 0 "$il" queue set maps
is "queues" "$(names "interlock queue push ma")" "mail maps "
gives "a run" 0 "$il" run --record pipeline:etl -- true
run "$il" runs --json
id=$(py -c 'import json,sys; print(json.load(sys.stdin)["items"][0]["id"])' <"$work/out")
is "runs" "$(names "interlock logs ")" "$id "
is "pipelines" "$(names "interlock trigger e")" "etl "
is "states" "$(names "interlock runs --state re")" "ready "
is "a store that cannot be used is silent" "$(names "interlock --store /no/such/x.db why " 2>&1)" ""
bg nobody "$python" -IS -c 'import socket,sys,time; s=socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); time.sleep(600)' "$work/dead.sock"
await "a server that never answers" test -S "$work/dead.sock"
gives "... is not waited for" 0 timeout "$limit" "$il" __complete keys --server "http+unix:$work/dead.sock"
is "... in silence" "$out$err" ""

error "no shell" 64 "completion: an argument is missing*" "$il" completion
error "another shell" 64 "completion: 'tcsh' is not one of bash|zsh|fish" "$il" completion tcsh
gives "a closed reader is not an uproar" 0 bash -c "'$il' completion bash | head -n 1 >/dev/null; exit 0"
finish
