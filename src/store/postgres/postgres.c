/*
 * postgres.c: the transport of the PostgreSQL engine. A batch is one statement, and therefore one
 * transaction and one commit.
 *
 * The statement is unnamed and leaves no state in the session, so it works through a pooler in
 * transaction mode. Writes and reads use separate connections; a third one listens (listen.c). The
 * verbs are in functions/ *.sql; apply.sql explains why a batch is race-free.
 */
#include <inttypes.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "core/op.h"
#include "store/postgres/postgres_internal.h"

#include "postgres_sql.inc"

#define TRIES_MAX 4 /* attempts of a batch that was undone because of others */
#define BATCH_BYTES_MAX ((size_t)512 * 1024 * 1024)
#define DRAIN_MS 500   /* for wake-ups in flight when a store is closed */
#define WAKES_MAX 1024 /* per notification; if there are more, all are woken */

/* ---- a batch as parameters ------------------------------------------------------------------- */

static void
add_requests(struct il__buf *b, const struct remote_call *c)
{
    for (size_t i = 0; i < c->n; i++) {
        il__buf_addc(b, i == 0 ? '[' : ',');
        il__buf_add(b, c->requests[i].json.data, c->requests[i].json.n_bytes);
    }
    il__buf_addc(b, ']');
}

/* Blobs of the requests as a bytea[]; empty if there are none. */
static void
add_blobs(struct il__buf *b, const struct remote_call *c)
{
    bool any  = false;
    bool none = false;

    for (size_t i = 0; i < c->n; i++) {
        any  = any || c->requests[i].blob.data != NULL;
        none = none || c->requests[i].blob.data == NULL;
    }
    if (!any)
        return;
    il__pg_array_begin(b, PG_BYTEA, c->n, none);
    for (size_t i = 0; i < c->n; i++) {
        const struct remote_blob *blob = &c->requests[i].blob;
        if (blob->data != NULL)
            il__pg_array_add(b, blob->data, blob->n_bytes);
        else
            il__pg_array_add_null(b);
    }
}

/* ---- its answer ------------------------------------------------------------------------------ */

/* One row: i, out, data, data2. */
static bool
take_row(struct remote_call *c, const PGresult *r, int row)
{
    struct remote_blob out = il__pg_bytes(r, row, 1);
    int32_t            i   = il__pg_int4(r, row, 0);

    if (out.data == NULL)
        return false;
    if (i < 0)
        return il__remote_take_wakes(c, out.data, out.n_bytes);
    return il__remote_take_row(c, (size_t)i, out.data, out.n_bytes, il__pg_bytes(r, row, 2),
                               il__pg_bytes(r, row, 3));
}

static bool
take_rows(struct remote_call *c, const PGresult *r)
{
    bool ok = il__pq->PQnfields(r) == 4;

    for (int row = 0; ok && row < il__pq->PQntuples(r); row++)
        ok = take_row(c, r, row);
    return ok;
}

/* ---- the call -------------------------------------------------------------------------------- */

/* Undone because of a concurrent transaction: a retry may work. */
static bool
is_worth_another_try(const struct pg_conn *c)
{
    static const char *const states[] = {
        "40001", /* serialization_failure */
        /* deadlock_detected: another transaction takes our locks in a different order, such as a
         * migration */
        "40P01", "55P03", /* lock_not_available: lock_timeout */
    };

    for (size_t i = 0; c->outcome == PG_UNDONE && i < ARRAY_LEN(states); i++) {
        if (strcmp(c->sqlstate, states[i]) == 0)
            return true;
    }
    return false;
}

/*
 * Was it undone because of one of its requests? Then the others may proceed without it. A server
 * that is unreachable, full, read-only or too slow is not the fault of an op: each op alone would
 * fail the same way.
 */
static bool
is_of_one_op(const struct pg_conn *c)
{
    static const char *const classes[] = { "21", "22", "23", "42", "54", "55", "P0", "XX" };

    for (size_t i = 0; c->outcome == PG_UNDONE && i < ARRAY_LEN(classes); i++) {
        if (strncmp(c->sqlstate, classes[i], 2) == 0)
            return il__pg_map(c->sqlstate) != IL_CORRUPT;
    }
    return false;
}

static void
sleep_a_little(int i_try)
{
    int64_t         most_us = INT64_C(2000) << i_try;
    int64_t         us      = most_us / 2 + il__clock_boot_ns() / 1000 % (most_us / 2);
    struct timespec t       = { .tv_nsec = us * 1000 };

    (void)nanosleep(&t, NULL);
}

/* Run a statement in its own READ COMMITTED transaction. */
static PGresult *
query_begun(const struct pg_store *s, struct pg_conn *conn, const struct pg_query *q,
            int64_t until_ns)
{
    if (!il__pg_exec(conn, s->sql[PG_begin], until_ns))
        return NULL;
    PGresult *r = il__pg_query(conn, q, until_ns);
    if (r == NULL) {
        struct pg_conn failed = *conn; /* the outcome of the statement counts, not that of this */
        if (conn->pq != NULL)
            IGNORE(il__pg_exec(conn, s->sql[PG_rollback], until_ns));
        conn->outcome = failed.outcome;
        memcpy(conn->sqlstate, failed.sqlstate, sizeof conn->sqlstate);
        memcpy(conn->why, failed.why, sizeof conn->why);
        return NULL;
    }
    if (!il__pg_exec(conn, s->sql[PG_commit], until_ns)) {
        il__pq->PQclear(r);
        return NULL;
    }
    return r;
}

/*
 * Most databases default to READ COMMITTED, and a statement is its own transaction. Our functions
 * refuse any other level before they do anything: then this and all later calls begin their
 * transactions explicitly.
 */
static PGresult *
query(struct pg_store *s, struct pg_conn *conn, const struct pg_query *q, int64_t until_ns)
{
    if (!atomic_load(&s->begins)) {
        PGresult *r = il__pg_query(conn, q, until_ns);
        if (r != NULL || conn->outcome != PG_UNDONE || strcmp(conn->sqlstate, PG_ISOLATION) != 0)
            return r;
        atomic_store(&s->begins, true);
    }
    return query_begun(s, conn, q, until_ns);
}

static PGresult *
query_again(struct pg_store *s, struct pg_conn *conn, const struct pg_query *q, bool reads,
            int64_t until_ns)
{
    for (int i = 1;; i++) {
        PGresult *r = query(s, conn, q, until_ns);
        if (r != NULL || i == TRIES_MAX || il__clock_boot_ns() >= until_ns)
            return r;
        /* A read has no effect, so it does not matter whether it ran. */
        bool lost = reads && i == 1 && conn->outcome == PG_UNKNOWN;
        if (!lost && !is_worth_another_try(conn))
            return NULL;
        if (!lost)
            sleep_a_little(i);
    }
}

/* A batch for apply(). False: no memory. */
static bool
apply_params(struct pg_params *p, const struct remote_call *c)
{
    struct il__buf *requests = &p->bufs[0];
    struct il__buf *blobs    = &p->bufs[1];

    il__buf_init(requests, BATCH_BYTES_MAX);
    il__buf_init(blobs, BATCH_BYTES_MAX);
    add_requests(requests, c);
    add_blobs(blobs, c);
    p->query = (struct pg_query){
        .n_params = 4,
        .types    = { PG_JSONB, PG_BYTEA_ARRAY, PG_INT8, PG_INT8 },
        .values   = { il__buf_str(requests), blobs->data, c->timed ? p->now : NULL,
                    c->timed ? p->wall : NULL },
        .lengths  = { 0, (int)blobs->n_bytes, 0, 0 },
        .formats  = { 0, 1, 0, 0 },
    };
    return !requests->failed && !blobs->failed;
}

static void
params_release(struct pg_params *p)
{
    for (size_t i = 0; i < ARRAY_LEN(p->bufs); i++)
        il__buf_release(&p->bufs[i]);
    il__free(p->hints);
}

/* The statement of a call. Jobs and locks have dedicated statements, because stores spend most of
 * their time on them. */
static enum pg_stmt
statement_of(const struct remote_call *c)
{
    if (il__pg_is_locks_many(c))
        return PG_locks;
    return il__pg_is_jobs_many(c) ? PG_work : PG_call;
}

/* Its parameters. False: no memory. */
static bool
params_of(struct pg_store *s, struct pg_params *p, const struct remote_call *c, enum pg_stmt stmt)
{
    bool ok;

    (void)snprintf(p->now, sizeof p->now, "%" PRId64, c->now_ms);
    (void)snprintf(p->wall, sizeof p->wall, "%" PRId64, c->wall_ms);
    if (stmt == PG_locks)
        ok = il__pg_locks_many_params(p, c);
    else if (stmt == PG_work)
        ok = il__pg_jobs_many_params(s, p, c);
    else
        ok = apply_params(p, c);
    p->query.sql = s->sql[stmt];
    return ok;
}

/* Read its reply. False: it makes no sense, or there is no memory. */
static bool
take(struct pg_store *s, struct remote_call *c, const struct pg_params *p, enum pg_stmt stmt,
     const PGresult *r)
{
    if (stmt == PG_locks)
        return il__pg_take_locks_many(s, c, p, r);
    return stmt == PG_work ? il__pg_take_jobs_many(s, c, p, r) : take_rows(c, r);
}

static il_status
call_on(struct pg_store *s, struct pg_conn *conn, struct remote_call *c, il_error *reterr)
{
    struct pg_params AUTO(params_release) p = { 0 };
    enum pg_stmt     stmt                   = statement_of(c);

    if (!params_of(s, &p, c, stmt)) {
        c->refused = true;
        return il__error_set(reterr, IL_NOMEM, "out of memory for a batch");
    }
    PGresult *r = query_again(s, conn, &p.query, c->reads, il__pg_in_ms(s->timeout_ms));
    if (r == NULL) {
        c->refused = is_of_one_op(conn);
        return il__pg_error(conn, reterr);
    }
    c->result = r;
    if (!take(s, c, &p, stmt, r))
        c->failed = true;
    return IL_OK;
}

/* As remote_transport.takes_ops. */
static bool
takes_ops(struct remote_store *base, il_op *const *ops, size_t n)
{
    struct pg_store *s = il__pg_from(base);

    return il__pg_jobs_many_fit(s, ops, n) || il__pg_locks_many_fit(s, ops, n);
}

static il_status
pg_call(struct remote_store *base, struct remote_call *c, il_error *reterr)
{
    struct pg_store *s = il__pg_from(base);

    CHECK(c->n > 0 && c->n <= PG_REQUESTS_MAX);
    if (!c->reads) {
        unsigned  i    = il__connections_take(&s->connections);
        il_status done = call_on(s, &s->writers[i], c, reterr);
        il__connections_give(&s->connections, i);
        return done;
    }
    il__mutex_lock(&s->read_mutex);
    il_status st = call_on(s, &s->reader, c, reterr);
    il__mutex_unlock(&s->read_mutex);
    return st;
}

static void
pg_done(struct remote_store *s UNUSED, struct remote_call *c)
{
    il__pq->PQclear(c->result);
    c->result = NULL;
}

/* ---- waking ---------------------------------------------------------------------------------- */

/* Use any free connection, without waiting for the reply. Wake-ups follow a commit on an existing
 * connection; otherwise a new one is opened only if necessary. */
static void
notify(struct pg_store *s, const char *payload, bool must)
{
    unsigned        i     = il__connections_take(&s->connections);
    struct pg_conn *conn  = &s->writers[i];
    bool            there = conn->pq != NULL && !conn->pending;

    if (there ||
        ((must || conn->pq != NULL) && il__pg_conn_ready(conn, il__pg_in_ms(s->timeout_ms))))
        il__pg_send_only(conn, &(struct pg_query){
                                   .sql      = s->sql[PG_notify],
                                   .n_params = 2,
                                   .types    = { PG_TEXT, PG_TEXT },
                                   .values   = { s->url.channel, payload },
                               });
    il__connections_give(&s->connections, i);
}

static void
pg_announce(struct il__store *base, const char *text)
{
    struct pg_store        *s       = il__pg_from(il__remote_from(base));
    struct il__buf AUTO_BUF payload = { 0 };

    il__buf_init(&payload, PG_ID_BYTES + sizeof PG_SAY + IL__RING_TEXT_BYTES_MAX);
    il__buf_addf(&payload, "%s " PG_SAY "%s", s->listener.id, text != NULL ? text : "");
    if (!payload.failed)
        notify(s, il__buf_str(&payload), true);
}

/* Formatted by hand: a hundred of them are usual, and printf is slow. */
static void
add_slot(struct il__buf *b, uint32_t slot)
{
    char  text[12];
    char *at = text + sizeof text;

    do {
        *--at = (char)('0' + slot % 10);
        slot /= 10;
    } while (slot > 0);
    *--at = ' ';
    il__buf_add(b, at, (size_t)(text + sizeof text - at));
}

static void
pg_wake(struct remote_store *base, const uint32_t *slots, size_t n)
{
    struct pg_store        *s       = il__pg_from(base);
    struct il__buf AUTO_BUF payload = { 0 };

    il__buf_init(&payload, PG_ID_BYTES + WAKES_MAX * 6);
    il__buf_adds(&payload, s->listener.id);
    if (n > WAKES_MAX)
        il__buf_adds(&payload, " *");
    for (size_t i = 0; n <= WAKES_MAX && i < n; i++)
        add_slot(&payload, slots[i]);
    if (!payload.failed) /* otherwise they poll later */
        notify(s, il__buf_str(&payload), false);
}

static int64_t
pg_attend(struct il__store *base)
{
    return il__pg_listener_attend(&il__pg_from(il__remote_from(base))->listener);
}

/* ---- opening and freeing --------------------------------------------------------------------- */

static void
pg_free(struct remote_store *base)
{
    struct pg_store *s        = il__pg_from(base);
    int64_t          until_ns = il__pg_in_ms(MIN(DRAIN_MS, s->timeout_ms));

    il__pg_listener_release(&s->listener);
    for (unsigned i = 0; i < PG_WRITERS; i++) {
        /* A pooler drops what a client sent if the client disconnects before the reply. */
        il__pg_conn_drain(&s->writers[i], until_ns);
        il__pg_conn_close(&s->writers[i]);
    }
    il__connections_release(&s->connections);
    il__pg_conn_close(&s->reader);
    il__mutex_destroy(&s->read_mutex);
    il__pg_url_release(&s->url);
    for (size_t i = 0; i < PG_STMT_COUNT; i++)
        il__free(s->sql[i]);
    il__remote_release(base);
    il__free(s);
}

/*
 * A statement has at most 16 MiB of values, and 32 acquires: an acquire of a unit of work that
 * holds much may take milliseconds, and a statement of many cannot be stopped halfway.
 */
static size_t
pg_weight(const il_op *op)
{
    size_t weight = op->type == IL_OP_ACQUIRE || op->type == IL_OP_RUN_START ? 8 : 1;

    return weight + il__op_data_bytes(op) / 65536;
}

static const struct remote_transport pg_transport = {
    .name           = "postgres",
    .caps           = IL__STORE_DURABLE | IL__STORE_SHARED,
    .n_lanes        = PG_WRITERS,
    .n_requests_max = PG_REQUESTS_MAX,
    .weight         = pg_weight,
    .call           = pg_call,
    .takes_ops      = takes_ops,
    .done           = pg_done,
    .wake           = pg_wake,
    .free           = pg_free,
    .report         = il__pg_report,
    .advisory_take  = il__pg_advisory_take,
    .guard_table    = il__pg_guard_table,
};

/* A statement with this store's names filled in. They need no quoting (il__pg_url_parse() has
 * checked them). */
static char *
fill_in(const struct pg_url *u, const char *text)
{
    struct il__buf AUTO_BUF b = { 0 };

    il__buf_init(&b, strlen(text) + 512);
    while (*text != '\0') {
        size_t n = strcspn(text, "@");
        il__buf_add(&b, text, n);
        text += n;
        if (strncmp(text, "@schema", 7) == 0) {
            il__buf_addf(&b, "\"%s\"", u->schema);
            text += 7;
        } else if (strncmp(text, "@channel", 8) == 0) {
            il__buf_addf(&b, "\"%s\"", u->channel);
            text += 8;
        } else if (strncmp(text, "@name", 5) == 0) {
            il__buf_adds(&b, u->schema);
            text += 5;
        } else {
            CHECK(*text == '\0');
        }
    }
    return il__buf_take(&b);
}

static bool
fill_in_all(struct pg_store *s)
{
    static const char *const texts[] = {
#define X(name) [PG_##name] = sql_##name,
#include "postgres_statements.inc"
#undef X
    };

    for (size_t i = 0; i < PG_STMT_COUNT; i++) {
        s->sql[i] = fill_in(&s->url, texts[i]);
        if (s->sql[i] == NULL)
            return false;
    }
    return true;
}

void
il__pg_store_conn_init(const struct pg_store *s, struct pg_conn *c, const PQconninfoOption *where)
{
    il__pg_conn_init(c, where, s->url.shown);
    c->primary = true;
}

/* A store that is not connected yet. */
static il_status
make(const struct il__store_open *o, struct pg_store **ret, il_error *reterr)
{
    il_status st = il__pg_libpq_load(reterr);

    if (st != IL_OK)
        return st;
    struct pg_store *s = il__calloc(1, sizeof *s);
    if (s == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a store");
    s->timeout_ms = o->timeout_ms;
    il__mutex_init(&s->read_mutex, IL__MUTEX_reader);
    il__connections_init(&s->connections, PG_WRITERS);
    il__pg_listener_init(&s->listener, s);
    bool ready             = il__remote_init(&s->remote, &pg_transport, o);
    s->remote.ops.attend   = pg_attend;
    s->remote.ops.announce = pg_announce;
    st                     = il__pg_url_parse(&s->url, o->url, reterr);
    for (unsigned i = 0; i < PG_WRITERS; i++)
        il__pg_store_conn_init(s, &s->writers[i], s->url.server);
    il__pg_store_conn_init(s, &s->reader, s->url.server);
    if (st == IL_OK && !(ready && fill_in_all(s)))
        st = il__error_set(reterr, IL_NOMEM, "out of memory for a store");
    if (st == IL_OK)
        *ret = s;
    else
        pg_free(&s->remote);
    return st;
}

il_status
il__store_postgres_open(const struct il__store_open *o, struct il__store **ret, il_error *reterr)
{
    struct pg_store *s  = NULL;
    il_status        st = make(o, &s, reterr);

    if (st != IL_OK)
        return st;
    st = il__pg_schema_prepare(s, o->existing, reterr);
    if (st == IL_OK)
        *ret = &s->remote.base;
    else
        pg_free(&s->remote);
    return st;
}

il_status
il__store_postgres_migrate(const struct il__store_open *o, bool check, struct il__migration *ret,
                           il_error *reterr)
{
    struct pg_store *s  = NULL;
    il_status        st = make(o, &s, reterr);

    if (st != IL_OK)
        return st;
    st = il__pg_schema_migrate(s, check, ret, reterr);
    pg_free(&s->remote);
    return st;
}
