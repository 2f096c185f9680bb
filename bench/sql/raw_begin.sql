-- raw_begin: take the write lock at once.
BEGIN IMMEDIATE;
