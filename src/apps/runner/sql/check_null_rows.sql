-- check_null_rows: some of them.
SELECT * FROM @table WHERE @column IS NULL LIMIT 5;
