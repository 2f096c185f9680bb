-- A made-up step: a column of a table that has rows, and an index on it.
ALTER TABLE il_tenant ADD COLUMN next INTEGER NOT NULL DEFAULT 7;
CREATE INDEX il_tenant_next ON il_tenant (next);
