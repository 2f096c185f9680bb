-- check_twice_rows: some of them, and how often.
SELECT @column, count(*) AS times FROM @table WHERE @column IS NOT NULL GROUP BY @column HAVING count(*) > 1 LIMIT 5;
