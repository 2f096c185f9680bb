-- state_load: counters and clock. Inside a write transaction this is the truth until the commit, because
-- BEGIN IMMEDIATE lets only one writer in.
-- returns: version, min_version, fence, ticket, boot_id, offset_ms, mark_ms, order_n, test_clock, seed,
--          ended_seq
SELECT version, min_version, fence, ticket, boot_id, offset_ms, mark_ms, order_n, test_clock, seed,
       ended_seq
  FROM il_state WHERE id = 1;
