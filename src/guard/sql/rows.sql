-- rows.sql: the statements of the guard kit on users' rows that are the same in SQLite and
-- PostgreSQL. @table, @key (the columns of the primary key), @column and @where are filled in with
-- names from the catalogue and placeholders.

-- name: row_find
-- Which row is it? Locks nothing: the statement that locks it asks again.
-- returns: the primary key
SELECT @key FROM @table WHERE @where LIMIT 2;

-- name: row_find_many
SELECT @key FROM @table WHERE @where;

-- name: row_value
-- What is the value now? After an UPDATE that changed nothing: for the answer only.
-- returns: the value
SELECT @column FROM @table WHERE @where LIMIT 1;

-- name: row_add
-- Race-free: the database adds under the lock of the row. In PostgreSQL a transaction that has
-- waited for the row sees its newest value, in @where too.
-- returns: the primary key, the new value
UPDATE @table SET @column = @column + @delta WHERE @where RETURNING @key, @column;

-- name: row_set_value if mutant guard_read_modify_write
-- A number that was computed outside.
UPDATE @table SET @column = @delta WHERE @where RETURNING @key, @column;

-- name: row_set
-- Used for states (@where includes the value before, so of two transitions one finds no row) and
-- for documents of a row that is held.
-- returns: the primary key
UPDATE @table SET @column = @value WHERE @where RETURNING @key;

-- name: row_recompute
-- The row is held, so nobody else recomputes it meanwhile; and a transaction that adds a child
-- locks the row first. This statement's snapshot is newer than the lock: it sees every child that
-- was committed before.
-- returns: the new value
UPDATE @table SET @column = (SELECT @aggregate FROM @children AS c WHERE @child_where)
 WHERE @where RETURNING @column;

-- name: row_insert
-- Race-free: the unique index decides which of two is inserted; the other waits for its
-- transaction, then fails.
-- returns: the primary key
INSERT INTO @table (@columns) VALUES (@values) RETURNING @key;
