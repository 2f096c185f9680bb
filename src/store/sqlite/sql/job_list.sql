-- job_list: a page of the jobs of a queue, newest first, from the live ones and from each way of having ended.
-- params:  1 queue  2 seq before which the page begins  3 states, as bits  4 wall_ms  5 rows
-- returns: seq, whether it has ended
SELECT * FROM (
    SELECT * FROM (SELECT l.seq AS seq, 0 AS ended FROM il_live l
                    WHERE l.queue = ?1 AND l.seq < ?2 AND ?3 & 14 <> 0
                      AND 1 << iif(l.lane & 7 = 1, iif(l.ord <= ?4, 2, 1), iif(l.lane & 7 IN (2, 4), 2, 3)) & ?3 <> 0
                    ORDER BY l.queue, l.seq DESC LIMIT ?5)
    UNION ALL
    SELECT * FROM (SELECT seq, 1 FROM il_done WHERE queue = ?1 AND state = 4 AND seq < ?2 AND ?3 & 16 <> 0
                    ORDER BY queue, state, seq DESC LIMIT ?5)
    UNION ALL
    SELECT * FROM (SELECT seq, 1 FROM il_done WHERE queue = ?1 AND state = 5 AND seq < ?2 AND ?3 & 32 <> 0
                    ORDER BY queue, state, seq DESC LIMIT ?5)
    UNION ALL
    SELECT * FROM (SELECT seq, 1 FROM il_done WHERE queue = ?1 AND state = 6 AND seq < ?2 AND ?3 & 64 <> 0
                    ORDER BY queue, state, seq DESC LIMIT ?5))
 ORDER BY seq DESC LIMIT ?5;
