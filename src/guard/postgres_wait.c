/*
 * postgres_wait.c: runs one statement on a connection: sends it, waits for it, passes its rows on
 * one by one, and cancels it on interrupt or timeout.
 *
 * Rows are read in single-row mode, so that a result of any size needs memory for one row only.
 * Statements use the extended protocol: the server itself then refuses several in one text. To
 * cancel, a detached thread asks the server to stop (over another connection), and this connection
 * is closed at once: the server rolls back what was not committed.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/parse.h"
#include "guard/postgres_internal.h"

/* ---- errors ---------------------------------------------------------------------------------- */

/* Classify an error. The statement's own fault: IL_INVAL. It may work next time: IL_STORE. */
static il_status
map(const char *sqlstate)
{
    static const struct {
        const char *prefix;
        il_status   status;
    } rows[] = {
        { "IL001", IL_STALE }, /* of check_fence() and of guarded tables */
        { "08P01", IL_INVAL }, /* protocol_violation: too few values for its parameters */
        { "08", IL_STORE },    /* connections */
        { "25P03", IL_STORE }, /* idle_in_transaction_session_timeout */
        { "40", IL_STORE },    /* serialization_failure, deadlock_detected */
        { "53", IL_STORE },    /* out of some resource; il__pg_map() knows more */
        { "55", IL_STORE },    /* lock_not_available, object_in_use */
        { "57", IL_STORE },    /* shutdown, statement_timeout */
        { "58", IL_STORE },    /* the server's system */
        { "XX", IL_STORE },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (strncmp(sqlstate, rows[i].prefix, strlen(rows[i].prefix)) == 0)
            return rows[i].status == IL_STORE ? il__pg_map(sqlstate) : rows[i].status;
    }
    return IL_INVAL;
}

static il_status
refuse(struct postgres_guard *g, const PGresult *r, il_error *reterr)
{
    const char *sqlstate = il__pq->PQresultErrorField(r, PG_DIAG_SQLSTATE);
    const char *text     = il__pq->PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);

    if (sqlstate == NULL) /* libpq's own words */
        return il__error_set(reterr, IL_STORE, "%s: connection lost", g->url.shown);
    (void)snprintf(g->sqlstate, sizeof g->sqlstate, "%s", sqlstate);
    il_status st = map(sqlstate);
    if (strcmp(sqlstate, "42601") == 0 && text != NULL && strstr(text, "multiple commands") != NULL)
        text = GUARD_SEVERAL_TEXT;
    il__error_set(reterr, st, "%s: %s", g->url.shown, text != NULL ? text : "it refuses");
    if (reterr != NULL)
        (void)snprintf(reterr->native, sizeof reterr->native, "%s", sqlstate);
    return st;
}

static il_status
lose(struct postgres_guard *g, il_error *reterr)
{
    il__pg_conn_close(&g->conn);
    return il__error_set(reterr, IL_STORE, "%s: connection lost", g->url.shown);
}

/* ---- cancelling ------------------------------------------------------------------------------ */

/*
 * More than once: the server's process ignores a cancel request that arrives before it has started
 * the statement. Once the process has exited, as it does after the connection is closed, a request
 * has no effect: it contains a key.
 */
static void *
cancel_main(void *arg)
{
    static const int delays_ms[] = { 0, 20, 100, 500, 2000 };
    char             why[256];

    for (size_t i = 0; i < ARRAY_LEN(delays_ms); i++) {
        (void)poll(NULL, 0, delays_ms[i]);
        (void)il__pq->PQcancel(
            arg, why, sizeof why); /* if it fails, the statement runs until its server notices */
    }
    il__pq->PQfreeCancel(arg);
    return NULL;
}

static void
ask_to_cancel(struct postgres_guard *g)
{
    pthread_t      thread;
    pthread_attr_t attr;
    sigset_t       all, before;
    PGcancel      *cancel = il__pq->PQgetCancel(g->conn.pq);

    if (cancel == NULL)
        return;
    CHECK(pthread_attr_init(&attr) == 0);
    CHECK(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED) == 0);
    CHECK(sigfillset(&all) == 0);
    CHECK(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    bool started = pthread_create(&thread, &attr, cancel_main, cancel) == 0;
    CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    (void)pthread_attr_destroy(&attr);
    if (!started)
        il__pq->PQfreeCancel(cancel);
}

static il_status
give_up(struct postgres_guard *g, bool interrupted, il_error *reterr)
{
    ask_to_cancel(g);
    il__pg_conn_close(&g->conn);
    if (interrupted)
        return il__guard_cancelled(reterr);
    return il__error_set(reterr, IL_STORE, "%s: timed out", g->url.shown);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Wait until the socket is ready, time is up, or it should stop; the caller checks which. */
static short
wait_for_socket(struct postgres_guard *g, const struct postgres_statement *s, short events)
{
    struct pollfd fds[2] = { { .fd = il__pq->PQsocket(g->conn.pq), .events = events },
                             { .fd = s->to_the_end ? -1 : g->base.stop_fd, .events = POLLIN } };
    int           ms     = -1;

    if (s->until_ns != 0) {
        int64_t left_ns = MAX(s->until_ns - il__clock_boot_ns(), 0);
        ms              = (int)MIN((left_ns + IL__NS_PER_MS - 1) / IL__NS_PER_MS, INT32_MAX);
    }
    (void)poll(fds, 2, ms);
    return fds[0].revents;
}

/* Send pending data and read until there is a result, or no more. */
static il_status
wait_for_result(struct postgres_guard *g, const struct postgres_statement *s, il_error *reterr)
{
    for (;;) {
        if (!s->to_the_end && atomic_load(&g->base.interrupted))
            return give_up(g, true, reterr);
        int unsent = il__pq->PQflush(g->conn.pq);
        if (unsent < 0)
            return lose(g, reterr);
        if (unsent == 0 && il__pq->PQisBusy(g->conn.pq) == 0)
            return IL_OK;
        if (s->until_ns != 0 && il__clock_boot_ns() >= s->until_ns)
            return give_up(g, false, reterr);
        short can = wait_for_socket(g, s, (short)(unsent > 0 ? POLLIN | POLLOUT : POLLIN));
        if ((can & ~POLLOUT) != 0 && il__pq->PQconsumeInput(g->conn.pq) == 0)
            return lose(g, reterr);
    }
}

/* ---- results --------------------------------------------------------------------------------- */

/* The only row of a result. False: out of memory. */
static bool
give_row(struct postgres_guard *g, const PGresult *r, const struct postgres_statement *s,
         bool *more)
{
    size_t n = (size_t)il__pq->PQnfields(r);

    if (g->n_texts < n * 2) {
        const char **texts = il__realloc(g->texts, n * 2 * sizeof *texts);
        if (texts == NULL)
            return false;
        g->texts   = texts;
        g->n_texts = n * 2;
    }
    for (size_t i = 0; i < n; i++) {
        g->texts[i] = il__pq->PQfname(r, (int)i);
        g->texts[n + i] =
            il__pq->PQgetisnull(r, 0, (int)i) != 0 ? NULL : il__pq->PQgetvalue(r, 0, (int)i);
    }
    *more = s->each(s->cookie, &(struct guard_row){ n, g->texts, g->texts + n });
    return true;
}

/* The command, and the number of rows it changed. Only changes count: for a SELECT the tag has the
 * number of rows returned. */
static void
take_tag(PGresult *r, struct postgres_statement *s)
{
    static const char *const changes[] = { "INSERT", "UPDATE", "DELETE", "MERGE", "COPY" };
    const char              *tag       = il__pq->PQcmdStatus(r);
    uint64_t                 n         = 0;

    (void)snprintf(s->tag, sizeof s->tag, "%.*s", (int)MIN(strcspn(tag, " "), sizeof s->tag - 1),
                   tag);
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        if (strcmp(s->tag, changes[i]) == 0 && il__parse_u64(il__pq->PQcmdTuples(r), INT64_MAX, &n))
            s->n_changed = (int64_t)n;
    }
}

/* Process one result; *more: rows are still wanted. */
static il_status
take_result(struct postgres_guard *g, PGresult *r, struct postgres_statement *s, bool *more,
            il_error *reterr)
{
    switch (il__pq->PQresultStatus(r)) {
    case PGRES_SINGLE_TUPLE:
        if (*more && !give_row(g, r, s, more))
            return il__error_set(reterr, IL_NOMEM, "out of memory for a row");
        return IL_OK;
    case PGRES_TUPLES_OK: /* the end of the rows */
    case PGRES_COMMAND_OK:
        take_tag(r, s);
        return IL_OK;
    case PGRES_EMPTY_QUERY:
        return il__error_set(reterr, IL_INVAL, "%s", GUARD_EMPTY_TEXT);
    case PGRES_COPY_IN:
    case PGRES_COPY_OUT:
    case PGRES_COPY_BOTH:
        il__pg_conn_close(&g->conn); /* the simplest way out */
        return il__error_set(reterr, IL_INVAL,
                             "%s: COPY from or to the client is not supported here", g->url.shown);
    default:
        return refuse(g, r, reterr);
    }
}

il_status
il__guard_postgres_run(struct postgres_guard *g, struct postgres_statement *s, il_error *reterr)
{
    bool      more = s->each != NULL;
    il_status st   = IL_OK;

    g->sqlstate[0] = '\0';
    if (g->conn.pq == NULL)
        return il__error_set(reterr, IL_STORE, "%s: connection lost", g->url.shown);
    if (il__pq->PQsendQueryParams(g->conn.pq, s->sql, (int)s->n_values, NULL, s->values, NULL, NULL,
                                  0) != 1)
        return lose(g, reterr);
    (void)il__pq->PQsetSingleRowMode(g->conn.pq); /* fails only when nothing was sent */
    for (;;) {
        il_status waited = wait_for_result(g, s, st == IL_OK ? reterr : NULL);
        if (waited != IL_OK)
            return st == IL_OK ? waited : st;
        PGresult *r = il__pq->PQgetResult(g->conn.pq);
        if (r == NULL)
            break;
        if (st == IL_OK) /* the first failure has the reason */
            st = take_result(g, r, s, &more, reterr);
        il__pq->PQclear(r);
        if (g->conn.pq == NULL)
            return st;
    }
    if (il__pq->PQstatus(g->conn.pq) == CONNECTION_BAD) {
        il__pg_conn_close(&g->conn);
        if (st == IL_OK)
            st = il__error_set(reterr, IL_STORE, "%s: connection lost", g->url.shown);
    }
    return st;
}

int64_t
il__guard_postgres_soon(const struct postgres_guard *g)
{
    return il__pg_in_ms(MIN(g->base.timeout_ms, GUARD_ANSWER_MS_MAX));
}

il_status
il__guard_postgres_exec(struct postgres_guard *g, const char *sql, il_error *reterr)
{
    struct postgres_statement s = { .sql = sql, .until_ns = il__guard_postgres_soon(g) };

    return il__guard_postgres_run(g, &s, reterr);
}
