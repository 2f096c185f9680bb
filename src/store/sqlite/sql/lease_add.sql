-- lease_add: a new lease. Its fence was drawn in this transaction, so the row cannot exist.
-- params:  1 tenant  2 key  3 fence  4 holder  5 root  6 mode  7 permits  8 state  9 ttl_ms  10 settle_ms
--          11 granted_ms  12 expires_ms  13 meta  14 place  15 run
INSERT INTO il_lease (tenant, key, fence, holder, root, mode, permits, state, ttl_ms, settle_ms,
                      granted_ms, renewed_ms, expires_ms, meta, place, reason, run)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11, ?12, ?13, ?14, '', ?15);
