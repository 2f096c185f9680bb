-- queue_group: groups with a limit: which jobs can be claimed, and which wait apart until the group
-- has room.
--
-- For each group: if a READY job is in LANE_BLOCKED, then running jobs + those in LANE_READY >=
-- limit, and all of those come before every blocked one. So a claim takes from LANE_READY without
-- counting, in the right order, and never sees the backlog of a full group.
--
-- Only claims count, under the mutex of the group (mutex_group()), after they have processed what
-- happened since the last claim: jobs that became READY (LANE_UNDECIDED) enter their group, and
-- where a job has left (job_left) the next one moves up. Uncommitted changes of others are
-- invisible: a job being finished still counts as running, and one being claimed still counts as
-- ready, so the limit is never exceeded.
--
-- A claim may be part of a transaction that stays open for long. So it only tries to take the
-- mutexes of groups, and skips groups whose mutex is held. It counts in statements that start after
-- it got them, so their snapshots see what the previous holder committed.

-- A job no longer counts against the limit of its group. Workers are woken if another job waits for
-- its place.
CREATE OR REPLACE FUNCTION group_leave(q queue, g text) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF g IS NULL OR q.group_limit = -1 THEN
        RETURN;
    END IF;
    INSERT INTO job_left (n, queue, grp) VALUES (nextval('ticket_seq'), q.no, g);
    IF EXISTS (SELECT FROM job_live l WHERE l.grp = g AND l.glane = lane(q.no, @LANE_BLOCKED@))
       OR EXISTS (SELECT FROM job_live l
                  WHERE l.grp = g AND l.glane = lane(q.no, @LANE_UNDECIDED@)) THEN
        PERFORM wake(q.tenant, q.name, '#queue');
    END IF;
END
$$;

-- How many more jobs of a group can be claimed. (Never "glane IN …": the planner would scan the
-- whole group.)
CREATE OR REPLACE FUNCTION group_room(q queue, g text) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
    -- mutant group_limit_off_by_one: RETURN greatest(0, q.group_limit + 1
    RETURN greatest(0, q.group_limit
                       - (SELECT count(*) FROM job_live l
                           WHERE l.grp = g AND l.glane = lane(q.no, @LANE_CLAIMED@))
                       - (SELECT count(*) FROM job_live l
                           WHERE l.grp = g AND l.glane = lane(q.no, @LANE_READY@)));
END
$$;

-- Jobs have left these groups: the first blocked ones move up. One that is locked is skipped: it
-- leaves too, or stays as it is. (Locked rows are found again by their ctid, which cannot be
-- planned badly.)
CREATE OR REPLACE FUNCTION group_fill(q queue, gs text[]) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE job_live
       SET lane = lane(q.no, @LANE_READY@), glane = lane(q.no, @LANE_READY@)
     WHERE ctid = ANY (ARRAY(
        SELECT b.ctid
          FROM unnest(gs) AS u (g),
               LATERAL (SELECT l.ctid FROM job_live l
                         WHERE l.grp = u.g AND l.glane = lane(q.no, @LANE_BLOCKED@)
                         ORDER BY l.ord, l.at, l.seq + 0 LIMIT group_room(q, u.g)
                                  FOR UPDATE SKIP LOCKED) AS b));
END
$$;

-- Take the mutex of a group if it is free; it is kept until the commit.
CREATE OR REPLACE FUNCTION group_try(q queue, g text) RETURNS boolean
LANGUAGE sql VOLATILE AS $$
    SELECT pg_try_advisory_xact_lock(mutex_group(q.tenant, q.name, g))
$$;

-- Jobs that became READY enter their groups. From the claimable jobs of a group and the new ones
-- together, the first ones become claimable, as many as there is room for; the others are blocked.
-- (All that were blocked before come after those that were not, so they need not be read.) A locked
-- job keeps its place meanwhile. `tids`: their rows, of groups whose mutexes are held.
CREATE OR REPLACE FUNCTION group_enter(q queue, tids tid[]) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    WITH a AS MATERIALIZED (
        SELECT l.ctid AS tid, l.grp, l.ord, l.at, l.seq FROM job_live l
         WHERE l.ctid = ANY (tids) AND l.lane + 0 = lane(q.no, @LANE_UNDECIDED@)
         FOR UPDATE SKIP LOCKED),
    g AS MATERIALIZED (SELECT DISTINCT a.grp FROM a),
    r AS MATERIALIZED (
        SELECT b.* FROM g, LATERAL (SELECT l.ctid, l.grp, l.ord, l.at, l.seq FROM job_live l
                                     WHERE l.grp = g.grp AND l.glane = lane(q.no, @LANE_READY@)
                                     FOR UPDATE SKIP LOCKED) AS b),
    x AS ( -- with a row of each group itself, which tells how much room there is beside those of r
        SELECT a.*, 0 AS n_ready, NULL::bigint AS room FROM a
        UNION ALL
        SELECT r.*, 1, NULL FROM r
        UNION ALL
        SELECT NULL, g.grp, NULL, NULL, NULL, 0,
        -- mutant group_limit_off_by_one: q.group_limit + 1 - (SELECT count(*) FROM job_live l
               q.group_limit - (SELECT count(*) FROM job_live l
                                WHERE l.grp = g.grp AND l.glane = lane(q.no, @LANE_CLAIMED@))
                             - (SELECT count(*) FROM job_live l
                                WHERE l.grp = g.grp AND l.glane = lane(q.no, @LANE_READY@))
          FROM g),
    p AS MATERIALIZED (
        SELECT x.tid, x.n_ready = 1 AS was_ready,
               -- the group's own row comes last
               row_number() OVER (PARTITION BY x.grp ORDER BY x.ord, x.at, x.seq)
               <= max(x.room) OVER (PARTITION BY x.grp)
                  + sum(x.n_ready) OVER (PARTITION BY x.grp) AS is_ready
          FROM x)
    UPDATE job_live l
       SET lane = lane(q.no, CASE WHEN p.is_ready THEN @LANE_READY@ ELSE @LANE_BLOCKED@ END),
           glane = lane(q.no, CASE WHEN p.is_ready THEN @LANE_READY@ ELSE @LANE_BLOCKED@ END)
      FROM p
     WHERE l.ctid = p.tid AND NOT (p.is_ready AND p.was_ready);
END
$$;

-- Process what has happened since the last claim: at most `most` jobs, so that a claim does not
-- take too long, and one whose transaction stays open holds few groups. Returns how many there
-- were.
CREATE OR REPLACE FUNCTION group_decide(q queue, most int) RETURNS int
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    gone tid[];
    gs   text[];
    come tid[];
BEGIN
    -- Rows of job_left are deleted only under the mutex of their group, so they are not locked.
    SELECT array_agg(y.ctid), array_agg(DISTINCT y.grp) INTO gone, gs
      FROM (SELECT x.ctid, x.grp
              FROM (SELECT i.ctid, i.grp FROM job_left i WHERE i.queue = q.no ORDER BY i.n
                    LIMIT 20000) AS x
             WHERE group_try(q, x.grp) LIMIT most) AS y;
    IF gone IS NOT NULL THEN
        DELETE FROM job_left i WHERE i.ctid = ANY (gone);
        PERFORM group_fill(q, gs);
    END IF;
    come := ARRAY(SELECT x.ctid
                    FROM (SELECT l.ctid, l.grp FROM job_live l
                          WHERE l.lane = lane(q.no, @LANE_UNDECIDED@)
                           ORDER BY l.ord, l.at, l.seq + 0 LIMIT 20000) AS x
                   WHERE group_try(q, x.grp) LIMIT most);
    IF cardinality(come) > 0 THEN
        PERFORM group_enter(q, come);
    END IF;
    RETURN greatest(coalesce(cardinality(gone), 0), cardinality(come));
END
$$;
