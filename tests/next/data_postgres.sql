-- A made-up step: a column of a table that has rows, and an index on it.
ALTER TABLE tenant ADD COLUMN next bigint NOT NULL DEFAULT 7;
CREATE INDEX tenant_next ON tenant (next);
