-- upgrade_look: is there a schema? See there.
-- returns: bool, and the encoding of the database
SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = '@name'), current_setting('server_encoding')
