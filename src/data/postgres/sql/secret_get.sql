-- secret_get
-- params:  1 name
-- returns: value
SELECT value FROM @schema.secret WHERE name = $1;
