-- entity.sql: the rows of entities, and events; the same for both engines.

-- name: event_add
-- Race-free: each id is used once. It is a new UUID, or the id of a call that event_there has
-- looked for under the lock of the tournament, or the key of a refund or a change of state that
-- this transaction itself has made. Of two with the same id the primary key refuses one.
-- params:  1 tenant  2 id  3 level  4 type  5 text  6 created_at
INSERT INTO system_events (tenant, id, level, type, text, created_at)
VALUES ($1, $2, $3, $4, $5, $6);

-- name: event_there
-- params:  1 tenant  2 id
-- returns: type
SELECT type FROM system_events WHERE tenant = $1 AND id = $2;

-- ---- users --------------------------------------------------------------------------------------

-- name: user_get
-- params:  1 tenant  2 id
-- returns: id, email, is_active, credit_balance, xp_balance, created_at
SELECT id, email, is_active, credit_balance, xp_balance, created_at
FROM users WHERE tenant = $1 AND id = $2;

-- ---- licenses -----------------------------------------------------------------------------------

-- part: license
id, user_id, specialization_type, is_active, football_skills

-- name: license_get
-- params:  1 tenant  2 id
-- returns: @license@
SELECT @license@ FROM user_licenses WHERE tenant = $1 AND id = $2;

-- ---- tournaments --------------------------------------------------------------------------------

-- part: tournament
id, code, name, tournament_status, campus_id, specialization_type, reward_config, max_players,
    enrollment_cost, current_enrollment_count, completed_at, created_at

-- name: tournament_get
-- params:  1 tenant  2 id
-- returns: @tournament@
SELECT @tournament@ FROM semesters WHERE tenant = $1 AND id = $2;

-- name: weight_add
-- Race-free: in the transaction that has inserted the tournament, which nobody else sees yet.
-- Weights never change.
-- params:  1 tenant  2 tournament  3 skill  4 weight
INSERT INTO tournament_skill_weights (tenant, semester_id, skill, weight) VALUES ($1, $2, $3, $4);

-- ---- sessions -----------------------------------------------------------------------------------

-- part: session
id, semester_id, name, price, capacity, available_spots, date_start, date_end

-- name: session_get
-- params:  1 tenant  2 id
-- returns: @session@
SELECT @session@ FROM sessions WHERE tenant = $1 AND id = $2;

-- name: session_count
-- params:  1 tenant  2 tournament
-- returns: count
SELECT count(*) FROM sessions WHERE tenant = $1 AND semester_id = $2;

-- ---- matches ------------------------------------------------------------------------------------

-- part: match
id, semester_id, home_user_id, away_user_id, home_goals, away_goals, finished

-- name: match_get
-- params:  1 tenant  2 id
-- returns: @match@
SELECT @match@ FROM tournament_matches WHERE tenant = $1 AND id = $2;

-- name: match_finish
-- Race-free: under the lock of the tournament, which finalization takes as well.
-- params:  1 tenant  2 id  3 home goals  4 away goals
UPDATE tournament_matches SET home_goals = $3, away_goals = $4, finished = true
WHERE tenant = $1 AND id = $2 AND NOT finished;

-- name: match_check
-- How many of these two users play in the tournament? Did this call create its match before?
-- Race-free: under the lock of the tournament, which enrolling, leaving and every writer of a match
-- take.
-- params:  1 tenant  2 tournament  3 home  4 away  5 id of the call
-- returns: count, match made by this call
SELECT count(*), (SELECT m.id FROM tournament_matches m WHERE m.tenant = $1 AND m.id = $5)
FROM semester_enrollments
WHERE tenant = $1 AND semester_id = $2 AND user_id IN ($3, $4) AND is_active;

-- ---- lists --------------------------------------------------------------------------------------
-- params of each:  1 tenant  2 after the row with this id ('': from the start)  3 limit  4 user

-- name: badge_list
-- Oldest first. A badge is never deleted, so the cursor keeps its place.
-- returns: id, semester_id, badge_type, created_at
SELECT id, semester_id, badge_type, created_at FROM tournament_badges
WHERE tenant = $1 AND user_id = $4
  AND (created_at, id) > (coalesce((SELECT c.created_at FROM tournament_badges c
                                    WHERE c.tenant = $1 AND c.id = $2), -1), $2)
ORDER BY created_at, id LIMIT $3;

-- name: license_list
-- returns: @license@
SELECT @license@ FROM user_licenses
WHERE tenant = $1 AND user_id = $4 AND id > $2 ORDER BY id LIMIT $3;

-- name: tournament_list
-- returns: @tournament@
SELECT @tournament@ FROM semesters WHERE tenant = $1 AND id > $2 ORDER BY id LIMIT $3;
