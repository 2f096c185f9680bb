-- sqlite_begin_read: several reads that see one state of the file; nothing is locked until the first of them.
BEGIN DEFERRED;
