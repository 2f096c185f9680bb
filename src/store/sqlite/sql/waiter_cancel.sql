-- waiter_cancel: the youngest of a cycle. Only if it still waits.
-- params:  1 ticket  2 verdict
-- returns: tenant, key, holder, run (no row: it does not wait any more)
UPDATE il_waiter SET verdict = ?2 WHERE ticket = ?1 AND verdict = ''
RETURNING tenant, key, holder, run;
