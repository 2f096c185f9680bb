-- links.sql: users, and their links with drivers (match_users.c, links.c, users.c).
--
-- Links of an event are only written under the lock of the event, so that nothing of it changes
-- between two statements of one transaction. Other events are read without their locks
-- (match_evidence); match_drivers_lock makes that safe. Links with drivers and users belong to no
-- event: each statement on them is one upsert or update, which locks the row, and is right whatever
-- others do meanwhile. Users are only ever added or changed; a matching uses those that it has read
-- before it began.

-- ---- matching ----------------------------------------------------------------------------------

-- name: match_users
-- params:  1 tenant
-- returns: id, match_name, transponder
SELECT id, match_name, transponder FROM users WHERE tenant = $1 ORDER BY id;

-- name: match_drivers
-- The drivers who took part in an event.
-- params:  1 tenant  2 event
-- returns: id, match_name
SELECT d.id, d.match_name FROM drivers d
WHERE d.tenant = $1 AND d.id IN (
    SELECT rd.driver_id FROM races r JOIN race_drivers rd ON rd.tenant = r.tenant
        AND rd.race_id = r.id WHERE r.tenant = $1 AND r.event_id = $2)
ORDER BY d.id;

-- name: match_transponders
-- params:  1 tenant  2 event
-- returns: driver, transponder
SELECT DISTINCT driver_id, transponder FROM event_entries
WHERE tenant = $1 AND event_id = $2 AND driver_id IS NOT NULL AND transponder IS NOT NULL
ORDER BY driver_id, transponder;

-- name: match_drivers_lock
-- Only on PostgreSQL: SQLite has one writer. Two events of the same driver are evidence for each
-- other: the later one waits here for the commit of the earlier one, and then counts its links.
-- Without that, neither of two that are matched at once would count the other. In the order in
-- which drivers are written (driver_write).
-- params:  1 tenant  2 JSON: ids of drivers
-- returns: id
SELECT d.id FROM drivers d
WHERE d.tenant = $1 AND d.id IN (SELECT json_array_elements_text($2))
ORDER BY d.source_driver_id COLLATE "C" FOR NO KEY UPDATE;

-- name: match_evidence
-- In how many other events a user had the transponder of a driver of this one. Race-free: the
-- drivers are locked.
-- params:  1 tenant  2 event
-- returns: user, driver, events
SELECT k.user_id, k.driver_id, count(*) FROM event_driver_links k
WHERE k.tenant = $1 AND k.event_id <> $2 AND k.transponder IS NOT NULL AND k.driver_id IN (
    SELECT n.driver_id FROM event_entries n WHERE n.tenant = $1 AND n.event_id = $2)
GROUP BY k.user_id, k.driver_id;

-- name: event_link_count
-- params:  1 tenant  2 event
SELECT count(*) FROM event_driver_links WHERE tenant = $1 AND event_id = $2;

-- name: event_link_prune_sqlite
-- Those that no longer match.
-- params:  1 tenant  2 event  3 JSON: [[user, driver], ...]
DELETE FROM event_driver_links WHERE tenant = $1 AND event_id = $2
  AND (user_id, driver_id) NOT IN (SELECT value ->> 0, value ->> 1 FROM json_each($3));

-- name: event_link_prune_postgres
DELETE FROM event_driver_links k WHERE k.tenant = $1 AND k.event_id = $2 AND NOT EXISTS (
    SELECT 1 FROM json_array_elements($3) AS j (value)
    WHERE j.value ->> 0 = k.user_id AND j.value ->> 1 = k.driver_id);

-- part: event_link_insert
INSERT INTO event_driver_links AS t (tenant, user_id, event_id, driver_id, match_type, score_milli,
    transponder, created_at_ms)

-- part: event_link_conflict
ON CONFLICT (tenant, user_id, event_id, driver_id) DO UPDATE
SET match_type = excluded.match_type, score_milli = excluded.score_milli,
    transponder = excluded.transponder
WHERE (t.match_type, t.score_milli, t.transponder)
    IS DISTINCT FROM (excluded.match_type, excluded.score_milli, excluded.transponder)

-- name: event_link_write_sqlite
-- params:  1 tenant  2 event  3 now  4 user  5 driver  6 match_type  7 score_milli  8 transponder
@event_link_insert@
VALUES ($1, $4, $2, $5, $6, $7, $8, $3)
@event_link_conflict@;

-- name: event_link_write_postgres
-- params:  1 tenant  2 event  3 now  4 JSON
@event_link_insert@
SELECT $1, r.user_id, $2, r.driver_id, r.match_type, r.score_milli, r.transponder, $3::bigint
FROM json_to_recordset($4) AS r (user_id text, driver_id text, match_type text,
    score_milli integer, transponder text)
@event_link_conflict@;

-- part: link_insert
INSERT INTO user_driver_links AS t (tenant, id, driver_id, user_id, state, rival_id, score_milli,
    created_at_ms, updated_at_ms)

-- part: link_conflict
-- Only a suggestion can be changed: confirmed and rejected links stay, and a conflict is for an
-- operator to decide. A driver who is linked with another user becomes a conflict. The upsert locks
-- the row, so of two events that suggest different users at once the later one sees the first.
ON CONFLICT (tenant, driver_id) DO UPDATE
SET state = CASE WHEN t.user_id = excluded.user_id THEN excluded.state ELSE 'conflict' END,
    rival_id = CASE WHEN t.user_id = excluded.user_id THEN excluded.rival_id
                    ELSE excluded.user_id END,
    score_milli = CASE WHEN excluded.score_milli > t.score_milli THEN excluded.score_milli
                       ELSE t.score_milli END,
    updated_at_ms = excluded.updated_at_ms
WHERE t.state = 'suggested' AND (t.user_id <> excluded.user_id OR t.state <> excluded.state
    OR t.score_milli < excluded.score_milli)

-- name: link_write_sqlite
-- params:  1 tenant  2 now  3 id  4 driver  5 user  6 state  7 rival  8 score_milli
-- returns: of each row that was inserted or updated, 1 if it is new
@link_insert@
VALUES ($1, $3, $4, $5, $6, $7, $8, $2, $2)
@link_conflict@
RETURNING id = $3;

-- name: link_write_postgres
-- params:  1 tenant  2 now  3 JSON
@link_insert@
SELECT $1, r.id, r.driver_id, r.user_id, r.state, r.rival_id, r.score_milli, $2::bigint, $2::bigint
FROM json_to_recordset($3) AS r (id text, driver_id text, user_id text, state text, rival_id text,
    score_milli integer)
ORDER BY r.driver_id COLLATE "C"
@link_conflict@
RETURNING (t.xmax = 0)::integer;

-- ---- links -------------------------------------------------------------------------------------

-- part: link_columns
k.id, k.state, k.score_milli, u.email, u.name, d.source_driver_id, d.name, o.email,
    (SELECT count(*) FROM event_driver_links l WHERE l.tenant = k.tenant
        AND l.driver_id = k.driver_id AND l.user_id = k.user_id), k.updated_at_ms, k.driver_id

-- part: link_tables
user_driver_links k
JOIN users u ON u.tenant = k.tenant AND u.id = k.user_id
JOIN drivers d ON d.tenant = k.tenant AND d.id = k.driver_id
LEFT JOIN users o ON o.tenant = k.tenant AND o.id = k.rival_id

-- name: link_list
-- params:  1 tenant  2 state, '' = all  3 after this id  4 limit
SELECT @link_columns@ FROM @link_tables@
WHERE k.tenant = $1 AND ($2 = '' OR k.state = $2) AND k.id > $3 ORDER BY k.id LIMIT $4;

-- name: link_get
-- params:  1 tenant  2 id
SELECT @link_columns@ FROM @link_tables@ WHERE k.tenant = $1 AND k.id = $2;

-- name: link_set
-- Of a row that this transaction has locked. The user: an email, '' = the one it has.
-- params:  1 tenant  2 id  3 now  4 state  5 email
UPDATE user_driver_links SET state = $4, rival_id = NULL, updated_at_ms = $3,
    user_id = CASE WHEN $5 = '' THEN user_id
                   ELSE (SELECT u.id FROM users u WHERE u.tenant = $1 AND u.email = $5) END
WHERE tenant = $1 AND id = $2;

-- ---- users -------------------------------------------------------------------------------------

-- name: user_exists
-- params:  1 tenant  2 email
SELECT count(*) FROM users WHERE tenant = $1 AND email = $2;

-- part: user_insert
INSERT INTO users AS t (tenant, id, email, name, match_name, transponder, created_at_ms,
    updated_at_ms)

-- part: user_conflict
ON CONFLICT (tenant, email) DO UPDATE
SET name = excluded.name, match_name = excluded.match_name, transponder = excluded.transponder,
    updated_at_ms = excluded.updated_at_ms
WHERE (t.name, t.match_name, t.transponder)
    IS DISTINCT FROM (excluded.name, excluded.match_name, excluded.transponder)

-- name: user_write_sqlite
-- params:  1 tenant  2 now  3 id  4 email  5 name  6 match_name  7 transponder
-- returns: as link_write
@user_insert@
VALUES ($1, $3, $4, $5, $6, $7, $2, $2)
@user_conflict@
RETURNING id = $3;

-- name: user_write_postgres
-- params:  1 tenant  2 now  3 JSON
@user_insert@
SELECT $1, r.id, r.email, r.name, r.match_name, r.transponder, $2::bigint, $2::bigint
FROM json_to_recordset($3) AS r (id text, email text, name text, match_name text, transponder text)
ORDER BY r.email COLLATE "C"
@user_conflict@
RETURNING (t.xmax = 0)::integer;
