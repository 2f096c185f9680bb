-- savepoint_undo: undo what was done since the savepoint, which stays.
ROLLBACK TO il_apply;
