-- key_used: when was it used last?
-- params:  1 id
-- returns: used_at_ms
SELECT used_at_ms FROM il_api_key WHERE id = ?1;
