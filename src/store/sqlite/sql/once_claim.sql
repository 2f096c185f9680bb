-- once_claim: a new claim, in the place of what is gone or dead. Two callers cannot both claim: who comes second reads this row,
-- in a transaction that BEGIN IMMEDIATE lets in only after the commit.
-- params:  1 tenant  2 key  3 attempt  4 token  5 fingerprint  6 expires_ms  7 keep_ms  8 purge_ms  9 created_at  10 meta
--          11 before
INSERT INTO il_once (tenant, key, attempt, token, fingerprint, state, expires_ms, keep_ms, purge_ms, created_at,
                     meta, before, code, response)
VALUES (?1, ?2, ?3, ?4, ?5, 1, ?6, ?7, ?8, ?9, ?10, ?11, 0, NULL)
    ON CONFLICT (tenant, key) DO UPDATE
   SET attempt = ?3, token = ?4, fingerprint = ?5, state = 1, expires_ms = ?6, keep_ms = ?7, purge_ms = ?8,
       created_at = ?9, meta = ?10, before = ?11, code = 0, response = NULL;
