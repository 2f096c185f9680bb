-- run_count_live: live runs of a tenant whose keys are of a class, those that are overdue left out. Costs what is live: the index holds nothing else, and its range is that of
-- the keys that begin with the class. Inside BEGIN IMMEDIATE it is the truth until the commit, so that two starts cannot both find the last place.
-- params:  1 tenant  2 class  3 count up to  4 now_ms  5 key of the run that is to be made  6 runs of that key do not count up to this state
SELECT count(*)
  FROM (SELECT 1
          FROM il_run r INDEXED BY il_run_live
          LEFT JOIN il_lease l ON l.tenant = r.tenant AND l.key = r.key AND l.fence = r.fence
          LEFT JOIN il_waiter w ON w.ticket = r.ticket
         WHERE r.tenant = ?1 AND r.state <= 2 AND r.key >= ?2 AND r.key < ?2 || ';' AND (r.key = ?2 OR r.key >= ?2 || ':')
           AND ifnull(l.expires_ms > ?4, r.state = 1) AND ifnull(w.drop_ms > ?4, 1) AND NOT (r.key = ?5 AND r.state <= ?6)
         LIMIT ?3);
