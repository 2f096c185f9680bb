-- persist.sql: what an ingestion writes (persist.c, persist_race.c, persist_lists.c).
--
-- Writers of one event take turns: each transaction first locks the row of the event
-- (il_guard_lock()), so that nothing below that belongs to an event changes between two statements
-- of one transaction. Tracks, drivers, validators and the events of a list are written without that
-- lock: each by one upsert, which is right whatever others do meanwhile, and which itself returns
-- for each row whether it is new, since a count of rows before and after would include theirs. Rows
-- of such a statement are written in the order of their keys, so that two transactions cannot wait
-- for each other.
--
-- An upsert of PostgreSQL has inserted a row whose xmax is 0: to update one it locks it first. Ids
-- are new for each row that is to be written, so SQLite has inserted one that has the new id.

-- ---- the event ---------------------------------------------------------------------------------

-- name: event_of_source
-- params:  1 tenant  2 source  3 source_event_id
-- returns: id, slug
SELECT e.id, t.slug FROM events e JOIN tracks t ON t.tenant = e.tenant AND t.id = e.track_id
WHERE e.tenant = $1 AND e.source = $2 AND e.source_event_id = $3;

-- name: event_head
-- Of a row that this transaction has locked.
-- params:  1 tenant  2 id
-- returns: source_event_id, slug, ingest_depth
SELECT e.source_event_id, t.slug, e.ingest_depth
FROM events e JOIN tracks t ON t.tenant = e.tenant AND t.id = e.track_id
WHERE e.tenant = $1 AND e.id = $2;

-- name: event_update
-- params:  1 tenant  2 id  3 now  4 name  5 club  6 meet  7 first_day  8 last_day  9 n_entries
--          10 n_drivers  11 n_laps  12 search_text
UPDATE events SET name = $4, club = $5, meet = $6, first_day = $7, last_day = $8, n_entries = $9,
    n_drivers = $10, n_laps = $11, search_text = $12, updated_at_ms = $3
WHERE tenant = $1 AND id = $2
  AND (name, club, meet, first_day, last_day, n_entries, n_drivers, n_laps, search_text)
      IS DISTINCT FROM ($4, $5, $6, $7, $8, $9, $10, $11, $12);

-- name: event_finish
-- params:  1 tenant  2 id  3 now  4 ingest_depth  5 digest
UPDATE events SET ingest_depth = $4, digest = $5, last_ingested_at_ms = $3
WHERE tenant = $1 AND id = $2;

-- name: races_missing_sqlite
-- params:  1 tenant  2 event  3 JSON: the source_race_ids of the page
-- returns: one that is not in the tables, if any
SELECT j.value FROM json_each($3) j WHERE NOT EXISTS (
    SELECT 1 FROM races r WHERE r.tenant = $1 AND r.event_id = $2 AND r.source_race_id = j.value)
LIMIT 1;

-- name: races_missing_postgres
SELECT j.value FROM json_array_elements_text($3) AS j (value) WHERE NOT EXISTS (
    SELECT 1 FROM races r WHERE r.tenant = $1 AND r.event_id = $2 AND r.source_race_id = j.value)
LIMIT 1;

-- ---- the entry list ----------------------------------------------------------------------------

-- part: entry_insert
INSERT INTO event_entries AS t (tenant, event_id, class_name, upper_name, car_number, name,
    match_name, transponder, created_at_ms, updated_at_ms)

-- part: entry_conflict
ON CONFLICT (tenant, event_id, class_name, upper_name, car_number) DO UPDATE
SET name = excluded.name, match_name = excluded.match_name, transponder = excluded.transponder,
    updated_at_ms = excluded.updated_at_ms
WHERE (t.name, t.match_name, t.transponder)
    IS DISTINCT FROM (excluded.name, excluded.match_name, excluded.transponder)

-- name: entry_write_sqlite
-- params:  1 tenant  2 event  3 now  4 class_name  5 upper_name  6 car_number  7 name
--          8 match_name  9 transponder
@entry_insert@
VALUES ($1, $2, $4, $5, $6, $7, $8, $9, $3, $3)
@entry_conflict@;

-- name: entry_write_postgres
-- params:  1 tenant  2 event  3 now  4 JSON
@entry_insert@
SELECT $1, $2, r.class_name, r.upper_name, r.car_number, r.name, r.match_name, r.transponder,
    $3::bigint, $3::bigint
FROM json_to_recordset($4) AS r (class_name text, upper_name text, car_number text, name text,
    match_name text, transponder text)
@entry_conflict@;

-- name: entry_count
-- params:  1 tenant  2 event
SELECT count(*) FROM event_entries WHERE tenant = $1 AND event_id = $2;

-- name: entry_prune_sqlite
-- Those that are no longer listed.
-- params:  1 tenant  2 event  3 JSON: [[class_name, upper_name, car_number], ...]
DELETE FROM event_entries WHERE tenant = $1 AND event_id = $2
  AND (class_name, upper_name, car_number) NOT IN (
      SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each($3));

-- name: entry_prune_postgres
DELETE FROM event_entries e WHERE e.tenant = $1 AND e.event_id = $2 AND NOT EXISTS (
    SELECT 1 FROM json_array_elements($3) AS j (value) WHERE j.value ->> 0 = e.class_name
        AND j.value ->> 1 = e.upper_name AND j.value ->> 2 = e.car_number);

-- part: entry_fits
-- Entry e and race_driver rd are the same driver: of namesakes in the entry list or in the race
-- only the one with the same car number is.
e.match_name = rd.match_name AND (e.car_number = rd.car_number OR (
    NOT EXISTS (SELECT 1 FROM event_entries o WHERE o.tenant = e.tenant AND o.event_id = e.event_id
        AND o.class_name = e.class_name AND o.match_name = e.match_name
        AND (o.upper_name, o.car_number) <> (e.upper_name, e.car_number))
    AND NOT EXISTS (SELECT 1 FROM race_drivers o WHERE o.tenant = rd.tenant
        AND o.race_id = rd.race_id AND o.match_name = rd.match_name AND o.id <> rd.id)))

-- name: entry_drivers_of_race
-- Entries without a driver get that of the race.
-- params:  1 tenant  2 event  3 now  4 class_name  5 race
UPDATE event_entries AS e SET driver_id = rd.driver_id, updated_at_ms = $3
FROM race_drivers rd
WHERE rd.tenant = $1 AND rd.race_id = $5 AND e.tenant = $1 AND e.event_id = $2
  AND e.class_name = $4 AND e.driver_id IS NULL AND @entry_fits@;

-- name: entry_drivers
-- All entries get the driver that the races of their class say, one with an id of the site's rather
-- than a synthetic one. The same races give the same result in whichever order they were written.
-- params:  1 tenant  2 event  3 now
UPDATE event_entries AS t SET driver_id = f.driver_id, updated_at_ms = $3
FROM (SELECT e.class_name, e.upper_name, e.car_number, (
          SELECT d.id FROM races r
          JOIN race_drivers rd ON rd.tenant = r.tenant AND rd.race_id = r.id
          JOIN drivers d ON d.tenant = rd.tenant AND d.id = rd.driver_id
          WHERE r.tenant = e.tenant AND r.event_id = e.event_id AND r.class_name = e.class_name
            AND @entry_fits@
          ORDER BY substr(d.source_driver_id, 1, 10) = 'synthetic-', d.source_driver_id
          LIMIT 1) AS driver_id
      FROM event_entries e WHERE e.tenant = $1 AND e.event_id = $2) AS f
WHERE t.tenant = $1 AND t.event_id = $2 AND t.class_name = f.class_name
  AND t.upper_name = f.upper_name AND t.car_number = f.car_number
  AND t.driver_id IS DISTINCT FROM f.driver_id;

-- ---- a race ------------------------------------------------------------------------------------

-- name: race_get
-- params:  1 tenant  2 event  3 source_race_id
-- returns: id, digest
SELECT id, digest FROM races WHERE tenant = $1 AND event_id = $2 AND source_race_id = $3;

-- name: race_insert
-- params:  1 tenant  2 event  3 source_race_id  4 id  5 now  6 race_order  7 class_name  8 label
--          9 section  10 session_type  11 url  12 completed_at  13 round  14 length  15 length_ms
--          16 has_laps  17 digest
INSERT INTO races (tenant, event_id, source_race_id, id, race_order, class_name, label, section,
    session_type, url, completed_at, round, length, length_ms, has_laps, digest, created_at_ms,
    updated_at_ms, ingested_at_ms)
VALUES ($1, $2, $3, $4, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $5, $5, $5);

-- name: race_update
-- What its page says and what the event page says.
-- params:  as race_insert
UPDATE races SET race_order = $6, class_name = $7, label = $8, section = $9, session_type = $10,
    url = $11, completed_at = $12, round = $13, length = $14, length_ms = $15, has_laps = $16,
    digest = $17, updated_at_ms = $5
WHERE tenant = $1 AND event_id = $2 AND source_race_id = $3 AND id = $4
  AND (race_order, class_name, label, section, session_type, url, completed_at, round, length,
       length_ms, has_laps, digest)
      IS DISTINCT FROM ($6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17);

-- name: race_update_link
-- Only what the event page says.
-- params:  1 tenant  2 event  3 source_race_id  4 id  5 now  6 race_order  7 class_name  8 label
--          9 section  10 session_type  11 url  12 completed_at
UPDATE races SET race_order = $6, class_name = $7, label = $8, section = $9, session_type = $10,
    url = $11, completed_at = $12, updated_at_ms = $5
WHERE tenant = $1 AND event_id = $2 AND source_race_id = $3 AND id = $4
  AND (race_order, class_name, label, section, session_type, url, completed_at)
      IS DISTINCT FROM ($6, $7, $8, $9, $10, $11, $12);

-- name: race_seen
-- params:  1 tenant  2 id  3 now
UPDATE races SET ingested_at_ms = $3 WHERE tenant = $1 AND id = $2;

-- name: race_ids
-- params:  1 tenant  2 race
-- returns: source_driver_id, id of the race_driver, id of its result, number of its laps
SELECT rd.source_driver_id, rd.id, rr.id, (
    SELECT count(*) FROM laps l WHERE l.tenant = rr.tenant AND l.race_result_id = rr.id)
FROM race_drivers rd
LEFT JOIN race_results rr
    ON rr.tenant = rd.tenant AND rr.race_id = rd.race_id AND rr.race_driver_id = rd.id
WHERE rd.tenant = $1 AND rd.race_id = $2;

-- ---- drivers -----------------------------------------------------------------------------------

-- name: driver_ids_sqlite
-- params:  1 tenant  2 source  3 JSON: source_driver_ids
-- returns: source_driver_id, id, name
SELECT source_driver_id, id, name FROM drivers WHERE tenant = $1 AND source = $2
AND source_driver_id IN (SELECT value FROM json_each($3));

-- name: driver_ids_postgres
SELECT source_driver_id, id, name FROM drivers WHERE tenant = $1 AND source = $2
AND source_driver_id IN (SELECT json_array_elements_text($3));

-- part: driver_insert
INSERT INTO drivers AS t (tenant, source, source_driver_id, id, name, match_name, created_at_ms,
    updated_at_ms)

-- part: driver_conflict
ON CONFLICT (tenant, source, source_driver_id) DO UPDATE
SET name = excluded.name, match_name = excluded.match_name, updated_at_ms = excluded.updated_at_ms
WHERE (t.name, t.match_name) IS DISTINCT FROM (excluded.name, excluded.match_name)

-- name: driver_write_sqlite
-- Of two events that write the same driver at once the later one waits, and finds the row: its id
-- is read afterwards.
-- params:  1 tenant  2 source  3 now  4 source_driver_id  5 id  6 name  7 match_name
-- returns: of each row that was inserted or updated, 1 if it is new
@driver_insert@
VALUES ($1, $2, $4, $5, $6, $7, $3, $3)
@driver_conflict@
RETURNING id = $5;

-- name: driver_write_postgres
-- params:  1 tenant  2 source  3 now  4 JSON
@driver_insert@
SELECT $1, $2, r.source_driver_id, r.id, r.name, r.match_name, $3::bigint, $3::bigint
FROM json_to_recordset($4) AS r (source_driver_id text, id text, name text, match_name text)
ORDER BY r.source_driver_id COLLATE "C"
@driver_conflict@
RETURNING (t.xmax = 0)::integer;

-- ---- drivers of a race -------------------------------------------------------------------------

-- part: race_driver_insert
INSERT INTO race_drivers AS t (tenant, race_id, source_driver_id, id, driver_id, name, match_name,
    car_number)

-- part: race_driver_conflict
ON CONFLICT (tenant, race_id, source_driver_id) DO UPDATE
SET driver_id = excluded.driver_id, name = excluded.name, match_name = excluded.match_name,
    car_number = excluded.car_number
WHERE (t.driver_id, t.name, t.match_name, t.car_number)
    IS DISTINCT FROM (excluded.driver_id, excluded.name, excluded.match_name, excluded.car_number)

-- name: race_driver_write_sqlite
-- params:  1 tenant  2 race  3 source_driver_id  4 id  5 driver  6 name  7 match_name
--          8 car_number
@race_driver_insert@
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
@race_driver_conflict@;

-- name: race_driver_write_postgres
-- params:  1 tenant  2 race  3 JSON
@race_driver_insert@
SELECT $1, $2, r.source_driver_id, r.id, r.driver_id, r.name, r.match_name, r.car_number
FROM json_to_recordset($3) AS r (source_driver_id text, id text, driver_id text, name text,
    match_name text, car_number text)
@race_driver_conflict@;

-- ---- results -----------------------------------------------------------------------------------

-- part: result_columns
position, qualified, laps_completed, total_raw, total_ms, behind_raw, behind_ms, behind_laps,
    fastest_ms, fastest_lap, average_ms, consistency_milli, extras

-- part: result_conflict
ON CONFLICT (tenant, race_id, race_driver_id) DO UPDATE
SET position = excluded.position, qualified = excluded.qualified,
    laps_completed = excluded.laps_completed, total_raw = excluded.total_raw,
    total_ms = excluded.total_ms, behind_raw = excluded.behind_raw,
    behind_ms = excluded.behind_ms, behind_laps = excluded.behind_laps,
    fastest_ms = excluded.fastest_ms, fastest_lap = excluded.fastest_lap,
    average_ms = excluded.average_ms, consistency_milli = excluded.consistency_milli,
    extras = excluded.extras
WHERE (t.position, t.qualified, t.laps_completed, t.total_raw, t.total_ms, t.behind_raw,
       t.behind_ms, t.behind_laps, t.fastest_ms, t.fastest_lap, t.average_ms, t.consistency_milli,
       t.extras)
    IS DISTINCT FROM (excluded.position, excluded.qualified, excluded.laps_completed,
       excluded.total_raw, excluded.total_ms, excluded.behind_raw, excluded.behind_ms,
       excluded.behind_laps, excluded.fastest_ms, excluded.fastest_lap, excluded.average_ms,
       excluded.consistency_milli, excluded.extras)

-- name: result_write_sqlite
-- params:  1 tenant  2 race  3 id  4 race_driver  5.. the columns
INSERT INTO race_results AS t (tenant, race_id, id, race_driver_id, @result_columns@)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
@result_conflict@;

-- name: result_write_postgres
-- params:  1 tenant  2 race  3 JSON
INSERT INTO race_results AS t (tenant, race_id, id, race_driver_id, @result_columns@)
SELECT $1, $2, id, race_driver_id, @result_columns@
FROM json_to_recordset($3) AS r (id text, race_driver_id text, position integer,
    qualified integer, laps_completed integer, total_raw text, total_ms bigint, behind_raw text,
    behind_ms bigint, behind_laps integer, fastest_ms bigint, fastest_lap integer,
    average_ms bigint, consistency_milli integer, extras jsonb)
@result_conflict@;

-- ---- laps --------------------------------------------------------------------------------------

-- part: lap_insert
INSERT INTO laps AS t (tenant, race_result_id, lap_number, position, time_raw, time_ms, pace,
    elapsed_ms, segments)

-- part: lap_conflict
ON CONFLICT (tenant, race_result_id, lap_number) DO UPDATE
SET position = excluded.position, time_raw = excluded.time_raw, time_ms = excluded.time_ms,
    pace = excluded.pace, elapsed_ms = excluded.elapsed_ms, segments = excluded.segments
WHERE (t.position, t.time_raw, t.time_ms, t.pace, t.elapsed_ms, t.segments)
    IS DISTINCT FROM (excluded.position, excluded.time_raw, excluded.time_ms, excluded.pace,
       excluded.elapsed_ms, excluded.segments)

-- name: lap_write_sqlite
-- params:  1 tenant  2 result  3 lap_number  4 position  5 time_raw  6 time_ms  7 pace
--          8 elapsed_ms  9 segments
@lap_insert@
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
@lap_conflict@;

-- name: lap_write_postgres
-- params:  1 tenant  2 JSON
@lap_insert@
SELECT $1, race_result_id, lap_number, position, time_raw, time_ms, pace, elapsed_ms, segments
FROM json_to_recordset($2) AS r (race_result_id text, lap_number integer, position integer,
    time_raw text, time_ms bigint, pace text, elapsed_ms bigint, segments jsonb)
@lap_conflict@;

-- ---- what is no longer on the page of a race ---------------------------------------------------

-- name: lap_prune_sqlite
-- params:  1 tenant  2 race  3 JSON: [[id of a result that stays, number of its laps], ...]
DELETE FROM laps WHERE tenant = $1
  AND race_result_id IN (SELECT id FROM race_results WHERE tenant = $1 AND race_id = $2)
  AND NOT EXISTS (SELECT 1 FROM json_each($3) j
                  WHERE j.value ->> 0 = race_result_id AND j.value ->> 1 >= lap_number);

-- name: lap_prune_postgres
DELETE FROM laps l WHERE l.tenant = $1
  AND l.race_result_id IN (SELECT id FROM race_results WHERE tenant = $1 AND race_id = $2)
  AND NOT EXISTS (SELECT 1 FROM json_array_elements($3) AS j (value)
                  WHERE j.value ->> 0 = l.race_result_id
                    AND (j.value ->> 1)::integer >= l.lap_number);

-- name: result_prune_sqlite
-- params:  1 tenant  2 race  3 JSON: source_driver_ids
DELETE FROM race_results WHERE tenant = $1 AND race_id = $2 AND race_driver_id NOT IN (
    SELECT id FROM race_drivers WHERE tenant = $1 AND race_id = $2
       AND source_driver_id IN (SELECT value FROM json_each($3)));

-- name: result_prune_postgres
DELETE FROM race_results WHERE tenant = $1 AND race_id = $2 AND race_driver_id NOT IN (
    SELECT id FROM race_drivers WHERE tenant = $1 AND race_id = $2
       AND source_driver_id IN (SELECT json_array_elements_text($3)));

-- name: race_driver_prune_sqlite
DELETE FROM race_drivers WHERE tenant = $1 AND race_id = $2
   AND source_driver_id NOT IN (SELECT value FROM json_each($3));

-- name: race_driver_prune_postgres
DELETE FROM race_drivers WHERE tenant = $1 AND race_id = $2
   AND source_driver_id NOT IN (SELECT json_array_elements_text($3));

-- ---- lists -------------------------------------------------------------------------------------

-- part: track_conflict
ON CONFLICT (tenant, source, slug) DO UPDATE
SET name = excluded.name, updated_at_ms = excluded.updated_at_ms WHERE t.name <> excluded.name

-- name: track_write_sqlite
-- params:  1 tenant  2 source  3 now  4 slug  5 id  6 name
-- returns: as driver_write
INSERT INTO tracks AS t (tenant, source, slug, id, name, created_at_ms, updated_at_ms)
VALUES ($1, $2, $4, $5, $6, $3, $3)
@track_conflict@
RETURNING id = $5;

-- name: track_write_postgres
-- params:  1 tenant  2 source  3 now  4 JSON
INSERT INTO tracks AS t (tenant, source, slug, id, name, created_at_ms, updated_at_ms)
SELECT $1, $2, r.slug, r.id, r.name, $3::bigint, $3::bigint
FROM json_to_recordset($4) AS r (slug text, id text, name text)
ORDER BY r.slug COLLATE "C"
@track_conflict@
RETURNING (t.xmax = 0)::integer;

-- part: event_insert
INSERT INTO events AS t (tenant, source, source_event_id, id, track_id, name, club, meet, first_day,
    last_day, n_entries, n_drivers, search_text, ingest_depth, digest, created_at_ms, updated_at_ms)

-- part: event_conflict
-- An event whose own page was ingested keeps what that said.
ON CONFLICT (tenant, source, source_event_id) DO UPDATE
SET name = excluded.name, first_day = excluded.first_day, last_day = excluded.last_day,
    n_entries = excluded.n_entries, n_drivers = excluded.n_drivers,
    search_text = excluded.search_text, updated_at_ms = excluded.updated_at_ms
WHERE t.ingest_depth = 'none' AND t.track_id = excluded.track_id
  AND (t.name, t.first_day, t.n_entries, t.n_drivers)
    IS DISTINCT FROM (excluded.name, excluded.first_day, excluded.n_entries, excluded.n_drivers)

-- name: event_list_write_sqlite
-- params:  1 tenant  2 source  3 now  4 track  5 source_event_id  6 id  7 name  8 first_day
--          9 n_entries  10 n_drivers  11 search_text
-- returns: as driver_write
@event_insert@
VALUES ($1, $2, $5, $6, $4, $7, '', '', $8, $8, $9, $10, $11, 'none', '', $3, $3)
@event_conflict@
RETURNING id = $6;

-- name: event_list_write_postgres
-- params:  1 tenant  2 source  3 now  4 track  5 JSON
@event_insert@
SELECT $1, $2, r.source_event_id, r.id, $4, r.name, '', '', r.first_day, r.first_day, r.n_entries,
    r.n_drivers, r.search_text, 'none', '', $3::bigint, $3::bigint
FROM json_to_recordset($5) AS r (source_event_id text, id text, name text, first_day text,
    n_entries integer, n_drivers integer, search_text text)
ORDER BY r.source_event_id COLLATE "C"
@event_conflict@
RETURNING (t.xmax = 0)::integer;

-- ---- validators --------------------------------------------------------------------------------

-- name: validator_put
-- params:  1 tenant  2 url  3 etag  4 last_modified  5 now
INSERT INTO page_validators AS t (tenant, url, etag, last_modified, updated_at_ms)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (tenant, url) DO UPDATE
SET etag = excluded.etag, last_modified = excluded.last_modified,
    updated_at_ms = excluded.updated_at_ms;

-- name: validator_get
-- params:  1 tenant  2 url
-- returns: etag, last_modified
SELECT etag, last_modified FROM page_validators WHERE tenant = $1 AND url = $2;

-- ---- what is known before anything is fetched --------------------------------------------------

-- name: known_event
-- params:  1 tenant  2 id
-- returns: id, source_event_id, slug, ingest_depth, digest, last_ingested_at_ms
SELECT e.id, e.source_event_id, t.slug, e.ingest_depth, e.digest, e.last_ingested_at_ms
FROM events e JOIN tracks t ON t.tenant = e.tenant AND t.id = e.track_id
WHERE e.tenant = $1 AND e.id = $2;

-- name: known_races
-- params:  1 tenant  2 event
-- returns: source_race_id, number of results, of laps
-- Laps are counted per result: SQLite would read a join from the laps of the whole tenant.
SELECT r.source_race_id,
    (SELECT count(*) FROM race_results rr WHERE rr.tenant = r.tenant AND rr.race_id = r.id),
    (SELECT CAST(coalesce(sum((SELECT count(*) FROM laps l WHERE l.tenant = rr.tenant
                               AND l.race_result_id = rr.id)), 0) AS BIGINT)
     FROM race_results rr WHERE rr.tenant = r.tenant AND rr.race_id = r.id)
FROM races r WHERE r.tenant = $1 AND r.event_id = $2 ORDER BY r.source_race_id;

-- name: known_track_events
-- Newest first.
-- params:  1 tenant  2 source  3 slug  4 first_day  5 limit
-- returns: id, source_event_id, slug, name, first_day
SELECT e.id, e.source_event_id, t.slug, e.name, e.first_day
FROM tracks t JOIN events e ON e.tenant = t.tenant AND e.track_id = t.id
WHERE t.tenant = $1 AND t.source = $2 AND t.slug = $3 AND e.first_day >= $4
ORDER BY e.first_day DESC, e.id DESC LIMIT $5;

-- name: known_tracks
-- params:  1 tenant  2 source
SELECT slug FROM tracks WHERE tenant = $1 AND source = $2 ORDER BY slug;
