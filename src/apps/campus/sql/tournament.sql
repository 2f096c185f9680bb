-- tournament.sql: the states of a tournament, and cancelling it; the same for both engines. Every
-- statement runs under the lock of the tournament's row.

-- name: tournament_completed
-- params:  1 tenant  2 tournament  3 completed_at
UPDATE semesters SET completed_at = $3 WHERE tenant = $1 AND id = $2 AND completed_at IS NULL;

-- ---- cancelling ---------------------------------------------------------------------------------

-- name: cancel_size
-- How much cancelling changes. For a decision about the number of transactions only: the sessions
-- are not locked yet.
-- params:  1 tenant  2 tournament
-- returns: live bookings
SELECT count(*)
FROM bookings b JOIN sessions x ON x.tenant = b.tenant AND x.id = b.session_id
WHERE b.tenant = $1 AND b.is_live AND x.semester_id = $2;

-- name: active_enrollments
-- params:  1 tenant  2 tournament
-- returns: id, user_id, cost
SELECT id, user_id, cost FROM semester_enrollments
WHERE tenant = $1 AND semester_id = $2 AND is_active ORDER BY id;

-- name: affected_users
-- Everybody who may get credits back: players, and users with bookings.
-- params:  1 tenant  2 tournament
-- returns: id
SELECT user_id FROM semester_enrollments WHERE tenant = $1 AND semester_id = $2 AND is_active
UNION
SELECT b.user_id FROM bookings b JOIN sessions x ON x.tenant = b.tenant AND x.id = b.session_id
WHERE b.tenant = $1 AND b.is_live AND x.semester_id = $2
ORDER BY 1;

-- name: tournament_sessions
-- params:  1 tenant  2 tournament
-- returns: id
SELECT id FROM sessions WHERE tenant = $1 AND semester_id = $2 ORDER BY id;

-- part: bookings
SELECT b.id, b.user_id, b.session_id, b.status, b.waitlist_position, b.price
FROM bookings b JOIN sessions x ON x.tenant = b.tenant AND x.id = b.session_id
WHERE b.tenant = $1 AND b.is_live AND x.semester_id = $2

-- name: tournament_bookings
-- Under the locks of all sessions of the tournament.
-- params:  1 tenant  2 tournament
-- returns: id, user_id, session_id, status, waitlist_position, price
@bookings@
ORDER BY b.id;

-- part: last
@bookings@
ORDER BY coalesce(b.waitlist_position, 0) DESC, b.id LIMIT $3

-- name: last_bookings
-- Bookings from the ends of the waitlists on, then those that are confirmed: without these, the
-- waitlists that are left have no gaps, and nobody moves up.
-- params:  1 tenant  2 tournament  3 limit
-- returns: id, user_id, session_id, status, waitlist_position, price
@last@;

-- name: last_users
-- returns: id
SELECT DISTINCT user_id FROM (@last@) AS l ORDER BY 1;

-- name: last_sessions
-- returns: id
SELECT DISTINCT session_id FROM (@last@) AS l ORDER BY 1;

-- name: enrollments_cancel
-- params:  1 tenant  2 tournament  3 id of the call
UPDATE semester_enrollments
SET is_active = false, request_status = 'CANCELLED', refund = cost, withdrawal_id = $3
WHERE tenant = $1 AND semester_id = $2 AND is_active;

-- name: enrollments_none
-- params:  1 tenant  2 tournament
UPDATE semesters SET current_enrollment_count = 0 WHERE tenant = $1 AND id = $2;

-- name: bookings_cancel
-- Under the locks of the sessions, which every writer of their bookings takes.
-- params:  1 tenant  2 tournament  3 id of the call
UPDATE bookings
SET status = 'CANCELLED', is_live = false, waitlist_position = NULL, cancellation_id = $3
WHERE tenant = $1 AND is_live
  AND session_id IN (SELECT id FROM sessions WHERE tenant = $1 AND semester_id = $2);

-- name: sessions_free
-- params:  1 tenant  2 tournament
UPDATE sessions SET available_spots = capacity WHERE tenant = $1 AND semester_id = $2;
