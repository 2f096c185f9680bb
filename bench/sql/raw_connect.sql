-- raw_connect: the settings of the baseline's connection; the same durability as the engine's. Checkpoints
-- are SQLite's own (wal_autocheckpoint = 1000, the default).
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
