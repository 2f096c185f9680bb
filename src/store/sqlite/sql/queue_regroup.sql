-- queue_regroup: the group limit of a queue has changed: of each group the first (limit - running) READY jobs in
-- claiming order wait in lane 2, the others in lane 4.
-- params:  1 queue  2 limit
UPDATE il_live
   SET lane = p.lane
  FROM (SELECT w.seq AS seq,
               8 * ?1 + iif(w.place <= ?2 - (SELECT count(*) FROM il_live r
                                              WHERE r.queue = ?1 AND r.grp = w.grp AND r.lane = 0), 2, 4) AS lane
          FROM (SELECT seq, grp, row_number() OVER (PARTITION BY grp ORDER BY ord, at, seq) AS place
                  FROM il_live
                 WHERE queue = ?1 AND grp IS NOT NULL AND lane IN (8 * ?1 + 2, 8 * ?1 + 4)) AS w) AS p
 WHERE il_live.seq = p.seq AND il_live.lane <> p.lane;
