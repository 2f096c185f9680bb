-- job_children_count: the children of a parent, counted from their rows.
-- params:  1 parent
-- returns: all, completed, failed or cancelled
SELECT count(*), coalesce(sum(d.state = 4), 0), coalesce(sum(d.state IN (5, 6)), 0)
  FROM il_job j LEFT JOIN il_done d ON d.queue = j.queue AND d.state IN (4, 5, 6) AND d.seq = j.seq
 WHERE j.parent = ?1;
