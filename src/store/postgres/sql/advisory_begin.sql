-- advisory_begin: the transaction that holds the lock. READ COMMITTED and otherwise idle: it has no snapshot, so it keeps nothing from being
-- cleaned up; and it may be idle for as long as it likes.
BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY;
SET LOCAL idle_in_transaction_session_timeout = 0
