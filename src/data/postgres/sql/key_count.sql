-- key_count: those that can be used.
-- params:  1 now_ms
-- returns: how many
SELECT count(*) FROM @schema.api_key WHERE revoked_at_ms = 0 AND (expires_at_ms = 0 OR expires_at_ms > $1);
