-- key_use: it was used, later than what is known.
-- params:  1 id  2 at_ms
UPDATE il_api_key SET used_at_ms = ?2 WHERE id = ?1 AND used_at_ms < ?2;
