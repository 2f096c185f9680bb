-- job_children_done: ended children of a parent.
-- params:  1 parent
-- returns: queue, state, seq, unique_until_ms
SELECT d.queue, d.state, d.seq, j.unique_until_ms
  FROM il_job j JOIN il_done d ON d.queue = j.queue AND d.state IN (4, 5, 6) AND d.seq = j.seq
 WHERE j.parent = ?1;
