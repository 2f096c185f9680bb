-- begin_write: BEGIN IMMEDIATE takes the write lock now. A deferred transaction that turns into a writer
-- later can fail with SQLITE_BUSY_SNAPSHOT, which no busy handler helps against.
BEGIN IMMEDIATE;
