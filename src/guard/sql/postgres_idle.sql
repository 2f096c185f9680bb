-- postgres_idle: a process that is stopped in the middle of its transaction keeps the fence's row, and so the next holder, waiting: the server ends such a transaction. Until the end of this one only.
SET LOCAL idle_in_transaction_session_timeout = '30s';
