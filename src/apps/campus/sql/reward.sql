-- reward.sql: finalizing a tournament; the same for both engines.

-- name: matches_unfinished
-- Under the lock of the tournament, which every writer of a match takes.
-- params:  1 tenant  2 tournament
-- returns: unfinished matches, players, rankings, participations
SELECT (SELECT count(*) FROM tournament_matches
        WHERE tenant = $1 AND semester_id = $2 AND NOT finished),
       (SELECT count(*) FROM semester_enrollments
        WHERE tenant = $1 AND semester_id = $2 AND is_active),
       (SELECT count(*) FROM tournament_rankings WHERE tenant = $1 AND semester_id = $2),
       (SELECT count(*) FROM tournament_participations WHERE tenant = $1 AND semester_id = $2);

-- name: rankings_clear
-- Race-free: under the lock of the tournament, and only while nobody has been paid by these ranks.
-- Nothing else writes rankings; payments show the fence of the run, so that those of a finalization
-- that was overtaken are refused.
-- params:  1 tenant  2 tournament
DELETE FROM tournament_rankings WHERE tenant = $1 AND semester_id = $2;

-- name: rankings_make
-- 3 points for a win, 1 for a draw; then goal difference, goals, id of the user.
-- Race-free: under the lock of the tournament, which every writer of a match, an enrollment or the
-- state takes.
-- params:  1 tenant  2 tournament
INSERT INTO tournament_rankings (tenant, semester_id, user_id, rank, points, wins, matches,
                                 goals_for, goals_against)
SELECT e.tenant, e.semester_id, e.user_id,
       row_number() OVER (ORDER BY coalesce(sum(m.points), 0) DESC,
                                   coalesce(sum(m.goals - m.against), 0) DESC,
                                   coalesce(sum(m.goals), 0) DESC, e.user_id),
       coalesce(sum(m.points), 0), coalesce(sum(m.win), 0), count(m.points),
       coalesce(sum(m.goals), 0), coalesce(sum(m.against), 0)
FROM semester_enrollments e
LEFT JOIN (SELECT home_user_id AS player, home_goals AS goals, away_goals AS against,
                  CASE WHEN home_goals > away_goals THEN 3
                       WHEN home_goals = away_goals THEN 1 ELSE 0 END AS points,
                  CASE WHEN home_goals > away_goals THEN 1 ELSE 0 END AS win
           FROM tournament_matches WHERE tenant = $1 AND semester_id = $2
           UNION ALL
           SELECT away_user_id, away_goals, home_goals,
                  CASE WHEN away_goals > home_goals THEN 3
                       WHEN away_goals = home_goals THEN 1 ELSE 0 END,
                  CASE WHEN away_goals > home_goals THEN 1 ELSE 0 END
           FROM tournament_matches WHERE tenant = $1 AND semester_id = $2) m
       ON m.player = e.user_id
WHERE e.tenant = $1 AND e.semester_id = $2 AND e.is_active
GROUP BY e.tenant, e.semester_id, e.user_id;

-- name: roster
-- All players with what their rewards depend on, in one query: the license, and with it the
-- baselines of the opponents. license and participation are NULL if they do not exist.
-- Race-free: one snapshot. The tournament is COMPLETED, so its rankings and its players stay. What
-- may change afterwards is read again where it counts: the player's own license under its lock, and
-- a payment by the unique key of the participation. The skills of the opponents count as they are
-- here, and the factor that they give is stored with the participation for all replays.
-- params:  1 tenant  2 tournament
-- returns: user_id, rank, wins, matches, goals_for, goals_against, license, football_skills,
--          participation
SELECT r.user_id, r.rank, r.wins, r.matches, r.goals_for, r.goals_against, l.id,
       l.football_skills, p.id
FROM tournament_rankings r
JOIN semesters s ON s.tenant = r.tenant AND s.id = r.semester_id
LEFT JOIN user_licenses l ON l.tenant = r.tenant AND l.user_id = r.user_id
      AND l.specialization_type = s.specialization_type AND l.is_active
LEFT JOIN tournament_participations p ON p.tenant = r.tenant AND p.user_id = r.user_id
      AND p.semester_id = r.semester_id
WHERE r.tenant = $1 AND r.semester_id = $2 ORDER BY r.rank;

-- name: weights
-- params:  1 tenant  2 tournament
-- returns: skill, weight
SELECT skill, weight FROM tournament_skill_weights
WHERE tenant = $1 AND semester_id = $2 ORDER BY skill;

-- name: career
-- What badges depend on beside the history: has the user these badges already?
-- params:  1 tenant  2 user
-- returns: badge_type
SELECT DISTINCT badge_type FROM tournament_badges
WHERE tenant = $1 AND user_id = $2 AND badge_type IN ('TOURNAMENT_VETERAN', 'TOURNAMENT_LEGEND');

-- name: unpaid
-- Race-free: under the lock of the tournament. The rankings stay (rankings_clear), and
-- participations are only ever added, so 0 remains 0; a payment that is not committed yet counts as
-- missing.
-- params:  1 tenant  2 tournament
-- returns: count
SELECT count(*) FROM tournament_rankings r
WHERE r.tenant = $1 AND r.semester_id = $2
  AND NOT EXISTS (SELECT 1 FROM tournament_participations p WHERE p.tenant = r.tenant
                  AND p.user_id = r.user_id AND p.semester_id = r.semester_id);

-- name: results
-- params:  1 tenant  2 tournament
-- returns: user_id, placement, xp_awarded, credits_awarded
SELECT user_id, placement, xp_awarded, credits_awarded FROM tournament_participations
WHERE tenant = $1 AND semester_id = $2 ORDER BY placement;
