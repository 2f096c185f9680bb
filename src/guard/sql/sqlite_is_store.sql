-- sqlite_is_store: is the file a store? Those are written under a lock file of their own only (src/store/sqlite). As src/store/sqlite/sql/is_ours.sql.
SELECT CASE WHEN EXISTS (SELECT 1 FROM main.sqlite_schema WHERE name = 'il_state') THEN '1' ELSE '0' END;
