-- base: helpers for the verbs of all families: mutexes, wake-ups, asking back.

-- ---- mutexes ------------------------------------------------------------------------------------

-- A mutex is a 64-bit advisory lock that lasts until the transaction ends; PostgreSQL releases it
-- after the commit has become visible, so the next holder sees everything that was done under it.
-- Its number, from the top: the class in 3 bits (mutexes.def), so that sorting by number is the
-- global order; 59 bits of a hash of schema, tenant and name (a collision only makes two names wait
-- for each other); and a last bit that says shared. (SQL functions of one expression, which the
-- planner inlines.)
CREATE OR REPLACE FUNCTION mutex(class int, t text, n text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (class::bigint << 60)
           | ((hashtextextended(t || E'\x1f' || n, 'state'::regclass::oid::bigint) >> 4)
              & 1152921504606846974)
$$;

CREATE OR REPLACE FUNCTION mutex_shared(class int, t text, n text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT mutex(class, t, n) | 1
$$;

-- Take a mutex if it is free. For sweeps, which skip what is busy: they take mutexes out of order,
-- and would otherwise deadlock.
CREATE OR REPLACE FUNCTION mutex_try(m bigint) RETURNS boolean
LANGUAGE sql VOLATILE AS $$
    SELECT CASE m & 1 WHEN 0 THEN pg_try_advisory_xact_lock(m)
                      ELSE pg_try_advisory_xact_lock_shared(m & -2) END
$$;

-- Take these mutexes: each once, in the global order, so that no two transactions can deadlock. A
-- mutex that is requested both ways is taken exclusively: upgrading from shared to exclusive later
-- could deadlock, too. (Assignments, not PERFORM: an expression costs a tenth of a statement.)
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
    -- For equal numbers the exclusive one comes first: its last bit is 0.
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

-- Begin a batch by taking the mutexes of everything it touches. The snapshot of a whole transaction
-- would be older than they are.
CREATE OR REPLACE FUNCTION batch_begin(ms bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    done boolean;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'Interlock requires a READ COMMITTED transaction'
            USING ERRCODE = 'invalid_transaction_state';
    END IF;
    done := mutexes_take(ms) IS NULL;
END
$$;

-- ---- fences -------------------------------------------------------------------------------------
--
-- fence_seq is the only source of fences, and of the tokens of jobs, answers and builds. Its
-- numbers follow the clock (microseconds since 1970), so that a database restored from a backup
-- does not repeat the numbers drawn after the backup: a sequence more than 100 ms behind the clock
-- is raised to it. A clock that was set back changes nothing, and one beyond 2^53, where fences
-- end, is ignored.
--
-- Why no number is drawn twice: nextval() by itself never repeats a number, but setval() makes it
-- do so if it moves the sequence back, which would happen if others had drawn past the clock
-- between the check and setval(). So drawing holds the lock of fences shared, and raising holds it
-- exclusively: no one draws between the second check, which is made under the lock, and setval(),
-- which therefore only moves up. The lock cannot be kept until the commit, since a caller's
-- transaction may stay open for hours. It is taken in a subtransaction that is rolled back at once:
-- that releases the lock, also when the statement is cancelled, and does not affect the sequence,
-- which no rollback changes. The holder of the lock never waits.

-- Draw n numbers, in ascending order. Reads the clock once, however many.
CREATE OR REPLACE FUNCTION fences_draw(n int) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE STRICT AS $$
DECLARE
    at   bigint := clock_us();
    fs   bigint[];
    done boolean;
BEGIN
    BEGIN
        IF coalesce(pg_sequence_last_value('fence_seq'), 0) < at - 100000
           AND at < @FENCE_END@ THEN
            done := pg_advisory_xact_lock(mutex(@MUTEX_FENCES@, '', 'fences')) IS NULL;
            at   := clock_us();
            IF coalesce(pg_sequence_last_value('fence_seq'), 0) < at - 100000
               AND at < @FENCE_END@ THEN
                -- mutant fence_behind_clock: done := true;
                done := setval('fence_seq', at) IS NULL;
            END IF;
        ELSE
            done := pg_advisory_xact_lock_shared(mutex(@MUTEX_FENCES@, '', 'fences')) IS NULL;
        END IF;
        IF n = 1 THEN
            -- mutant fence_not_incremented: fs := ARRAY[(SELECT last_value FROM fence_seq)];
            fs := ARRAY[nextval('fence_seq')];
        ELSE
            fs := ARRAY(SELECT nextval('fence_seq') FROM generate_series(1, n));
        END IF;
        RAISE EXCEPTION USING ERRCODE = 'IL999';
    EXCEPTION WHEN SQLSTATE 'IL999' THEN
    END;
    RETURN fs;
END
$$;

CREATE OR REPLACE FUNCTION fence_draw() RETURNS bigint
LANGUAGE sql VOLATILE AS $$
    SELECT (fences_draw(1))[1]
$$;

-- ---- waking -------------------------------------------------------------------------------------

-- Wake-ups are collected in a setting that ends with the transaction, as JSON arrays each followed
-- by a comma. No one is woken before the commit: NOTIFY inside the transaction would take a lock
-- that all commits of the database share.

-- Wake those who wait for this: s is a holder, or '#run', '#once', '#queue', '#job', '#cache'.
CREATE OR REPLACE FUNCTION wake(t text, n text, s text) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM set_config('interlock.wakes',
                       concat(current_setting('interlock.wakes', true),
                              jsonb_build_array(t, n, s), ','), true);
END
$$;

-- Wake those who hold leases or build values: one was taken away.
CREATE OR REPLACE FUNCTION wake_holders() RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM set_config('interlock.wakes', concat(current_setting('interlock.wakes', true), '[],'),
                       true);
END
$$;

-- The last step of an entry point (apply, a public function): returns the wake-ups as a JSON array,
-- NULL if there are none, and clears them: a later statement of the same transaction starts with
-- none.
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

-- ---- asking back --------------------------------------------------------------------------------

-- A verb whose head has "ask" also calls this. apply() sees it in the head; this is the one place
-- to count or trace it.
CREATE OR REPLACE FUNCTION asked() RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
END
$$;

-- ---- time ---------------------------------------------------------------------------------------

-- Milliseconds since the epoch by the server's clock: lease time and wall time are the same on this
-- engine. Not now(): that is when the transaction began, before it waited for mutexes.
CREATE OR REPLACE FUNCTION clock_ms() RETURNS bigint
LANGUAGE sql VOLATILE AS $$
    SELECT (date_part('epoch', clock_timestamp()) * 1000)::bigint
$$;

-- Microseconds, for fences.
CREATE OR REPLACE FUNCTION clock_us() RETURNS bigint
LANGUAGE sql VOLATILE AS $$
    SELECT (date_part('epoch', clock_timestamp()) * 1000000)::bigint
$$;
