/*
 * servers.c: runs servers as children, with the settings named in the rows. Connections use Unix
 * sockets, both for ours and for its peers.
 */
#include "servers.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define START_MS_MAX INT64_C(30000)
#define TEXT_BYTES 2048

struct server {
    bool           tried;
    const char    *why; /* why it is unavailable; NULL = it is available */
    struct process process;
    char           dir[BENCH_PATH_BYTES];
    char           path[BENCH_PATH_BYTES + 64]; /* of its socket */
};

struct servers {
    struct server postgres;
    unsigned      n_stores; /* created in PostgreSQL so far */
    struct server redis[2]; /* [durable] */
};

static struct servers *
servers_of(struct bench *b)
{
    if (b->servers == NULL)
        b->servers = must_calloc(1, sizeof *b->servers);
    return b->servers;
}

/* A folder for it, with a path short enough for its socket. */
static bool
make_dir(struct bench *b, struct server *s, const char *name, const char *socket)
{
    struct sockaddr_un address;

    (void)temp_path(b, name, s->dir);
    int n = snprintf(s->path, sizeof s->path, "%s/%s", s->dir, socket);
    if (n < 0 || (size_t)n >= sizeof address.sun_path) {
        s->why = "the path of the temporary folder is too long for a socket (set TMPDIR)";
        return false;
    }
    if (mkdir(s->dir, 0700) != 0)
        die("%s: %s", s->dir, strerror(errno));
    return true;
}

static _Noreturn void
did_not_start(const char *name, const char *log)
{
    char text[TEXT_BYTES];

    die("%s did not start: %s", name, file_tail(log, text, sizeof text));
}

void
servers_stop(struct bench *b)
{
    if (b->servers == NULL)
        return;
    process_stop(&b->servers->postgres.process);
    process_stop(&b->servers->redis[0].process);
    process_stop(&b->servers->redis[1].process);
    free(b->servers);
    b->servers = NULL;
}

/* ---- PostgreSQL ------------------------------------------------------------------------------ */

const char *
postgres_dir(const struct bench *b)
{
    return b->servers->postgres.dir;
}

static void
be_quiet(void *unused UNUSED, const char *text UNUSED)
{
}

static PGconn *
try_connect(struct bench *b, const char *database)
{
    const char *const names[]  = { "host", "user", "dbname", NULL };
    const char *const values[] = { postgres_dir(b), "postgres", database, NULL };
    PGconn           *c        = PQconnectdbParams(names, values, 0);

    if (PQstatus(c) == CONNECTION_OK) {
        IGNORE(PQsetNoticeProcessor(c, be_quiet, NULL) == NULL); /* the previous one failed */
        return c;
    }
    PQfinish(c);
    return NULL;
}

PGconn *
postgres_connect(struct bench *b, const char *database)
{
    PGconn *c = try_connect(b, database);

    if (c == NULL)
        die("PostgreSQL: no connection to %s", database);
    return c;
}

void
postgres_exec(PGconn *c, const char *sql)
{
    PGresult      *r  = PQexec(c, sql);
    ExecStatusType st = PQresultStatus(r);

    if (st != PGRES_COMMAND_OK && st != PGRES_TUPLES_OK)
        die("PostgreSQL: %s: %s", sql, PQerrorMessage(c));
    PQclear(r);
}

/* Other users must be able to access the folder if we are root. */
static bool
give_away(const struct bench *b, struct server *s)
{
    uid_t uid;
    gid_t gid;

    if (geteuid() != 0)
        return true;
    if (!temp_is_open(b->dir) || !process_user(&uid, &gid)) {
        s->why = "PostgreSQL does not run as root, and no other user gets to the temporary folder "
                 "(set TMPDIR)";
        return false;
    }
    if (chown(s->dir, uid, gid) != 0)
        die("%s: %s", s->dir, strerror(errno));
    return true;
}

static void
make_cluster(const struct server *s, const char *data)
{
    char program[BENCH_PATH_BYTES];
    char text[TEXT_BYTES];

    if (!program_find("initdb", program))
        die("there is a postgres, but no initdb");
    const char *const  argv[] = { program, "-D", data,   "-U",         "postgres",  "-A",
                                  "trust", "-E", "UTF8", "--locale=C", "--no-sync", NULL };
    struct process_how how    = { .dir = s->dir, .unprivileged = true };
    if (!process_run(argv, &how, text, sizeof text))
        die("initdb: %s", text);
}

static void
start_postgres(struct bench *b, struct server *s, const char *program)
{
    char data[BENCH_PATH_BYTES + 16];
    char log[BENCH_PATH_BYTES];

    (void)snprintf(data, sizeof data, "%s/data", s->dir);
    make_cluster(s, data);
    /* These are Debian's defaults, except the connections; they are set explicitly because they are
     * printed beside the numbers. */
    const char *const  argv[] = { program,
                                  "-D",
                                  data,
                                  "-k",
                                  s->dir,
                                  "-c",
                                  "listen_addresses=",
                                  "-c",
                                  "max_connections=200",
                                  "-c",
                                  "fsync=on",
                                  "-c",
                                  "full_page_writes=on",
                                  "-c",
                                  "synchronous_commit=on",
                                  "-c",
                                  "shared_buffers=128MB",
                                  NULL };
    struct process_how how    = { .dir          = s->dir,
                                  .log          = temp_path(b, "postgres.log", log),
                                  .unprivileged = true,
                                  .end_signal   = SIGQUIT }; /* at once, writing nothing */
    s->process                = process_start(argv, &how);
    PGconn *c                 = NULL;
    for (int64_t until_ns = il__clock_boot_ns() + START_MS_MAX * IL__NS_PER_MS;
         c == NULL && !process_ended(&s->process) && il__clock_boot_ns() < until_ns;) {
        c = try_connect(b, "postgres");
        if (c == NULL)
            (void)usleep(10000);
    }
    if (c == NULL)
        did_not_start("PostgreSQL", log);
    const char *version = PQparameterStatus(c, "server_version");
    report_software(&b->report, "PostgreSQL %.*s", (int)strcspn(version, " "), version);
    PQfinish(c);
}

bool
postgres_ready(struct bench *b, const char **why)
{
    struct server *s = &servers_of(b)->postgres;
    char           program[BENCH_PATH_BYTES];

    if (!s->tried) {
        s->tried = true;
        if (!program_find("postgres", program))
            s->why = "PostgreSQL is not installed";
        else if (make_dir(b, s, "postgres", ".s.PGSQL.5432") && give_away(b, s))
            start_postgres(b, s, program);
    }
    *why = s->why;
    return s->why == NULL;
}

struct database
postgres_database(struct bench *b, unsigned i)
{
    struct servers *s = b->servers;
    struct database d;
    char            sql[128];

    s->n_stores++;
    (void)snprintf(d.name, sizeof d.name, "bench_%u", b->quick ? i : s->n_stores);
    (void)snprintf(d.url, sizeof d.url, "postgres://postgres@/%s?host=%s&schema=bench_%u", d.name,
                   postgres_dir(b), s->n_stores);
    if (b->quick && s->n_stores > 2)
        return d;
    PGconn *c = postgres_connect(b, "postgres");
    (void)snprintf(sql, sizeof sql, "CREATE DATABASE \"%s\"", d.name);
    postgres_exec(c, sql);
    PQfinish(c);
    return d;
}

void
postgres_drop(struct bench *b, const struct database *d)
{
    char sql[128];

    if (b->quick)
        return;
    PGconn *c = postgres_connect(b, "postgres");
    (void)snprintf(sql, sizeof sql, "DROP DATABASE \"%s\" WITH (FORCE)", d->name);
    postgres_exec(c, sql);
    PQfinish(c);
}

/* ---- Redis ----------------------------------------------------------------------------------- */

const char *
redis_socket(const struct bench *b, bool durable)
{
    return b->servers->redis[durable].path;
}

const char *
redis_url(const struct bench *b, bool durable, char url[BENCH_URL_BYTES])
{
    (void)snprintf(url, BENCH_URL_BYTES, "redis+unix://%s", redis_socket(b, durable));
    return url;
}

static redisContext *
try_redis(const struct bench *b, bool durable)
{
    redisContext *c = redisConnectUnix(redis_socket(b, durable));

    if (c == NULL)
        die("no memory");
    if (c->err == 0)
        return c;
    redisFree(c);
    return NULL;
}

redisContext *
redis_open(struct bench *b, bool durable)
{
    redisContext *c = try_redis(b, durable);

    if (c == NULL)
        die("Redis: no connection");
    return c;
}

static void
note_redis_version(struct bench *b, redisContext *c)
{
    static const char name[] = "redis_version:";
    redisReply       *reply  = redisCommand(c, "INFO server");
    const char       *at =
        reply != NULL && reply->type == REDIS_REPLY_STRING ? strstr(reply->str, name) : NULL;

    if (at == NULL)
        die("Redis: no INFO");
    at += strlen(name);
    report_software(&b->report, "Redis %.*s", (int)strcspn(at, "\r\n"), at);
    freeReplyObject(reply);
}

static void
start_redis(struct bench *b, struct server *s, const char *program, bool durable)
{
    char               log[BENCH_PATH_BYTES];
    const char *const  argv[] = { program,
                                  "--port",
                                  "0",
                                  "--unixsocket",
                                  s->path,
                                  "--dir",
                                  s->dir,
                                  "--daemonize",
                                  "no",
                                  "--save",
                                  "",
                                  "--appendonly",
                                 durable ? "yes" : "no",
                                  "--appendfsync",
                                  "always",
                                  NULL };
    const char        *name   = durable ? "redis-aof.log" : "redis.log";
    struct process_how how    = { .dir = s->dir, .log = temp_path(b, name, log) };

    s->process      = process_start(argv, &how);
    redisContext *c = NULL;
    for (int64_t until_ns = il__clock_boot_ns() + START_MS_MAX * IL__NS_PER_MS;
         c == NULL && !process_ended(&s->process) && il__clock_boot_ns() < until_ns;) {
        c = try_redis(b, durable);
        if (c == NULL)
            (void)usleep(2000);
    }
    if (c == NULL)
        did_not_start("redis-server", log);
    note_redis_version(b, c);
    redisFree(c);
}

bool
redis_ready(struct bench *b, bool durable, const char **why)
{
    struct server *s = &servers_of(b)->redis[durable];
    char           program[BENCH_PATH_BYTES];

    if (!s->tried) {
        s->tried = true;
        if (!program_find("redis-server", program))
            s->why = "redis-server is not installed";
        else if (make_dir(b, s, durable ? "redis-aof" : "redis", "s"))
            start_redis(b, s, program, durable);
    }
    *why = s->why;
    return s->why == NULL;
}

void
redis_empty(struct bench *b, bool durable)
{
    redisContext *c     = redis_open(b, durable);
    redisReply   *reply = redisCommand(c, "FLUSHALL");

    if (reply == NULL || reply->type == REDIS_REPLY_ERROR)
        die("Redis: FLUSHALL failed");
    freeReplyObject(reply);
    redisFree(c);
}
