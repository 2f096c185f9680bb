/*
 * postgres_wait.c: runs one statement on a connection: sends it, waits for it, passes its rows on
 * one by one, and cancels it on interrupt or timeout.
 *
 * Rows are read in single-row mode, so that a result of any size needs memory for one row only.
 * Statements use the extended protocol: the server itself then refuses several in one text. To
 * cancel, a detached thread asks the server to stop (over another connection), and this connection
 * is closed at once: the server rolls back what was not committed.
 */
#include <inttypes.h>
#include <poll.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/thread.h"
#include "guard/postgres_internal.h"

#define LATE_MS 200

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
        { "23505", IL_UNIQUE },      { "23P01", IL_UNIQUE }, /* exclusion_violation */
        { "23514", IL_CHECK },       { "23502", IL_CHECK },  /* not_null_violation */
        { "23503", IL_FOREIGN_KEY }, { "40001", IL_SERIALIZATION },
        { "40P01", IL_DEADLOCK },    { "55P03", IL_TIMEOUT }, /* lock_not_available: lock_timeout */
        { "57014", IL_TIMEOUT }, /* query_canceled: statement_timeout */
        { "08", IL_STORE },      /* connections */
        { "25P03", IL_STORE },   /* idle_in_transaction_session_timeout */
        { "40", IL_STORE },      /* transaction_rollback */
        { "53", IL_STORE },      /* out of some resource; il__pg_map() knows more */
        { "55", IL_STORE },      /* object_in_use */
        { "57", IL_STORE },      /* shutdown */
        { "58", IL_STORE },      /* the server's system */
        { "XX", IL_STORE },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (strncmp(sqlstate, rows[i].prefix, strlen(rows[i].prefix)) == 0)
            return rows[i].status == IL_STORE ? il__pg_map(sqlstate) : rows[i].status;
    }
    return IL_INVAL;
}

void
il__guard_postgres_close(struct postgres_guard *g)
{
    if (g->is_borrowed)
        g->conn.pq = NULL;
    else
        il__pg_conn_close(&g->conn);
}

static il_status
lose(struct postgres_guard *g, il_error *reterr)
{
    il__guard_postgres_close(g);
    return il__error_set(reterr, IL_STORE, "%s: connection lost", g->url.shown);
}

/* FATAL and PANIC: the server's process ends, or PgBouncer has lost its server. Whether the
 * statement was carried out is as unknown as if the connection had been lost without a word. */
static bool
is_loss(const PGresult *r)
{
    const char *severity = il__pq->PQresultErrorField(r, PG_DIAG_SEVERITY_NONLOCALIZED);

    if (severity == NULL) /* PgBouncer has only the other one */
        severity = il__pq->PQresultErrorField(r, PG_DIAG_SEVERITY);
    return severity != NULL && (strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0);
}

static il_status
refuse(struct postgres_guard *g, const PGresult *r, il_error *reterr)
{
    const char *sqlstate = il__pq->PQresultErrorField(r, PG_DIAG_SQLSTATE);
    const char *text     = il__pq->PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
    const char *name     = il__pq->PQresultErrorField(r, PG_DIAG_CONSTRAINT_NAME);

    if (sqlstate == NULL) /* libpq's own words */
        return il__error_set(reterr, IL_STORE, "%s: connection lost", g->url.shown);
    if (is_loss(r)) {
        il__guard_postgres_close(g);
        return il__error_set(reterr, IL_STORE, "%s: %s", g->url.shown,
                             text != NULL ? text : "connection lost");
    }
    (void)snprintf(g->sqlstate, sizeof g->sqlstate, "%s", sqlstate);
    il_status st = map(sqlstate);
    if (strcmp(sqlstate, "42601") == 0 && text != NULL && strstr(text, "multiple commands") != NULL)
        text = GUARD_SEVERAL_TEXT;
    il__error_set(reterr, st, "%s: %s", g->url.shown,
                  text != NULL ? text : "the server rejected the statement");
    if (reterr != NULL) {
        (void)snprintf(reterr->native, sizeof reterr->native, "%s", sqlstate);
        (void)snprintf(reterr->constraint, sizeof reterr->constraint, "%s",
                       name != NULL ? name : "");
    }
    return st;
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
    pthread_t thread;
    PGcancel *cancel = il__pq->PQgetCancel(g->conn.pq);

    if (cancel == NULL)
        return;
    if (il__thread_start(&thread, cancel_main, cancel) == 0)
        CHECK(pthread_detach(thread) == 0);
    else
        il__pq->PQfreeCancel(cancel);
}

static il_status
give_up(struct postgres_guard *g, const struct postgres_run *how, il_error *reterr)
{
    il_status st = how->to_the_end ? IL_OK : il__guard_check_deadline(&g->base, reterr);

    /* Not on a borrowed connection: it could hit the next statement of the owner. Not a commit: the
     * server would stop waiting for its standbys, and report a success that they do not have. */
    if (!g->is_borrowed && !how->to_the_end)
        ask_to_cancel(g);
    il__guard_postgres_close(g);
    return st != IL_OK ? st : il__error_set(reterr, IL_STORE, "%s: timed out", g->url.shown);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* When to give up; INT64_MAX = never. The server ends a statement at the transaction's deadline
 * (postgres_begin()); it gets a moment for that, because then the connection can be kept. */
static int64_t
deadline(const struct postgres_guard *g, const struct postgres_run *how)
{
    int64_t tx_ns = how->to_the_end || g->base.limit.until_ns == 0
                        ? INT64_MAX
                        : g->base.limit.until_ns + LATE_MS * IL__NS_PER_MS;

    return how->until_ns != 0 ? MIN(how->until_ns, tx_ns) : tx_ns;
}

/* Wait until the socket is ready, time is up, or it should stop; the caller checks which. */
static short
wait_for_socket(struct postgres_guard *g, const struct postgres_run *how, short events)
{
    int           stop_fd  = how->to_the_end ? -1 : il__guard_stop_fd(g->base.g, g->base.limit);
    struct pollfd fds[2]   = { { .fd = il__pq->PQsocket(g->conn.pq), .events = events },
                               { .fd = stop_fd, .events = POLLIN } };
    int64_t       until_ns = deadline(g, how);
    int           ms       = -1;

    if (until_ns != INT64_MAX) {
        int64_t left_ns = MAX(until_ns - il__clock_boot_ns(), 0);
        ms              = (int)MIN((left_ns + IL__NS_PER_MS - 1) / IL__NS_PER_MS, INT32_MAX);
    }
    (void)poll(fds, 2, ms);
    return fds[0].revents;
}

/* Send pending data and read until there is a result, or no more. */
static il_status
wait_for_result(struct postgres_guard *g, const struct postgres_run *how, il_error *reterr)
{
    for (;;) {
        if (!how->to_the_end && il__guard_is_stopped(g->base.g, g->base.limit))
            return give_up(g, how, reterr);
        int unsent = il__pq->PQflush(g->conn.pq);
        if (unsent < 0)
            return lose(g, reterr);
        if (unsent == 0 && il__pq->PQisBusy(g->conn.pq) == 0)
            return IL_OK;
        if (il__clock_boot_ns() >= deadline(g, how))
            return give_up(g, how, reterr);
        short can = wait_for_socket(g, how, (short)(unsent > 0 ? POLLIN | POLLOUT : POLLIN));
        if ((can & ~POLLOUT) != 0 && il__pq->PQconsumeInput(g->conn.pq) == 0)
            return lose(g, reterr);
    }
}

/* ---- values ---------------------------------------------------------------------------------- */

static void
set_param(struct postgres_params *p, size_t i, const il_guard_value *v)
{
    p->values[i]  = NULL;
    p->types[i]   = 0;
    p->lengths[i] = 0;
    p->formats[i] = 0;
    switch (v->type) {
    case IL_GUARD_INT:
        (void)snprintf(p->numbers[i], GUARD_NUMBER_BYTES, "%" PRId64, v->integer);
        p->values[i] = p->numbers[i];
        break;
    case IL_GUARD_DOUBLE:
        il__guard_print_double(v->number, p->numbers[i]);
        p->values[i] = p->numbers[i];
        break;
    case IL_GUARD_TEXT:
    case IL_GUARD_JSON:
        p->values[i] = v->data;
        break;
    case IL_GUARD_BLOB:
        p->values[i]  = v->data;
        p->types[i]   = PG_BYTEA;
        p->lengths[i] = (int)v->n_bytes;
        p->formats[i] = 1;
        break;
    case IL_GUARD_NULL:
    case IL_GUARD_TYPE_COUNT:
        break;
    }
}

static bool
send_values(struct postgres_guard *g, const struct guard_statement *s)
{
    struct postgres_params *p = &g->params;

    for (size_t i = 0; i < s->n_values; i++)
        set_param(p, i, &s->values[i]);
    return il__pq->PQsendQueryParams(g->conn.pq, s->sql, (int)s->n_values, p->types, p->values,
                                     p->lengths, p->formats, 0) == 1;
}

/* \x0a1b: how the server prints a bytea. False: out of memory. */
static bool
take_blob(struct postgres_guard *g, const char *text, size_t n, il_guard_value *ret)
{
    if (n < 2 || text[0] != '\\' || text[1] != 'x') { /* bytea_output = escape */
        *ret = (il_guard_value){ .type = IL_GUARD_TEXT, .data = text, .n_bytes = n };
        return true;
    }
    char *bytes = il__arena_alloc(&g->row_mem, n / 2);
    if (bytes == NULL)
        return false;
    for (size_t i = 2; i + 1 < n; i += 2)
        bytes[i / 2 - 1] = (char)(il__hex_digit(text[i]) * 16 + il__hex_digit(text[i + 1]));
    *ret = il_guard_blob(bytes, n / 2 - 1);
    return true;
}

/* False: out of memory. */
static bool
take_value(struct postgres_guard *g, const PGresult *r, int i, bool as_text, il_guard_value *ret)
{
    const char *text = il__pq->PQgetvalue(r, 0, i);
    size_t      n    = (size_t)il__pq->PQgetlength(r, 0, i);

    *ret = (il_guard_value){ .type = IL_GUARD_TEXT, .data = text, .n_bytes = n };
    if (il__pq->PQgetisnull(r, 0, i) != 0) {
        *ret = il_guard_null();
        return true;
    }
    switch (as_text ? 0 : il__pq->PQftype(r, i)) {
    case 16: /* bool */
        *ret = il_guard_int(text[0] == 't');
        break;
    case PG_BYTEA:
        return take_blob(g, text, n, ret);
    case 20: /* int8, int2, int4, oid */
    case 21:
    case 23:
    case 26:
        *ret = il_guard_int(strtoll(text, NULL, 10));
        break;
    case 700: /* float4, float8 */
    case 701:
        *ret = il_guard_double(il__guard_parse_double(text));
        break;
    case 114: /* json, jsonb */
    case 3802:
        ret->type = IL_GUARD_JSON;
        break;
    default:
        break;
    }
    return true;
}

/* ---- results --------------------------------------------------------------------------------- */

/* The only row of a result. False: out of memory. */
static bool
give_row(struct postgres_guard *g, const PGresult *r, const struct guard_statement *s, bool *more)
{
    size_t n = (size_t)il__pq->PQnfields(r);

    if (!il__guard_make_room(&g->base, n))
        return false;
    for (size_t i = 0; i < n; i++) {
        g->base.names[i] = il__pq->PQfname(r, (int)i);
        if (!take_value(g, r, (int)i, s->as_text, &g->base.values[i]))
            return false;
    }
    *more = s->each(s->cookie, &(il_guard_row){ n, g->base.names, g->base.values }) != 0;
    il__arena_clear(&g->row_mem);
    return true;
}

/* The command, and the number of rows it changed. Only changes count: for a SELECT the tag has the
 * number of rows returned. */
static void
take_tag(PGresult *r, struct guard_statement *s, struct postgres_run *how)
{
    static const char *const changes[] = { "INSERT", "UPDATE", "DELETE", "MERGE", "COPY" };
    const char              *tag       = il__pq->PQcmdStatus(r);
    uint64_t                 n         = 0;

    (void)snprintf(how->tag, sizeof how->tag, "%.*s",
                   (int)MIN(strcspn(tag, " "), sizeof how->tag - 1), tag);
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        if (strcmp(how->tag, changes[i]) == 0 &&
            il__parse_u64(il__pq->PQcmdTuples(r), INT64_MAX, &n))
            s->n_changed = (int64_t)n;
    }
}

/* Process one result; *more: rows are still wanted. */
static il_status
take_result(struct postgres_guard *g, PGresult *r, struct guard_statement *s,
            struct postgres_run *how, bool *more, il_error *reterr)
{
    switch (il__pq->PQresultStatus(r)) {
    case PGRES_SINGLE_TUPLE:
        if (*more && !give_row(g, r, s, more))
            return il__error_set(reterr, IL_NOMEM, "out of memory for a row");
        return IL_OK;
    case PGRES_TUPLES_OK: /* the end of the rows */
    case PGRES_COMMAND_OK:
        take_tag(r, s, how);
        return IL_OK;
    case PGRES_PIPELINE_SYNC:
    case PGRES_PIPELINE_ABORTED: /* the failure before it has the reason */
        return IL_OK;
    case PGRES_EMPTY_QUERY:
        return il__error_set(reterr, IL_INVAL, "%s", GUARD_EMPTY_TEXT);
    case PGRES_COPY_IN:
    case PGRES_COPY_OUT:
    case PGRES_COPY_BOTH:
        il__guard_postgres_close(g); /* the simplest way out */
        return il__error_set(reterr, IL_INVAL,
                             "%s: COPY FROM STDIN and TO STDOUT are not supported", g->url.shown);
    default:
        return refuse(g, r, reterr);
    }
}

/* Read results until NULL; *ret_sync: the end of the pipeline was among them. */
static il_status
take_results(struct postgres_guard *g, struct guard_statement *s, struct postgres_run *how,
             bool *more, il_status before, bool *ret_sync, il_error *reterr)
{
    il_status st = before;

    *ret_sync = false;
    for (;;) {
        il_status waited = wait_for_result(g, how, st == IL_OK ? reterr : NULL);
        if (waited != IL_OK)
            return st == IL_OK ? waited : st;
        PGresult *r = il__pq->PQgetResult(g->conn.pq);
        if (r == NULL)
            return st;
        if (il__pq->PQresultStatus(r) == PGRES_PIPELINE_SYNC) {
            *ret_sync = true;
            il__pq->PQclear(r);
            return st;
        }
        if (st == IL_OK) /* the first failure has the reason */
            st = take_result(g, r, s, how, more, reterr);
        il__pq->PQclear(r);
        if (g->conn.pq == NULL)
            return st;
    }
}

/* ---- running --------------------------------------------------------------------------------- */

static bool
send(struct postgres_guard *g, const struct guard_statement *s, const struct postgres_run *how)
{
    if (how->is_script)
        return il__pq->PQsendQuery(g->conn.pq, s->sql) == 1;
    if (how->before == NULL)
        return send_values(g, s);
    return il__pq->PQenterPipelineMode(g->conn.pq) == 1 && send_values(g, how->before) &&
           send_values(g, s) && (how->after == NULL || send_values(g, how->after)) &&
           il__pq->PQpipelineSync(g->conn.pq) == 1;
}

/* The results of each statement of a pipeline end with NULL, the pipeline itself with a sync. */
static il_status
take_pipeline(struct postgres_guard *g, struct guard_statement *s, struct postgres_run *how,
              il_error *reterr)
{
    struct guard_statement *const parts[] = { how->before, s, how->after };
    struct guard_statement        end     = { .sql = NULL };
    il_status                     st      = IL_OK;
    bool                          sync    = false;

    for (size_t i = 0; !sync && g->conn.pq != NULL; i++) {
        struct guard_statement *part = i < ARRAY_LEN(parts) && parts[i] != NULL ? parts[i] : &end;
        bool                    more = part->each != NULL;
        if (more)
            (void)il__pq->PQsetSingleRowMode(g->conn.pq); /* fails only after a failure */
        st = take_results(g, part, how, &more, st, &sync, reterr);
        if (st == IL_CANCELLED || (st != IL_OK && g->conn.pq == NULL))
            return st;
    }
    if (g->conn.pq != NULL && il__pq->PQexitPipelineMode(g->conn.pq) != 1)
        return st == IL_OK ? lose(g, reterr) : st;
    return st;
}

il_status
il__guard_postgres_run(struct postgres_guard *g, struct guard_statement *s,
                       struct postgres_run *how, il_error *reterr)
{
    bool      more = s->each != NULL, sync = false;
    il_status st = IL_OK;

    g->sqlstate[0] = '\0';
    s->n_changed   = 0;
    if (g->conn.pq == NULL)
        return il__error_set(reterr, IL_STORE, "%s: connection lost", g->url.shown);
    if (!send(g, s, how))
        return lose(g, reterr);
    if (how->before != NULL) {
        st = take_pipeline(g, s, how, reterr);
    } else {
        if (!how->is_script)
            (void)il__pq->PQsetSingleRowMode(g->conn.pq); /* fails only when nothing was sent */
        st = take_results(g, s, how, &more, IL_OK, &sync, reterr);
    }
    if (g->conn.pq != NULL && il__pq->PQstatus(g->conn.pq) == CONNECTION_BAD) {
        il__guard_postgres_close(g);
        if (st == IL_OK)
            st = il__error_set(reterr, IL_STORE, "%s: connection lost", g->url.shown);
    }
    return st;
}

int64_t
il__guard_postgres_soon(const struct postgres_guard *g)
{
    return il__pg_in_ms(g->base.g->connect_timeout_ms);
}

il_status
il__guard_postgres_exec(struct postgres_guard *g, const char *sql, il_error *reterr)
{
    struct guard_statement s   = { .sql = sql };
    struct postgres_run    how = { .until_ns = il__guard_postgres_soon(g), .is_script = true };

    return il__guard_postgres_run(g, &s, &how, reterr);
}
