-- postgres_rollback
ROLLBACK;
