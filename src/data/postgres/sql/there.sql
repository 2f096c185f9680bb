-- there: are there tables of ours? Asking for them would end a transaction if there are none. And asking to_regclass() may give what this session remembers from
-- before it waited for its lock: who reads the catalogue is told what has changed meanwhile.
-- returns: bool
SELECT EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
               WHERE n.nspname = '@name' AND c.relname = 'data_meta')
