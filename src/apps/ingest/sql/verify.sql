-- verify.sql: the invariants of race results. Each takes the tenant as $1 and returns a row per
-- offender: what it is, then what is wrong with it. For both engines.

-- name: verify_orphans
-- Foreign keys forbid them; a restored or edited database may have them all the same.
SELECT 'event ' || e.id, 'its track is missing' AS problem FROM events e WHERE e.tenant = $1
   AND NOT EXISTS (SELECT 1 FROM tracks t WHERE t.tenant = e.tenant AND t.id = e.track_id)
UNION ALL
SELECT 'entry ' || n.event_id || ' ' || n.class_name || ' ' || n.upper_name,
       'its event is missing' FROM event_entries n WHERE n.tenant = $1
   AND NOT EXISTS (SELECT 1 FROM events e WHERE e.tenant = n.tenant AND e.id = n.event_id)
UNION ALL
SELECT 'entry ' || n.event_id || ' ' || n.class_name || ' ' || n.upper_name,
       'its driver is missing' FROM event_entries n WHERE n.tenant = $1 AND n.driver_id IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM drivers d WHERE d.tenant = n.tenant AND d.id = n.driver_id)
UNION ALL
SELECT 'race ' || r.id, 'its event is missing' FROM races r WHERE r.tenant = $1
   AND NOT EXISTS (SELECT 1 FROM events e WHERE e.tenant = r.tenant AND e.id = r.event_id)
UNION ALL
SELECT 'race driver ' || rd.id, 'its race is missing' FROM race_drivers rd WHERE rd.tenant = $1
   AND NOT EXISTS (SELECT 1 FROM races r WHERE r.tenant = rd.tenant AND r.id = rd.race_id)
UNION ALL
SELECT 'race driver ' || rd.id, 'its driver is missing' FROM race_drivers rd WHERE rd.tenant = $1
   AND NOT EXISTS (SELECT 1 FROM drivers d WHERE d.tenant = rd.tenant AND d.id = rd.driver_id)
UNION ALL
SELECT 'race driver ' || rd.id, 'it has no result' FROM race_drivers rd WHERE rd.tenant = $1
   AND NOT EXISTS (SELECT 1 FROM race_results rr WHERE rr.tenant = rd.tenant
                      AND rr.race_id = rd.race_id AND rr.race_driver_id = rd.id)
UNION ALL
SELECT 'result ' || rr.id, 'its race or its race driver is missing' FROM race_results rr
 WHERE rr.tenant = $1
   AND NOT EXISTS (SELECT 1 FROM race_drivers rd JOIN races r ON r.tenant = rd.tenant
                      AND r.id = rd.race_id WHERE rd.tenant = rr.tenant
                      AND rd.id = rr.race_driver_id AND rd.race_id = rr.race_id)
UNION ALL
SELECT 'laps of result ' || l.race_result_id, 'the result is missing; laps: ' || count(*)
  FROM laps l WHERE l.tenant = $1
   AND NOT EXISTS (SELECT 1 FROM race_results rr
                    WHERE rr.tenant = l.tenant AND rr.id = l.race_result_id)
 GROUP BY l.race_result_id
UNION ALL
SELECT 'link ' || k.id, 'its driver or its user is missing' FROM user_driver_links k
 WHERE k.tenant = $1
   AND (NOT EXISTS (SELECT 1 FROM drivers d WHERE d.tenant = k.tenant AND d.id = k.driver_id)
        OR NOT EXISTS (SELECT 1 FROM users u WHERE u.tenant = k.tenant AND u.id = k.user_id))
UNION ALL
SELECT 'event link ' || k.event_id || ' ' || k.driver_id || ' ' || k.user_id,
       'its event, its driver or its user is missing' FROM event_driver_links k WHERE k.tenant = $1
   AND (NOT EXISTS (SELECT 1 FROM drivers d WHERE d.tenant = k.tenant AND d.id = k.driver_id)
        OR NOT EXISTS (SELECT 1 FROM events e WHERE e.tenant = k.tenant AND e.id = k.event_id)
        OR NOT EXISTS (SELECT 1 FROM users u WHERE u.tenant = k.tenant AND u.id = k.user_id));

-- part: results_with_laps
-- The results of races that were run, with the number of their laps.
FROM (SELECT rr.id, rd.name, r.source_race_id, rr.laps_completed, (
          SELECT count(*) FROM laps l WHERE l.tenant = rr.tenant AND l.race_result_id = rr.id) AS n
      FROM race_results rr
      JOIN races r ON r.tenant = rr.tenant AND r.id = rr.race_id
      JOIN race_drivers rd ON rd.tenant = rr.tenant AND rd.id = rr.race_driver_id
      WHERE rr.tenant = $1 AND r.has_laps = 1) AS counted

-- name: verify_lap_count
SELECT 'result ' || id, 'race ' || source_race_id || ', ' || name || ': ' || n || ' laps, ' ||
       laps_completed || ' completed' AS problem
@results_with_laps@
WHERE n > 0 AND n <> laps_completed ORDER BY id;

-- name: verify_laps_missing
-- The page had laps of this driver that could not be used, or somebody has removed them.
SELECT 'result ' || id, 'race ' || source_race_id || ', ' || name || ': no laps, ' ||
       laps_completed || ' completed' AS problem
@results_with_laps@
WHERE n = 0 AND laps_completed > 0 ORDER BY id;

-- name: verify_no_races
SELECT 'event ' || e.id, e.name AS problem FROM events e
WHERE e.tenant = $1 AND e.ingest_depth = 'laps_full'
  AND NOT EXISTS (SELECT 1 FROM races r WHERE r.tenant = e.tenant AND r.event_id = e.id)
ORDER BY e.id;

-- name: verify_positions
SELECT 'race ' || r.id, 'race ' || r.source_race_id || ': ' || count(*) || ' results, ' ||
       count(DISTINCT rr.position) || ' different positions, the last is ' || max(rr.position)
       AS problem
FROM races r JOIN race_results rr ON rr.tenant = r.tenant AND rr.race_id = r.id
WHERE r.tenant = $1
GROUP BY r.id, r.source_race_id
HAVING max(rr.position) <> count(*) OR count(DISTINCT rr.position) <> count(*)
ORDER BY r.id;

-- name: verify_lap_numbers
SELECT 'result ' || l.race_result_id, count(*) || ' laps, numbered up to ' ||
       max(l.lap_number) AS problem
FROM laps l WHERE l.tenant = $1
GROUP BY l.race_result_id HAVING max(l.lap_number) <> count(*)
ORDER BY l.race_result_id;
