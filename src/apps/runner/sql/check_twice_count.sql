-- check_twice_count: values that are there more than once; NULL is none, as for UNIQUE.
SELECT count(*) FROM (SELECT 1 FROM @table WHERE @column IS NOT NULL GROUP BY @column HAVING count(*) > 1) AS twice;
