-- toy.sql: statements on the tables of the made-up app.

-- name: toy_course_add
-- params:  1 tenant  2 code  3 seats
INSERT INTO course (tenant, code, seats) VALUES ($1, $2, $3);

-- name: toy_seats
-- params:  1 tenant  2 code
-- returns: seats
SELECT seats FROM course WHERE tenant = $1 AND code = $2;

-- name: toy_booking_add
-- params:  1 tenant  2 id  3 code
INSERT INTO booking (tenant, id, code) VALUES ($1, $2, $3);

-- name: toy_courses
-- params:  1 tenant
-- returns: count
SELECT count(*) FROM course WHERE tenant = $1;

-- name: toy_title
-- Of version 2.
-- params:  1 tenant
-- returns: title
SELECT title FROM course WHERE tenant = $1;

-- name: toy_engine_sqlite
SELECT 'SQLite ' || sqlite_version();

-- name: toy_engine_postgres
SELECT version();

-- name: set_version
-- Somebody's version of the tables.
-- params:  1 version  2 min_version
UPDATE interlock_tables SET version = $1, min_version = $2;
