-- guard.sql: fences enforced on tables of the user's own.
--
-- `interlock guard TABLE --key 'event:{event_id}'` puts a trigger on TABLE. A write to a row of it is refused unless its transaction
-- has shown, with check_fence(), a fence that is the current one of the row's key.
--
-- Why it is safe: check_fence() holds the lease's row FOR KEY SHARE to the end of the transaction, and whoever takes the key over needs that row
-- FOR UPDATE. So between what the trigger sees and the commit nobody else can be given the key.

-- What this transaction has shown: entries "tenant US key US fence RS" in a setting that ends with it. The names have no control characters.
CREATE OR REPLACE FUNCTION show_fence(t text, k text, f bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    entry text := t || chr(31) || k || chr(31) || f::text || chr(30);
    shown text := coalesce(current_setting('interlock.shown', true), '');
BEGIN
    IF strpos(chr(30) || shown, chr(30) || entry) = 0 THEN
        PERFORM set_config('interlock.shown', shown || entry, true);
    END IF;
END $$;

-- The newest fence of a key that was shown; NULL: none was.
CREATE OR REPLACE FUNCTION shown_fence(t text, k text) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
    begins text := t || chr(31) || k || chr(31);
    f      bigint;
    e      text;
BEGIN
    FOREACH e IN ARRAY string_to_array(coalesce(current_setting('interlock.shown', true), ''), chr(30)) LOOP
        IF starts_with(e, begins) THEN
            f := greatest(f, substr(e, length(begins) + 1)::bigint);
        END IF;
    END LOOP;
    RETURN f;
END $$;

-- The key of a row: the arguments of the trigger from the second on are texts and columns in turn. NULL: a column is.
CREATE OR REPLACE FUNCTION guard_key(args text[], r jsonb) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    k text := '';
BEGIN
    FOR i IN 2 .. cardinality(args) LOOP
        k := k || CASE WHEN i % 2 = 0 THEN args[i] ELSE r ->> args[i] END;
    END LOOP;
    RETURN k;
END $$;

-- Count a refused write. As the owner of the schema: who writes to the table need not have rights to its sequence.
CREATE OR REPLACE FUNCTION guard_count(relation oid) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    RETURN nextval(format('refused_%s', relation)::regclass);
END $$;

-- Refuse the write, and count it.
CREATE OR REPLACE FUNCTION guard_refuse(relation oid, k text, why text, code text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM guard_count(relation);
    RAISE EXCEPTION 'a write to % needs the current fence of %', relation::regclass, coalesce(quote_literal(k), 'its key')
        USING ERRCODE = code, DETAIL = why, HINT = 'call check_fence(key, fence) in the same transaction, before the write';
END $$;

CREATE OR REPLACE FUNCTION guard_row(relation oid, args text[], r jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    k text   := guard_key(args, r);
    f bigint := shown_fence(args[1], k);
BEGIN
    IF k IS NULL THEN
        PERFORM guard_refuse(relation, k, 'a column that the key is made of is NULL', 'IL002');
    ELSIF f IS NULL THEN
        PERFORM guard_refuse(relation, k, 'this transaction has shown no fence of it', 'IL002');
    ELSIF NOT fence_is_current(args[1], k, f) THEN
        -- The setting can be written by anybody; and a lease may have run out since it was shown.
        PERFORM guard_refuse(relation, k, format('the fence %s is not the current one', f), 'IL001');
    END IF;
END $$;

-- Is this fence the one of a lease that is held now? Holds the lease's row to the end of the transaction.
CREATE OR REPLACE FUNCTION fence_is_current(t text, k text, f bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM lease
      WHERE tenant = t AND key = k AND fence = f AND state = 3 AND expires_ms > lease_now()
        FOR KEY SHARE;
    RETURN FOUND;
END $$;

-- Lease time outside of a batch. With the test clock nobody says what time it is: then leases do not expire here.
CREATE OR REPLACE FUNCTION lease_now() RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN CASE WHEN (SELECT test_clock FROM state) THEN 0 ELSE clock_ms() END;
END $$;

-- The trigger. A row that moves from one key to another needs both.
CREATE OR REPLACE FUNCTION guard_check() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM guard_row(TG_RELID, TG_ARGV[0:TG_NARGS - 1], to_jsonb(OLD));
    END IF;
    IF TG_OP = 'INSERT' OR (TG_OP = 'UPDATE' AND guard_key(TG_ARGV[0:TG_NARGS - 1], to_jsonb(NEW)) IS DISTINCT FROM guard_key(TG_ARGV[0:TG_NARGS - 1], to_jsonb(OLD))) THEN
        PERFORM guard_row(TG_RELID, TG_ARGV[0:TG_NARGS - 1], to_jsonb(NEW));
    END IF;
    RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
END $$;

-- TRUNCATE has no rows to look at: it is refused as such.
CREATE OR REPLACE FUNCTION guard_truncate() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM guard_refuse(TG_RELID, NULL, 'TRUNCATE writes the rows of all keys', 'IL002');
    RETURN NULL;
END $$;

-- ---- interlock guard ---------------------------------------------------------------------------------------------

-- The table that a user means: schema.name, or a name that only one table outside of ours has.
CREATE OR REPLACE FUNCTION guard_find(name text, OUT relation oid, OUT n int) LANGUAGE plpgsql STABLE AS $$
BEGIN
    relation := to_regclass(name);
    IF relation IS NOT NULL THEN
        n := 1;
        RETURN;
    END IF;
    SELECT min(c.oid::bigint)::oid, count(*) INTO relation, n
      FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace
     WHERE c.relname = name AND c.relkind IN ('r', 'p') AND s.nspname !~ '^pg_' AND s.nspname <> 'information_schema';
END $$;

-- 'event:{event_id}:x' as {event:, event_id, :x}. NULL: brackets that do not fit.
CREATE OR REPLACE FUNCTION guard_pieces(template text) RETURNS text[] LANGUAGE plpgsql IMMUTABLE AS $$
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

-- table, key, tenant: put a guard on it; remove: take it away. The names in the statements are the catalogue's own, quoted by format(): there is no other way
-- to name a table in DDL.
CREATE OR REPLACE FUNCTION v_x_guard(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    found_  record;
    rel     oid;
    pieces  text[] := guard_pieces(o ->> 'key');
    missing text;
    args    text;
BEGIN
    SELECT * INTO found_ FROM guard_find(o ->> 'table');
    rel := found_.relation;
    IF found_.n = 0 THEN
        RETURN jsonb_build_object('status', 26, 'detail', format('there is no table %s', o ->> 'table'));
    ELSIF found_.n > 1 THEN
        RETURN jsonb_build_object('status', 11, 'detail', format('several schemas have a table %s: say SCHEMA.TABLE', o ->> 'table'));
    END IF;
    IF o ? 'remove' THEN
        EXECUTE format('DROP TRIGGER IF EXISTS interlock_guard ON %s', rel::regclass);
        EXECUTE format('DROP TRIGGER IF EXISTS interlock_guard_truncate ON %s', rel::regclass);
        EXECUTE format('DROP SEQUENCE IF EXISTS %I', format('refused_%s', rel));
        DELETE FROM guard WHERE relation = rel;
        RETURN jsonb_build_object('status', CASE WHEN FOUND THEN 0 ELSE 26 END, 'detail', CASE WHEN FOUND THEN NULL ELSE format('%s has no guard', rel::regclass) END);
    END IF;
    IF pieces IS NULL OR cardinality(pieces) < 3 THEN
        RETURN jsonb_build_object('status', 11, 'detail', 'the key must name a column in brackets: event:{event_id}');
    END IF;
    SELECT pieces[i] INTO missing FROM generate_series(2, cardinality(pieces), 2) AS i
     WHERE NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = rel AND attname = pieces[i] AND attnum > 0 AND NOT attisdropped) LIMIT 1;
    IF missing IS NOT NULL THEN
        RETURN jsonb_build_object('status', 11, 'detail', format('%s has no column %s', rel::regclass, missing));
    END IF;
    SELECT string_agg(quote_literal(a), ', ') INTO args FROM unnest(array[o ->> 'tenant'] || pieces) AS a;
    EXECUTE format('CREATE SEQUENCE IF NOT EXISTS %I', format('refused_%s', rel));
    EXECUTE format('DROP TRIGGER IF EXISTS interlock_guard ON %s', rel::regclass);
    EXECUTE format('DROP TRIGGER IF EXISTS interlock_guard_truncate ON %s', rel::regclass);
    EXECUTE format('CREATE TRIGGER interlock_guard BEFORE INSERT OR UPDATE OR DELETE ON %s FOR EACH ROW EXECUTE FUNCTION guard_check(%s)', rel::regclass, args);
    EXECUTE format('CREATE TRIGGER interlock_guard_truncate BEFORE TRUNCATE ON %s FOR EACH STATEMENT EXECUTE FUNCTION guard_truncate()', rel::regclass);
    INSERT INTO guard VALUES (rel, o ->> 'key', o ->> 'tenant', wall)
        ON CONFLICT (relation) DO UPDATE SET key = excluded.key, tenant = excluded.tenant;
    RETURN jsonb_build_object('status', 0);
END $$;

-- How often a guard has refused.
CREATE OR REPLACE FUNCTION guard_refused(rel oid) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT coalesce(pg_sequence_last_value(to_regclass(format('refused_%s', rel))), 0)
$$;

CREATE OR REPLACE FUNCTION v_x_guards(o jsonb, d bytea, now bigint, wall bigint) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('status', 0, 'guards',
        coalesce(jsonb_agg(jsonb_build_array(g.relation::regclass::text, g.key, g.tenant, guard_refused(g.relation)) ORDER BY g.relation::regclass::text), '[]'))
      FROM guard g JOIN pg_class c ON c.oid = g.relation
$$;
