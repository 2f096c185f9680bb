-- postgres_begin_read: one snapshot for all that is read.
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
