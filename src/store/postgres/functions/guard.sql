-- guard.sql: fences enforced on the user's own tables.
--
-- `interlock guard TABLE --key 'event:{event_id}'` puts a trigger on TABLE. A write to one of its
-- rows is refused unless the transaction has passed the current fence of the row's key to
-- check_fence().
--
-- Why it is safe: check_fence() locks the lease's row FOR KEY SHARE until the end of the
-- transaction, and taking the key over needs that row FOR UPDATE. So the key cannot be granted to
-- another holder between the trigger's check and the commit.
--
-- The trigger checks a row AFTER it was written. Only then is it the final row, including the
-- effects of the user's own triggers and its generated columns; and only then is the outcome of an
-- INSERT … ON CONFLICT, or of a row moving to another partition, known. The trigger's arguments
-- contain everything it needs (the number of the guard, the tenant, the key), because names and
-- OIDs of relations differ on a partition and in a database restored from a dump.
--
-- The triggers run with the rights of the user who writes. With the rights of the schema's owner
-- they would allow privilege escalation: to_jsonb() calls the cast to json that a user's type
-- defines.

-- The fences that this transaction has shown: entries "tenant US key US fence RS" in a setting that
-- ends with it. The names have no control characters.
CREATE OR REPLACE FUNCTION show_fence(t text, k text, f bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    entry text := t || chr(31) || k || chr(31) || f::text || chr(30);
    shown text := coalesce(current_setting('interlock.shown', true), '');
BEGIN
    IF strpos(chr(30) || shown, chr(30) || entry) = 0 THEN
        PERFORM set_config('interlock.shown', shown || entry, true);
    END IF;
END $$;

-- The newest fence that was shown for a key; NULL: none.
CREATE OR REPLACE FUNCTION shown_fence(t text, k text) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
    begins text := t || chr(31) || k || chr(31);
    f      bigint;
    e      text;
BEGIN
    FOREACH e IN ARRAY string_to_array(coalesce(current_setting('interlock.shown', true), ''),
                                       chr(30)) LOOP
        IF starts_with(e, begins) THEN
            f := greatest(f, substr(e, length(begins) + 1)::bigint);
        END IF;
    END LOOP;
    RETURN f;
END $$;

-- The key of a row: after the tenant, the arguments are alternating texts and columns. NULL: a
-- column is NULL.
CREATE OR REPLACE FUNCTION guard_key(args text[], r jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    k text := '';
BEGIN
    FOR i IN 2 .. cardinality(args) LOOP
        k := k || CASE WHEN i % 2 = 0 THEN args[i] ELSE r ->> args[i] END;
    END LOOP;
    RETURN k;
END $$;

-- Count a refused write. Runs as the owner of the schema, because the writer need not have rights
-- to its sequence. A failure to count (the sequence was not restored, or has another owner) must
-- not replace the refusal with another error. Functions are qualified by schema: roles that may
-- create in ours must not be able to substitute theirs.
CREATE OR REPLACE FUNCTION guard_count(id oid) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    RETURN pg_catalog.nextval(pg_catalog.to_regclass(pg_catalog.format('refused_%s', id)));
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END $$;

-- Refuse the write, and count it.
CREATE OR REPLACE FUNCTION guard_refuse(id oid, relation oid, k text, why text, code text)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM guard_count(id);
    RAISE EXCEPTION 'write to % refused: it needs the current fence of %', relation::regclass,
        coalesce(quote_literal(k), 'its key')
        USING ERRCODE = code, DETAIL = why,
            HINT = 'Call check_fence(key, fence) in the same transaction before the write.';
END $$;

CREATE OR REPLACE FUNCTION guard_row(id oid, relation oid, args text[], r jsonb) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    k text   := guard_key(args, r);
    f bigint := shown_fence(args[1], k);
BEGIN
    IF k IS NULL THEN
        PERFORM guard_refuse(id, relation, k, 'A key column is NULL.', 'IL002');
    ELSIF f IS NULL THEN
        PERFORM guard_refuse(id, relation, k,
                             'This transaction has not called check_fence() for the key.', 'IL002');
    ELSIF NOT fence_is_current(args[1], k, f) THEN
        -- Anyone can write the setting; and a lease may have expired since it was shown.
        PERFORM guard_refuse(id, relation, k, format('Fence %s is not the current one.', f),
                             'IL001');
    END IF;
END $$;

-- ---- is it current? -----------------------------------------------------------------------------

-- Does this fence belong to a lease that is held now? Locks the lease's row until the end of the
-- transaction.
CREATE OR REPLACE FUNCTION fence_is_current(t text, k text, f bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RETURN fence_was_current(t, k, f);
    END IF;
    PERFORM 1 FROM lease
      WHERE tenant = t AND key = k AND fence = f AND state = @LEASE_HELD@
        AND expires_ms > lease_now()
        FOR KEY SHARE;
    RETURN FOUND;
END $$;

-- The same in a transaction that sees everything as of its first statement. Later changes of the
-- row are invisible: so the first time the row must be unchanged, otherwise it is a
-- serialization_failure. From then on we hold the lock, and the lease cannot pass to another
-- holder; a renewal meanwhile, which we do not see, makes no difference. The setting may have been
-- forged; even then it names a lease that was held when the transaction began.
CREATE OR REPLACE FUNCTION fence_was_current(t text, k text, f bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    entry text   := t || chr(31) || k || chr(31) || f::text || chr(30);
    held  text   := coalesce(current_setting('interlock.held', true), '');
    at    bigint := lease_now();
    l     lease;
BEGIN
    SELECT * INTO l FROM lease x WHERE x.tenant = t AND x.key = k AND x.fence = f FOR KEY SHARE;
    IF NOT FOUND AND fence_may_be_new(f) THEN
        RAISE EXCEPTION 'fence % of key % is newer than the transaction''s snapshot', f,
            quote_literal(k)
            USING ERRCODE = 'serialization_failure', HINT = 'Try the transaction again.';
    ELSIF strpos(chr(30) || held, chr(30) || entry) > 0 THEN
        at := least(at, (extract(epoch FROM now()) * 1000)::bigint); -- when the transaction began
    ELSE
        PERFORM lease_unchanged(t, k, f);
        held := held || entry;
    END IF;
    IF l.state = @LEASE_HELD@ AND l.expires_ms > at THEN
        PERFORM set_config('interlock.held', held, true);
        RETURN true;
    END IF;
    RETURN false;
END $$;

-- Raises serialization_failure if the row was changed since this transaction's snapshot. FOR SHARE
-- detects that; it is released at once, or renewals would have to wait for us.
CREATE OR REPLACE FUNCTION lease_unchanged(t text, k text, f bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM lease WHERE tenant = t AND key = k AND fence = f FOR SHARE;
    RAISE EXCEPTION 'seen' USING ERRCODE = 'IL000';
EXCEPTION WHEN SQLSTATE 'IL000' THEN
    NULL;
END $$;

-- A fence that this transaction does not see: was it granted since its snapshot? Not if we see one
-- that was granted later, or if it has not been granted yet.
CREATE OR REPLACE FUNCTION fence_may_be_new(f bigint) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN f > coalesce((SELECT max(fence) FROM lease), 0)
           AND f <= (SELECT last_value FROM fence_seq);
END $$;

-- Lease time outside a batch. The test clock is not available here, so leases do not expire.
CREATE OR REPLACE FUNCTION lease_now() RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN CASE WHEN (SELECT test_clock FROM state) THEN 0 ELSE clock_ms() END;
END $$;

-- ---- the triggers -------------------------------------------------------------------------------

-- A role without USAGE on the schema cannot find the functions that the triggers call, not even one
-- that says so: each trigger begins with the text of @refuse_role_without_usage@.

-- The row trigger. A row that moves from one key to another needs both.
CREATE OR REPLACE FUNCTION guard_check() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    id   oid    := TG_ARGV[0]::oid;
    args text[] := TG_ARGV[1 : TG_NARGS - 1];
BEGIN
    @refuse_role_without_usage@
    IF TG_OP <> 'INSERT' THEN
        PERFORM guard_row(id, TG_RELID, args, to_jsonb(OLD));
    END IF;
    IF TG_OP = 'INSERT'
       OR (TG_OP = 'UPDATE'
           AND guard_key(args, to_jsonb(NEW)) IS DISTINCT FROM guard_key(args, to_jsonb(OLD))) THEN
        PERFORM guard_row(id, TG_RELID, args, to_jsonb(NEW));
    END IF;
    RETURN NULL; -- an AFTER trigger changes nothing by it
END $$;

-- The statement trigger. TRUNCATE has no rows to check, so it is always refused. UPDATE and DELETE
-- also write the rows of tables that inherit from this one, which have no guard: when the guard was
-- created there were none.
CREATE OR REPLACE FUNCTION guard_truncate() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    id oid := TG_ARGV[0]::oid;
BEGIN
    @refuse_role_without_usage@
    IF TG_OP = 'TRUNCATE' THEN
        PERFORM guard_refuse(id, TG_RELID, NULL, 'TRUNCATE would write the rows of all keys.',
                             'IL002');
    ELSIF EXISTS (SELECT FROM pg_inherits WHERE inhparent = TG_RELID) THEN
        PERFORM guard_refuse(id, TG_RELID, NULL, 'Tables without a guard inherit from this one.',
                             'IL002');
    END IF;
    RETURN NULL;
END $$;

-- ---- which tables -------------------------------------------------------------------------------

-- Does the schema belong to a store, this one or another? Its tables must not be guarded: the
-- library writes them.
CREATE OR REPLACE FUNCTION guard_is_store(schema oid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT schema = current_schema()::regnamespace
        OR EXISTS (SELECT FROM pg_proc p
                   WHERE p.pronamespace = schema AND p.proname = 'guard_check'
                     AND p.prorettype = 'trigger'::regtype)
$$;

-- Tables of this name, in schema s (NULL: in any): those of users, or those of stores.
CREATE OR REPLACE FUNCTION guard_tables(s text, name text, of_stores boolean) RETURNS SETOF oid
LANGUAGE sql STABLE AS $$
    SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE c.relname = name AND n.nspname = coalesce(s, n.nspname) AND c.relkind IN ('r', 'p')
       AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
       AND guard_is_store(n.oid) = of_stores
     ORDER BY n.nspname
$$;

-- Parse a name as in SQL into {name} or {schema, name}; NULL: malformed.
CREATE OR REPLACE FUNCTION guard_name(name text) RETURNS text[] LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    parts text[];
BEGIN
    parts := parse_ident(name);
    RETURN CASE WHEN cardinality(parts) <= 2 THEN parts END;
EXCEPTION WHEN invalid_parameter_value THEN
    RETURN NULL;
END $$;

-- The table that a user means: schema.name, or a name that only one table outside our schemas has.
-- n: how many there are; status, why: what is wrong unless it is one.
CREATE OR REPLACE FUNCTION guard_find(name text, OUT relation oid, OUT n int, OUT status int,
                                      OUT why text) LANGUAGE plpgsql STABLE AS $$
DECLARE
    parts  text[] := guard_name(name);
    s      text   := parts[cardinality(parts) - 1];
    found_ oid[]  := ARRAY(SELECT guard_tables(s, parts[cardinality(parts)], false));
    ours   oid    := (SELECT guard_tables(s, parts[cardinality(parts)], true) LIMIT 1);
BEGIN
    IF found_ = '{}' THEN
        found_ := ARRAY(SELECT guard_tables(NULL, name, false)); -- one that would have to be quoted
    END IF;
    n        := cardinality(found_);
    relation := found_[1];
    status   := CASE WHEN n = 1 THEN @STATUS_OK@ ELSE @STATUS_INVAL@ END;
    IF n > 1 THEN
        why := format('table name %s is ambiguous; use %s', name,
                      array_to_string(found_[1:5]::regclass[], ' or '));
    ELSIF n = 0 AND parts IS NULL THEN
        why := format('invalid table name %s; use TABLE or SCHEMA.TABLE', name);
    ELSIF n = 0 AND ours IS NOT NULL THEN
        why := format('%s is a table of Interlock and cannot be guarded', name);
    ELSIF n = 0 THEN
        status := @STATUS_NOT_FOUND@;
        why    := format('no such table: %s', name);
    END IF;
END $$;

-- A table and its partitions, if any.
CREATE OR REPLACE FUNCTION guard_tree(rel oid) RETURNS SETOF oid LANGUAGE sql STABLE AS $$
    SELECT rel UNION SELECT relid FROM pg_partition_tree(rel)
$$;

-- ---- which guards -------------------------------------------------------------------------------

-- The arguments of a trigger, each followed by a zero byte.
CREATE OR REPLACE FUNCTION guard_args(packed bytea) RETURNS text[] LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    args text[] := '{}';
    at   int;
BEGIN
    LOOP
        at := position('\x00'::bytea IN packed);
        EXIT WHEN at = 0;
        args   := args || convert_from(substr(packed, 1, at - 1), 'UTF8');
        packed := substr(packed, at + 1);
    END LOOP;
    RETURN args;
END $$;

-- {event:, event_id, :x} as 'event:{event_id}:x'.
CREATE OR REPLACE FUNCTION guard_template(pieces text[]) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT string_agg(CASE WHEN i % 2 = 1 THEN p ELSE '{' || p || '}' END, '' ORDER BY i)
      FROM unnest(pieces) WITH ORDINALITY AS u (p, i)
$$;

-- The existing guards, read from the triggers. Those of partitions belong to their table. id is the
-- column `relation` of the table `guard`, and the number in the name of the sequence refused_ID: at
-- first it is the OID of the table, in a restored database only a number.
CREATE OR REPLACE FUNCTION guards_there(OUT relation oid, OUT id oid, OUT tenant text,
                                        OUT pieces text[]) RETURNS SETOF record
LANGUAGE sql STABLE AS $$
    SELECT t.tgrelid, a.args[1]::oid, a.args[2], a.args[3 :]
      FROM pg_trigger t, guard_args(t.tgargs) AS a (args)
     WHERE t.tgfoid = 'guard_check'::regproc AND t.tgparentid = 0
$$;

-- The number of a table's guard, or the one to use for a new guard.
CREATE OR REPLACE FUNCTION guard_id(rel oid) RETURNS oid LANGUAGE plpgsql STABLE AS $$
DECLARE
    n oid := (SELECT id FROM guards_there() WHERE relation = rel LIMIT 1);
BEGIN
    IF n IS NULL AND EXISTS (SELECT FROM guards_there() WHERE id = rel) THEN
        n := (SELECT max(relation::bigint) + 1 FROM guard);
    END IF;
    RETURN coalesce(n, rel);
END $$;

-- How often a guard has refused; after a crash of the server it may be up to 32 too high, like any
-- sequence. Runs as the owner of the schema, because listing guards need not require rights to
-- their sequences.
CREATE OR REPLACE FUNCTION guard_refused(rel oid) RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT coalesce(pg_catalog.pg_sequence_last_value(
                        pg_catalog.to_regclass(pg_catalog.format('refused_%s', rel))), 0)
$$;

CREATE OR REPLACE FUNCTION v_x_guards(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('status', @STATUS_OK@, 'guards',
        coalesce(jsonb_agg(jsonb_build_array(relation::regclass::text, guard_template(pieces),
                                             tenant, guard_refused(id))
                                                 ORDER BY relation::regclass::text), '[]'))
      FROM guards_there()
$$;

-- ---- interlock guard ----------------------------------------------------------------------------

-- 'event:{event_id}:x' as {event:, event_id, :x}. NULL: unbalanced braces.
CREATE OR REPLACE FUNCTION guard_pieces(template text) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    pieces text[] := '{}';
    rest   text   := template;
    m      text[];
BEGIN
    LOOP
        m := regexp_match(rest, '^([^{}]*)\{([^{}]+)\}(.*)$');
        EXIT WHEN m IS NULL;
        pieces := pieces || m[1] || m[2];
        rest   := m[3];
    END LOOP;
    RETURN CASE WHEN rest ~ '[{}]' THEN NULL ELSE pieces || rest END;
END $$;

-- What is wrong with a guard on this table, or NULL.
CREATE OR REPLACE FUNCTION guard_wrong(rel oid, pieces text[]) RETURNS text
LANGUAGE plpgsql STABLE AS $$
DECLARE
    missing text;
BEGIN
    IF pieces IS NULL OR cardinality(pieces) < 3 THEN
        RETURN 'the key must name a column in braces, such as event:{event_id}';
    END IF;
    SELECT pieces[i] INTO missing FROM generate_series(2, cardinality(pieces), 2) AS i
     WHERE NOT EXISTS (SELECT FROM pg_attribute
                       WHERE attrelid = rel AND attname = pieces[i] AND attnum > 0
                         AND NOT attisdropped) LIMIT 1;
    IF missing IS NOT NULL THEN
        RETURN format('%s has no column %s', rel::regclass, missing);
    ELSIF EXISTS (SELECT FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhparent
                  WHERE c.oid = rel AND c.relkind = 'r') THEN
        RETURN format('%s has child tables, whose rows its writes change; guard the '
                      'children instead', rel::regclass);
    END IF;
    RETURN guard_above(rel);
END $$;

-- A partition has the guard of its table, and no other: what is wrong if it has one, or NULL.
CREATE OR REPLACE FUNCTION guard_above(rel oid) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT format('%s is a partition of %s and is covered by its guard', rel::regclass,
                  g.relation::regclass)
      FROM guards_there() g WHERE g.relation <> rel
           AND g.relation IN (SELECT relid FROM pg_partition_ancestors(rel)) LIMIT 1
$$;

-- Names in the statements below come from the catalogue, quoted by format(), and numbers: DDL has
-- no other way to name a table.

-- Remove all our triggers from a table and its partitions, and the guards that partitions had,
-- except the number `keep`. Returns the number of triggers.
CREATE OR REPLACE FUNCTION guard_drop(rel oid, keep oid) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    lost oid[] := ARRAY(SELECT id FROM guards_there()
                        WHERE relation IN (SELECT guard_tree(rel)) AND id IS DISTINCT FROM keep);
    n    int   := 0;
    x    record;
BEGIN
    -- Triggers that a partition inherited from its table are dropped with the table's.
    FOR x IN SELECT tgrelid, tgname FROM pg_trigger
              WHERE tgrelid IN (SELECT guard_tree(rel))
                AND tgfoid IN ('guard_check'::regproc, 'guard_truncate'::regproc)
                AND tgparentid = 0 LOOP
        EXECUTE format('DROP TRIGGER %I ON %s', x.tgname, x.tgrelid::regclass);
        n := n + 1;
    END LOOP;
    FOR x IN SELECT unnest(lost) AS id LOOP
        PERFORM guard_uncount(x.id);
        DELETE FROM guard WHERE relation = x.id;
    END LOOP;
    RETURN n;
END $$;

-- Create and drop the counter of a guard. Runs as the owner of the schema, because no one else
-- creates anything in it (sql/strangers.sql), and the owner of a table need not have that right.
-- These functions allow no more than creating the counter of an existing guard and dropping one
-- that no guard uses.
CREATE OR REPLACE FUNCTION guard_counter(id oid) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF EXISTS (SELECT FROM guards_there() g WHERE g.id = guard_counter.id) THEN
        EXECUTE pg_catalog.format('CREATE SEQUENCE IF NOT EXISTS %I',
                                  pg_catalog.format('refused_%s', id));
    END IF;
END $$;

CREATE OR REPLACE FUNCTION guard_uncount(id oid) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM guards_there() g WHERE g.id = guard_uncount.id) THEN
        EXECUTE pg_catalog.format('DROP SEQUENCE IF EXISTS %I',
                                  pg_catalog.format('refused_%s', id));
    END IF;
END $$;

-- Create the triggers of a guard, replacing existing ones. PostgreSQL itself gives the row trigger
-- to all partitions, even later ones, but not the statement trigger.
CREATE OR REPLACE FUNCTION guard_put(rel oid, id oid, tenant text, pieces text[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    args text := (SELECT string_agg(quote_literal(a), ', ' ORDER BY i)
                  FROM unnest(ARRAY[id::text, tenant] || pieces) WITH ORDINALITY AS u (a, i));
    x    record;
BEGIN
    PERFORM guard_drop(rel, id);
    EXECUTE format('CREATE TRIGGER interlock_guard AFTER INSERT OR UPDATE OR DELETE ON %s '
                   'FOR EACH ROW EXECUTE FUNCTION guard_check(%s)', rel::regclass, args);
    FOR x IN SELECT c.oid, CASE WHEN c.relkind = 'r' AND NOT c.relispartition
                                THEN 'OR UPDATE OR DELETE' ELSE '' END AS more
               FROM pg_class c
              WHERE c.oid IN (SELECT guard_tree(rel)) AND c.relkind IN ('r', 'p') LOOP
        EXECUTE format('CREATE TRIGGER interlock_guard_truncate BEFORE TRUNCATE %s ON %s '
                       'FOR EACH STATEMENT EXECUTE FUNCTION guard_truncate(%L)',
                       x.more, x.oid::regclass, id);
    END LOOP;
    PERFORM guard_counter(id);
    INSERT INTO guard VALUES (id, guard_template(pieces), tenant)
        ON CONFLICT (relation) DO UPDATE SET key = excluded.key, tenant = excluded.tenant;
END $$;

CREATE OR REPLACE FUNCTION guard_remove(rel oid) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    id    oid  := guard_id(rel);
    above text := guard_above(rel);
BEGIN
    IF above IS NOT NULL THEN
        RETURN jsonb_build_object('status', @STATUS_INVAL@, 'detail', above);
    ELSIF guard_drop(rel, NULL) = 0 AND NOT EXISTS (SELECT FROM guard WHERE relation = id) THEN
        RETURN jsonb_build_object('status', @STATUS_NOT_FOUND@,
                                  'detail', format('%s has no guard', rel::regclass));
    END IF;
    PERFORM guard_uncount(id);
    DELETE FROM guard WHERE relation = id;
    RETURN jsonb_build_object('status', @STATUS_OK@);
END $$;

-- table, key, tenant: put a guard on it, or renew an existing one; remove: remove it.
CREATE OR REPLACE FUNCTION v_x_guard(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    found_ record;
    rel    oid;
    pieces text[] := guard_pieces(o ->> 'key');
    wrong  text;
BEGIN
    SELECT * INTO found_ FROM guard_find(o ->> 'table');
    rel := found_.relation;
    IF found_.status <> @STATUS_OK@ THEN
        RETURN jsonb_build_object('status', found_.status, 'detail', found_.why);
    ELSIF o ? 'remove' THEN
        RETURN guard_remove(rel);
    END IF;
    wrong := guard_wrong(rel, pieces);
    IF wrong IS NOT NULL THEN
        RETURN jsonb_build_object('status', @STATUS_INVAL@, 'detail', wrong);
    END IF;
    PERFORM guard_put(rel, guard_id(rel), o ->> 'tenant', pieces);
    RETURN jsonb_build_object('status', @STATUS_OK@);
END $$;
