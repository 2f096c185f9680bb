-- check_number_rows_sqlite: some of them.
SELECT * FROM @table
 WHERE @column < CAST($1 AS NUMERIC) OR @column > CAST($2 AS NUMERIC) OR @column > CAST(9e999 AS NUMERIC) LIMIT 5;
