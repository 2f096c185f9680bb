-- check_text_rows: some of them.
SELECT * FROM @table WHERE @column < $1 OR @column > $2 LIMIT 5;
