-- advisory_take: the lock with this id, else the one of this key: the first 8 bytes of its SHA-256, big-endian, mod 2^31, which are the last 31 bits of them
-- (R2.8).
-- params:  1 id or NULL  2 key
SELECT pg_try_advisory_xact_lock(coalesce($1,
    ('x' || right(encode(substr(sha256(convert_to($2, 'UTF8')), 1, 8), 'hex'), 8))::bit(32)::bigint & 2147483647))
