/*
 * postgres.c: runs a PostgreSQL server as a child, and manages the test stores in it.
 *
 * Installing a store takes as long as many tests together, so stores are reused: each is a pair of
 * schemas il_test_N and il_test_N_r, claimed with an advisory lock of this process and emptied
 * before every test. Fences and tickets continue.
 */
#include "harness/postgres.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "harness/redis.h"
#include "harness/server.h"
#include "store/postgres/postgres_internal.h"

#include "postgres_functions.inc"

#define START_MS 60000
#define ARGS_MAX 64
#define SLOTS_MAX 64

/* ---- the programs ---------------------------------------------------------------------------- */

/* The newest that is installed: Debian keeps them out of the PATH. */
static const char *
bin(const char *name, char out[T_PATH_BYTES])
{
    for (int version = 30; version >= 13; version--) {
        t_path(out, "/usr/lib/postgresql/%d/bin/%s", version, name);
        if (access(out, X_OK) == 0)
            return out;
    }
    t_path(out, "%s", name);
    return out;
}

/* It refuses to run as root. The words that make a command run as somebody else, before argv[n]. */
static size_t
as_nobody(const char *argv[], char user[64])
{
    struct passwd *p = NULL;

    if (geteuid() != 0)
        return 0;
    p = getpwnam("postgres");
    if (p == NULL)
        p = getpwnam("nobody");
    CHECK(p != NULL);
    (void)snprintf(user, 64, "--reuid=%u", (unsigned)p->pw_uid);
    argv[0] = "setpriv";
    argv[1] = user;
    argv[2] = "--clear-groups";
    argv[3] = "--pdeathsig=KILL"; /* another user's process does not get it from us */
    return 4;
}

static void
give_away(const char *path)
{
    struct passwd *p = getpwnam("postgres");

    if (p == NULL)
        p = getpwnam("nobody");
    if (geteuid() == 0 && p != NULL)
        CHECK(chown(path, p->pw_uid, p->pw_gid) == 0);
}

void
t_postgres_init(struct t_postgres *p, bool on_disk, bool has_port)
{
    char        program[T_PATH_BYTES], user[64], data[T_PATH_BYTES];
    const char *argv[ARGS_MAX] = { NULL };
    size_t      n              = as_nobody(argv, user);

    *p = (struct t_postgres){ .proc = { .in = -1, .out = -1 },
                              .port = has_port ? t_free_port() : 0 };
    t_tmp_make_plain(p->dir, on_disk);
    give_away(p->dir);
    CHECK(chmod(p->dir, 0755) == 0);
    t_path(data, "%s/data", p->dir);
    t_path(p->url, "postgres://postgres@/postgres?host=%s", p->dir);

    const char *const words[] = { bin("initdb", program),
                                  "-D",
                                  data,
                                  "-U",
                                  "postgres",
                                  "-A",
                                  "trust",
                                  "-E",
                                  "UTF8",
                                  "--locale=C.UTF-8",
                                  "--no-sync",
                                  "--no-instructions",
                                  NULL };
    for (size_t i = 0; words[i] != NULL; i++)
        argv[n++] = words[i];
    struct t_proc initdb = { .in = -1, .out = -1 };
    t_proc_start(&initdb, argv, NULL);
    if (t_proc_exit(&initdb, START_MS) != 0)
        T_FAIL("initdb: %s", initdb.text);
    t_proc_release(&initdb);
}

/* ---- a word with it -------------------------------------------------------------------------- */

static il_status
parse(const char *url, struct pg_url *u)
{
    il_error err = { .status = IL_OK };

    T_EQ(il__pg_libpq_load(&err), IL_OK);
    return il__pg_url_parse(u, url, &err);
}

/* False: no answer, or an error, which is `out` then. */
static bool
ask(struct pg_conn *c, const char *sql, char out[T_PG_TEXT_BYTES])
{
    PGresult *r = il__pg_query(c, &(struct pg_query){ .sql = sql }, il__pg_in_ms(START_MS));

    out[0] = '\0';
    if (r == NULL) {
        (void)snprintf(out, T_PG_TEXT_BYTES, "%s %s", c->sqlstate, c->why);
        return false;
    }
    if (il__pq->PQntuples(r) > 0 && il__pq->PQnfields(r) > 0)
        (void)snprintf(out, T_PG_TEXT_BYTES, "%.*s", il__pq->PQgetlength(r, 0, 0),
                       il__pq->PQgetvalue(r, 0, 0));
    il__pq->PQclear(r);
    return true;
}

static bool
ask_once(const char *url, const char *sql, char out[T_PG_TEXT_BYTES])
{
    struct pg_url  u = { 0 };
    struct pg_conn c;

    T_EQ(parse(url, &u), IL_OK);
    il__pg_conn_init(&c, u.server, u.shown);
    bool ok = ask(&c, sql, out);
    il__pg_conn_close(&c);
    il__pg_url_release(&u);
    return ok;
}

const char *
t_postgres_ask(const char *url, const char *sql, char out[T_PG_TEXT_BYTES])
{
    if (!ask_once(url, sql, out))
        T_FAIL("%s: %s", sql, out);
    return out;
}

/* ---- starting and killing -------------------------------------------------------------------- */

/* For a message; never freed. */
static const char *
read_log(const char *path)
{
    return t_file_exists(path) ? t_file_read(path, NULL) : "no log";
}

void
t_postgres_start(struct t_postgres *p, const char *const settings[])
{
    char        program[T_PATH_BYTES], user[64], data[T_PATH_BYTES], log[T_PATH_BYTES], port[16];
    char        text[T_PG_TEXT_BYTES];
    const char *argv[ARGS_MAX] = { NULL };
    size_t      n              = as_nobody(argv, user);

    t_path(data, "%s/data", p->dir);
    (void)snprintf(port, sizeof port, "%d", p->port != 0 ? p->port : 5432);
    t_path(log, "%s/log", p->dir);
    /* Its log goes to a file: nobody reads a pipe, and a full one would stop the server. */
    const char *const words[] = { "sh",
                                  "-c",
                                  "exec \"$@\" >>\"$0\" 2>&1",
                                  log,
                                  bin("postgres", program),
                                  "-D",
                                  data,
                                  "-k",
                                  p->dir,
                                  "-p",
                                  port,
                                  "-c",
                                  p->port != 0 ? "listen_addresses=127.0.0.1" : "listen_addresses=",
                                  "-c",
                                  "fsync=off",
                                  "-c",
                                  "full_page_writes=off",
                                  "-c",
                                  "shared_buffers=64MB",
                                  "-c",
                                  "max_connections=200",
                                  "-c",
                                  "max_locks_per_transaction=256",
                                  NULL };
    for (size_t i = 0; words[i] != NULL; i++)
        argv[n++] = words[i];
    for (size_t i = 0; settings != NULL && settings[i] != NULL; i++) {
        CHECK(n + 2 < ARGS_MAX);
        argv[n++] = "-c";
        argv[n++] = settings[i];
    }
    t_path(p->url, "postgres://postgres@/postgres?host=%s&port=%s", p->dir, port);
    int64_t limit_ns = il__clock_boot_ns() + (int64_t)START_MS * IL__NS_PER_MS;
    t_proc_start(&p->proc, argv, NULL);
    while (!ask_once(p->url, "SELECT 'up'", text)) {
        if (il__clock_boot_ns() > limit_ns || t_pid_gone(p->proc.pid, 0))
            T_FAIL("postgres does not start: %s; %s", text, read_log(log));
        (void)usleep(20000);
    }
}

void
t_postgres_kill(struct t_postgres *p)
{
    /* immediate shutdown: no checkpoint, nothing is written any more */
    t_proc_signal(&p->proc, SIGQUIT);
    T_TRUE(t_proc_end(&p->proc, START_MS));
    t_proc_release(&p->proc);
}

void
t_postgres_release(struct t_postgres *p)
{
    if (p->dir[0] == '\0')
        return;
    if (p->proc.pid != 0)
        t_postgres_kill(p);
    t_tmp_remove(p->dir);
    p->dir[0] = '\0';
}

/* ---- PgBouncer ------------------------------------------------------------------------------- */

/* host= of a URL. */
static void
folder_of(const char *url, char out[T_PATH_BYTES])
{
    const char *host = strstr(url, "host=");

    CHECK(host != NULL);
    t_path(out, "%.*s", (int)strcspn(host + 5, "&"), host + 5);
}

/* Two server connections for everybody: sessions change hands all the time. */
static void
write_ini(const struct t_bouncer *b, const char *server_dir, const char *path)
{
    char text[4096];
    int  n = snprintf(
         text, sizeof text,
         "[databases]\npostgres = host=%s user=postgres\n[pgbouncer]\nunix_socket_dir = %s\n"
          "listen_port = 6432\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 2\n"
          "server_round_robin = 1\nmax_client_conn = 200\nlogfile = %s/log\n",
         server_dir, b->dir, b->dir);

    CHECK(n > 0 && (size_t)n < sizeof text);
    t_file_write(path, text, (size_t)n);
}

void
t_bouncer_start(struct t_bouncer *b, const char *server_url)
{
    char        server_dir[T_PATH_BYTES], ini[T_PATH_BYTES], user[64], text[T_PG_TEXT_BYTES];
    const char *argv[ARGS_MAX] = { NULL };
    size_t      n              = as_nobody(argv, user);
    int64_t     limit_ns       = il__clock_boot_ns() + (int64_t)START_MS * IL__NS_PER_MS;

    *b = (struct t_bouncer){ .proc = { .in = -1, .out = -1 } };
    t_tmp_make_plain(b->dir, false);
    give_away(b->dir);
    CHECK(chmod(b->dir, 0755) == 0);
    folder_of(server_url, server_dir);
    t_path(ini, "%s/ini", b->dir);
    write_ini(b, server_dir, ini);
    CHECK(chmod(ini, 0644) == 0); /* it runs as another user */
    t_path(b->url, "postgres://postgres@/postgres?host=%s&port=6432", b->dir);
    argv[n++] = access("/usr/sbin/pgbouncer", X_OK) == 0 ? "/usr/sbin/pgbouncer" : "pgbouncer";
    argv[n++] = "-q";
    argv[n++] = ini;
    t_proc_start(&b->proc, argv, NULL);
    while (!ask_once(b->url, "SELECT 'up'", text)) {
        if (il__clock_boot_ns() > limit_ns || t_pid_gone(b->proc.pid, 0))
            T_FAIL("pgbouncer does not start: %s; %s", text, b->proc.text);
        (void)usleep(20000);
    }
}

void
t_bouncer_release(struct t_bouncer *b)
{
    if (b->dir[0] == '\0')
        return;
    t_proc_release(&b->proc);
    t_tmp_remove(b->dir);
    b->dir[0] = '\0';
}

const char *
t_percent(const char *url, char out[T_PATH_BYTES])
{
    size_t n = 0;

    for (const char *p = url; *p != '\0'; p++)
        n +=
            (size_t)(strchr(":/?&=@%", *p) != NULL ? snprintf(out + n, T_PATH_BYTES - n, "%%%02X",
                                                              (unsigned)(unsigned char)*p)
                                                   : snprintf(out + n, T_PATH_BYTES - n, "%c", *p));
    CHECK(n < T_PATH_BYTES);
    return out;
}

/* ---- stores of tests ------------------------------------------------------------------------- */

static struct t_postgres own;
static pid_t             own_pid; /* of the process that started it */

static void
stop_own(void)
{
    if (own_pid == getpid())
        t_postgres_release(&own);
}

const char *
t_postgres_url(void)
{
    const char *given = getenv("IL_TEST_POSTGRES");

    if (given != NULL && given[0] != '\0')
        return given;
    if (own_pid == 0) {
        own_pid = getpid();
        t_postgres_init(&own, false, false);
        t_postgres_start(&own, NULL);
        CHECK(atexit(stop_own) == 0);
    }
    return own.url;
}

/* The connection that claims and empties; of one process, not of its forked children. */
static struct {
    pid_t          pid;
    struct pg_url  url;
    struct pg_conn conn;
    struct {
        bool claimed, taken;
    } slots[SLOTS_MAX];
} admin;

static void
say(const char *sql, char out[T_PG_TEXT_BYTES])
{
    if (!ask(&admin.conn, sql, out))
        T_FAIL("%s: %s", sql, out);
}

static void
release_admin(void)
{
    if (admin.pid != getpid())
        return;
    il__pg_conn_close(&admin.conn);
    il__pg_url_release(&admin.url);
}

static void
connect_admin(void)
{
    char out[T_PG_TEXT_BYTES];

    if (admin.pid == getpid())
        return;
    CHECK(admin.pid != 0 || atexit(release_admin) == 0);
    memset(&admin, 0, sizeof admin); /* a forked child does not touch its parent's connection */
    admin.pid = getpid();
    T_EQ(parse(t_postgres_url(), &admin.url), IL_OK);
    il__pg_conn_init(&admin.conn, admin.url.server, admin.url.shown);
    say("SELECT set_config('session_replication_role', 'replica', false)",
        out); /* foreign keys are no hindrance */
    say("SELECT set_config('client_min_messages', 'error', false)", out);
}

/* A fingerprint of everything that a fresh install creates. */
static uint64_t
fingerprint(void)
{
    uint64_t h = il__hash_stable(sql_functions, sizeof sql_functions - 1, 0);

    for (int v = 0; v < il__pg_schema.version; v++)
        h = il__hash_stable(il__pg_schema.steps[v], strlen(il__pg_schema.steps[v]), h);
    return h;
}

/* An empty schema, unless what another program of the same build installed is there. */
static void
prepare_schema(const char *schema)
{
    char sql[512], out[T_PG_TEXT_BYTES], mark[32];

    (void)snprintf(mark, sizeof mark, "%016" PRIx64, fingerprint());
    (void)snprintf(sql, sizeof sql, "SELECT obj_description(to_regnamespace('%s'), 'pg_namespace')",
                   schema);
    say(sql, out);
    if (strcmp(out, mark) == 0)
        return;
    (void)snprintf(sql, sizeof sql, "DROP SCHEMA IF EXISTS %s CASCADE", schema);
    say(sql, out);
    (void)snprintf(sql, sizeof sql, "CREATE SCHEMA %s", schema);
    say(sql, out);
    (void)snprintf(sql, sizeof sql, "COMMENT ON SCHEMA %s IS '%s'", schema, mark);
    say(sql, out);
}

static void
empty_schema(const char *schema)
{
    char sql[1024], out[T_PG_TEXT_BYTES];

    (void)snprintf(
        sql, sizeof sql,
        "DO $$ DECLARE t regclass; BEGIN"
        " FOR t IN SELECT c.oid FROM pg_class c WHERE relnamespace = '%s'::regnamespace"
        " AND relkind = 'r' AND relname <> 'state' LOOP"
        " IF pg_relation_size(t) > 65536 THEN EXECUTE 'TRUNCATE ' || t;"
        " ELSIF pg_relation_size(t) > 0 THEN EXECUTE 'DELETE FROM ' || t; END IF;"
        " END LOOP;"
        " PERFORM setval(seqrelid, seqstart, false) FROM pg_sequence JOIN pg_class c ON c.oid = "
        "seqrelid"
        " WHERE relnamespace = '%s'::regnamespace AND relname NOT IN ('fence_seq', 'ticket_seq');"
        " IF to_regclass('%s.state') IS NOT NULL THEN UPDATE %s.state SET order_n = 0; END IF;"
        " END $$",
        schema, schema, schema, schema);
    say(sql, out);
}

static size_t
claim(void)
{
    char sql[128], out[T_PG_TEXT_BYTES], schema[32];

    for (size_t i = 1; i < SLOTS_MAX; i++) {
        if (admin.slots[i].claimed && !admin.slots[i].taken)
            return i;
    }
    for (size_t i = 1; i < SLOTS_MAX; i++) {
        if (admin.slots[i].claimed)
            continue;
        (void)snprintf(sql, sizeof sql, "SELECT pg_try_advisory_lock(20231, %zu)::text", i);
        say(sql, out);
        if (strcmp(out, "true") != 0)
            continue;
        admin.slots[i].claimed = true;
        (void)snprintf(schema, sizeof schema, "il_test_%zu", i);
        prepare_schema(schema);
        (void)snprintf(schema, sizeof schema, "il_test_%zu_r", i);
        prepare_schema(schema);
        return i;
    }
    T_FAIL("all %d stores of the test server are taken", SLOTS_MAX);
}

/* The same behind PgBouncer; only what is listened for comes past it. */
static struct t_bouncer bouncer;
static pid_t            bouncer_pid;

static void
stop_bouncer(void)
{
    if (bouncer_pid == getpid())
        t_bouncer_release(&bouncer);
}

const char *
t_bouncer_url(void)
{
    if (bouncer_pid == 0) {
        bouncer_pid = getpid();
        t_bouncer_start(&bouncer, t_postgres_url());
        CHECK(atexit(stop_bouncer) == 0);
    }
    return bouncer.url;
}

static void
make(char url[T_PATH_BYTES], char real_url[T_PATH_BYTES])
{
    char schema[32];

    connect_admin();
    const char *base      = t_postgres_url();
    char        separator = strchr(base, '?') == NULL ? '?' : '&';
    size_t      i         = claim();
    admin.slots[i].taken  = true;
    (void)snprintf(schema, sizeof schema, "il_test_%zu", i);
    empty_schema(schema);
    t_path(url, "%s%cschema=%s&clock=test", base, separator, schema);
    (void)snprintf(schema, sizeof schema, "il_test_%zu_r", i);
    empty_schema(schema);
    t_path(real_url, "%s%cschema=%s", base, separator, schema);
}

static size_t
slot_of(const char *url)
{
    const char *number = strstr(url, "schema=il_test_");

    CHECK(number != NULL);
    return strtoul(number + strlen("schema=il_test_"), NULL, 10);
}

static void
absent(const char *url, char ret[T_PATH_BYTES])
{
    const char *base = t_postgres_url();
    char        sql[128], out[T_PG_TEXT_BYTES];
    size_t      i = slot_of(url);

    (void)snprintf(sql, sizeof sql, "DROP SCHEMA IF EXISTS il_test_%zu_x CASCADE", i);
    say(sql, out);
    t_path(ret, "%s%cschema=il_test_%zu_x", base, strchr(base, '?') == NULL ? '?' : '&', i);
}

static void
forget(const char *url, const char *real_url UNUSED)
{
    if (admin.pid == getpid())
        admin.slots[slot_of(url)].taken = false;
}

static void
make_bounced(char url[T_PATH_BYTES], char real_url[T_PATH_BYTES])
{
    char        direct[T_PATH_BYTES];
    const char *base   = t_bouncer_url();
    const char *listen = t_percent(t_postgres_url(), direct);

    make(url, real_url);
    size_t i = slot_of(url);
    t_path(url, "%s&schema=il_test_%zu&clock=test&listen=%s", base, i, listen);
    t_path(real_url, "%s&schema=il_test_%zu_r&listen=%s", base, i, listen);
}

const struct t_server t_server_bouncer  = { .make   = make_bounced,
                                            .absent = absent,
                                            .forget = forget };
const struct t_server t_server_postgres = { .make = make, .absent = absent, .forget = forget };
