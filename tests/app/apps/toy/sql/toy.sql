-- toy.sql: statements on the tables of the toy.

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

-- name: toy_endless_sqlite
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n;

-- name: toy_endless_postgres
SELECT pg_sleep(600);

-- name: toy_overbooked
-- An invariant: no course has more bookings than seats.
-- params:  1 tenant
-- returns: code, bookings
SELECT code, n || ' bookings of ' || seats || ' seats'
FROM (SELECT c.code, c.seats, count(b.id) AS n
      FROM course c LEFT JOIN booking b ON b.tenant = c.tenant AND b.code = c.code
      WHERE c.tenant = $1
      GROUP BY c.code, c.seats) counted
WHERE n > seats
ORDER BY code;

-- name: toy_codes
-- params:  1 tenant
-- returns: code
SELECT code FROM course WHERE tenant = $1 ORDER BY code;
