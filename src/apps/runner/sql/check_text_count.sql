-- check_text_count: rows below $1 or above $2, compared as the column's type does; a limit that is NULL, and a value that is, compare as neither.
SELECT count(*) FROM @table WHERE @column < $1 OR @column > $2;
