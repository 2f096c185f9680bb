-- postgres_commit
COMMIT;
