-- rollback: as begin.
ROLLBACK;
