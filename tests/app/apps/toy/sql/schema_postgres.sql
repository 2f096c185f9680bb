-- schema_postgres.sql: as schema_sqlite.sql.

-- name: toy_postgres_1
CREATE TABLE course (
    tenant text    NOT NULL,
    code   text    NOT NULL,
    seats  integer NOT NULL CONSTRAINT course_seats CHECK (seats >= 0),
    PRIMARY KEY (tenant, code)
);
CREATE TABLE booking (
    tenant text NOT NULL,
    id     text NOT NULL,
    code   text NOT NULL,
    PRIMARY KEY (tenant, id),
    CONSTRAINT booking_course FOREIGN KEY (tenant, code) REFERENCES course (tenant, code)
);
CREATE INDEX booking_code ON booking (tenant, code);

-- name: toy_postgres_2
ALTER TABLE course ADD COLUMN title text NOT NULL DEFAULT 'untitled';
ALTER TABLE booking ADD COLUMN ticket text;
CREATE UNIQUE INDEX booking_ticket ON booking (tenant, ticket);
UPDATE course SET title = code;

-- name: toy_postgres_broken
CREATE TABLE half (tenant text NOT NULL PRIMARY KEY);
INSERT INTO missing VALUES (1);

-- name: toy_postgres_mixed
CREATE TABLE nobody (id integer PRIMARY KEY);
CREATE TABLE late (id text NOT NULL, tenant text NOT NULL, PRIMARY KEY (id, tenant));
CREATE TABLE twice (tenant text NOT NULL, id text NOT NULL, mail text UNIQUE,
    PRIMARY KEY (tenant, id));
CREATE TABLE loose (tenant text, id text NOT NULL, UNIQUE (tenant, id));
CREATE TABLE child (tenant text NOT NULL, id text NOT NULL, mail text REFERENCES twice (mail),
    PRIMARY KEY (tenant, id));
