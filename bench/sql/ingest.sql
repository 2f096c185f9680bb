-- ingest.sql: the rows of an ingested event, read from its SQLite tables, and written by hand.
--
-- Columns are those of src/apps/ingest/sql/schema_*.sql, in that order; the tenant is the first.

-- name: ingest_connect_sqlite
-- As the tables of an app are opened.
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA foreign_keys = ON;

-- name: ingest_connect_postgres
SET search_path = interlock_ingest;

-- name: ingest_drop_postgres
DROP SCHEMA IF EXISTS interlock_ingest CASCADE;

-- name: ingest_read_races_of_event
-- returns: id; in the order in which they were written
SELECT id FROM races ORDER BY rowid;

-- name: ingest_read_tracks
SELECT * FROM tracks;

-- name: ingest_read_events
SELECT * FROM events;

-- name: ingest_read_races
-- params:  1 race
SELECT * FROM races WHERE id = $1;

-- name: ingest_read_drivers
-- Those whose first race it is.
-- params:  1 race
SELECT d.* FROM drivers d
WHERE (SELECT rd.race_id FROM race_drivers rd JOIN races r ON r.tenant = rd.tenant
           AND r.id = rd.race_id
       WHERE rd.tenant = d.tenant AND rd.driver_id = d.id ORDER BY r.rowid LIMIT 1) = $1;

-- name: ingest_read_race_drivers
-- params:  1 race
SELECT * FROM race_drivers WHERE race_id = $1 ORDER BY rowid;

-- name: ingest_read_race_results
-- params:  1 race
SELECT * FROM race_results WHERE race_id = $1 ORDER BY rowid;

-- name: ingest_read_laps
-- params:  1 race
SELECT l.* FROM race_results rr JOIN laps l ON l.tenant = rr.tenant AND l.race_result_id = rr.id
WHERE rr.race_id = $1 ORDER BY rr.rowid, l.lap_number;

-- name: ingest_insert_tracks
INSERT INTO tracks VALUES

-- name: ingest_insert_events
INSERT INTO events VALUES

-- name: ingest_insert_races
INSERT INTO races VALUES

-- name: ingest_insert_drivers
INSERT INTO drivers VALUES

-- name: ingest_insert_race_drivers
INSERT INTO race_drivers VALUES

-- name: ingest_insert_race_results
INSERT INTO race_results VALUES

-- name: ingest_insert_laps
INSERT INTO laps VALUES
