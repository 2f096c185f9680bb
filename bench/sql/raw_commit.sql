-- raw_commit: syncs the WAL.
COMMIT;
