-- run_position: how many pending runs of a key there are up to a seq, without those that are over.
-- params:  1 tenant  2 key  3 seq  4 now_ms
SELECT count(*)
  FROM il_run r
  LEFT JOIN il_lease l ON l.tenant = r.tenant AND l.key = r.key AND l.fence = r.fence
  LEFT JOIN il_waiter w ON w.ticket = r.ticket
 WHERE r.tenant = ?1 AND r.key = ?2 AND r.state <= 2 AND r.state = 1 AND r.seq <= ?3
   AND ifnull(l.expires_ms > ?4, 1) AND ifnull(w.drop_ms > ?4, 1);
