-- campus.sql: users and a tournament for the rows of the campus, and an enrollment by hand.

-- name: campus_users_sqlite
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99999)
INSERT INTO users (tenant, id, email, credit_balance, created_at)
SELECT 'bench', printf('u%06d', i), printf('u%06d', i), 1000, 1 FROM n;

-- name: campus_users_postgres
INSERT INTO users (tenant, id, email, credit_balance, created_at)
SELECT 'bench', 'u' || lpad(i::text, 6, '0'), 'u' || i, 1000, 1 FROM generate_series(0, 99999) i;
ANALYZE users;

-- name: campus_tournament
-- Larger than the command allows, so that one is enough.
INSERT INTO semesters (tenant, id, code, name, tournament_status, campus_id, specialization_type,
                       max_players, enrollment_cost, created_at)
VALUES ('bench', 't', 't', 't', 'ENROLLMENT_OPEN', 'north', 'LFA_FOOTBALL_PLAYER', 1000000, 10, 1);

-- name: campus_lock_sqlite
-- The transaction has the write lock since its begin.
-- returns: cost, if the tournament is open and has a place
SELECT enrollment_cost FROM semesters
WHERE tenant = 'bench' AND id = 't' AND tournament_status = 'ENROLLMENT_OPEN'
  AND current_enrollment_count < max_players;

-- name: campus_begin_postgres
-- Without the timeouts that the guard kit sets.
BEGIN;

-- name: campus_lock_postgres
SELECT enrollment_cost FROM semesters
WHERE tenant = 'bench' AND id = 't' AND tournament_status = 'ENROLLMENT_OPEN'
  AND current_enrollment_count < max_players FOR NO KEY UPDATE;

-- name: campus_enroll
-- params:  1 user  2 id
INSERT INTO semester_enrollments (tenant, id, user_id, semester_id, request_status, is_active,
                                  cost, created_at)
VALUES ('bench', $2, $1, 't', 'APPROVED', true, 10, 1) RETURNING id;

-- name: campus_charge
-- params:  1 user
-- returns: balance
UPDATE users SET credit_balance = credit_balance - 10
WHERE tenant = 'bench' AND id = $1 AND credit_balance >= 10 RETURNING credit_balance;

-- name: campus_ledger
-- params:  1 user  2 id  3 balance
INSERT INTO credit_transactions (tenant, id, user_id, semester_id, amount, balance_after, type,
                                 idempotency_key, created_at)
VALUES ('bench', $2, $1, 't', -10, $3, 'TOURNAMENT_ENROLLMENT', $2, 1) RETURNING id;

-- name: campus_count
UPDATE semesters SET current_enrollment_count = current_enrollment_count + 1
WHERE tenant = 'bench' AND id = 't' RETURNING id;
