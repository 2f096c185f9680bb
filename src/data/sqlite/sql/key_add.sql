-- key_add: if its tenant is there.
-- params:  1 id  2 tenant  3 name  4 role  5 permissions  6 prefix  7 hash  8 created_at_ms  9 expires_at_ms
-- returns: its id if it was added
INSERT INTO il_api_key (id, tenant, name, role, permissions, prefix, hash, created_at_ms, expires_at_ms)
SELECT ?1, id, ?3, ?4, ?5, ?6, ?7, ?8, ?9 FROM il_tenant WHERE id = ?2
RETURNING id;
