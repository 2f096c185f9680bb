-- schema_sqlite.sql: the tables of a toy, and their next version.

-- name: toy_sqlite_1
CREATE TABLE course (
    tenant TEXT    NOT NULL,
    code   TEXT    NOT NULL,
    seats  INTEGER NOT NULL CONSTRAINT course_seats CHECK (seats >= 0),
    PRIMARY KEY (tenant, code)
) STRICT;
CREATE TABLE booking (
    tenant TEXT NOT NULL,
    id     TEXT NOT NULL,
    code   TEXT NOT NULL,
    PRIMARY KEY (tenant, id),
    CONSTRAINT booking_course FOREIGN KEY (tenant, code) REFERENCES course (tenant, code)
) STRICT;
CREATE INDEX booking_code ON booking (tenant, code);

-- name: toy_sqlite_2
-- Of tables that have rows.
ALTER TABLE course ADD COLUMN title TEXT NOT NULL DEFAULT 'untitled';
ALTER TABLE booking ADD COLUMN ticket TEXT;
CREATE UNIQUE INDEX booking_ticket ON booking (tenant, ticket);
UPDATE course SET title = code;

-- name: toy_sqlite_broken
-- Fails after it has changed something.
CREATE TABLE half (tenant TEXT NOT NULL PRIMARY KEY);
INSERT INTO missing VALUES (1);

-- name: toy_sqlite_mixed
-- Five ways to let tenants meet.
CREATE TABLE nobody (id INTEGER PRIMARY KEY);
CREATE TABLE late (id TEXT NOT NULL, tenant TEXT NOT NULL, PRIMARY KEY (id, tenant));
CREATE TABLE twice (tenant TEXT NOT NULL, id TEXT NOT NULL, mail TEXT UNIQUE,
    PRIMARY KEY (tenant, id));
CREATE TABLE loose (tenant TEXT, id TEXT NOT NULL, PRIMARY KEY (tenant, id));
CREATE TABLE child (tenant TEXT NOT NULL, id TEXT NOT NULL, mail TEXT REFERENCES twice (mail),
    PRIMARY KEY (tenant, id));
