-- queue_group: groups with a limit: who can be claimed, and who waits apart until there is room.
--
-- For each group: if a READY job is blocked (lane 4), then running + ready (lane 2) >= limit, and every ready one comes before every blocked one. So
-- a claim takes from lane 2 without counting, in the right order, and never sees the backlog of a full group.
--
-- Only claims count, one after the other (mutex_claims()), after they have seen to what has happened since: who became READY (lane 5) enters its group,
-- and where somebody has left (job_left) the next one moves up. What somebody else is about to do and has not committed is not seen: a
-- job that is being finished still counts as running, so there are never more than the limit.

-- A job has left those of its group that run or can be claimed. Workers are woken if somebody waits for its place.
CREATE OR REPLACE FUNCTION group_leave(q queue, g text) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF g IS NULL OR q.group_limit = -1 THEN
        RETURN;
    END IF;
    INSERT INTO job_left (n, queue, grp) VALUES (nextval('ticket_seq'), q.no, g);
    IF EXISTS (SELECT FROM job_live l WHERE l.grp = g AND l.glane = lane(q.no, 4))
       OR EXISTS (SELECT FROM job_live l WHERE l.grp = g AND l.glane = lane(q.no, 5)) THEN
        PERFORM wake(q.tenant, q.name, '#queue');
    END IF;
END
$$;

-- How many more jobs of a group can be claimed. (Never "glane IN …": the planner would look through all of the group.)
CREATE OR REPLACE FUNCTION group_room(q queue, g text) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN greatest(0, q.group_limit - (SELECT count(*) FROM job_live l WHERE l.grp = g AND l.glane = lane(q.no, 0))
                                     - (SELECT count(*) FROM job_live l WHERE l.grp = g AND l.glane = lane(q.no, 2)));
END
$$;

-- Somebody has left these groups: the first ones that are blocked move up. One that somebody else is about to change is passed over: that leaves
-- too, or stays as it is. Gives the places of those that can be claimed now. (Rows that were locked are found again by their ctid: that cannot
-- be planned in a wrong way.)
CREATE OR REPLACE FUNCTION group_fill(q queue, gs text[]) RETURNS SETOF job_place
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN QUERY
        UPDATE job_live
           SET lane = lane(q.no, 2), glane = lane(q.no, 2)
         WHERE ctid = ANY (ARRAY(
            SELECT b.ctid
              FROM unnest(gs) AS u (g),
                   LATERAL (SELECT l.ctid FROM job_live l
                             WHERE l.grp = u.g AND l.glane = lane(q.no, 4)
                             ORDER BY l.ord, l.at, l.seq + 0 LIMIT group_room(q, u.g) FOR UPDATE SKIP LOCKED) AS b))
        RETURNING job_live.ord, job_live.at, job_live.seq;
END
$$;

-- Jobs that became READY enter their groups. Of those of a group that can be claimed already and the new ones together, as many as there is room for
-- can be claimed then, the first ones; the others are blocked. (All that were blocked before come after those that were not, so they need
-- not be looked at.) One that somebody else is about to change keeps its place meanwhile. Gives the places of those that can be claimed now.
CREATE OR REPLACE FUNCTION group_enter(q queue) RETURNS SETOF job_place
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    m job_mark := mark_get(q, 5);
BEGIN
    RETURN QUERY
        WITH a AS MATERIALIZED (
            SELECT l.ctid AS tid, l.grp, l.ord, l.at, l.seq FROM job_live l
             WHERE l.lane = lane(q.no, 5) AND (l.ord, l.at, l.seq + 0) >= (m.ord, m.at, m.seq)
             ORDER BY l.ord, l.at, l.seq + 0 LIMIT 20000 FOR UPDATE SKIP LOCKED),
        g AS MATERIALIZED (SELECT DISTINCT a.grp FROM a),
        r AS MATERIALIZED (
            SELECT b.* FROM g, LATERAL (SELECT l.ctid, l.grp, l.ord, l.at, l.seq FROM job_live l
                                         WHERE l.grp = g.grp AND l.glane = lane(q.no, 2) FOR UPDATE SKIP LOCKED) AS b),
        x AS ( -- with a row of each group itself, which tells how much room there is beside those of r
            SELECT a.*, 0 AS n_ready, NULL::bigint AS room FROM a
            UNION ALL
            SELECT r.*, 1, NULL FROM r
            UNION ALL
            SELECT NULL, g.grp, NULL, NULL, NULL, 0,
                   q.group_limit - (SELECT count(*) FROM job_live l WHERE l.grp = g.grp AND l.glane = lane(q.no, 0))
                                 - (SELECT count(*) FROM job_live l WHERE l.grp = g.grp AND l.glane = lane(q.no, 2))
              FROM g),
        p AS MATERIALIZED (
            SELECT x.tid, x.ord, x.at, x.seq, x.n_ready = 1 AS was_ready,
                   row_number() OVER (PARTITION BY x.grp ORDER BY x.ord, x.at, x.seq) -- the group's own row comes last
                   <= max(x.room) OVER (PARTITION BY x.grp) + sum(x.n_ready) OVER (PARTITION BY x.grp) AS is_ready
              FROM x),
        u AS (
            UPDATE job_live l
               SET lane = lane(q.no, CASE WHEN p.is_ready THEN 2 ELSE 4 END), glane = lane(q.no, CASE WHEN p.is_ready THEN 2 ELSE 4 END)
              FROM p
             WHERE l.ctid = p.tid AND NOT (p.is_ready AND p.was_ready))
        SELECT p.ord, p.at, p.seq FROM p WHERE p.is_ready AND NOT p.was_ready AND p.tid IS NOT NULL;
END
$$;

-- See to what has happened since the last claim; to 20,000 jobs of it, so that a claim does not take too long.
CREATE OR REPLACE FUNCTION group_settle(q queue) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    m     job_mark := mark_get(q, 6);
    gs    text[];
    first job_place;
BEGIN
    WITH x AS (
        DELETE FROM job_left
         WHERE ctid = ANY (ARRAY(SELECT i.ctid FROM job_left i WHERE i.queue = q.no AND i.n >= m.ord ORDER BY i.n LIMIT 20000 FOR UPDATE SKIP LOCKED))
        RETURNING grp)
    SELECT array_agg(DISTINCT x.grp) INTO gs FROM x;
    IF gs IS NOT NULL THEN
        SELECT * INTO first FROM group_fill(q, gs) ORDER BY ord, at, seq LIMIT 1;
        PERFORM mark_lower(q, 2, first.ord, first.at, first.seq);
    END IF;
    SELECT * INTO first FROM group_enter(q) ORDER BY ord, at, seq LIMIT 1;
    PERFORM mark_lower(q, 2, first.ord, first.at, first.seq);
END
$$;
