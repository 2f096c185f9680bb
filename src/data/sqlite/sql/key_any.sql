-- key_any: is there one, also of those that cannot be used?
-- returns: a row if there is
SELECT id FROM il_api_key LIMIT 1;
