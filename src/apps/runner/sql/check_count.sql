-- check_count: how many rows there are.
SELECT count(*) FROM @table;
