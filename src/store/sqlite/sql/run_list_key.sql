-- run_list_key: runs of a key, newest first; else as run_list.
-- params:  1 tenant  2 seq below which  3 key  4 states, 1 << state
-- returns: as run_of_id
SELECT r.seq, r.id, r.key, r.holder, r.fence, r.ticket, r.state, r.cancelled, r.finished, r.error, r.trigger_,
       r.by_, r.meta, r.stage, r.progress, r.n_joined, r.log_bytes, r.ttl_ms, r.keep_ms, r.created_ms,
       r.started_ms, r.ended_ms, r.updated_ms, l.state, l.ttl_ms, l.expires_ms, l.reason, w.ttl_ms,
       w.drop_ms, w.deadline_ms
  FROM il_run r
  LEFT JOIN il_lease l
    ON l.tenant = r.tenant AND l.key = r.key AND l.fence = r.fence AND r.state <= 2
  LEFT JOIN il_waiter w ON w.ticket = r.ticket
 WHERE r.tenant = ?1 AND r.seq < ?2 AND r.key = ?3
   AND (r.state <= 2 OR (?4 >> r.state) & 1)
 ORDER BY r.seq DESC;
