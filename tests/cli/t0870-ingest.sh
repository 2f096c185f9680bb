#!/bin/bash
# ingest parse: saved pages of LiveRC, without a store or the network.
. "$(dirname "$0")/lib.sh" || exit 1
unset INTERLOCK_STORE
pages=$IL_TEST_SOURCE/tests/fuzz/corpus/page

gives "an event" 0 "$il" ingest parse "$pages/event"
is "... its races" "$out" "Clay Cup, 2026-03-05, 2026-03-08
RACE  COMPLETED            SESSION  SECTION      LABEL
5     2025-11-16T17:30:00  main     Main Events  1/8 Buggy A-Main"
is "... nothing on stderr" "$err" ""
gives "an entry list" 0 "$il" ingest parse --json "$pages/entries-new"
json "... its entries" "d == {'page': 'entries', 'entries': [{'class_name': 'Buggy', 'car_number': '1', 'name': 'ANN LEE', 'transponder': '123'}], 'warnings': []}"
gives "an older one" 0 "$il" ingest parse "$pages/entries-old"
is "... with a warning" "$err" "interlock: warning: class 'Buggy' lists 1 entries, but declares 2"
gives "a race" 0 "$il" ingest parse --json --id 5 --track x "$pages/race"
json "... results and laps" "d['page'] == 'race' and d['race']['source_race_id'] == '5' and [(r['name'], r['source_driver_id'], [l['time_ms'] for l in r['laps']]) for r in d['race']['results']][0] == ('FELIX KOEGLER', '346997', [37234])"
json "... a driver without an id" "d['race']['results'][1]['source_driver_id'].startswith('synthetic-')"
gives "events" 0 "$il" ingest parse "$pages/events"
is "... a line each" "$out" "EVENT  DAY         NAME
7      2025-11-16  Cup"
gives "tracks, on standard input" 0 sh -c "'$il' ingest parse - <'$pages/tracks'"
is "... a line each" "$out" "TRACK     NAME
canberra  Canberra"

gives "a page of another kind" 1 "$il" ingest parse --page race "$pages/event"
is "... its code" "$err" "interlock: $pages/event: RACE_PAGE_FORMAT_ERROR: no result table on the race page (expected columns Pos and Behind)"
gives "another id than in the URL" 1 "$il" ingest parse --id 1 "$pages/event"
is "... its code" "$err" "interlock: $pages/event: VALIDATION_ERROR: expected the page of id 1, got that of 486677"
echo '<p>Hello' >hello.html
gives "no page of LiveRC" 64 "$il" ingest parse hello.html
is "... says so" "$err" "interlock: cannot detect the kind of page; is it from LiveRC? Pass --page"
gives "no file" 64 "$il" ingest parse missing.html
finish
