#!/bin/bash
# pipelines check, list, graph: pipeline files, without a store or a server.
. "$(dirname "$0")/lib.sh" || exit 1
unset INTERLOCK_STORE
samples=$IL_TEST_SOURCE/deploy/pipelines

# The samples, and every example of the documentation.
gives "the samples are fine" 0 "$il" pipelines check "$samples"
is "... and need no advice" "$out" "4 pipelines of 1 tenant, 0 invalid, 0 suggestions"
is "... nothing on stderr" "$err" ""
mkdir -p docs/acme
awk -v dir=docs/acme '/^```yaml$/ { n++; f = dir "/" n ".yml"; next } /^```$/ { f = "" } f != "" { print > f }' \
    "$IL_TEST_SOURCE/docs/PIPELINES.md"
check "there are examples" test -e docs/acme/5.yml
gives "the examples of docs/PIPELINES.md are fine" 0 "$il" pipelines check docs
is "... and need no advice" "$err" ""

# What is wrong.
mkdir -p dir/acme dir/globex
good='steps: [{step_id: a, type: command, run: [x]}]'
printf 'pipeline_id: one\n%s\n' "$good" >dir/acme/one.yml
printf 'pipeline_id: one\n%s\n' "$good" >dir/globex/one.yml
gives "two that are fine" 0 "$il" pipelines check dir
is "... two tenants" "$out" "2 pipelines of 2 tenants, 0 invalid, 0 suggestions"
printf 'pipeline_id: two\ntimeout_minutes: 1441\nstep: []\n' >dir/acme/two.yml
gives "one that is not" 1 "$il" pipelines check dir
is "... each fault, with its line" "$err" "dir/acme/two.yml:1: steps: must be a list of 1 to 100 steps
dir/acme/two.yml:2: timeout_minutes: must be a whole number from 1 to 1440, not '1441'
dir/acme/two.yml:3: unknown key 'step' (did you mean 'steps'?)"
is "... the others count" "$out" "2 pipelines of 2 tenants, 1 invalid, 0 suggestions"
gives "... as JSON" 1 "$il" pipelines check --json dir
json "... the same" "[(i['path'], i['line'], i['field'], i['severity']) for i in d['items']] == [('dir/acme/two.yml', 1, 'steps', 'error'), ('dir/acme/two.yml', 2, 'timeout_minutes', 'error'), ('dir/acme/two.yml', 3, '', 'error')] and d['next'] is None"
gives "a file" 1 "$il" pipelines check dir/acme/two.yml
is "... only that" "$out" "0 pipelines of 0 tenants, 1 invalid, 0 suggestions"
gives "files" 0 "$il" pipelines check dir/acme/one.yml dir/globex/one.yml
is "... of two tenants" "$out" "2 pipelines of 2 tenants, 0 invalid, 0 suggestions"
gives "a file twice" 0 "$il" pipelines check dir/acme/one.yml dir/acme/one.yml
is "... counts once" "$out" "1 pipeline of 1 tenant, 0 invalid, 0 suggestions"
gives "a tenant's folder" 1 "$il" pipelines check dir/acme
is "... only its" "$out" "1 pipeline of 1 tenant, 1 invalid, 0 suggestions"
cp dir/acme/one.yml dir/acme/zwei.yml
rm dir/acme/two.yml
gives "the same id twice" 1 "$il" pipelines check dir
is "... names both" "$err" "dir/acme/zwei.yml:1: pipeline_id: duplicate pipeline_id 'one', already used in dir/acme/one.yml; this file is ignored"
rm dir/acme/zwei.yml
gives "nothing there" 1 "$il" pipelines check nowhere
is "... says so" "$err" "nowhere: cannot read the file: No such file or directory"
mkdir empty
gives "an empty folder" 1 "$il" pipelines check empty
like "... is a mistake" "$err" "empty: no pipeline files*"
mkdir dir/Bad
gives "a folder that is no tenant's" 1 "$il" pipelines check dir
like "... says so" "$err" "dir/Bad: 'Bad' is not a tenant id*"
rmdir dir/Bad
printf 'pipeline_id: \033[31mred\n%s\n' "$good" >dir/acme/red.yml
gives "escape sequences" 1 "$il" pipelines check dir
is "... do not reach the terminal" "$(tr -cd '\033' <"$work/err")" ""
rm dir/acme/red.yml

# advice, which is no error.
printf 'pipeline_id: adv\ntimeout_minutes: 3\n%s\n' "$good" >dir/acme/adv.yml
gives "advice" 0 "$il" pipelines check dir
like "... is given" "$err" "dir/acme/adv.yml:2: advice: lock_timeout_seconds: recommended: 600 for a timeout of under 5 minutes (currently *"
is "... and counted" "$out" "3 pipelines of 2 tenants, 0 invalid, 1 suggestion"
gives "... not with --quiet" 0 "$il" pipelines check --quiet dir
is "... at all" "$out$err" ""
gives "... as JSON" 0 "$il" pipelines check --json dir
json "... has a severity" "[i['severity'] for i in d['items']] == ['advice']"
rm dir/acme/adv.yml

# The configured folder.
error "none" 64 "pipelines check: no folder or file given*" "$il" pipelines check
INTERLOCK_PIPELINES=dir gives "the configured one" 0 "$il" pipelines check
is "... is checked" "$out" "2 pipelines of 2 tenants, 0 invalid, 0 suggestions"
error "list: none" 64 "pipelines list: no pipelines folder*" "$il" pipelines list

# list
printf 'pipeline_id: tick\ndescription: Ticks\nschedule: {cron: "0 3 1 1 *", zone: Europe/Berlin}\n%s\n' "$good" >dir/acme/tick.yml
gives "list" 0 "$il" pipelines list --pipelines dir
is "... all of them" "$(awk '{ print $1 "/" $2 }' "$work/out" | tr '\n' ' ')" "TENANT/PIPELINE acme/one acme/tick globex/one "
like "... with their next tick" "$out" "*0 3 1 1 \* Europe/Berlin  ????-01-01T02:00:00.000Z  Ticks*"
gives "list of a tenant" 0 "$il" pipelines list --pipelines dir --tenant globex --json
json "... only its" "[(i['tenant_id'], i['pipeline_id']) for i in d['items']] == [('globex', 'one')] and d['items'][0]['next_run_at'] is None"
gives "list, a page" 0 "$il" pipelines list --pipelines dir --limit 2 --json
json "... has a next" "len(d['items']) == 2 and d['next'] == 'acme/tick' and d['items'][1]['timezone'] == 'Europe/Berlin'"
gives "list, the next page" 0 "$il" pipelines list --pipelines dir --limit 2 --cursor acme/tick --json
json "... goes on" "[(i['tenant_id'], i['pipeline_id']) for i in d['items']] == [('globex', 'one')] and d['next'] is None"
error "a cursor that is none" 64 "pipelines list: --cursor: 'x' is not a cursor from a listing" "$il" pipelines list --pipelines dir --cursor x
printf 'pipeline_id: [\n' >dir/acme/bad.yml
gives "list with a bad file" 0 "$il" pipelines list --pipelines dir
like "... says so" "$err" "dir/acme/bad.yml:*: invalid YAML: *"
rm dir/acme/bad.yml
error "list of nothing" 64 "nowhere: cannot read the pipelines folder*" "$il" pipelines list --pipelines nowhere

# graph
gives "graph" 0 "$il" pipelines graph export_and_check --pipelines "$samples"
is "... level by level" "$out" "export_and_check: 5 steps, 3 levels
level 1 (at once)
  orders           sql
  customers        sql
level 2 (at once)
  check_orders     check    ← orders, customers
  check_customers  check    ← customers  (on failure: alert)
level 3
  report           command  ← check_orders, check_customers"
gives "... as JSON" 0 "$il" pipelines graph export_and_check --pipelines "$samples" --json
json "... the steps" "[(s['step_id'], s['level']) for s in d['steps']] == [('orders', 1), ('customers', 1), ('check_orders', 2), ('check_customers', 2), ('report', 3)] and d['steps'][2]['depends_on'] == ['orders', 'customers']"
error "graph of nothing" 1 "pipelines graph: no such pipeline: 'tik' (did you mean 'tick'?)" "$il" pipelines graph tik --pipelines dir
error "graph of one of two" 64 "pipelines graph: 2 tenants have a pipeline 'one'; choose one with --tenant" "$il" pipelines graph one --pipelines dir
gives "... which" 0 "$il" pipelines graph one --pipelines dir --tenant globex
like "... that" "$out" "one: 1 step, 1 level*"
error "... not there" 1 "pipelines graph: no such pipeline: 'tick' of tenant 'globex'" "$il" pipelines graph tick --pipelines dir --tenant globex
check "no store was made" test ! -e "$work/state"
finish
