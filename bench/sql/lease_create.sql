-- lease_create: the table of a row lease on PostgreSQL, as programs write it by hand.
CREATE TABLE IF NOT EXISTS lease (
    key     text PRIMARY KEY,
    holder  text NOT NULL,
    fence   bigint NOT NULL,
    expires timestamptz NOT NULL
);
