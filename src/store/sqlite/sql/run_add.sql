-- run_add: a new run. Its seq was drawn in this transaction; that there is no run of this id was seen in it.
-- params:  1 seq  2 tenant  3 id  4 key  5 holder  6 fence  7 ticket  8 state  9 trigger_  10 by_  11 meta
--          12 ttl_ms  13 keep_ms  14 wall_ms  15 started_ms
INSERT INTO il_run (seq, tenant, id, key, holder, fence, ticket, state, cancelled, finished, error, trigger_,
                    by_, meta, stage, progress, n_joined, log_bytes, ttl_ms, keep_ms, created_ms, started_ms,
                    ended_ms, updated_ms, purge_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0, 0, '', ?9, ?10, ?11, '', -1, 0, 0, ?12, ?13, ?14, ?15, 0, ?14, NULL);
