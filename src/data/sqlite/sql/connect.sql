-- connect.sql: executed, not prepared, when the file is opened.

-- name: connect
-- The settings of the connection, the same as the store's (src/store/sqlite/sql/connect.sql): a
-- commit is acknowledged after fsync, and checkpoints only run under the lock file. Deleted data is
-- overwritten: it may be a secret.
PRAGMA secure_delete = ON;
PRAGMA synchronous = FULL;
PRAGMA wal_autocheckpoint = 0;
PRAGMA journal_size_limit = 41943040;
PRAGMA mmap_size = 0;
PRAGMA temp_store = MEMORY;
PRAGMA trusted_schema = OFF;
PRAGMA foreign_keys = ON;
