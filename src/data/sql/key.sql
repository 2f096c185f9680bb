-- key.sql: API keys.

-- part: key_columns
id, tenant, name, role, permissions, prefix, created_at_ms, expires_at_ms, used_at_ms,
revoked_at_ms

-- name: key_add
-- Add a key, if its tenant exists.
-- params:  1 id  2 tenant  3 name  4 role  5 permissions  6 prefix  7 hash  8 created_at_ms
--          9 expires_at_ms
-- returns: its id if it was added
INSERT INTO @schema.api_key (id, tenant, name, role, permissions, prefix, hash,
                         created_at_ms, expires_at_ms)
SELECT $1, id, $3, $4, $5, $6, $7, $8, $9 FROM @schema.tenant WHERE id = $2
RETURNING id;

-- name: key_find
-- A key by its hash.
-- params:  1 hash
-- returns: key_columns
SELECT @key_columns@
FROM @schema.api_key WHERE hash = $1;

-- name: key_get
-- A key of this tenant, or of any ('').
-- params:  1 id  2 tenant
-- returns: key_columns
SELECT @key_columns@
FROM @schema.api_key WHERE id = $1 AND ($2 = '' OR tenant = $2);

-- name: key_list
-- A page of keys by id, of one tenant or of all ('').
-- params:  1 tenant  2 after  3 limit
-- returns: key_columns
SELECT @key_columns@
FROM @schema.api_key WHERE id > $2 AND ($1 = '' OR tenant = $1) ORDER BY id LIMIT $3;

-- name: key_revoke
-- Revoke a key of this tenant, or of any (''). The time of the first revocation stays.
-- params:  1 id  2 tenant  3 now_ms
-- returns: its id if it exists
UPDATE @schema.api_key
SET revoked_at_ms = CASE WHEN revoked_at_ms = 0 THEN $3 ELSE revoked_at_ms END
WHERE id = $1 AND ($2 = '' OR tenant = $2)
RETURNING id;

-- name: key_used
-- When was a key last used?
-- params:  1 id
-- returns: used_at_ms
SELECT used_at_ms FROM @schema.api_key WHERE id = $1;

-- name: key_use
-- Record that a key was used, if later than the stored time.
-- params:  1 id  2 at_ms
UPDATE @schema.api_key SET used_at_ms = $2 WHERE id = $1 AND used_at_ms < $2;

-- name: key_count
-- Count the usable keys.
-- params:  1 now_ms
-- returns: how many
SELECT count(*) FROM @schema.api_key
WHERE revoked_at_ms = 0 AND (expires_at_ms = 0 OR expires_at_ms > $1);

-- name: key_any
-- Is there any key, usable or not?
-- returns: a row if there is one
SELECT id FROM @schema.api_key LIMIT 1;
