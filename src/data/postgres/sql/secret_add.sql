-- secret_add: unless there is one: then that one stays.
-- params:  1 name  2 value
INSERT INTO @schema.secret (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING;
