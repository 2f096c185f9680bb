-- waiter_refresh: a sign of life, and the deadline as the caller sees it now.
-- params:  1 ticket  2 seen_ms  3 deadline_ms  4 drop_ms
UPDATE il_waiter SET seen_ms = ?2, deadline_ms = ?3, drop_ms = ?4 WHERE ticket = ?1;
