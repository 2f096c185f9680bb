"""Roles: what the documented rights allow, and what a role that may create schemas can do to
others."""
import json
import os
import re
import subprocess

import pgtest

psycopg = pgtest.need_psycopg()

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SQL_MD = os.path.join(ROOT, "docs", "SQL.md")
ADMIN_TABLES = {"api_key", "audit", "data_meta", "run_detail", "run_join", "run_step", "secret", "tenant"}


def documented_grants():
    with open(SQL_MD, encoding="utf-8") as file:
        text = file.read()
    block, = re.findall(r"```sql\n(CREATE ROLE worker LOGIN;\n.*?)```", text, re.DOTALL)
    return block


def key(case):
    """A key of an administrator; and so all tables of a server."""
    out = case.interlock("key", "create", "--role", "admin", "--name", "first")
    assert "il_" in out or out.strip(), out


def refused(db, statement, *params):
    try:
        db.execute(statement, params or None)
    except psycopg.errors.InsufficientPrivilege:
        return
    raise pgtest.Failure(f"not refused: {statement}")


def the_documented_rights(case):
    """A program's role uses locks and queues, and sees nothing of what a server keeps to itself."""
    case.interlock("migrate")
    key(case)
    admin = case.connect(autocommit=True)
    for statement in documented_grants().split(";"):
        if statement.strip():
            admin.execute(statement)
    tables = {name for name, in admin.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'interlock_admin'::regnamespace AND relkind = 'r'").fetchall()}
    assert tables == ADMIN_TABLES, tables
    assert admin.execute("SELECT count(*) FROM interlock_admin.api_key").fetchone() == (1,)
    assert not admin.execute("""SELECT relname FROM pg_class WHERE relnamespace = 'interlock'::regnamespace
                                 AND relname = ANY (%s)""", (list(ADMIN_TABLES),)).fetchall()
    worker = case.connect(user="worker", autocommit=True)
    fence, = worker.execute("SELECT fence FROM interlock.acquire('k', 'h')").fetchone()
    assert worker.execute("SELECT interlock.check_fence('k', %s)", (fence,)).fetchone() == (True,)
    worker.execute("SELECT interlock.push('q', 'x', id => 'j')")
    (token,), = worker.execute("SELECT token FROM interlock.claim('q', 'w')").fetchall()
    assert worker.execute("SELECT interlock.finish('j', %s)", (token,)).fetchone() == (True,)
    case.interlock("queue", "push", "q", "x", user="worker")
    for table in sorted(ADMIN_TABLES):
        refused(worker, f"SELECT * FROM interlock_admin.{table}")
        refused(worker, f"DELETE FROM interlock_admin.{table}")
        refused(worker, f"INSERT INTO interlock_admin.{table} DEFAULT VALUES")
        refused(worker, f"TRUNCATE interlock_admin.{table}")
    refused(worker, "CREATE TABLE interlock_admin.mine ()")
    refused(worker, "SELECT nextval('interlock_admin.audit_seq_seq')")
    case.interlock("key", "list", user="worker", status=69)
    # No function of the schema lends the rights of its owner, but those of the counters of refused writes.
    assert admin.execute("""SELECT string_agg(proname, ' ' ORDER BY proname) FROM pg_proc
                             WHERE pronamespace = 'interlock'::regnamespace AND prosecdef""").fetchone() == ("guard_count guard_counter guard_refused guard_uncount",)
    assert admin.execute("""SELECT count(*) FROM pg_proc WHERE pronamespace = 'interlock'::regnamespace
                             AND prosrc ~ '_admin'""").fetchone() == (0,)
    # pg_catalog, which is not named, comes first; pg_temp last.
    assert admin.execute("""SELECT DISTINCT unnest(proconfig) FROM pg_proc WHERE pronamespace = 'interlock'::regnamespace
                             AND array_to_string(proconfig, ' ') ~ 'search_path'
                            EXCEPT SELECT unnest(proconfig) FROM pg_proc WHERE array_to_string(proconfig, ' ') !~ 'search_path'
                            """).fetchall().count(("search_path=interlock, pg_temp",)) == 1


def a_schema_of_another_name(case):
    url = f"postgres://postgres@/app?host={case.server.folder}&schema="
    case.interlock("migrate", store=url + "foo")
    case.interlock("key", "create", "--role", "admin", "--name", "first", store=url + "foo")
    with case.connect(autocommit=True) as db:
        assert db.execute("SELECT count(*) FROM foo_admin.api_key").fetchone() == (1,)
    assert "_admin" in case.interlock("migrate", store=url + "foo_admin", status=64)


SQUATS = {
    "an empty schema": ("schema", ""),
    "a function": ("function", "CREATE FUNCTION interlock.clock_ms() RETURNS bigint LANGUAGE sql AS 'INSERT INTO public.trojan VALUES (1) RETURNING 1'"),
    "a table": ("table", "CREATE TABLE interlock.state (version int, min_version int, test_clock boolean, functions text)"),
    "a view": ("view", """CREATE FUNCTION public.bite() RETURNS int LANGUAGE sql AS 'INSERT INTO public.trojan VALUES (1) RETURNING 3';
                CREATE VIEW interlock.state AS SELECT public.bite() AS version, 1 AS min_version, false AS test_clock, '' AS functions"""),
    "an operator": ("operator", """CREATE FUNCTION public.same(text, text) RETURNS boolean LANGUAGE sql AS 'INSERT INTO public.trojan VALUES (1) RETURNING true';
                CREATE OPERATOR interlock.= (LEFTARG = text, RIGHTARG = text, FUNCTION = public.same)"""),
    "a type": ("type", "CREATE TYPE interlock.job_row AS ENUM ('x')"),
    "a sequence": ("sequence", "CREATE SEQUENCE interlock.fence_seq"),
}


def squatter(case):
    admin = case.connect(autocommit=True)
    admin.execute("DROP ROLE IF EXISTS mallory")
    admin.execute("CREATE ROLE mallory LOGIN")
    admin.execute("GRANT CREATE ON DATABASE app TO mallory")
    admin.execute("CREATE TABLE public.trojan (n int)")
    admin.execute("GRANT CREATE ON SCHEMA public TO mallory")
    admin.execute("GRANT ALL ON public.trojan TO mallory")
    return admin


def refuses(case, what, owner, *command, **options):
    out = case.interlock(*command, status=69, **options)
    assert what in out and f"role {owner}" in out, out


def a_squatted_schema(case):
    """Whoever comes first is not trusted for that: nothing of his is run."""
    admin = squatter(case)
    for schema in ("interlock", "interlock_admin"):
        if schema == "interlock_admin":
            case.interlock("migrate")
            admin.execute("DROP SCHEMA interlock_admin CASCADE")
        for name, (what, statements) in SQUATS.items():
            mallory = case.connect(user="mallory", autocommit=True)
            mallory.execute(f"CREATE SCHEMA {schema}")
            mallory.execute(f"GRANT ALL ON SCHEMA {schema} TO PUBLIC")
            if statements:
                mallory.execute(statements.replace("interlock.", schema + "."))
            commands = [("migrate",), ("queue", "push", "q", "x"), ("locks",)] if schema == "interlock" else [("migrate",), ("key", "list")]
            for command in commands:
                refuses(case, schema, "mallory", *command)
            # A schema of ours, with something of his in it.
            admin.execute(f"ALTER SCHEMA {schema} OWNER TO postgres")
            admin.execute(f"REVOKE ALL ON SCHEMA {schema} FROM PUBLIC")
            if statements:
                for command in commands:
                    refuses(case, what, "mallory", *command)
            assert admin.execute("SELECT count(*) FROM public.trojan").fetchone() == (0,), name
            admin.execute("SET client_min_messages = error")
            admin.execute(f"DROP SCHEMA {schema} CASCADE")
            admin.execute("DROP FUNCTION IF EXISTS public.bite, public.same CASCADE")
            mallory.close()
    # Who may add to it later is not trusted either.
    admin.execute("CREATE SCHEMA interlock_admin")
    admin.execute("GRANT CREATE ON SCHEMA interlock_admin TO mallory")
    refuses(case, "privilege CREATE", "mallory", "key", "list")
    admin.execute("DROP SCHEMA interlock_admin")
    case.interlock("migrate")
    admin.execute("GRANT CREATE ON SCHEMA interlock TO PUBLIC")
    refuses(case, "privilege CREATE", "PUBLIC", "queue", "push", "q", "x")


def a_trigger(case):
    """Somebody with the right to make triggers on our tables."""
    admin = squatter(case)
    case.interlock("migrate")
    admin.execute("GRANT USAGE ON SCHEMA interlock TO mallory")
    admin.execute("GRANT TRIGGER ON interlock.job TO mallory")
    with case.connect(user="mallory", autocommit=True) as mallory:
        mallory.execute("""CREATE FUNCTION public.bite() RETURNS trigger LANGUAGE plpgsql
                           AS 'BEGIN INSERT INTO public.trojan VALUES (1); RETURN NEW; END'""")
        mallory.execute("CREATE TRIGGER bites BEFORE INSERT ON interlock.job FOR EACH ROW EXECUTE FUNCTION public.bite()")
    refuses(case, "trigger bites", "mallory", "queue", "push", "q", "x")
    refuses(case, "trigger bites", "mallory", "migrate")
    assert admin.execute("SELECT count(*) FROM public.trojan").fetchone() == (0,)


def a_function_in_the_way(case):
    """A schema that comes first in our search_path, with functions that fit better than PostgreSQL's own."""
    admin = squatter(case)
    with case.connect(user="mallory", autocommit=True) as mallory:
        for name, args, returns in (("hashtextextended", "text, int", "bigint"), ("set_config", "text, text, boolean", "text"),
                                    ("convert_to", "text, text", "bytea"), ("current_setting", "text", "text")):
            value = {"bigint": "1", "text": "''UTF8''", "bytea": "''x''"}[returns]
            mallory.execute(f"""CREATE FUNCTION public.{name}({args}) RETURNS {returns} LANGUAGE sql
                                AS 'INSERT INTO public.trojan VALUES (1); SELECT {value}::{returns}'""")
    case.interlock("migrate")
    key(case)
    case.interlock("queue", "push", "q", "x")
    case.interlock("run", "k", "--", "true")
    assert admin.execute("SELECT count(*) FROM public.trojan").fetchone() == (0,)


# Operators for pairs of types for which PostgreSQL has none of its own, but converts one operand.
PLANT = """
DO $$
DECLARE
    types regtype[] := '{oid,regclass,regnamespace,regtype,name,text,varchar,"char",int2,int4,int8,numeric,bool}';
    l     regtype;
    r     regtype;
    op    text;
BEGIN
    FOREACH l IN ARRAY types LOOP
        FOREACH r IN ARRAY types LOOP
            EXECUTE format('CREATE FUNCTION public.bite(%%s, %%s) RETURNS %(type)s LANGUAGE sql AS %%L', l, r,
                           'INSERT INTO public.trojan VALUES (1); SELECT %(value)s');
            FOREACH op IN ARRAY '{=,<>,<,<=,>,>=,~~,!~~,||,+,-,*,&}'::text[] LOOP
                IF NOT EXISTS (SELECT FROM pg_operator WHERE oprname = op AND oprleft = l AND oprright = r) THEN
                    EXECUTE format('CREATE OPERATOR postgres.%%s (LEFTARG = %%s, RIGHTARG = %%s, FUNCTION = public.bite)',
                                   op, l, r);
                END IF;
            END LOOP;
        END LOOP;
    END LOOP;
END
$$"""


def plant(case, what, value):
    """They are in a schema with the name of another role, which comes first in that role's search_path."""
    admin = squatter(case)
    with case.connect(user="mallory", autocommit=True) as mallory:
        mallory.execute("CREATE SCHEMA postgres")
        mallory.execute(PLANT % {"type": what, "value": value})
    assert admin.execute("SELECT 'pg_class'::regclass = 1259::oid").fetchone() != (None,)
    assert admin.execute("DELETE FROM public.trojan").rowcount == 1
    return admin


def operators_in_the_way(case):
    admin = plant(case, "boolean", "true")
    case.interlock("migrate")
    key(case)
    case.interlock("key", "list")
    case.interlock("queue", "push", "q", "x")
    case.interlock("run", "k", "--", "true")
    case.interlock("locks")
    assert admin.execute("SELECT count(*) FROM public.trojan").fetchone() == (0,)
    admin.execute("CREATE TABLE postgres.users (id varchar PRIMARY KEY, n int, user_id int)")
    case.interlock("guard", "postgres.users", "--key", "user:{id}")
    env = {"INTERLOCK_CONNECTION_APP": f"postgres://postgres@/app?host={case.server.folder}"}
    for options in (("--schema",), ("--table", "users")):
        out = case.interlock("doctor", "--connection", "app", *options, env=env, status=None)
        assert "checked 1 table" in out, out
    assert admin.execute("SELECT count(*) FROM public.trojan").fetchone() == (0,)


def statements(*paths, schema):
    """Those of the files that need no name filled in but the schema's."""
    text = subprocess.run([os.path.join(ROOT, "tools", "embed"), "--replace", f"@schema={schema}",
                                  "--replace", f"@name={schema}", "sql", *(os.path.join(ROOT, "src", path) for path in paths)],
                                 check=True, stdout=subprocess.PIPE, text=True).stdout
    for name, lines in re.findall(r"^static const char (\w+)\[\] =\n(.*?);$", text, re.MULTILINE | re.DOTALL):
        for statement in "".join(json.loads(line) for line in lines.splitlines()).split(";\n"):
            if re.match(r"\s*(?:SELECT|INSERT|UPDATE|DELETE|WITH)\b", statement) and "@" not in statement:
                yield name, statement.rstrip(" ;\n")


def every_statement(case):
    """None finds an operator that others have made: these give a point, with which nothing can be done."""
    admin = plant(case, "point", "point(1, 1)")
    case.interlock("migrate")
    key(case)
    admin.execute("CREATE TABLE interlock_fence (tenant text, key text, fence bigint, shown_at timestamptz, UNIQUE (tenant, key))")
    admin.execute("CREATE TABLE interlock_done (key text PRIMARY KEY, done_at_ms bigint)")
    n = 0
    for schema, paths in (("interlock", ("store/postgres/sql/strangers.sql", "store/postgres/sql/call.sql", "store/postgres/sql/advisory.sql",
                                         "guard/sql/postgres.sql", "guard/sql/postgres_store.sql",
                                         "cli/sql/doctor_postgres.sql")),
                          ("interlock_admin", [f"data/sql/{name}.sql" for name in ("audit", "key", "meta", "run", "tenant")]
                           + ["data/postgres/sql/dialect.sql", "data/postgres/sql/transaction.sql"])):
        for name, statement in statements(*paths, schema=schema):
            try:
                admin.execute(f"PREPARE {name} AS {statement}")
            except psycopg.Error as error:
                raise pgtest.Failure(f"{name}: {error}") from error
            n += 1
    assert n > 50, n


def one_who_was_given_a_schema(case):
    """A role that may not create schemas migrates into one that it was given, and others use it."""
    admin = case.connect(autocommit=True)
    for role in ("owner", "user"):
        admin.execute(f"DROP ROLE IF EXISTS il_{role}")
        admin.execute(f"CREATE ROLE il_{role} LOGIN")
    admin.execute("CREATE SCHEMA interlock AUTHORIZATION il_owner")
    admin.execute("CREATE SCHEMA interlock_admin")
    admin.execute("GRANT CREATE, USAGE ON SCHEMA interlock_admin TO il_owner")
    case.interlock("migrate", user="il_owner")
    case.interlock("key", "create", "--role", "admin", "--name", "first", user="il_owner")
    for grant in ("USAGE ON SCHEMA", "SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA",
                  "USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA"):
        admin.execute(f"GRANT {grant} interlock TO il_user")
    case.interlock("queue", "push", "q", "x", user="il_user")
    # What a superuser runs must be a superuser's.
    refuses(case, "schema interlock", "il_owner", "queue", "push", "q", "x")
    admin.execute("DROP OWNED BY il_owner, il_user CASCADE")


pgtest.run([the_documented_rights, a_schema_of_another_name, a_squatted_schema, a_trigger, a_function_in_the_way,
            operators_in_the_way, every_statement, one_who_was_given_a_schema])
