-- base: what the verbs of all families use: mutexes, waking, asking back.

-- Functions of earlier texts that are gone, or have other parameters now, so that a store that was brought up to date is as one that was made anew.
DROP FUNCTION IF EXISTS claim_jobs, claim_show, claim_take, claim_rows, job_kept, finish_rows(text, int, text[], bigint[], bigint[], tid[], bytea[], bigint, bigint),
    finish_rows(text, int, text[], bigint[], bigint[], bytea[], bigint, bigint), finish_rows(text, int, bigint[], tid[], bytea[], boolean, bigint, bigint),
    key_look(text, text, bigint), give_on(key_view, text, text, bigint),
    lock_many(int[], text[], text[], text[], bigint[], bigint[], bigint[], text[], text[], bigint, bigint),
    guard_find(text), guard_count(oid), guard_refuse(oid, text, text, text), guard_row(oid, text[], jsonb);

-- ---- mutexes ---------------------------------------------------------------------------------------------------------

-- A mutex is a 64-bit advisory lock that lasts until the transaction ends; PostgreSQL lets it go after the commit can be seen,
-- so whoever gets it next sees everything that was done under it. Its number, from the top: the class in 3 bits, so that
-- sorting by number is the global order (1 runs of a class of a tenant that has a limit, 2 queue, 3 job or run, 4 key, 5 once, 6 cache); 59 bits of a
-- hash of schema, tenant and name (two names with one hash only wait for each other); and a last bit that says shared.
-- (SQL functions of one expression: the planner puts them into the caller's expression.)
CREATE OR REPLACE FUNCTION mutex(class int, t text, n text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (class::bigint << 60)
           | ((hashtextextended(t || E'\x1f' || n, 'state'::regclass::oid::bigint) >> 4) & 1152921504606846974)
$$;

CREATE OR REPLACE FUNCTION mutex_shared(class int, t text, n text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT mutex(class, t, n) | 1
$$;

-- Take one, if nobody has it. For sweeps, which pass over what is busy: they come out of order, and would otherwise wait in circles.
CREATE OR REPLACE FUNCTION mutex_try(m bigint) RETURNS boolean
LANGUAGE sql VOLATILE AS $$
    SELECT CASE m & 1 WHEN 0 THEN pg_try_advisory_xact_lock(m)
                      ELSE pg_try_advisory_xact_lock_shared(m & -2) END
$$;

-- Take these: each once, in the global order, so that no two transactions ever wait for each other in a circle. A mutex that is
-- asked for both ways is taken exclusively: going from shared to exclusive later could wait in a circle too.
-- (Assignments, not PERFORM: an expression costs a tenth of a statement.)
CREATE OR REPLACE FUNCTION mutexes_take(ms bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    m      bigint;
    before bigint := 0;
    done   boolean;
BEGIN
    IF cardinality(ms) > 1 THEN
        ms := ARRAY(SELECT u.m FROM unnest(ms) AS u (m) ORDER BY u.m);
    END IF;
    -- Of one number the exclusive one comes first: its last bit is 0.
    FOREACH m IN ARRAY ms LOOP
        CONTINUE WHEN m & -2 = before;
        IF m & 1 = 0 THEN
            done := pg_advisory_xact_lock(m) IS NULL;
        ELSE
            done := pg_advisory_xact_lock_shared(m & -2) IS NULL;
        END IF;
        before := m & -2;
    END LOOP;
END
$$;

-- A batch begins: with the mutexes of everything that it is about. A snapshot of the whole transaction would be older than they are.
CREATE OR REPLACE FUNCTION batch_begin(ms bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    done boolean;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'Interlock needs transactions that are READ COMMITTED'
            USING ERRCODE = 'invalid_transaction_state';
    END IF;
    done := mutexes_take(ms) IS NULL;
END
$$;

-- ---- waking ----------------------------------------------------------------------------------------------------------

-- Who is to be woken is gathered in a setting that ends with the transaction, as JSON arrays each followed by a comma. Nobody is woken
-- before the commit: NOTIFY inside the transaction would take a lock that all commits of the database share.

-- Wake whoever waits for this: s is a holder, or '#run', '#once', '#queue', '#job', '#cache'.
CREATE OR REPLACE FUNCTION wake(t text, n text, s text) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM set_config('interlock.wakes',
                       concat(current_setting('interlock.wakes', true), jsonb_build_array(t, n, s), ','), true);
END
$$;

-- Wake those who hold leases or build values: one of theirs was taken away.
CREATE OR REPLACE FUNCTION wake_holders() RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM set_config('interlock.wakes', concat(current_setting('interlock.wakes', true), '[],'), true);
END
$$;

-- An entry point (apply, a public function) ends with this: the wakes as a JSON array, NULL if there are none. They are taken: a later
-- statement of the same transaction begins with none.
CREATE OR REPLACE FUNCTION wakes_take() RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    w text := current_setting('interlock.wakes', true);
BEGIN
    IF w IS NULL OR w = '' THEN
        RETURN NULL;
    END IF;
    PERFORM set_config('interlock.wakes', '', true);
    RETURN ('[' || rtrim(w, ',') || ']')::jsonb;
END
$$;

-- ---- asking back -----------------------------------------------------------------------------------------------------

-- A verb whose head has "ask" says so with this too. apply() sees it in the head; here is the one place to count or trace it.
CREATE OR REPLACE FUNCTION asked() RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
END
$$;

-- ---- time ------------------------------------------------------------------------------------------------------------

-- Milliseconds since the epoch by the server's clock: lease time and wall time are the same on this engine. Not now(): that is when
-- the transaction began, before it waited for mutexes.
CREATE OR REPLACE FUNCTION clock_ms() RETURNS bigint
LANGUAGE sql VOLATILE AS $$
    SELECT (date_part('epoch', clock_timestamp()) * 1000)::bigint
$$;
