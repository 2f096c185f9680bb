-- waiter_add: a queued acquire.
-- params:  1 ticket  2 tenant  3 key  4 holder  5 root  6 mode  7 permits  8 ttl_ms  9 settle_ms  10 now_ms
--          11 deadline_ms  12 drop_ms  13 meta  14 place  15 run
INSERT INTO il_waiter (ticket, tenant, key, holder, root, mode, permits, ttl_ms, settle_ms, queued_ms,
                       seen_ms, deadline_ms, drop_ms, meta, place, verdict, run)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10, ?11, ?12, ?13, ?14, '', ?15);
