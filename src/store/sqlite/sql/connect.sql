-- connect: the settings of every connection. journal_mode is a property of the file (see create).
-- The cache may grow to 64 MB; a short-lived process uses a few pages of it.
-- FULL: a commit is acknowledged after fsync. No automatic checkpoints: they are taken under the lock file.
PRAGMA synchronous = FULL;
PRAGMA wal_autocheckpoint = 0;
PRAGMA mmap_size = 0;
PRAGMA cache_size = -65536;
PRAGMA temp_store = MEMORY;
PRAGMA trusted_schema = OFF;
