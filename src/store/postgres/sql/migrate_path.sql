-- migrate_path: where everything that follows is made, and what the entry points keep as theirs (SET search_path FROM CURRENT).
SET LOCAL search_path = @schema, pg_catalog, pg_temp
