-- booking.sql: booking sessions. Every statement that writes a booking runs under the lock of its
-- session's row, so the bookings of one session, its waitlist and its counter change in one
-- transaction at a time.

-- name: booking_get
-- params:  1 tenant  2 id
-- returns: id, user_id, session_id, status, waitlist_position, price, created_at,
--          cancellation_id, date_start
SELECT b.id, b.user_id, b.session_id, b.status, b.waitlist_position, b.price, b.created_at,
       b.cancellation_id, x.date_start
FROM bookings b JOIN sessions x ON x.tenant = b.tenant AND x.id = b.session_id
WHERE b.tenant = $1 AND b.id = $2;

-- name: book_check
-- What a booking depends on, read under the locks of the user and the session. The user's lock
-- makes the search for overlaps valid until the commit: other bookings of this user wait for it.
-- params:  1 tenant  2 session  3 user  4 id of the call
-- returns: price, available_spots, date_start, state of the tournament, is_active, booking made by
--          this call, live booking of the session, overlapping session, last waitlist position
SELECT x.price, x.available_spots, x.date_start, s.tournament_status, u.is_active,
       (SELECT b.id FROM bookings b WHERE b.tenant = $1 AND b.id = $4),
       (SELECT b.id FROM bookings b
        WHERE b.tenant = $1 AND b.session_id = $2 AND b.user_id = $3 AND b.is_live),
       (SELECT min(o.id) FROM bookings b
        JOIN sessions o ON o.tenant = b.tenant AND o.id = b.session_id
        WHERE b.tenant = $1 AND b.user_id = $3 AND b.is_live AND o.id <> $2
          AND o.date_start < x.date_end AND o.date_end > x.date_start),
       (SELECT max(b.waitlist_position) FROM bookings b WHERE b.tenant = $1 AND b.session_id = $2)
FROM sessions x
JOIN users u ON u.tenant = x.tenant AND u.id = $3
LEFT JOIN semesters s ON s.tenant = x.tenant AND s.id = x.semester_id
WHERE x.tenant = $1 AND x.id = $2;

-- name: booking_cancel
-- params:  1 tenant  2 id  3 id of the call
UPDATE bookings
SET status = 'CANCELLED', is_live = false, waitlist_position = NULL, cancellation_id = $3
WHERE tenant = $1 AND id = $2 AND is_live;

-- name: booking_confirm
-- params:  1 tenant  2 id
UPDATE bookings SET status = 'CONFIRMED', waitlist_position = NULL
WHERE tenant = $1 AND id = $2 AND status = 'WAITLISTED';

-- name: waitlist_promote
-- The head of the waitlist. It was charged when it was made: no other row changes.
-- params:  1 tenant  2 session
UPDATE bookings SET status = 'CONFIRMED', waitlist_position = NULL
WHERE tenant = $1 AND session_id = $2 AND waitlist_position = 1;

-- name: waitlist_close_sqlite
-- Close a gap. SQLite checks the unique index row by row; the rows are found, and so updated, in
-- the order of that very index, each moving to a position that has just become free.
-- params:  1 tenant  2 session  3 position of the gap
UPDATE bookings INDEXED BY uq_booking_waitlist_position
SET waitlist_position = waitlist_position - 1
WHERE tenant = $1 AND session_id = $2 AND waitlist_position > $3;

-- name: waitlist_close_postgres
-- The constraint is deferrable, so it is checked once the statement has moved all rows.
UPDATE bookings SET waitlist_position = waitlist_position - 1
WHERE tenant = $1 AND session_id = $2 AND waitlist_position > $3;

-- name: attendance_get
-- params:  1 tenant  2 booking
-- returns: id, booking_id, status, created_at
SELECT id, booking_id, status, created_at FROM attendance WHERE tenant = $1 AND booking_id = $2;
