-- rollback
ROLLBACK
