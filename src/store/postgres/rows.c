/*
 * rows.c: claims and finishes of jobs as statements of their own, with columns in place of JSON.
 *
 * These are what a queue spends its time with, a hundred jobs at once. As JSON a job took twice as long to be told of, by the server and by us, as to
 * be found and changed. Everything else, and what these statements leave, goes through apply() (postgres.c).
 */
#include <arpa/inet.h>
#include <inttypes.h>

#include "store/postgres/postgres_internal.h"

#define PARAM_BYTES_MAX ((size_t)512 * 1024 * 1024)
#define TOKENS_SEEN 1024 /* places, a power of two, four for each token of the largest batch */

/* Of sql/claim.sql and sql/finish.sql. */
enum column {
    COL_I,
    COL_OUT,
    COL_DATA,
    COL_DATA2,
    COL_SEQ,
    COL_TOKEN,
    COL_CREATED,
    COL_RUN_AT,
    COL_STARTED,
    COL_COMPLETED,
    COL_ATTEMPT,
    COL_MAX_ATTEMPTS,
    COL_PRIORITY,
    COL_PROGRESS,
    COL_FLAGS,
    COL_QUEUE,
    COL_ID,
    COL_PARENT,
    COL_GROUP,
    COL_UNIQUE,
    COL_WORKER,
    COL_ERROR,
    COL_MESSAGE,
    COL_COUNT
};

/* ---- requests ----------------------------------------------------------------------------------------------------------- */

static void
keep_hint(struct pg_store *s, uint64_t token, uint64_t seq, int64_t queue)
{
    struct pg_hint *h = &s->hints[token % PG_HINTS];

    atomic_store_explicit(&h->seq, seq, memory_order_relaxed);
    atomic_store_explicit(&h->queue, (int32_t)queue, memory_order_relaxed);
    atomic_store_explicit(&h->token, token, memory_order_relaxed);
}

/* The job's number, 0 = not known; *ret_queue: its queue's. */
static uint64_t
hint_of(const struct pg_store *s, const il_op *op, int32_t *ret_queue)
{
    const struct pg_hint *h = &s->hints[op->fence % PG_HINTS];

    if (op->fence == 0 || atomic_load_explicit(&h->token, memory_order_relaxed) != op->fence)
        return 0;
    *ret_queue = atomic_load_explicit(&h->queue, memory_order_relaxed);
    return atomic_load_explicit(&h->seq, memory_order_relaxed);
}

/*
 * Many finishes of one tenant, and nothing else, whose first job was claimed here. No token may be there twice: in one statement it would be open
 * which of two results is kept. (Of two tokens for one job only one can be the right one.)
 */
bool
il__pg_takes_ops(struct remote_store *base, il_op *const *ops, size_t n)
{
    uint64_t seen[TOKENS_SEEN] = { 0 };
    int32_t  queue;

    if (n < 2 || n > TOKENS_SEEN / 4 || ops[0]->type != IL_OP_JOB_FINISH ||
        hint_of(il__pg_from(base), ops[0], &queue) == 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        uint64_t token = ops[i]->fence;
        if (ops[i]->type != IL_OP_JOB_FINISH || token == 0 || strcmp(ops[i]->tenant, ops[0]->tenant) != 0)
            return false;
        size_t at = token % TOKENS_SEEN;
        while (seen[at] != 0 && seen[at] != token)
            at = (at + 1) % TOKENS_SEEN;
        if (seen[at] == token)
            return false;
        seen[at] = token;
    }
    return true;
}

static void
add_int32(struct il__buf *b, int32_t v)
{
    uint32_t be = htonl((uint32_t)v);

    il__buf_add(b, &be, sizeof be);
}

/* What a binary array of one dimension begins with. */
static void
begin_array(struct il__buf *b, Oid type, size_t n, bool nulls)
{
    add_int32(b, 1); /* dimensions */
    add_int32(b, nulls);
    add_int32(b, (int32_t)type);
    add_int32(b, (int32_t)n);
    add_int32(b, 1); /* the first index */
}

static void
add_element(struct il__buf *b, const void *data, size_t n_bytes)
{
    add_int32(b, (int32_t)n_bytes);
    il__buf_add(b, data, n_bytes);
}

void
il__pg_add_blobs(struct il__buf *b, const struct remote_call *c)
{
    bool any  = false;
    bool none = false;

    for (size_t i = 0; i < c->n; i++) {
        any  = any || c->requests[i].blob.data != NULL;
        none = none || c->requests[i].blob.data == NULL;
    }
    if (!any)
        return;
    begin_array(b, PG_BYTEA, c->n, none);
    for (size_t i = 0; i < c->n; i++) {
        const struct remote_blob *blob = &c->requests[i].blob;
        if (blob->data != NULL)
            add_element(b, blob->data, blob->n_bytes);
        else
            add_int32(b, -1);
    }
}

/* Results; none if all are empty. */
static void
add_results(struct il__buf *b, const struct remote_call *c)
{
    bool any = false;

    for (size_t i = 0; i < c->n; i++)
        any = any || c->requests[i].op->in.job.data_bytes > 0;
    if (!any)
        return;
    begin_array(b, PG_BYTEA, c->n, false);
    for (size_t i = 0; i < c->n; i++)
        add_element(b, c->requests[i].op->in.job.data, c->requests[i].op->in.job.data_bytes);
}

static void
add_int64(struct il__buf *b, uint64_t v)
{
    uint32_t be[2] = { htonl((uint32_t)(v >> 32)), htonl((uint32_t)v) };

    add_element(b, be, sizeof be);
}

bool
il__pg_finish_params(const struct pg_store *s, struct pg_params *p, const struct remote_call *c)
{
    struct il__buf *ids    = &p->bufs[0];
    struct il__buf *tokens = &p->bufs[1];
    struct il__buf *seqs   = &p->bufs[2];
    int32_t         queue  = 0;
    bool            ok     = true;

    for (size_t i = 0; i < ARRAY_LEN(p->bufs); i++)
        il__buf_init(&p->bufs[i], PARAM_BYTES_MAX);
    begin_array(ids, PG_TEXT, c->n, false);
    begin_array(tokens, PG_INT8, c->n, false);
    begin_array(seqs, PG_INT8, c->n, false);
    for (size_t i = 0; i < c->n; i++) {
        const il_op *op = c->requests[i].op;
        int32_t      other;
        add_element(ids, op->in.job.id, strlen(op->in.job.id));
        add_int64(tokens, op->fence);
        add_int64(seqs, hint_of(s, op, queue == 0 ? &queue : &other));
    }
    add_results(&p->bufs[3], c);
    (void)snprintf(p->queue, sizeof p->queue, "%" PRId32, queue);
    p->query = (struct pg_query){
        .n_params = 8,
        .types    = { PG_TEXT, PG_INT4, PG_TEXT_ARRAY, PG_INT8_ARRAY, PG_INT8_ARRAY, PG_BYTEA_ARRAY,
                      PG_INT8, PG_INT8 },
        .values   = { c->requests[0].op->tenant, p->queue, ids->data, tokens->data, seqs->data,
                      p->bufs[3].data, c->timed ? p->now : NULL, c->timed ? p->wall : NULL },
        .formats  = { 0, 0, 1, 1, 1, 1, 0, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(p->bufs); i++) {
        p->query.lengths[2 + i] = (int)p->bufs[i].n_bytes;
        ok                      = ok && !p->bufs[i].failed;
    }
    return ok;
}

void
il__pg_params_release(struct pg_params *p)
{
    for (size_t i = 0; i < ARRAY_LEN(p->bufs); i++)
        il__buf_release(&p->bufs[i]);
}

/* ---- answers ------------------------------------------------------------------------------------------------------------ */

static int64_t
int8_or(const PGresult *r, int row, enum column column, int64_t none)
{
    return il__pq->PQgetisnull(r, row, (int)column) ? none : il__pg_int8(r, row, (int)column);
}

static int32_t
int4_or(const PGresult *r, int row, enum column column, int32_t none)
{
    return il__pq->PQgetisnull(r, row, (int)column) ? none : il__pg_int4(r, row, (int)column);
}

static const char *
text_at(const PGresult *r, int row, enum column column)
{
    return il__pg_bytes(r, row, (int)column).data;
}

static bool
take_job(struct remote_call *c, const PGresult *r, int row)
{
    int64_t           created_ms = il__pg_int8(r, row, COL_CREATED);
    int32_t           i          = il__pg_int4(r, row, COL_I);
    struct remote_job job        = {
               .queue        = text_at(r, row, COL_QUEUE),
               .id           = text_at(r, row, COL_ID),
               .parent       = text_at(r, row, COL_PARENT),
               .group        = text_at(r, row, COL_GROUP),
               .unique_key   = text_at(r, row, COL_UNIQUE),
               .worker       = text_at(r, row, COL_WORKER),
               .error        = text_at(r, row, COL_ERROR),
               .message      = text_at(r, row, COL_MESSAGE),
               .payload      = il__pg_bytes(r, row, COL_DATA),
               .seq          = (uint64_t)il__pg_int8(r, row, COL_SEQ),
               .token        = (uint64_t)int8_or(r, row, COL_TOKEN, 0),
               .created_ms   = created_ms,
               .run_at_ms    = int8_or(r, row, COL_RUN_AT, created_ms),
               .started_ms   = int8_or(r, row, COL_STARTED, 0),
               .attempt      = (uint32_t)il__pg_int4(r, row, COL_ATTEMPT),
               .max_attempts = (uint32_t)il__pg_int4(r, row, COL_MAX_ATTEMPTS),
               .priority     = int4_or(r, row, COL_PRIORITY, 0),
               .progress     = int4_or(r, row, COL_PROGRESS, -1),
               .cancelled    = int4_or(r, row, COL_FLAGS, 0) != 0,
    };

    return il__remote_take_job(c, (size_t)i, &job, int8_or(r, row, COL_COMPLETED, 0));
}

bool
il__pg_take_jobs(struct pg_store *s, struct remote_call *c, const PGresult *r)
{
    bool    ok    = il__pq->PQnfields(r) == COL_COUNT;
    int64_t queue = c->bare ? 0 : il__remote_number(c->replies[0].head, "queue_no");

    for (int row = 0; ok && row < il__pq->PQntuples(r); row++) {
        if (!il__pq->PQgetisnull(r, row, COL_OUT))
            continue;
        ok = take_job(c, r, row);
        /* What has a group or a parent is not finished that way. */
        if (queue != 0 && il__pq->PQgetisnull(r, row, COL_GROUP) && il__pq->PQgetisnull(r, row, COL_PARENT))
            keep_hint(s, (uint64_t)il__pg_int8(r, row, COL_TOKEN),
                      (uint64_t)il__pg_int8(r, row, COL_SEQ), queue);
    }
    c->failed = c->failed || !ok;
    return ok;
}
