-- enrollment.sql: enrolling in tournaments; the same for both engines. Every statement that writes
-- runs under the lock of the tournament's row, which all of enroll, unenroll and transition take
-- first: they never overlap for one tournament.

-- part: enrollment
id, user_id, semester_id, request_status, cost, refund, created_at

-- name: enroll_place
-- Is there a place? Read under the lock of the tournament, while others wait for it: kept cheap.
-- params:  1 tenant  2 tournament
-- returns: state, campus, max_players, cost, count
SELECT tournament_status, campus_id, max_players, enrollment_cost, current_enrollment_count
FROM semesters WHERE tenant = $1 AND id = $2;

-- name: enrollment_add
-- No row: the user does not exist or is not active, or is enrolled already, perhaps by this very
-- call. Race-free: unique indexes decide.
-- params:  1 tenant  2 id of the call  3 user  4 tournament  5 cost  6 created_at
INSERT INTO semester_enrollments (tenant, id, user_id, semester_id, request_status, is_active,
                                  cost, created_at)
SELECT tenant, $2, id, $4, 'APPROVED', true, $5, $6 FROM users
WHERE tenant = $1 AND id = $3 AND is_active
ON CONFLICT DO NOTHING;

-- name: enroll_why
-- Why could the user not be enrolled? Under the same lock.
-- params:  1 tenant  2 tournament  3 user  4 id of the call
-- returns: state, campus, max_players, cost, count, user, is_active, enrollment made by this call,
--          active enrollment
SELECT s.tournament_status, s.campus_id, s.max_players, s.enrollment_cost,
       s.current_enrollment_count, u.id, u.is_active,
       (SELECT e.id FROM semester_enrollments e WHERE e.tenant = $1 AND e.id = $4),
       (SELECT e.id FROM semester_enrollments e
        WHERE e.tenant = $1 AND e.user_id = $3 AND e.semester_id = $2 AND e.is_active)
FROM semesters s LEFT JOIN users u ON u.tenant = s.tenant AND u.id = $3
WHERE s.tenant = $1 AND s.id = $2;

-- name: enrollment_get
-- params:  1 tenant  2 id
-- returns: @enrollment@
SELECT @enrollment@ FROM semester_enrollments WHERE tenant = $1 AND id = $2;

-- name: enrollment_find
-- The active enrollment, or the one that this call has withdrawn.
-- params:  1 tenant  2 tournament  3 user  4 id of the call
-- returns: id, cost, is_active
SELECT id, cost, is_active FROM semester_enrollments
WHERE tenant = $1 AND semester_id = $2 AND user_id = $3 AND (is_active OR withdrawal_id = $4)
ORDER BY is_active LIMIT 1;

-- name: enrollment_withdraw
-- params:  1 tenant  2 id  3 refund  4 id of the call
UPDATE semester_enrollments
SET is_active = false, request_status = 'WITHDRAWN', refund = $3, withdrawal_id = $4
WHERE tenant = $1 AND id = $2 AND is_active;

-- name: user_sessions
-- The sessions of a tournament in which a user has live bookings. The user's row is locked, so no
-- other is added.
-- params:  1 tenant  2 tournament  3 user
-- returns: id
SELECT x.id FROM bookings b JOIN sessions x ON x.tenant = b.tenant AND x.id = b.session_id
WHERE b.tenant = $1 AND b.user_id = $3 AND b.is_live AND x.semester_id = $2
ORDER BY x.id;

-- name: user_bookings
-- Those bookings, under the locks of their sessions.
-- params:  1 tenant  2 tournament  3 user
-- returns: id, user_id, session_id, status, waitlist_position, price
SELECT b.id, b.user_id, b.session_id, b.status, b.waitlist_position, b.price
FROM bookings b JOIN sessions x ON x.tenant = b.tenant AND x.id = b.session_id
WHERE b.tenant = $1 AND b.user_id = $3 AND b.is_live AND x.semester_id = $2
ORDER BY b.session_id;
