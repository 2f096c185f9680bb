/*
 * postgres_reuse.c: PostgreSQL connections that outlive a test.
 *
 * A new connection compiles the functions of a store on first use. That takes longer than most
 * tests, and every test opens its own handles. So a connection that a handle closes is reset and
 * kept, and the next handle with the same server and settings gets it. Tests of connections
 * themselves (tests/postgres) do not use this. Neither do connections over TCP: those go through a
 * proxy or a pooler, and resetting one that the test has cut would block for ever.
 */
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness/check.h"
#include "harness/postgres.h"
#include "store/postgres/libpq.h"

#define CONNS_MAX 256
#define WHERE_BYTES 2048

static const struct pg_libpq *real;
static struct pg_libpq        ours;
static pid_t                  owner; /* a forked child leaves its parent's connections alone */

/* Every connection that was opened here; pq is NULL in a free row. Under the mutex. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct row {
    PGconn *pq;
    bool    idle, tainted;
    char    where[WHERE_BYTES];
} rows[CONNS_MAX];

static bool
describe(const char *const *keywords, const char *const *values, char out[WHERE_BYTES])
{
    size_t n = 0;

    for (size_t i = 0; keywords[i] != NULL && n < WHERE_BYTES; i++)
        n += (size_t)snprintf(out + n, WHERE_BYTES - n, "%s=%s\n", keywords[i],
                              values[i] != NULL ? values[i] : "");
    return n < WHERE_BYTES;
}

static bool
is_local(const char *where)
{
    return strstr(where, "\nhost=/") != NULL;
}

static struct row *
row_of(const PGconn *pq)
{
    for (size_t i = 0; i < CONNS_MAX; i++) {
        if (rows[i].pq == pq)
            return &rows[i];
    }
    return NULL;
}

/* An idle connection says nothing: one that does was closed by the server. */
static bool
is_alive(PGconn *pq)
{
    struct pollfd fd = { .fd = real->PQsocket(pq), .events = POLLIN };

    return real->PQstatus(pq) == CONNECTION_OK && poll(&fd, 1, 0) == 0;
}

static PGconn *
take(const char *where)
{
    for (size_t i = 0; i < CONNS_MAX; i++) {
        struct row *r = &rows[i];
        if (r->pq == NULL || !r->idle || strcmp(r->where, where) != 0)
            continue;
        if (is_alive(r->pq)) {
            r->idle = false;
            return r->pq;
        }
        real->PQfinish(r->pq);
        *r = (struct row){ .pq = NULL };
    }
    return NULL;
}

static PGconn *
start(const char *const *keywords, const char *const *values, int expand)
{
    char where[WHERE_BYTES];

    if (owner != getpid() || !describe(keywords, values, where) || !is_local(where))
        return real->PQconnectStartParams(keywords, values, expand);
    CHECK(pthread_mutex_lock(&mutex) == 0);
    PGconn *pq = take(where);
    if (pq == NULL) {
        pq            = real->PQconnectStartParams(keywords, values, expand);
        struct row *r = row_of(NULL);
        if (pq != NULL && r != NULL) {
            *r = (struct row){ .pq = pq };
            (void)snprintf(r->where, sizeof r->where, "%s", where);
        }
    }
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    return pq;
}

/* A cancellation may arrive late, and would then hit the next user's statement. */
static PGcancel *
get_cancel(PGconn *pq)
{
    CHECK(pthread_mutex_lock(&mutex) == 0);
    struct row *r = row_of(pq);
    if (r != NULL)
        r->tainted = true;
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    return real->PQgetCancel(pq);
}

static void
ignore(void *cookie UNUSED, const PGresult *r UNUSED)
{
}

/* As if it were new, but for what it has compiled. */
static bool
reset(PGconn *pq)
{
    bool      ok = true;
    PGresult *r;
    PGnotify *note;

    (void)real->PQsetNoticeReceiver(pq, ignore, NULL);
    if (real->PQstatus(pq) != CONNECTION_OK || real->PQtransactionStatus(pq) != PQTRANS_IDLE ||
        real->PQsetnonblocking(pq, 0) != 0 ||
        real->PQsendQuery(pq, "RESET SESSION AUTHORIZATION; RESET ALL; UNLISTEN *;"
                              " SELECT pg_catalog.pg_advisory_unlock_all()") == 0)
        return false;
    while ((r = real->PQgetResult(pq)) != NULL) {
        ExecStatusType st = real->PQresultStatus(r);
        ok                = ok && (st == PGRES_COMMAND_OK || st == PGRES_TUPLES_OK);
        real->PQclear(r);
    }
    while ((note = real->PQnotifies(pq)) != NULL)
        real->PQfreemem(note);
    return ok;
}

static void
finish(PGconn *pq)
{
    if (owner != getpid()) {
        real->PQfinish(pq);
        return;
    }
    CHECK(pthread_mutex_lock(&mutex) == 0);
    struct row *r    = pq != NULL ? row_of(pq) : NULL;
    bool        keep = r != NULL && !r->tainted;
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    keep = keep && reset(pq); /* nobody else has it meanwhile: the row is not idle */
    CHECK(pthread_mutex_lock(&mutex) == 0);
    if (keep)
        r->idle = true;
    else if (r != NULL)
        *r = (struct row){ .pq = NULL };
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    if (!keep)
        real->PQfinish(pq);
}

static void
close_all(void)
{
    for (size_t i = 0; owner == getpid() && i < CONNS_MAX; i++) {
        if (rows[i].pq != NULL && rows[i].idle)
            real->PQfinish(rows[i].pq);
    }
}

void
t_postgres_reuse(void)
{
    il_error err = { .status = IL_OK };

    if (real != NULL || il__pg_libpq_load(&err) != IL_OK)
        return;
    owner                     = getpid();
    real                      = il__pq;
    ours                      = *real;
    ours.PQconnectStartParams = start;
    ours.PQgetCancel          = get_cancel;
    ours.PQfinish             = finish;
    il__pq                    = &ours;
    CHECK(atexit(close_all) == 0);
}
