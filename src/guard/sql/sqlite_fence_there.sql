-- sqlite_fence_there: has somebody shown a fence in this file before?
SELECT CASE WHEN EXISTS (SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = 'interlock_fence') THEN '1' ELSE '0' END;
