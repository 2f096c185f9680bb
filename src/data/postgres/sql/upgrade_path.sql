-- upgrade_path: where the tables of a migration are made.
SET LOCAL search_path = @schema, pg_catalog, pg_temp
