-- secret_set
-- params:  1 name  2 value
UPDATE il_secret SET value = ?2 WHERE name = ?1;
