-- migrate_look: is there a schema, and a store in it?
SELECT to_regnamespace('@schema') IS NOT NULL, to_regclass('@schema.state') IS NOT NULL, current_setting('server_encoding')
