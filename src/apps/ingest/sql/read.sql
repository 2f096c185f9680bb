-- read.sql: what readers see (query.c). A read is one transaction with one snapshot, so a race is
-- seen whole: as it was before an ingestion wrote it, or as it is afterwards.

-- part: event_columns
e.id, e.source, e.source_event_id, t.slug, t.name, e.name, e.club, e.meet, e.first_day, e.last_day,
    e.n_entries, e.n_drivers, e.n_laps, e.ingest_depth, e.last_ingested_at_ms, e.updated_at_ms,
    (SELECT count(*) FROM races r WHERE r.tenant = e.tenant AND r.event_id = e.id)

-- part: event_tables
events e JOIN tracks t ON t.tenant = e.tenant AND t.id = e.track_id

-- part: event_where
-- params:  1 tenant  2 depth, '' = all  3 slug, '' = all  4 after this id, '' = from the first
--          5 limit  6 searched for, in upper case, '' = everything
e.tenant = $1 AND ($2 = '' OR e.ingest_depth = $2) AND ($3 = '' OR t.slug = $3)

-- part: event_after
FROM events c WHERE c.tenant = $1 AND c.id = $4

-- part: events_sqlite
SELECT @event_columns@ FROM @event_tables@ WHERE @event_where@
  AND ($6 = '' OR instr(e.search_text, $6) > 0)
-- part: events_postgres
SELECT @event_columns@ FROM @event_tables@ WHERE @event_where@
  AND ($6 = '' OR strpos(e.search_text, $6) > 0)

-- Newest first.
-- part: by_date
  AND ($4 = '' OR (e.first_day, e.id) < (SELECT c.first_day, c.id @event_after@))
ORDER BY e.first_day DESC, e.id DESC LIMIT $5
-- name: events_by_date_sqlite
@events_sqlite@ @by_date@;
-- name: events_by_date_postgres
@events_postgres@ @by_date@;

-- part: by_oldest
  AND ($4 = '' OR (e.first_day, e.id) > (SELECT c.first_day, c.id @event_after@))
ORDER BY e.first_day, e.id LIMIT $5
-- name: events_by_oldest_sqlite
@events_sqlite@ @by_oldest@;
-- name: events_by_oldest_postgres
@events_postgres@ @by_oldest@;

-- part: by_name
  AND ($4 = '' OR (e.name, e.id) > (SELECT c.name, c.id @event_after@))
ORDER BY e.name, e.id LIMIT $5
-- name: events_by_name_sqlite
@events_sqlite@ @by_name@;
-- name: events_by_name_postgres
@events_postgres@ @by_name@;

-- The one that was ingested last first; those that never were, last.
-- part: by_ingested
  AND ($4 = '' OR (coalesce(e.last_ingested_at_ms, 0), e.id)
                < (SELECT coalesce(c.last_ingested_at_ms, 0), c.id @event_after@))
ORDER BY coalesce(e.last_ingested_at_ms, 0) DESC, e.id DESC LIMIT $5
-- name: events_by_ingested_sqlite
@events_sqlite@ @by_ingested@;
-- name: events_by_ingested_postgres
@events_postgres@ @by_ingested@;

-- name: event_get
-- params:  1 tenant  2 id
SELECT @event_columns@ FROM @event_tables@ WHERE e.tenant = $1 AND e.id = $2;

-- part: race_columns
r.id, r.event_id, e.ingest_depth, r.source_race_id, r.race_order, r.class_name, r.label, r.section,
    r.session_type, r.url, r.completed_at, r.round, r.length, r.length_ms, r.has_laps,
    r.ingested_at_ms,
    (SELECT count(*) FROM race_results rr WHERE rr.tenant = r.tenant AND rr.race_id = r.id)

-- part: race_tables
races r JOIN events e ON e.tenant = r.tenant AND e.id = r.event_id

-- name: race_list
-- params:  1 tenant  2 event
SELECT @race_columns@ FROM @race_tables@ WHERE r.tenant = $1 AND r.event_id = $2
ORDER BY r.completed_at, r.race_order, r.source_race_id;

-- name: race_show
-- params:  1 tenant  2 id
SELECT @race_columns@ FROM @race_tables@ WHERE r.tenant = $1 AND r.id = $2;

-- name: result_list
-- params:  1 tenant  2 race
SELECT rr.id, rd.driver_id, rd.source_driver_id, rd.name, rd.car_number, rr.position, rr.qualified,
    rr.laps_completed, rr.total_raw, rr.total_ms, rr.behind_raw, rr.behind_ms, rr.behind_laps,
    rr.fastest_ms, rr.fastest_lap, rr.average_ms, rr.consistency_milli,
    CAST(rr.extras ->> 'average_top_5_ms' AS bigint),
    CAST(rr.extras ->> 'average_top_10_ms' AS bigint),
    CAST(rr.extras ->> 'average_top_15_ms' AS bigint),
    CAST(rr.extras ->> 'top_3_consecutive_ms' AS bigint),
    CAST(rr.extras ->> 'deviation_ms' AS bigint),
    (SELECT count(*) FROM laps l WHERE l.tenant = rr.tenant AND l.race_result_id = rr.id)
FROM race_results rr
JOIN race_drivers rd ON rd.tenant = rr.tenant AND rd.id = rr.race_driver_id
WHERE rr.tenant = $1 AND rr.race_id = $2
ORDER BY rr.position, rr.id;

-- name: lap_list
-- params:  1 tenant  2 race
SELECT l.race_result_id, rd.source_driver_id, rd.name, rr.position, l.lap_number, l.position,
    l.time_raw, l.time_ms, l.pace, l.elapsed_ms, l.segments
FROM race_results rr
JOIN race_drivers rd ON rd.tenant = rr.tenant AND rd.id = rr.race_driver_id
JOIN laps l ON l.tenant = rr.tenant AND l.race_result_id = rr.id
WHERE rr.tenant = $1 AND rr.race_id = $2
ORDER BY rr.position, rr.id, l.lap_number;
