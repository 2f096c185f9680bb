-- rollback: nothing was done.
ROLLBACK
