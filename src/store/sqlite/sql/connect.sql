-- connect: the settings of every connection. journal_mode is a property of the file (see create).
-- The cache may grow to 64 MB; a short-lived process uses a few pages of it.
-- secure_delete is on in some builds of SQLite, and writes every page of a large value that is deleted; FAST overwrites only
-- what is written anyway. FULL: a commit is acknowledged after fsync. No automatic checkpoints: they are taken under the lock file.
PRAGMA secure_delete = FAST;
PRAGMA synchronous = FULL;
PRAGMA wal_autocheckpoint = 0;
PRAGMA mmap_size = 0;
PRAGMA cache_size = -65536;
PRAGMA temp_store = MEMORY;
PRAGMA trusted_schema = OFF;
