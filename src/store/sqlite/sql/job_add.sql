-- job_add: a new job, unless its id exists: then nothing is changed.
-- params:  1 seq  2 queue  3 tenant  4 id  5 priority  6 max_attempts  7 is_parent  8 n_children  9 created_ms
--          10 unique_until_ms  11 parent  12 ordinal  13 parent_id  14 grp  15 unique_key  16 payload
INSERT INTO il_job (seq, queue, tenant, id, priority, max_attempts, is_parent, n_children, created_ms, unique_until_ms,
                    parent, ordinal, parent_id, grp, unique_key, payload)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
    ON CONFLICT (tenant, id) DO NOTHING;
