/*
 * conn.c: one connection to a PostgreSQL server: runs statements under a deadline and reports their
 * outcome. No other file looks at SQLSTATEs.
 *
 * Nothing here depends on session state, so a pooler may switch the server process after each
 * transaction. Nothing here waits without a deadline. Only the first line of the server's message,
 * or libpq's own text, is kept for error messages; details and contexts are dropped because they
 * quote values.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "store/postgres/postgres_internal.h"

/* wait for the reply to a cancelled statement: it was undone */
#define CANCEL_WAIT_MS 500
#define BACKOFF_MS_MIN 20
#define BACKOFF_MS_MAX 1000
#define CONNECT_PARAMS_MAX 64
#define HOST_BYTES 264
#define TARGET_VARIABLE "PGTARGETSESSIONATTRS"

/* ---- errors ---------------------------------------------------------------------------------- */

il_status
il__pg_map(const char *sqlstate)
{
    static const struct {
        const char *prefix;
        il_status   status;
    } rows[] = {
        { "53100", IL_FULL },    /* disk_full */
        { "53200", IL_NOMEM },   /* out_of_memory, of the server */
        { "XX001", IL_CORRUPT }, /* data_corrupted */
        { "XX002", IL_CORRUPT }, /* index_corrupted */
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (strncmp(sqlstate, rows[i].prefix, strlen(rows[i].prefix)) == 0)
            return rows[i].status;
    }
    return IL_STORE;
}

/* Did the server refuse the connection for a reason that a retry will not change: password, role,
 * database? */
static bool
is_refused(const struct pg_conn *c)
{
    /* connection failures, too many connections, starting or stopping, a standby (which may be
     * promoted) */
    static const char *const passing[] = { "08", "53", "57P", "25006" };

    for (size_t i = 0; i < ARRAY_LEN(passing); i++) {
        if (strncmp(c->sqlstate, passing[i], strlen(passing[i])) == 0)
            return false;
    }
    return true;
}

il_status
il__pg_error(const struct pg_conn *c, il_error *reterr)
{
    il_status st = il__pg_map(c->sqlstate);

    CHECK(c->outcome != PG_DONE);
    il__error_set(reterr, st, "%s: %s", c->shown, c->why[0] != '\0' ? c->why : "connection lost");
    if (reterr != NULL)
        (void)snprintf(reterr->native, sizeof reterr->native, "%s",
                       c->outcome == PG_NOT_SENT && !is_refused(c) ? IL__NATIVE_BUSY : c->sqlstate);
    return st;
}

/* The first line, without the level that libpq puts in front. */
static void
keep_text(struct pg_conn *c, const char *text)
{
    while (*text == ' ' || *text == '\n')
        text++;
    (void)snprintf(c->why, sizeof c->why, "%.*s", (int)MIN(strcspn(text, "\n"), sizeof c->why - 1),
                   text);
}

static bool
fail(struct pg_conn *c, enum pg_outcome outcome, const char *sqlstate, const char *text)
{
    c->outcome = outcome;
    (void)snprintf(c->sqlstate, sizeof c->sqlstate, "%s", sqlstate);
    keep_text(c, text);
    return false;
}

bool
il__pg_misunderstood(struct pg_conn *c, const char *what)
{
    return fail(c, PG_UNKNOWN, "", what);
}

/* The server's message about a statement. */
static void
fail_with(struct pg_conn *c, const PGresult *r)
{
    const char *sqlstate = il__pq->PQresultErrorField(r, PG_DIAG_SQLSTATE);
    const char *text     = il__pq->PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
    const char *level    = il__pq->PQresultErrorField(r, PG_DIAG_SEVERITY_NONLOCALIZED);
    /* A server process that terminates may have committed before. */
    bool ends = level != NULL && strcmp(level, "ERROR") != 0;

    (void)fail(c, ends || sqlstate == NULL ? PG_UNKNOWN : PG_UNDONE,
               sqlstate != NULL ? sqlstate : "08006", text != NULL ? text : "connection lost");
}

/* ---- waiting --------------------------------------------------------------------------------- */

int64_t
il__pg_in_ms(int64_t ms)
{
    return il__clock_boot_ns() + ms * IL__NS_PER_MS;
}

/* Poll until the socket is ready or time is up; the caller checks which. */
static void
wait_until(struct pollfd *fds, nfds_t n, int64_t until_ns)
{
    int64_t left_ns = MAX(until_ns - il__clock_boot_ns(), 0);
    int64_t left_ms = (left_ns + IL__NS_PER_MS - 1) / IL__NS_PER_MS;

    (void)poll(fds, n, (int)MIN(left_ms, INT32_MAX));
}

void
il__pg_wait_for_input(const struct pg_conn *c, int fd, int64_t until_ns)
{
    struct pollfd fds[2] = { { .fd = fd, .events = POLLIN }, { .fd = -1, .events = POLLIN } };

    if (c->pq != NULL)
        fds[1].fd = il__pq->PQsocket(c->pq);
    wait_until(fds, 2, until_ns);
}

/* What the socket can do by then. */
static short
wait_for_socket(const struct pg_conn *c, short events, int64_t until_ns)
{
    struct pollfd fds[2] = { { .fd = il__pq->PQsocket(c->pq), .events = events },
                             { .fd = c->stop_fd, .events = POLLIN } };

    wait_until(fds, 2, until_ns);
    return fds[0].revents;
}

static bool
time_is_up(const struct pg_conn *c, int64_t until_ns)
{
    struct pollfd stop = { .fd = c->stop_fd, .events = POLLIN };

    return il__clock_boot_ns() >= until_ns || (c->stop_fd >= 0 && poll(&stop, 1, 0) > 0);
}

/* ---- connecting ------------------------------------------------------------------------------ */

void
il__pg_conn_init(struct pg_conn *c, const PQconninfoOption *where, const char *shown)
{
    *c = (struct pg_conn){ .where = where, .shown = shown, .stop_fd = -1 };
}

void
il__pg_conn_close(struct pg_conn *c)
{
    if (c->pq != NULL)
        il__pq->PQfinish(c->pq);
    c->pq      = NULL;
    c->pending = false;
}

/*
 * A warning matters only if it says that the server stopped waiting for the standbys to confirm a
 * commit, which is then reported as a success. It is recognized by the server function that raised
 * it, because its text is translated and its SQLSTATE is that of any warning.
 */
static void
take_notice(void *cookie, const PGresult *r)
{
    struct pg_conn *c    = cookie;
    const char     *from = il__pq->PQresultErrorField(r, PG_DIAG_SOURCE_FUNCTION);

    if (from != NULL && strcmp(from, "SyncRepWaitForLSN") == 0)
        c->unreplicated = true;
}

/* How many servers does the URL name? */
static size_t
count_hosts(const PQconninfoOption *where)
{
    size_t n = 1;

    for (const PQconninfoOption *o = where; o->keyword != NULL; o++) {
        if (o->val == NULL ||
            (strcmp(o->keyword, "host") != 0 && strcmp(o->keyword, "hostaddr") != 0))
            continue;
        size_t n_here = 1;
        for (const char *at = o->val; *at != '\0'; at++)
            n_here += *at == ',';
        n = MAX(n, n_here);
    }
    return n;
}

/* The i-th of a list, or its only one. */
static const char *
element(const char *list, size_t i, char out[HOST_BYTES])
{
    if (strchr(list, ',') == NULL)
        return list;
    for (; i > 0 && *list != '\0'; i--)
        list += strcspn(list, ",") + (list[strcspn(list, ",")] == ',');
    (void)snprintf(out, HOST_BYTES, "%.*s", (int)MIN(strcspn(list, ","), HOST_BYTES - 1), list);
    return out;
}

/* The settings of the URL, after our defaults and before the mandatory ones. For several servers,
 * those of the i-th. */
static PGconn *
connect_start(const struct pg_conn *c, size_t i)
{
    const char *keywords[CONNECT_PARAMS_MAX + 8] = { "fallback_application_name", "keepalives_idle",
                                                     "keepalives_interval", "keepalives_count" };
    const char *values[CONNECT_PARAMS_MAX + 8]   = { "interlock", "20", "5", "3" };
    size_t      n                                = 4;
    char        host[HOST_BYTES], address[HOST_BYTES], port[HOST_BYTES];

    /* A standby lags behind, so a fence it reports may be outdated. Our default takes precedence
     * over the environment, unlike one of libpq's. */
    if (c->primary && getenv(TARGET_VARIABLE) == NULL) {
        keywords[n] = "target_session_attrs";
        values[n++] = "read-write";
    }
    for (const PQconninfoOption *o = c->where; o->keyword != NULL && n < CONNECT_PARAMS_MAX; o++) {
        if (o->val == NULL)
            continue;
        keywords[n] = o->keyword;
        values[n]   = o->val;
        if (strcmp(o->keyword, "host") == 0)
            values[n] = element(o->val, i, host);
        else if (strcmp(o->keyword, "hostaddr") == 0)
            values[n] = element(o->val, i, address);
        else if (strcmp(o->keyword, "port") == 0)
            values[n] = element(o->val, i, port);
        n++;
    }
    keywords[n] = "client_encoding";
    values[n]   = "UTF8";
    return il__pq->PQconnectStartParams(keywords, values, 0);
}

/*
 * The server's refusal has the form "LEVEL:  SQLSTATE: text"; level and text may be in any
 * language. libpq offers no other way to get the SQLSTATE of a failed connection. It is removed
 * from c->why, which is for people; without an SQLSTATE, libpq itself has failed.
 */
static void
take_sqlstate(struct pg_conn *c)
{
    char *code = strstr(c->why, ":  ");

    if (code == NULL || strspn(code + 3, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") != 5 ||
        strncmp(code + 8, ": ", 2) != 0)
        return;
    code += 3;
    (void)snprintf(c->sqlstate, sizeof c->sqlstate, "%.5s", code);
    memmove(code, code + 7, strlen(code + 7) + 1);
}

/* In libpq's words, except those that do not say what to do. */
static bool
fail_to_connect(struct pg_conn *c)
{
    const char *text = il__pq->PQerrorMessage(c->pq);

    if (strstr(text, "session is read-only") == NULL) {
        /* it wants one, and we have none */
        bool unasked = il__pq->PQconnectionNeedsPassword(c->pq) != 0;
        (void)fail(c, PG_NOT_SENT, unasked ? "28P01" : "08001", text);
        take_sqlstate(c);
        return false;
    }
    return fail(
        c, PG_NOT_SENT, "25006",
        "read-only: a standby (connect to the primary), or default_transaction_read_only is "
        "on for this role or database");
}

static bool
connect_wait(struct pg_conn *c, int64_t until_ns)
{
    PostgresPollingStatusType st = PGRES_POLLING_WRITING;

    while (st != PGRES_POLLING_OK) {
        if (st == PGRES_POLLING_FAILED)
            return fail_to_connect(c);
        if (time_is_up(c, until_ns))
            return fail(c, PG_NOT_SENT, "08001", "the server does not respond");
        if (wait_for_socket(c, st == PGRES_POLLING_READING ? POLLIN : POLLOUT, until_ns) != 0)
            st = il__pq->PQconnectPoll(c->pq);
    }
    if (il__pq->PQserverVersion(c->pq) < PG_SERVER_VERSION_MIN)
        return fail(c, PG_NOT_SENT, "0A000", "the server must be PostgreSQL 13 or newer");
    return true;
}

/* Do not retry at once after two failures: a caller in a loop must not keep a starting server
 * busy. */
static void
back_off(struct pg_conn *c)
{
    if (c->n_failures++ == 0)
        return;
    int64_t now_ns  = il__clock_boot_ns();
    int64_t most_ms = MIN(BACKOFF_MS_MIN << MIN(c->n_failures - 2, 6), BACKOFF_MS_MAX);
    int64_t jitter =
        now_ns / 1000 % (most_ms / 2 + 1); /* the current microseconds are random enough */
    c->retry_at_ns = now_ns + (most_ms - jitter) * IL__NS_PER_MS;
}

static bool
connect_to(struct pg_conn *c, size_t i_host, int64_t until_ns)
{
    c->pq = connect_start(c, i_host);
    if (c->pq == NULL)
        return fail(c, PG_NOT_SENT, "53200", "out of memory for a connection");
    (void)il__pq->PQsetNoticeReceiver(c->pq, take_notice, c);
    (void)il__pq->PQsetErrorVerbosity(c->pq, PQERRORS_VERBOSE); /* take_sqlstate() */
    if (il__pq->PQstatus(c->pq) == CONNECTION_BAD)
        (void)fail(c, PG_NOT_SENT, "08001", il__pq->PQerrorMessage(c->pq));
    else if (connect_wait(c, until_ns) && il__pq->PQsetnonblocking(c->pq, 1) == 0) {
        (void)il__pq->PQsetErrorVerbosity(c->pq, PQERRORS_DEFAULT);
        return true;
    }
    il__pg_conn_close(c);
    return false;
}

/*
 * Connect to the first server that accepts us. libpq can walk a list itself, but unless it may
 * block, it does not go on from a server that never answers. So we walk the list here, and each
 * server gets its share of the time.
 */
static bool
connect_now(struct pg_conn *c, int64_t until_ns)
{
    size_t n = count_hosts(c->where);

    if (il__clock_boot_ns() < c->retry_at_ns) {
        c->outcome = PG_NOT_SENT; /* and the reason is that of the last try */
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        int64_t now_ns = il__clock_boot_ns();
        if (connect_to(c, i, now_ns + MAX(until_ns - now_ns, 0) / (int64_t)(n - i))) {
            c->n_failures  = 0;
            c->retry_at_ns = 0;
            return true;
        }
    }
    back_off(c);
    return false;
}

/* ---- statements ------------------------------------------------------------------------------ */

/* Lost, or in an unknown state: the next use reconnects. */
static bool
lose(struct pg_conn *c, const char *sqlstate)
{
    const char *text = il__pq->PQerrorMessage(c->pq);

    (void)fail(c, PG_UNKNOWN, sqlstate, text[0] != '\0' ? text : "connection lost");
    il__pg_conn_close(c);
    return false;
}

/* Flush the output and read until there is a result (or none, when all have been taken). */
static bool
wait_for_result(struct pg_conn *c, int64_t until_ns)
{
    for (;;) {
        int unsent = il__pq->PQflush(c->pq);
        if (unsent < 0)
            return lose(c, "08006");
        if (unsent == 0 && il__pq->PQisBusy(c->pq) == 0)
            return true;
        if (time_is_up(c, until_ns))
            return fail(c, PG_UNKNOWN, "57014", "the server timed out");
        short can = wait_for_socket(c, (short)(unsent > 0 ? POLLIN | POLLOUT : POLLIN), until_ns);
        if ((can & ~POLLOUT) != 0 && il__pq->PQconsumeInput(c->pq) == 0)
            return lose(c, "08006");
    }
}

/*
 * Read all results; *ret is the last one that has rows, or any. Only when no more come was it
 * committed: rows are sent before the commit, and an error may follow them.
 */
static bool
take_results(struct pg_conn *c, int64_t until_ns, PGresult **ret)
{
    bool failed = false;

    for (;;) {
        if (!wait_for_result(c, until_ns))
            return false;
        PGresult *r = il__pq->PQgetResult(c->pq);
        if (r == NULL)
            break;
        ExecStatusType st = il__pq->PQresultStatus(r);
        if (st == PGRES_TUPLES_OK || st == PGRES_COMMAND_OK) {
            il__pq->PQclear(*ret);
            *ret = r;
            continue;
        }
        if (st == PGRES_COPY_IN || st == PGRES_COPY_OUT || st == PGRES_COPY_BOTH) {
            /* Not from a statement of ours, and it would come again and again. */
            il__pq->PQclear(r);
            return lose(c, "08P01");
        }
        if (!failed)
            fail_with(c, r); /* the first one says why */
        failed = true;
        il__pq->PQclear(r);
    }
    if (il__pq->PQstatus(c->pq) == CONNECTION_BAD) {
        il__pg_conn_close(c);
        if (!failed)
            return fail(c, PG_UNKNOWN, "08006", "connection lost");
        c->outcome = PG_UNKNOWN;
    } else if (failed && strcmp(c->sqlstate, "25006") == 0) {
        /* read_only_sql_transaction: a standby; another server may be the primary now */
        il__pg_conn_close(c);
    }
    return !failed;
}

static void *
cancel_main(void *arg)
{
    char why[256];

    (void)il__pq->PQcancel(arg, why, sizeof why);
    il__pq->PQfreeCancel(arg);
    return NULL;
}

/*
 * Ask the server to cancel the statement. The request uses a separate connection, which may take as
 * long as the network likes; so a detached thread sends it.
 */
static bool
ask_to_cancel(struct pg_conn *c)
{
    pthread_t thread;
    PGcancel *cancel = il__pq->PQgetCancel(c->pq);

    if (cancel == NULL)
        return false;
    if (il__thread_start(&thread, cancel_main, cancel) != 0) {
        il__pq->PQfreeCancel(cancel);
        return false;
    }
    CHECK(pthread_detach(thread) == 0);
    return true;
}

/*
 * Time is up. If the server confirms in time that it cancelled, nothing has happened, and the
 * connection is good. If it reports success, it may only have stopped waiting for its standbys: a
 * failover would lose the commit. And the cancel request may still be on its way to this
 * connection.
 */
static void
cancel(struct pg_conn *c, PGresult **ret)
{
    if (ask_to_cancel(c) && take_results(c, il__pg_in_ms(CANCEL_WAIT_MS), ret))
        (void)fail(c, PG_UNKNOWN, "57014",
                   "the server timed out; the request may have been carried out");
    if (c->pq != NULL && c->outcome == PG_UNKNOWN)
        il__pg_conn_close(c);
    if (c->outcome == PG_UNDONE)
        keep_text(c, "the server timed out; the request was cancelled");
}

static PGresult *
await(struct pg_conn *c, int64_t until_ns)
{
    PGresult *r = NULL;

    c->outcome      = PG_DONE;
    c->unreplicated = false;
    if (!take_results(c, until_ns, &r) && c->pq != NULL && c->outcome == PG_UNKNOWN)
        cancel(c, &r);
    else if (c->outcome == PG_DONE && c->unreplicated) /* someone else has cancelled the wait */
        (void)fail(c, PG_UNKNOWN, "57014", "committed, but not confirmed by a standby");
    if (c->outcome != PG_DONE || r == NULL) {
        il__pq->PQclear(r);
        if (c->outcome == PG_DONE)
            (void)fail(c, PG_UNKNOWN, "08006", "the server sent no response");
        return NULL;
    }
    return r;
}

static bool
can_read(const struct pg_conn *c)
{
    struct pollfd fd = { .fd = il__pq->PQsocket(c->pq), .events = POLLIN };

    return poll(&fd, 1, 0) > 0;
}

void
il__pg_conn_drain(struct pg_conn *c, int64_t until_ns)
{
    PGresult *r = NULL;

    if (c->pq == NULL || !c->pending)
        return;
    c->pending = false;
    /* Its result does not matter; but the connection must be free. */
    bool free = take_results(c, until_ns, &r) || c->outcome == PG_UNDONE;
    il__pq->PQclear(r);
    if (!free && c->pq != NULL)
        il__pg_conn_close(c);
}

bool
il__pg_conn_ready(struct pg_conn *c, int64_t until_ns)
{
    il__pg_conn_drain(c, until_ns);
    /* A server that shut down has told us so: nothing was sent yet, and there is still time to use
     * another. Its last message precedes the end of the stream, so read on. */
    while (c->pq != NULL && can_read(c)) {
        if (il__pq->PQconsumeInput(c->pq) == 0 || il__pq->PQstatus(c->pq) == CONNECTION_BAD)
            il__pg_conn_close(c);
    }
    return c->pq != NULL || connect_now(c, until_ns);
}

static bool
send_query(struct pg_conn *c, const struct pg_query *q)
{
    return il__pq->PQsendQueryParams(c->pq, q->sql, q->n_params, q->types, q->values, q->lengths,
                                     q->formats, 1) == 1;
}

PGresult *
il__pg_query(struct pg_conn *c, const struct pg_query *q, int64_t until_ns)
{
    if (!il__pg_conn_ready(c, until_ns))
        return NULL;
    if (!send_query(c, q)) {
        (void)lose(c, "08006");
        return NULL;
    }
    return await(c, until_ns);
}

bool
il__pg_exec(struct pg_conn *c, const char *sql, int64_t until_ns)
{
    if (!il__pg_conn_ready(c, until_ns))
        return false;
    if (il__pq->PQsendQuery(c->pq, sql) != 1)
        return lose(c, "08006");
    PGresult *r = await(c, until_ns);
    il__pq->PQclear(r);
    return r != NULL;
}

void
il__pg_send_only(struct pg_conn *c, const struct pg_query *q)
{
    if (c->pq == NULL || c->pending)
        return;
    if (!send_query(c, q)) {
        (void)lose(c, "08006");
        return;
    }
    c->pending = true;
    (void)il__pq->PQflush(c->pq); /* a little; if it does not fit now, the next use sends it */
}

/* ---- values ---------------------------------------------------------------------------------- */

/* A value of an unexpected size is not what we asked for: false, or -1, which no object has as its
 * number. */

bool
il__pg_bool(const PGresult *r, int row, int column)
{
    return il__pq->PQgetlength(r, row, column) == 1 && il__pq->PQgetvalue(r, row, column)[0] != 0;
}

int32_t
il__pg_int4(const PGresult *r, int row, int column)
{
    uint32_t be;

    if (il__pq->PQgetlength(r, row, column) != sizeof be)
        return -1;
    memcpy(&be, il__pq->PQgetvalue(r, row, column), sizeof be);
    return (int32_t)ntohl(be);
}

int64_t
il__pg_int8(const PGresult *r, int row, int column)
{
    uint32_t be[2];

    if (il__pq->PQgetlength(r, row, column) != sizeof be)
        return -1;
    memcpy(be, il__pq->PQgetvalue(r, row, column), sizeof be);
    int64_t number = (int64_t)((uint64_t)ntohl(be[0]) << 32 | ntohl(be[1]));
    return MAX(MIN(number, INT64_C(1) << 60), -(INT64_C(1) << 60)); /* as il__remote_number() */
}

struct remote_blob
il__pg_bytes(const PGresult *r, int row, int column)
{
    if (il__pq->PQgetisnull(r, row, column))
        return (struct remote_blob){ NULL, 0 };
    return (struct remote_blob){ il__pq->PQgetvalue(r, row, column),
                                 (size_t)il__pq->PQgetlength(r, row, column) };
}
