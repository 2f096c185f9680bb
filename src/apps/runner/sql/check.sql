-- check.sql: what check steps ask. @table and @column are filled in with names that the catalogue
-- has. The rows of a check are the first of those that it counts.

-- ---- the number of rows -------------------------------------------------------------------------

-- name: check_count
-- How many rows there are.
SELECT count(*) FROM @table;

-- name: check_any
-- Is there a row at all?
SELECT 1 FROM @table LIMIT 1;

-- ---- rows without a value -----------------------------------------------------------------------

-- name: check_null_count
SELECT count(*) FROM @table WHERE @column IS NULL;

-- name: check_null_rows
SELECT * FROM @table WHERE @column IS NULL LIMIT 5;

-- ---- rows below $1 or above $2 ------------------------------------------------------------------

-- part: text_outside
-- Compared as the column's type does; a limit that is NULL, and a value that is, compare as
-- neither.
@column < $1 OR @column > $2

-- part: number_outside_postgres
-- The same for numbers, whatever the type of the column: without the cast, an integer column would
-- refuse a limit of 0.5.
@column::numeric < $1::numeric OR @column::numeric > $2::numeric

-- part: number_outside_sqlite
-- The same for numbers: texts that are numbers count as such, and what is no number is above
-- infinity.
@column < CAST($1 AS NUMERIC) OR @column > CAST($2 AS NUMERIC) OR @column > CAST(9e999 AS NUMERIC)

-- name: check_text_count
SELECT count(*) FROM @table WHERE @text_outside@;

-- name: check_text_rows
SELECT * FROM @table WHERE @text_outside@ LIMIT 5;

-- name: check_number_count_postgres
SELECT count(*) FROM @table WHERE @number_outside_postgres@;

-- name: check_number_rows_postgres
SELECT * FROM @table WHERE @number_outside_postgres@ LIMIT 5;

-- name: check_number_count_sqlite
SELECT count(*) FROM @table WHERE @number_outside_sqlite@;

-- name: check_number_rows_sqlite
SELECT * FROM @table WHERE @number_outside_sqlite@ LIMIT 5;

-- ---- values that exist more than once -----------------------------------------------------------

-- part: twice
-- NULL is no value, as for UNIQUE.
FROM @table WHERE @column IS NOT NULL GROUP BY @column HAVING count(*) > 1

-- name: check_twice_count
SELECT count(*) FROM (SELECT 1 @twice@) AS twice;

-- name: check_twice_rows
-- Some of them, and how often.
SELECT @column, count(*) AS times @twice@ LIMIT 5;
