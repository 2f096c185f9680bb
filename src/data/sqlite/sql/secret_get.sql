-- secret_get
-- params:  1 name
-- returns: value
SELECT value FROM il_secret WHERE name = ?1;
