-- sqlite_rollback: also after a failure that left the transaction open.
ROLLBACK;
