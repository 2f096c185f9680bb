-- key_list: a page in order of ids, of one tenant or of all ('').
-- params:  1 tenant  2 after  3 limit
-- returns: as key_find
SELECT id, tenant, name, role, permissions, prefix,
       created_at_ms, expires_at_ms, used_at_ms, revoked_at_ms
FROM @schema.api_key WHERE id > $2 AND ($1 = '' OR tenant = $1) ORDER BY id LIMIT $3;
