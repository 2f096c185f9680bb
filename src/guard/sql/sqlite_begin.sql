-- sqlite_begin: IMMEDIATE: the file's one write lock, now. A transaction that read first and wanted to write later could find that another one has written meanwhile.
BEGIN IMMEDIATE;
