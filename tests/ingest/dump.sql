-- dump.sql: everything that the tables of race results say, as lines of text, for both engines.

-- name: dump_content
-- By natural keys, without ids and timestamps.
SELECT line FROM (
    SELECT 'track ' || tenant || ' ' || source || ' ' || slug || ' ' || name AS line FROM tracks
    UNION ALL
    SELECT 'event ' || e.source_event_id || ' ' || t.slug || ' ' || e.name || '|' || e.club || '|'
           || e.meet || '|' || e.first_day || '|' || e.last_day || '|' || coalesce(e.n_entries, -1)
           || '|' || coalesce(e.n_drivers, -1) || '|' || coalesce(e.n_laps, -1) || '|' ||
           e.ingest_depth || '|' || e.digest || '|' || e.search_text
      FROM events e JOIN tracks t ON t.tenant = e.tenant AND t.id = e.track_id
    UNION ALL
    SELECT 'entry ' || e.source_event_id || ' ' || n.class_name || '|' || n.upper_name || '|' ||
           n.car_number || '|' || n.name || '|' || n.match_name || '|' ||
           coalesce(n.transponder, '-') || '|' || coalesce(d.source_driver_id, '-')
      FROM event_entries n
      JOIN events e ON e.tenant = n.tenant AND e.id = n.event_id
      LEFT JOIN drivers d ON d.tenant = n.tenant AND d.id = n.driver_id
    UNION ALL
    SELECT 'race ' || e.source_event_id || ' ' || r.source_race_id || '|' ||
           coalesce(r.race_order, -1) || '|' || r.class_name || '|' || r.label || '|' || r.section
           || '|' || r.session_type || '|' || r.url || '|' || r.completed_at || '|' || r.round ||
           '|' || r.length || '|' || coalesce(r.length_ms, -1) || '|' || r.has_laps || '|' ||
           r.digest
      FROM races r JOIN events e ON e.tenant = r.tenant AND e.id = r.event_id
    UNION ALL
    SELECT 'driver ' || source || ' ' || source_driver_id || ' ' || name || '|' || match_name
      FROM drivers
    UNION ALL
    SELECT 'result ' || r.source_race_id || ' ' || rd.source_driver_id || '|' || d.name || '|' ||
           rd.name || '|' || rd.car_number || '|' || rr.position || '|' ||
           coalesce(rr.qualified, -1) || '|' || rr.laps_completed || '|' ||
           coalesce(rr.total_raw, '-') || '|' || coalesce(rr.total_ms, -1) || '|' ||
           coalesce(rr.behind_raw, '-') || '|' || coalesce(rr.behind_ms, -1) || '|' ||
           coalesce(rr.behind_laps, -1) || '|' || coalesce(rr.fastest_ms, -1) || '|' ||
           coalesce(rr.fastest_lap, -1) || '|' || coalesce(rr.average_ms, -1) || '|' ||
           coalesce(rr.consistency_milli, -1) || '|' ||
           coalesce(rr.extras ->> 'average_top_5_ms', '-') || '|' ||
           coalesce(rr.extras ->> 'average_top_10_ms', '-') || '|' ||
           coalesce(rr.extras ->> 'average_top_15_ms', '-') || '|' ||
           coalesce(rr.extras ->> 'top_3_consecutive_ms', '-') || '|' ||
           coalesce(rr.extras ->> 'deviation_ms', '-')
      FROM race_results rr
      JOIN races r ON r.tenant = rr.tenant AND r.id = rr.race_id
      JOIN race_drivers rd ON rd.tenant = rr.tenant AND rd.id = rr.race_driver_id
      JOIN drivers d ON d.tenant = rr.tenant AND d.id = rd.driver_id
    UNION ALL
    SELECT 'lap ' || r.source_race_id || ' ' || rd.source_driver_id || '|' || l.lap_number || '|' ||
           coalesce(l.position, -1) || '|' || l.time_raw || '|' || l.time_ms || '|' || l.pace ||
           '|' || l.elapsed_ms || '|' || coalesce(l.segments ->> 0, '-')
      FROM laps l
      JOIN race_results rr ON rr.tenant = l.tenant AND rr.id = l.race_result_id
      JOIN races r ON r.tenant = rr.tenant AND r.id = rr.race_id
      JOIN race_drivers rd ON rd.tenant = rr.tenant AND rd.id = rr.race_driver_id
    UNION ALL
    SELECT 'link ' || d.source_driver_id || ' ' || u.email || ' ' || k.state || ' ' ||
           k.score_milli || ' ' || coalesce(o.email, '-')
      FROM user_driver_links k
      JOIN drivers d ON d.tenant = k.tenant AND d.id = k.driver_id
      JOIN users u ON u.tenant = k.tenant AND u.id = k.user_id
      LEFT JOIN users o ON o.tenant = k.tenant AND o.id = k.rival_id
    UNION ALL
    SELECT 'seen ' || e.source_event_id || ' ' || d.source_driver_id || ' ' || u.email || ' ' ||
           k.match_type || ' ' || k.score_milli || ' ' || coalesce(k.transponder, '-')
      FROM event_driver_links k
      JOIN drivers d ON d.tenant = k.tenant AND d.id = k.driver_id
      JOIN users u ON u.tenant = k.tenant AND u.id = k.user_id
      JOIN events e ON e.tenant = k.tenant AND e.id = k.event_id) AS all_lines
ORDER BY line;

-- name: dump_ids
SELECT line FROM (
    SELECT 'track ' || id AS line FROM tracks
    UNION ALL SELECT 'event ' || id FROM events
    UNION ALL SELECT 'race ' || id FROM races
    UNION ALL SELECT 'driver ' || id FROM drivers
    UNION ALL SELECT 'race_driver ' || id || ' ' || driver_id FROM race_drivers
    UNION ALL SELECT 'result ' || id || ' ' || race_driver_id FROM race_results
    UNION ALL SELECT 'lap ' || race_result_id || ' ' || lap_number FROM laps
    UNION ALL SELECT 'link ' || id FROM user_driver_links) AS all_lines
ORDER BY line;

-- name: dump_counts
-- returns: rows of tracks, events, event_entries, races, drivers, race_drivers, race_results, laps
SELECT (SELECT count(*) FROM tracks) || ' ' || (SELECT count(*) FROM events) || ' ' ||
       (SELECT count(*) FROM event_entries) || ' ' || (SELECT count(*) FROM races) || ' ' ||
       (SELECT count(*) FROM drivers) || ' ' || (SELECT count(*) FROM race_drivers) || ' ' ||
       (SELECT count(*) FROM race_results) || ' ' || (SELECT count(*) FROM laps);
