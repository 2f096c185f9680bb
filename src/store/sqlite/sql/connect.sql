-- connect: the settings of every connection. journal_mode is a property of the file (see create).
-- FULL: a commit is acknowledged after fsync. No automatic checkpoints: they are taken under the lock file.
PRAGMA synchronous = FULL;
PRAGMA wal_autocheckpoint = 0;
PRAGMA mmap_size = 0;
PRAGMA temp_store = MEMORY;
PRAGMA trusted_schema = OFF;
