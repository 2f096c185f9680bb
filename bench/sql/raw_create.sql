-- raw_create: what a hand-written row lease keeps: who holds the key, with which fence, until when; and the
-- counter that fences are drawn from.
CREATE TABLE lease (
    tenant  TEXT    NOT NULL,
    key     TEXT    NOT NULL,
    holder  TEXT    NOT NULL,
    fence   INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) WITHOUT ROWID;
CREATE TABLE counter (
    id    INTEGER PRIMARY KEY,
    fence INTEGER NOT NULL
);
INSERT INTO counter (id, fence) VALUES (1, 0);
