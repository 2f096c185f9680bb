-- sqlite_commit: a commit hook refuses every other one.
COMMIT;
