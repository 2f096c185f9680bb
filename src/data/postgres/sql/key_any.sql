-- key_any: is there one, also of those that cannot be used?
-- returns: a row if there is
SELECT id FROM @schema.api_key LIMIT 1;
