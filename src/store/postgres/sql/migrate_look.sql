-- migrate_look: is there a schema, and a store in it? By the catalogue: to_regclass() may give what this session remembers from before it waited for its lock, and
-- somebody else has made the store meanwhile.
SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace n WHERE n.nspname = '@name'),
       EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = '@name' AND c.relname = 'state'),
       current_setting('server_encoding')
