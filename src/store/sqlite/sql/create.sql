-- create: turn an empty file into a WAL database; kept in the file from then on.
-- EXTRA while that happens: the journal of this step is deleted, and the folder synced. If the journal came back
-- after a power cut, SQLite would undo this step, and everything in the WAL with it.
PRAGMA synchronous = EXTRA;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
