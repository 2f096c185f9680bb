-- rollback: undo the batch.
ROLLBACK;
