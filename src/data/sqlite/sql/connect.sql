-- connect: the settings of the connection; as the store's own (src/store/sqlite/sql/connect.sql): a commit is acknowledged after fsync, and there are no checkpoints
-- but those that are taken under the lock file. What is deleted is overwritten: it may be a secret.
PRAGMA secure_delete = ON;
PRAGMA synchronous = FULL;
PRAGMA wal_autocheckpoint = 0;
PRAGMA mmap_size = 0;
PRAGMA temp_store = MEMORY;
PRAGMA trusted_schema = OFF;
PRAGMA foreign_keys = ON;
