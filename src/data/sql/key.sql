-- key.sql: API keys. They are never deleted. Only used_at_ms and revoked_at_ms change; the latter
-- only once.

-- part: key_columns
id, tenant, name, role, permissions, prefix, created_at_ms, expires_at_ms, used_at_ms,
revoked_at_ms

-- name: key_add
-- Add a key, if its tenant exists. Race-free: a tenant that the SELECT finds is not deleted
-- meanwhile. The id and the hash are random; unique indexes refuse a second one.
-- params:  1 id  2 tenant  3 name  4 role  5 permissions  6 prefix  7 hash  8 created_at_ms
--          9 expires_at_ms
-- returns: its id if it was added
INSERT INTO @schema.api_key (id, tenant, name, role, permissions, prefix, hash,
                         created_at_ms, expires_at_ms)
SELECT $1, id, $3, $4, $5, $6, $7, $8, $9 FROM @schema.tenant WHERE id = $2
RETURNING id;

-- name: key_find
-- A key by its hash. Race-free: one row of one snapshot, and a server asks again after a second, so
-- a revocation that commits just after the snapshot is seen then.
-- params:  1 hash
-- returns: key_columns
SELECT @key_columns@
FROM @schema.api_key WHERE hash = $1;

-- name: key_get
-- A key of this tenant, or of any (''). Race-free: as key_find. Its tenant and role never change,
-- so what is decided by them stays true.
-- params:  1 id  2 tenant
-- returns: key_columns
SELECT @key_columns@
FROM @schema.api_key WHERE id = $1 AND ($2 = '' OR tenant = $2);

-- name: key_list
-- A page of keys by id, of one tenant or of all (''). Race-free: each page is one snapshot. Since
-- rows stay in their places, pages neither repeat nor skip a key that existed when the first one
-- was read.
-- params:  1 tenant  2 after  3 limit
-- returns: key_columns
SELECT @key_columns@
FROM @schema.api_key WHERE id > $2 AND ($1 = '' OR tenant = $1) ORDER BY id LIMIT $3;

-- name: key_lock_admins
-- The usable admin keys, locked: comes before key_revoke in its transaction when one of them has to
-- remain. Race-free: only one transaction at a time has these rows. On PostgreSQL a second one
-- waits for the first row, and gets the rows that are usable after the first has committed, so two
-- revocations of different keys do not both count on the other's key. A key added meanwhile may be
-- missing, which can only refuse too much. All lock in the order of ids, so there is no deadlock.
-- params:  1 now_ms
-- returns: id
SELECT id FROM @schema.api_key
WHERE role = 'admin' AND revoked_at_ms = 0 AND (expires_at_ms = 0 OR expires_at_ms > $1)
-- mutant admins_not_locked: -- @by_id_locked@
@by_id_locked@;

-- name: key_revoke
-- Revoke a key of this tenant, or of any (''). Race-free: of two revocations the second waits for
-- the row, sees the time of the first, and leaves it.
-- params:  1 id  2 tenant  3 now_ms
-- returns: its id if it exists
UPDATE @schema.api_key
SET revoked_at_ms = CASE WHEN revoked_at_ms = 0 THEN $3 ELSE revoked_at_ms END
WHERE id = $1 AND ($2 = '' OR tenant = $2)
RETURNING id;

-- name: key_used
-- When was a key last used? Race-free: it only saves needless writes; key_use compares again.
-- params:  1 id
-- returns: used_at_ms
SELECT used_at_ms FROM @schema.api_key WHERE id = $1;

-- name: key_use
-- Record that a key was used, if later than the stored time. Race-free: the UPDATE compares with
-- the committed time, so a late writer does not set it back.
-- params:  1 id  2 at_ms
UPDATE @schema.api_key SET used_at_ms = $2 WHERE id = $1 AND used_at_ms < $2;

-- name: key_count
-- Count the usable keys. Race-free: two servers that start at once may both count none, and then
-- each creates and prints a first key; both keys work.
-- params:  1 now_ms
-- returns: how many
SELECT count(*) FROM @schema.api_key
WHERE revoked_at_ms = 0 AND (expires_at_ms = 0 OR expires_at_ms > $1);

-- name: key_any
-- Is there any key, usable or not? For what a key added meanwhile means, see secret_set.
-- returns: a row if there is one
SELECT id FROM @schema.api_key LIMIT 1;
