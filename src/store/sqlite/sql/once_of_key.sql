-- once_of_key: what is stored for an idempotency key, gone or not.
-- params:  1 tenant  2 key
-- returns: attempt, token, fingerprint, state, expires_ms, keep_ms, purge_ms, created_at, meta, before, code, response
SELECT attempt, token, fingerprint, state, expires_ms, keep_ms, purge_ms, created_at, meta, before, code, response
  FROM il_once
 WHERE tenant = ?1 AND key = ?2;
