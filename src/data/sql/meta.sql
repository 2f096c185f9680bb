-- meta.sql: the version of the tables, and secrets of the server.

-- name: meta
-- The version of the tables, and of the oldest code that may use them.
-- returns: version, min_version
SELECT version, min_version FROM @schema.data_meta;

-- name: meta_set
-- Set the version.
-- params:  1 version  2 min_version
INSERT INTO @schema.data_meta (one, version, min_version) VALUES (true, $1, $2)
ON CONFLICT (one) DO UPDATE SET version = excluded.version, min_version = excluded.min_version;

-- name: secret_get
-- A secret by its name.
-- params:  1 name
-- returns: value
SELECT value FROM @schema.secret WHERE name = $1;

-- name: secret_add
-- Add a secret. An existing one stays.
-- params:  1 name  2 value
INSERT INTO @schema.secret (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING;

-- name: secret_set
-- Replace a secret.
-- params:  1 name  2 value
UPDATE @schema.secret SET value = $2 WHERE name = $1;
