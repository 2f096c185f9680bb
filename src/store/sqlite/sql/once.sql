-- once.sql: idempotency keys.
--
-- Two callers cannot both claim a key, nor can one answer a key that another has taken over: each
-- op reads the row and changes it in one write transaction (transaction.sql).

-- name: once_of_key
-- What is stored for an idempotency key, expired or not.
-- params:  1 tenant  2 key
-- returns: attempt, token, fingerprint, state, expires_ms, keep_ms, purge_ms, created_at, meta,
--          before, code, response
SELECT attempt, token, fingerprint, state, expires_ms, keep_ms, purge_ms, created_at, meta, before,
       code, response
  FROM il_once
 WHERE tenant = ?1 AND key = ?2;

-- name: once_claim
-- A new claim, in place of an expired or dead one.
-- params:  1 tenant  2 key  3 attempt  4 token  5 fingerprint  6 expires_ms  7 keep_ms  8 purge_ms
--          9 created_at  10 meta  11 before
INSERT INTO il_once (tenant, key, attempt, token, fingerprint, state, expires_ms, keep_ms, purge_ms,
                     created_at, meta, before, code, response)
VALUES (?1, ?2, ?3, ?4, ?5, @ONCE_RUNNING@, ?6, ?7, ?8, ?9, ?10, ?11, 0, NULL)
    ON CONFLICT (tenant, key) DO UPDATE
   SET attempt = ?3, token = ?4, fingerprint = ?5, state = @ONCE_RUNNING@, expires_ms = ?6,
       keep_ms = ?7, purge_ms = ?8, created_at = ?9, meta = ?10, before = ?11, code = 0,
       response = NULL;

-- name: once_renew
-- A claim lives on.
-- params:  1 tenant  2 key  3 expires_ms  4 keep_ms  5 purge_ms
UPDATE il_once SET expires_ms = ?3, keep_ms = ?4, purge_ms = ?5 WHERE tenant = ?1 AND key = ?2;

-- name: once_finish
-- Store the answer. The caller has checked in this transaction that the claim is its own and alive.
-- params:  1 tenant  2 key  3 purge_ms  4 code  5 response
UPDATE il_once SET state = @ONCE_DONE@, purge_ms = ?3, code = ?4, response = ?5
 WHERE tenant = ?1 AND key = ?2;

-- name: once_remove
-- A claim was given back.
-- params:  1 tenant  2 key
DELETE FROM il_once WHERE tenant = ?1 AND key = ?2;

-- name: once_overdue
-- Has anything expired? Two lookups in an index.
-- params:  1 now_ms  2 wall_ms
SELECT EXISTS (SELECT 1 FROM il_once WHERE state = @ONCE_RUNNING@ AND purge_ms <= ?1)
    OR EXISTS (SELECT 1 FROM il_once WHERE state = @ONCE_DONE@ AND purge_ms <= ?2);

-- name: once_purge
-- Delete expired entries. The cost is that of the deleted rows and those of the same millisecond:
-- the index on (state, purge_ms) is read from its start.
-- params:  1 state  2 purge_ms up to which  3 limit
DELETE FROM il_once
 WHERE id IN (SELECT id FROM il_once
               WHERE state = ?1 AND purge_ms <= ?2
               ORDER BY purge_ms, token LIMIT ?3);
