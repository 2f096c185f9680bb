#!/bin/bash
# The man pages: one for every command, complete, without warnings.
. "$(dirname "$0")/lib.sh" || exit 1
pages=$IL_TEST_SOURCE/docs/man

# page COMMAND: make it, as the build does.
page() {
    local prose=$pages/$1.md
    if [ -e "$prose" ]; then
        "$il" debug man "$1" "$prose" >"$work/$1.1"
    else
        "$il" debug man "$1" >"$work/$1.1"
    fi
}

for command in interlock run once queue cache runs logs cancel locks why history break race bench key tenant audit config completion help; do
    check "the page of $command" page $command
    check "... has its prose" test -e "$pages/$command.md"
    LC_ALL=C.UTF-8 MANWIDTH=80 groff -ww -man -Tutf8 -z "$work/$command.1" >"$work/groff.out" 2>&1
    is "... renders without a warning" "$(cat "$work/groff.out")" ""
    LC_ALL=C.UTF-8 groff -man -Tascii -P-c "$work/$command.1" 2>/dev/null | sed 's/.\x08//g' >"$work/text"
    for heading in NAME SYNOPSIS DESCRIPTION OPTIONS; do
        check "... has $heading" grep -q "^[A-Z ]*$heading" "$work/text"
    done
done
check "the page of demo-site" page demo-site
is "... has its name in the head" "$(head -n 1 demo-site.1 | cut -d ' ' -f 2,3)" 'INTERLOCK\-DEMO-SITE 1'
for option in $("$il" run --help | grep -o -- '--[a-z-]*' | sort -u); do
    check "interlock-run(1) explains $option" grep -q -- "${option//-/.*}" run.1
done
for command in push work "cron set" seal; do
    check "interlock-queue(1) has $command" grep -q "^.SS interlock queue $command" queue.1
done
for option in $("$il" queue work --help | grep -o -- '--[a-z-]*' | sort -u); do
    check "interlock-queue(1) explains $option" grep -q -- "${option//-/.*}" queue.1
done
check "interlock(1) names the files" grep -q FILES interlock.1
for number in 64 69 75 76 77 126 127; do
    check "exit status $number is explained" grep -q "$number" run.1
done
for pair in help:77 help:126 help:127 completion:75 config:69 locks:75 why:75; do
    check "exit status ${pair#*:} is none of ${pair%:*}" sh -c "! grep -qx '${pair#*:}' '${pair%:*}.1'"
done
like "1 is explained for break" "$(cat break.1)" $'*.TP\n1\nThe key is not held*'
like "... and for race" "$(cat race.1)" $'*.TP\n1\nMore or fewer copies ran than expected*'
like "76 is that of a join, too" "$(cat run.1)" $'*.TP\n76\n*joined run died*'
for command in interlock run once queue cache runs logs cancel locks why break race; do
    check "$command has EXAMPLES" grep -qx '.SH EXAMPLES' $command.1
done
error "a page of nothing" 64 "debug: unknown command 'frob'" "$il" debug man frob
finish
