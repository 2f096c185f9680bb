-- key_get: of this tenant, or of any ('').
-- params:  1 id  2 tenant
-- returns: as key_find
SELECT id, tenant, name, role, permissions, prefix,
       created_at_ms, expires_at_ms, used_at_ms, revoked_at_ms
FROM il_api_key WHERE id = ?1 AND (?2 = '' OR tenant = ?2);
