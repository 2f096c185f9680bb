-- secret_set
-- params:  1 name  2 value
UPDATE @schema.secret SET value = $2 WHERE name = $1;
