-- check_number_count_postgres: the same for numbers, whatever the column's type: a limit of 0.5 is none for an integer otherwise.
SELECT count(*) FROM @table WHERE @column::numeric < $1::numeric OR @column::numeric > $2::numeric;
