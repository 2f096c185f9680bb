-- check_null_count: rows without a value.
SELECT count(*) FROM @table WHERE @column IS NULL;
