-- queue_mark: where claims begin to look.
--
-- A claim takes the first rows of an index. Rows that were claimed or have ended are gone from it at once, in general; but as long as somebody
-- holds a snapshot in which they were there (a report that runs for minutes, a dump), their entries have to stay, and each claim
-- steps over all of them: at 10,000 jobs a second, 600,000 after a minute. So a claim that took long notes where it found
-- something, and the next ones begin there.
--
-- A mark of a queue and kind (2 READY, 5 READY and not in its group yet, 1 SCHEDULED, 0 claimed) says: no live row is before (ord, at, seq) in its lane. Why that stays true: a
-- mark is made alone in the queue, when nobody is on the way who could add such a row unseen; whoever adds one later holds the queue's mutex
-- shared, sees the mark, and puts a lower one beside it. Of the rows with the newest base the lowest counts: one look into
-- one index, whatever is dead there.

-- Where to begin; the smallest numbers when there is no mark.
CREATE OR REPLACE FUNCTION mark_get(q queue, k int) RETURNS job_mark
LANGUAGE plpgsql STABLE AS $$
DECLARE
    m job_mark;
BEGIN
    IF q.marked THEN
        SELECT * INTO m FROM job_mark i WHERE i.queue = q.no AND i.kind = k ORDER BY i.base DESC, i.ord, i.at, i.seq LIMIT 1;
    END IF;
    IF m.base IS NULL THEN
        m.ord := -9223372036854775808;
        m.at  := -9223372036854775808;
        m.seq := -9223372036854775808;
    END IF;
    RETURN m;
END
$$;

-- A row of this kind was added at (x, y, z).
CREATE OR REPLACE FUNCTION mark_lower(q queue, k int, x bigint, y bigint, z bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    m job_mark;
BEGIN
    IF NOT q.marked THEN
        RETURN;
    END IF;
    m := mark_get(q, k);
    IF (x, y, z) < (m.ord, m.at, m.seq) THEN
        INSERT INTO job_mark (base, ord, at, seq, made_ms, queue, kind) VALUES (m.base, x, y, z, m.made_ms, q.no, k);
    END IF;
END
$$;

-- Rows were moved in a way that is not worth following. Alone in the queue.
CREATE OR REPLACE FUNCTION mark_forget(q queue) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    DELETE FROM job_mark i WHERE i.queue = q.no;
END
$$;

-- Be alone in the queue, if that takes no time; or, one time in ten, a little time.
CREATE OR REPLACE FUNCTION queue_alone_try(q queue) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    was text := current_setting('lock_timeout');
BEGIN
    IF NOT pg_try_advisory_xact_lock(mutex(2, q.tenant, q.name || E'\x01m')) THEN
        RETURN false; -- somebody else tries
    END IF;
    IF pg_try_advisory_xact_lock(mutex(2, q.tenant, q.name)) THEN
        RETURN true;
    END IF;
    IF random() > 0.1 THEN
        RETURN false;
    END IF;
    BEGIN
        PERFORM set_config('lock_timeout', '10ms', true);
        PERFORM pg_advisory_xact_lock(mutex(2, q.tenant, q.name));
        PERFORM set_config('lock_timeout', was, true);
        RETURN true;
    EXCEPTION WHEN lock_not_available THEN -- and the setting is as it was
        RETURN false;
    END;
END
$$;

-- The first row of a kind from a mark on.
CREATE OR REPLACE FUNCTION mark_first(q queue, k int) RETURNS job_mark
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    m job_mark := mark_get(q, k);
    r job_mark;
BEGIN
    r.kind := k;
    IF k = 6 THEN -- of job_left; whoever adds one draws a larger number
        r.ord := coalesce((SELECT min(i.n) FROM job_left i WHERE i.queue = q.no AND i.n >= m.ord), nextval('ticket_seq'));
    ELSIF k = 0 THEN
        SELECT l.ord, 0, 0 INTO r.ord, r.at, r.seq FROM job_live l
         WHERE l.lane = 0 AND l.ord >= m.ord AND l.queue + 0 = q.no
         ORDER BY l.ord, l.at, l.seq + 0 LIMIT 1;
    ELSE
        SELECT l.ord, l.at, l.seq INTO r.ord, r.at, r.seq FROM job_live l
         WHERE l.lane = lane(q.no, k) AND (l.ord, l.at, l.seq + 0) >= (m.ord, m.at, m.seq)
         ORDER BY l.ord, l.at, l.seq + 0 LIMIT 1;
    END IF;
    RETURN r;
END
$$;

-- Make the marks of a queue anew, after a claim that took long; s is the last job that it took (NULL: none). Somebody who is alone in the queue sees all
-- rows that were ever added: so what he finds first is the first. If others are on the way, as usual, he waits for them a little, but not
-- often: whoever comes then has to wait, too.
CREATE OR REPLACE FUNCTION mark_make(q queue, s bigint, now bigint, wall bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    was    job_mark := mark_get(q, 2);
    made   bigint   := clock_ms();
    newest bigint;
    first  job_mark[];
BEGIN
    IF made - was.made_ms < 20 OR NOT queue_alone_try(q) THEN
        RETURN;
    END IF;
    first := ARRAY(SELECT mark_first(q, k) FROM unnest(ARRAY[2, 0, 1, 5, 6]) AS k);
    -- Where there is none, what is added later will hardly be before this.
    IF first[1].ord IS NULL THEN
        first[1].ord := coalesce((SELECT b.priority FROM job b WHERE b.seq = s), CASE WHEN was.base IS NULL THEN 0 ELSE was.ord END);
        first[1].at  := wall;
    END IF;
    IF first[4].ord IS NULL THEN
        first[4].ord := first[1].ord;
        first[4].at  := first[1].at;
    END IF;
    DELETE FROM job_mark i WHERE i.queue = q.no AND i.base = was.base;
    newest := nextval('ticket_seq');
    INSERT INTO job_mark (base, ord, at, seq, made_ms, queue, kind)
    SELECT newest, coalesce(f.ord, CASE f.kind WHEN 0 THEN now ELSE wall END), coalesce(f.at, 0), coalesce(f.seq, 0), made,
           q.no, f.kind
      FROM unnest(first) AS f;
    UPDATE queue SET marked = true WHERE no = q.no AND NOT marked;
END
$$;
