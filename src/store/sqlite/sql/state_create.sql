-- state_create: the one row of il_state, at the store's birth.
-- params:  1 version  2 fence  3 boot_id  4 offset_ms  5 mark_ms  6 test_clock  7 seed  8 min_version
INSERT INTO il_state (id, version, min_version, fence, ticket, boot_id, offset_ms, mark_ms, seed,
                      ended_seq, order_n, test_clock)
VALUES (1, ?1, ?8, ?2, 0, ?3, ?4, ?5, ?7, 0, 0, ?6);
