-- state_save: once per write transaction, before the commit.
-- params:  1 fence  2 ticket  3 boot_id  4 offset_ms  5 mark_ms  6 order_n  7 ended_seq
UPDATE il_state
   SET fence = ?1, ticket = ?2, boot_id = ?3, offset_ms = ?4, mark_ms = ?5, order_n = ?6, ended_seq = ?7
 WHERE id = 1;
