-- check_number_rows_postgres: some of them.
SELECT * FROM @table WHERE @column::numeric < $1::numeric OR @column::numeric > $2::numeric LIMIT 5;
