-- key_revoke: once; of this tenant, or of any ('').
-- params:  1 id  2 tenant  3 now_ms
-- returns: its id if it is there
UPDATE @schema.api_key SET revoked_at_ms = CASE WHEN revoked_at_ms = 0 THEN $3 ELSE revoked_at_ms END
WHERE id = $1 AND ($2 = '' OR tenant = $2)
RETURNING id;
