-- run_of_id: a run, with what is needed of its lease or waiter, if it is live.
-- params:  1 tenant  2 id
-- returns: seq, id, key, holder, fence, ticket, state, cancelled, finished, error, trigger_, by_, meta, stage, progress,
--          n_joined, log_bytes, ttl_ms, keep_ms, created_ms, started_ms, ended_ms, updated_ms;
--          of the lease: state, ttl_ms, expires_ms, reason; of the waiter: ttl_ms, drop_ms, deadline_ms
SELECT r.seq, r.id, r.key, r.holder, r.fence, r.ticket, r.state, r.cancelled, r.finished, r.error, r.trigger_,
       r.by_, r.meta, r.stage, r.progress, r.n_joined, r.log_bytes, r.ttl_ms, r.keep_ms, r.created_ms,
       r.started_ms, r.ended_ms, r.updated_ms, l.state, l.ttl_ms, l.expires_ms, l.reason, w.ttl_ms,
       w.drop_ms, w.deadline_ms
  FROM il_run r
  LEFT JOIN il_lease l
    ON l.tenant = r.tenant AND l.key = r.key AND l.fence = r.fence AND r.state <= 2
  LEFT JOIN il_waiter w ON w.ticket = r.ticket
 WHERE r.tenant = ?1 AND r.id = ?2;
