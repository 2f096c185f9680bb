-- check_number_count_sqlite: the same for numbers: texts that are numbers count as such, and what is no number is above infinity.
SELECT count(*) FROM @table
 WHERE @column < CAST($1 AS NUMERIC) OR @column > CAST($2 AS NUMERIC) OR @column > CAST(9e999 AS NUMERIC);
