-- key_find
-- params:  1 hash
-- returns: id, tenant, name, role, permissions, prefix, created_at_ms, expires_at_ms, used_at_ms, revoked_at_ms
SELECT id, tenant, name, role, permissions, prefix,
       created_at_ms, expires_at_ms, used_at_ms, revoked_at_ms
FROM @schema.api_key WHERE hash = $1;
