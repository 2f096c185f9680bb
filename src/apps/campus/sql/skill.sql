-- skill.sql: skills and their history; the same for both engines.

-- name: history
-- The tournaments of a user, in the order of a replay: by time, and by id among equal times, so
-- that the result does not depend on the order in which they were inserted.
-- Race-free: a participation with a license is only inserted under the lock of that license, so the
-- rows of a license stay while its lock is held. For badges, which depend on all rows of the user,
-- the user's row is locked: a payment locks it before it looks. The invariant that replays reads
-- one snapshot.
-- params:  1 tenant  2 user
-- returns: id, license_id, placement, players, match_modifier, opponent_factor, skill_weights,
--          achieved_at
SELECT id, license_id, placement, players, match_modifier, opponent_factor, skill_weights,
       achieved_at
FROM tournament_participations WHERE tenant = $1 AND user_id = $2
-- mutant campus_replay_unordered: ORDER BY achieved_at DESC, id DESC;
ORDER BY achieved_at, id;

-- name: licenses_page
-- params:  1 tenant  2 id of the license before the page ('' for the first page)  3 limit
-- returns: id, football_skills
SELECT id, football_skills FROM user_licenses
WHERE tenant = $1 AND id > $2 ORDER BY id LIMIT $3;

-- name: null_deltas
-- Of all tenants: how many participations have no skill_rating_delta, and how many there are.
-- returns: nulls, all
SELECT count(*) - count(skill_rating_delta), count(*) FROM tournament_participations;

-- name: delta_rewrite if mutant campus_delta_rewritten
-- params:  1 tenant  2 license
UPDATE tournament_participations SET skill_rating_delta = 0 WHERE tenant = $1 AND license_id = $2;
