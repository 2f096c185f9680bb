-- meta.sql: the version of the tables, and secrets of the server.

-- name: meta
-- The version of the tables, and of the oldest code that may use them. Race-free: an upgrade reads
-- it again when it has the lock (see meta_set); other readers only decide whether to upgrade, or to
-- refuse.
-- returns: version, min_version
SELECT version, min_version FROM @schema.data_meta;

-- name: meta_set
-- Set the version. Race-free: only an upgrade does so, in a transaction that holds the lock file
-- (SQLite) or the advisory lock of migrations (PostgreSQL).
-- params:  1 version  2 min_version
INSERT INTO @schema.data_meta (one, version, min_version) VALUES (true, $1, $2)
ON CONFLICT (one) DO UPDATE SET version = excluded.version, min_version = excluded.min_version;

-- name: secret_get
-- A secret by its name. Race-free: if it is missing, secret_add adds it in a transaction and keeps
-- one that was added meanwhile, and then it is read again.
-- params:  1 name
-- returns: value
SELECT value FROM @schema.secret WHERE name = $1;

-- name: secret_add
-- Add a secret. An existing one stays. Race-free: the primary key decides. Of two that add the same
-- name, the second waits for the first to commit; both then read the first one's value.
-- params:  1 name  2 value
INSERT INTO @schema.secret (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING;

-- name: secret_set
-- Replace a secret: pepper_check, while no key exists (key_any). On SQLite race-free: nobody else
-- writes. On PostgreSQL another server may add a key after key_any has found none. That takes two
-- servers with different peppers, whose keys do not work on each other in any case, and the next
-- start with the replaced pepper is refused.
-- params:  1 name  2 value
UPDATE @schema.secret SET value = $2 WHERE name = $1;
