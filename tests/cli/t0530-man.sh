#!/bin/bash
# The man pages: one for every command, complete, without warnings.
. "$(dirname "$0")/lib.sh" || exit 1
pages=$IL_TEST_SOURCE/docs/man

# page NAME: make it, as the build does; $page is its file.
page() {
    page=$1.1
    [ "$1" != options ] || page=options.7
    SOURCE_DATE_EPOCH=1790000000 "$il" debug man "$1" "$pages/$1.md" >"$page"
}
# options_of FILE: the names of the options that a help text explains.
options_of() {
    sed -n '/^Options/,/^$/p' "$1" | LC_ALL=C sed -n 's/^  *\(-., \)\{0,1\}\(--[a-z-]*\).*/\2/p'
}

for prose in "$pages"/*.md; do
    name=${prose##*/}
    name=${name%.md}
    check "the page of $name" page "$name"
    LC_ALL=C.UTF-8 MANWIDTH=80 groff -ww -man -Tutf8 -z "$page" >"$work/remarks" 2>&1
    is "... groff has no remark" "$(cat "$work/remarks")" ""
    mandoc -T lint -W warning "$page" >"$work/remarks" 2>&1
    is "... and neither has mandoc" "$(cat "$work/remarks")" ""
    LC_ALL=C.UTF-8 groff -man -Tascii -P-c "$page" 2>/dev/null | sed 's/.\x08//g' >"$work/text"
    for heading in NAME DESCRIPTION EXAMPLES 'SEE ALSO'; do
        check "... has $heading" grep -qx "$heading" "$work/text"
    done
    check "... has no raw markup" sh -c '! grep -nE "\`|\*\*|^ *#|\\f[BIR]" text'
done
for command in $("$il" --help | LC_ALL=C sed -n 's/^  \([a-z-]*\)  .*/\1/p'); do
    check "$command has a page" test -s "$command.1"
done
is "only the page of the common options has no synopsis" "$(grep -Lx '.SH SYNOPSIS' ./*.[17])" ./options.7
is "the date is that of the sources" "$(head -n 1 run.1 | cut -d '"' -f 2)" 2026-09-21
is "the page of the common options is in chapter 7" "$(head -n 1 options.7 | cut -d ' ' -f 2,3)" 'INTERLOCK\-OPTIONS 7'
check "... and explains each" sh -c 'for o in store server tenant config json quiet help version; do grep -qF "\\-\\-$o" options.7 || exit 1; done'
is "... to which all others refer" "$(grep -LF 'interlock\-options\fR(7)' ./*.[17])" ./options.7
is "... has its name in the head" "$(head -n 1 demo-site.1 | cut -d ' ' -f 2,3)" 'INTERLOCK\-DEMO\-SITE 1'
"$il" run --help >run.help
for option in $(options_of run.help); do
    check "interlock-run(1) explains $option" grep -q -- "${option//-/.*}" run.1
done
for command in push work "cron set" seal; do
    check "interlock-queue(1) has $command" grep -q "^.SS interlock queue $command" queue.1
done
"$il" queue work --help >work.help
for option in $(options_of work.help); do
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
error "a page of nothing" 64 "debug: unknown command 'frob'" "$il" debug man frob
finish
