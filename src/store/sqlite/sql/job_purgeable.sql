-- job_purgeable: jobs of a queue that a purge may delete, by seq. RUNNING is never among the states; the children of a
-- live parent stay.
-- params:  1 queue  2 newest updated_ms  3 states, as bits  4 wall_ms  5 rows
-- returns: seq, whether it has ended
SELECT * FROM (
    SELECT * FROM (SELECT l.seq AS seq, 0 AS ended FROM il_live l
                    WHERE l.queue = ?1 AND ?3 & 6 <> 0 AND 1 << iif(l.lane & 7 = 1, iif(l.ord <= ?4, 2, 1), iif(l.lane & 7 IN (2, 4), 2, 3)) & ?3 <> 0
                      AND l.updated_ms <= ?2
                      AND NOT EXISTS (SELECT 1 FROM il_live p WHERE p.seq = l.parent)
                    ORDER BY l.queue, l.seq LIMIT ?5)
    UNION ALL
    SELECT * FROM (SELECT d.seq, 1 FROM il_done d WHERE d.queue = ?1 AND d.state = 4 AND ?3 & 16 <> 0
                      AND d.completed_ms <= ?2
                      AND NOT EXISTS (SELECT 1 FROM il_job j JOIN il_live p ON p.seq = j.parent WHERE j.seq = d.seq)
                    ORDER BY d.queue, d.state, d.seq LIMIT ?5)
    UNION ALL
    SELECT * FROM (SELECT d.seq, 1 FROM il_done d WHERE d.queue = ?1 AND d.state = 5 AND ?3 & 32 <> 0
                      AND d.completed_ms <= ?2
                      AND NOT EXISTS (SELECT 1 FROM il_job j JOIN il_live p ON p.seq = j.parent WHERE j.seq = d.seq)
                    ORDER BY d.queue, d.state, d.seq LIMIT ?5)
    UNION ALL
    SELECT * FROM (SELECT d.seq, 1 FROM il_done d WHERE d.queue = ?1 AND d.state = 6 AND ?3 & 64 <> 0
                      AND d.completed_ms <= ?2
                      AND NOT EXISTS (SELECT 1 FROM il_job j JOIN il_live p ON p.seq = j.parent WHERE j.seq = d.seq)
                    ORDER BY d.queue, d.state, d.seq LIMIT ?5))
 ORDER BY seq LIMIT ?5;
