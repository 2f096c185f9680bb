-- check_any: is there a row at all?
SELECT 1 FROM @table LIMIT 1;
