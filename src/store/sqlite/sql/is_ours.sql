-- is_ours: is this a store (2), an empty file (0), or somebody else's database (1)?
SELECT CASE WHEN EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'il_state') THEN 2
            WHEN EXISTS (SELECT 1 FROM sqlite_schema) THEN 1
            ELSE 0 END;
