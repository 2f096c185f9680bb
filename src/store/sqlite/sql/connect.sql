-- connect.sql: statements that are executed, not prepared, when a connection is opened.

-- name: connect
-- The settings of every connection. journal_mode is a property of the file (see create). The cache
-- may grow to 64 MB; a short-lived process uses a few pages of it. secure_delete is on in some
-- builds of SQLite, and writes every page of a large value that is deleted; FAST overwrites only
-- what is written anyway. FULL: a commit is acknowledged after fsync. No automatic checkpoints:
-- they are taken under the lock file. A WAL that had to grow is cut to 40 MiB by the first commit
-- after a restart of the WAL.
PRAGMA secure_delete = FAST;
PRAGMA synchronous = FULL;
PRAGMA wal_autocheckpoint = 0;
PRAGMA journal_size_limit = 41943040;
PRAGMA mmap_size = 0;
PRAGMA cache_size = -65536;
PRAGMA temp_store = MEMORY;
PRAGMA trusted_schema = OFF;

-- name: create
-- Turn an empty file into a WAL database; kept in the file from then on. EXTRA while that happens:
-- the journal of this step is deleted, and the directory synced. If the journal came back after a
-- power cut, SQLite would undo this step, and everything in the WAL with it.
PRAGMA synchronous = EXTRA;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
