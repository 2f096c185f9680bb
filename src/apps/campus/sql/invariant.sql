-- invariant.sql: what must hold at any time, whatever runs; the same for both engines. Each query
-- gets the tenant as $1 and returns a row per offender: its key, then what is wrong.

-- ---- enrollment ---------------------------------------------------------------------------------

-- name: enrollment_duplicate
SELECT semester_id || '/' || user_id, count(*) || ' active enrollments'
FROM semester_enrollments WHERE tenant = $1 AND is_active
GROUP BY semester_id, user_id HAVING count(*) > 1 ORDER BY 1;

-- name: enrollment_balance
SELECT id, credit_balance || ' credits' FROM users
WHERE tenant = $1 AND credit_balance < 0 ORDER BY id;

-- name: enrollment_withdrawn
SELECT id, request_status || ', but active' FROM semester_enrollments
WHERE tenant = $1 AND is_active AND request_status <> 'APPROVED' ORDER BY id;

-- name: enrollment_unpaid
SELECT e.id, 'no ledger row for ' || e.cost || ' credits' FROM semester_enrollments e
WHERE e.tenant = $1 AND e.is_active AND e.cost > 0
  AND NOT EXISTS (SELECT 1 FROM credit_transactions t
                  WHERE t.tenant = e.tenant AND t.idempotency_key = e.id AND t.amount = -e.cost)
ORDER BY e.id;

-- name: enrollment_count
SELECT id, 'counter ' || current_enrollment_count || ', enrollments ' || n
FROM (SELECT s.id, s.current_enrollment_count, count(e.id) AS n FROM semesters s
      LEFT JOIN semester_enrollments e
             ON e.tenant = s.tenant AND e.semester_id = s.id AND e.is_active
      WHERE s.tenant = $1 GROUP BY s.id, s.current_enrollment_count) counted
WHERE current_enrollment_count <> n ORDER BY id;

-- part: is_cancelled
(s.tournament_status = 'CANCELLED'
 OR (s.tournament_status = 'ARCHIVED' AND s.completed_at IS NULL))

-- name: enrollment_cancelled
-- Also once the cancelled tournament is in the archive: it was never completed.
SELECT e.id, 'active in a cancelled tournament' FROM semester_enrollments e
JOIN semesters s ON s.tenant = e.tenant AND s.id = e.semester_id
WHERE e.tenant = $1 AND e.is_active AND @is_cancelled@ ORDER BY e.id;

-- ---- booking ------------------------------------------------------------------------------------

-- name: booking_capacity
SELECT id, n || ' confirmed, capacity ' || capacity
FROM (SELECT x.id, x.capacity, count(b.id) AS n FROM sessions x
      LEFT JOIN bookings b ON b.tenant = x.tenant AND b.session_id = x.id AND b.status = 'CONFIRMED'
      WHERE x.tenant = $1 GROUP BY x.id, x.capacity) counted
WHERE n > capacity ORDER BY id;

-- name: booking_spots
SELECT id, 'counter ' || available_spots || ', free ' || (capacity - n)
FROM (SELECT x.id, x.capacity, x.available_spots, count(b.id) AS n FROM sessions x
      LEFT JOIN bookings b ON b.tenant = x.tenant AND b.session_id = x.id AND b.status = 'CONFIRMED'
      WHERE x.tenant = $1 GROUP BY x.id, x.capacity, x.available_spots) counted
WHERE available_spots <> capacity - n ORDER BY id;

-- name: booking_duplicate
SELECT session_id || '/' || user_id, count(*) || ' live bookings'
FROM bookings WHERE tenant = $1 AND status <> 'CANCELLED'
GROUP BY session_id, user_id HAVING count(*) > 1 ORDER BY 1;

-- name: booking_cancelled
SELECT b.id, 'live in a session of a cancelled tournament' FROM bookings b
JOIN sessions x ON x.tenant = b.tenant AND x.id = b.session_id
JOIN semesters s ON s.tenant = x.tenant AND s.id = x.semester_id
WHERE b.tenant = $1 AND b.status <> 'CANCELLED' AND @is_cancelled@ ORDER BY b.id;

-- name: booking_overlap
SELECT a.user_id || '/' || a.session_id || '/' || b.session_id, 'overlap in time'
FROM bookings a
JOIN bookings b ON b.tenant = a.tenant AND b.user_id = a.user_id AND b.session_id > a.session_id
JOIN sessions x ON x.tenant = a.tenant AND x.id = a.session_id
JOIN sessions y ON y.tenant = b.tenant AND y.id = b.session_id
WHERE a.tenant = $1 AND a.status <> 'CANCELLED' AND b.status <> 'CANCELLED'
  AND x.date_start < y.date_end AND y.date_start < x.date_end
ORDER BY 1;

-- name: booking_waitlist
-- Positions are 1, 2, 3, …: none twice, none missing, none without a number.
SELECT session_id, n || ' waiting, positions ' || coalesce(least_position, 0) || ' to '
                     || coalesce(last_position, 0) || ', ' || n_positions || ' different'
FROM (SELECT session_id, count(*) AS n, count(DISTINCT waitlist_position) AS n_positions,
             min(waitlist_position) AS least_position, max(waitlist_position) AS last_position
      FROM bookings WHERE tenant = $1 AND (status = 'WAITLISTED' OR waitlist_position IS NOT NULL)
      GROUP BY session_id) waiting
WHERE n_positions <> n OR least_position <> 1 OR last_position <> n ORDER BY session_id;

-- name: booking_attendance
SELECT booking_id, count(*) || ' rows of attendance' FROM attendance
WHERE tenant = $1 GROUP BY booking_id HAVING count(*) > 1 ORDER BY booking_id;

-- ---- reward -------------------------------------------------------------------------------------

-- name: reward_participation
SELECT semester_id || '/' || user_id, count(*) || ' participations'
FROM tournament_participations WHERE tenant = $1
GROUP BY semester_id, user_id HAVING count(*) > 1 ORDER BY 1;

-- name: reward_badge
SELECT semester_id || '/' || user_id || '/' || badge_type, count(*) || ' badges'
FROM tournament_badges WHERE tenant = $1
GROUP BY semester_id, user_id, badge_type HAVING count(*) > 1 ORDER BY 1;

-- name: reward_key
SELECT idempotency_key, count(*) || ' rows of ' || ledger
FROM (SELECT idempotency_key, 'credit_transactions' AS ledger FROM credit_transactions
      WHERE tenant = $1
      UNION ALL
      SELECT idempotency_key, 'xp_transactions' FROM xp_transactions WHERE tenant = $1) keys
GROUP BY idempotency_key, ledger HAVING count(*) > 1 ORDER BY 1;

-- name: reward_balance
SELECT id, 'credits ' || credit_balance || ', ledger ' || credits || '; XP ' || xp_balance
           || ', ledger ' || xp
FROM (SELECT u.id, u.credit_balance, u.xp_balance,
             (SELECT coalesce(sum(t.amount), 0) FROM credit_transactions t
              WHERE t.tenant = u.tenant AND t.user_id = u.id) AS credits,
             (SELECT coalesce(sum(t.amount), 0) FROM xp_transactions t
              WHERE t.tenant = u.tenant AND t.user_id = u.id) AS xp
      FROM users u WHERE u.tenant = $1) sums
WHERE credit_balance <> credits OR xp_balance <> xp ORDER BY id;

-- name: reward_twice
SELECT semester_id || '/' || user_id, count(*) || ' rewards in ' || ledger
FROM (SELECT semester_id, user_id, 'credit_transactions' AS ledger FROM credit_transactions
      WHERE tenant = $1 AND type = 'TOURNAMENT_REWARD'
      UNION ALL
      SELECT semester_id, user_id, 'xp_transactions' FROM xp_transactions
      WHERE tenant = $1 AND type = 'TOURNAMENT_REWARD') rewards
GROUP BY semester_id, user_id, ledger HAVING count(*) > 1 ORDER BY 1;

-- name: reward_unpaid
SELECT s.id || '/' || e.user_id, 'finalized, but not paid'
FROM semesters s
JOIN semester_enrollments e ON e.tenant = s.tenant AND e.semester_id = s.id AND e.is_active
WHERE s.tenant = $1
  AND (s.tournament_status = 'REWARDS_DISTRIBUTED'
       OR (s.tournament_status = 'ARCHIVED' AND s.completed_at IS NOT NULL))
  AND (NOT EXISTS (SELECT 1 FROM tournament_participations p WHERE p.tenant = s.tenant
                   AND p.semester_id = s.id AND p.user_id = e.user_id)
       OR NOT EXISTS (SELECT 1 FROM xp_transactions t WHERE t.tenant = s.tenant
                      AND t.idempotency_key = 'reward_xp_' || s.id || '_' || e.user_id)
       OR NOT EXISTS (SELECT 1 FROM credit_transactions t WHERE t.tenant = s.tenant
                      AND t.idempotency_key = 'tournament_reward_' || s.id || '_' || e.user_id))
ORDER BY 1;

-- ---- skill --------------------------------------------------------------------------------------

-- name: skill_delta
SELECT 'participations', nulls || ' of ' || n || ' have no skill_rating_delta'
FROM (SELECT count(*) - count(skill_rating_delta) AS nulls, count(*) AS n
      FROM tournament_participations WHERE tenant = $1) counted
WHERE nulls * 5 > n;

-- name: skill_licenses
-- params:  1 tenant  2 id of the license before the page ('' for the first page)  3 limit
-- returns: id, user_id, football_skills
SELECT id, user_id, football_skills FROM user_licenses
WHERE tenant = $1 AND id > $2 ORDER BY id LIMIT $3;
