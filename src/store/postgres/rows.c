/*
 * rows.c: claims and finishes of jobs as statements of their own, with columns in place of JSON.
 *
 * These are what a queue spends its time with, a hundred jobs at once. JSON was four fifths of what a job
 * cost us, and about a quarter of what it cost the server. Everything else, and what these statements leave, goes through apply() (postgres.c).
 */
#include <arpa/inet.h>
#include <inttypes.h>

#include "store/postgres/postgres_internal.h"

#define PARAM_BYTES_MAX ((size_t)512 * 1024 * 1024)
#define TOKENS_SEEN 1024 /* places, a power of two, four for each token of the largest batch */

/* What both begin with; with a text in `out` it is a row as those of apply(). */
enum {
    COL_I,
    COL_OUT,
    COL_DATA,
    COL_DATA2,
    COL_SEQ
};

/* Of sql/claim.sql. */
enum claim_column {
    CLAIM_TOKEN = COL_SEQ + 1,
    CLAIM_PLACE,
    CLAIM_CREATED,
    CLAIM_RUN_AT,
    CLAIM_ATTEMPT,
    CLAIM_MAX_ATTEMPTS,
    CLAIM_PRIORITY,
    CLAIM_ID,
    CLAIM_PARENT,
    CLAIM_GROUP,
    CLAIM_UNIQUE,
    CLAIM_ERROR,
    CLAIM_COUNT
};

/* Of sql/finish.sql. */
enum finish_column {
    FINISH_CREATED = COL_SEQ + 1,
    FINISH_RUN_AT,
    FINISH_STARTED,
    FINISH_COMPLETED,
    FINISH_ATTEMPT,
    FINISH_MAX_ATTEMPTS,
    FINISH_PRIORITY,
    FINISH_PROGRESS,
    FINISH_CANCELLED,
    FINISH_QUEUE,
    FINISH_UNIQUE,
    FINISH_WORKER,
    FINISH_ERROR,
    FINISH_MESSAGE,
    FINISH_COUNT
};

/* ---- requests ----------------------------------------------------------------------------------------------------------- */

struct hint {
    uint64_t seq, place;
    int32_t  queue;
};

static void
keep_hint(struct pg_store *s, uint64_t token, const struct hint *hint)
{
    struct pg_hint *h = &s->hints[token % PG_HINTS];

    atomic_store_explicit(&h->seq, hint->seq, memory_order_relaxed);
    atomic_store_explicit(&h->place, hint->place, memory_order_relaxed);
    atomic_store_explicit(&h->queue, hint->queue, memory_order_relaxed);
    atomic_store_explicit(&h->token, token, memory_order_relaxed);
}

/* False: not known, and *ret is empty. */
static bool
find_hint(const struct pg_store *s, uint64_t token, struct hint *ret)
{
    const struct pg_hint *h = &s->hints[token % PG_HINTS];

    *ret = (struct hint){ 0 };
    if (token == 0 || atomic_load_explicit(&h->token, memory_order_relaxed) != token)
        return false;
    ret->seq   = atomic_load_explicit(&h->seq, memory_order_relaxed);
    ret->place = atomic_load_explicit(&h->place, memory_order_relaxed);
    ret->queue = atomic_load_explicit(&h->queue, memory_order_relaxed);
    return true;
}

/*
 * Many finishes of one tenant, and nothing else, whose first job was claimed here. No token may be there twice: in one statement it would be open
 * which of two results is kept. (Of two tokens for one job only one can be the right one.)
 */
bool
il__pg_takes_ops(struct remote_store *base, il_op *const *ops, size_t n)
{
    uint64_t    seen[TOKENS_SEEN] = { 0 };
    struct hint first;

    if (n < 2 || n > TOKENS_SEEN / 4 || ops[0]->type != IL_OP_JOB_FINISH ||
        !find_hint(il__pg_from(base), ops[0]->fence, &first))
        return false;
    for (size_t i = 0; i < n; i++) {
        uint64_t token = ops[i]->fence;
        if (ops[i]->type != IL_OP_JOB_FINISH || token == 0 ||
            strcmp(ops[i]->tenant, ops[0]->tenant) != 0)
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

static void
add_place(struct il__buf *b, uint64_t place)
{
    uint32_t block  = htonl((uint32_t)(place >> 16));
    uint16_t offset = htons((uint16_t)place);

    add_int32(b, sizeof block + sizeof offset);
    il__buf_add(b, &block, sizeof block);
    il__buf_add(b, &offset, sizeof offset);
}

bool
il__pg_finish_params(const struct pg_store *s, struct pg_params *p, const struct remote_call *c)
{
    struct il__buf *ids    = &p->bufs[0];
    struct il__buf *tokens = &p->bufs[1];
    struct il__buf *seqs   = &p->bufs[2];
    struct il__buf *places = &p->bufs[3];
    int32_t         queue  = 0;
    bool            ok     = true;

    for (size_t i = 0; i < ARRAY_LEN(p->bufs); i++)
        il__buf_init(&p->bufs[i], PARAM_BYTES_MAX);
    begin_array(ids, PG_TEXT, c->n, false);
    begin_array(tokens, PG_INT8, c->n, false);
    begin_array(seqs, PG_INT8, c->n, false);
    begin_array(places, PG_TID, c->n, false);
    for (size_t i = 0; i < c->n; i++) {
        const il_op *op = c->requests[i].op;
        struct hint  hint;
        IGNORE(find_hint(s, op->fence, &hint)); /* else it is left to the batch that follows */
        if (i == 0)
            queue = hint.queue;
        add_element(ids, op->in.job.id, strlen(op->in.job.id));
        add_int64(tokens, op->fence);
        add_int64(seqs, hint.seq);
        add_place(places, hint.place);
    }
    add_results(&p->bufs[4], c);
    (void)snprintf(p->queue, sizeof p->queue, "%" PRId32, queue);
    p->query = (struct pg_query){
        .n_params = 9,
        .types    = { PG_TEXT, PG_INT4, PG_TEXT_ARRAY, PG_INT8_ARRAY, PG_INT8_ARRAY, PG_TID_ARRAY,
                      PG_BYTEA_ARRAY, PG_INT8, PG_INT8 },
        .values   = { c->requests[0].op->tenant, p->queue, ids->data, tokens->data, seqs->data,
                      places->data, p->bufs[4].data, c->timed ? p->now : NULL, c->timed ? p->wall : NULL },
        .formats  = { 0, 0, 1, 1, 1, 1, 1, 0, 0 },
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
int8_or(const PGresult *r, int row, int column, int64_t none)
{
    return il__pq->PQgetisnull(r, row, column) ? none : il__pg_int8(r, row, column);
}

static int32_t
int4_or(const PGresult *r, int row, int column, int32_t none)
{
    return il__pq->PQgetisnull(r, row, column) ? none : il__pg_int4(r, row, column);
}

static const char *
text_at(const PGresult *r, int row, int column)
{
    return il__pg_bytes(r, row, column).data;
}

/* Where the row of a claimed job is; 0: not said. */
static uint64_t
place_at(const PGresult *r, int row)
{
    struct remote_blob at = il__pg_bytes(r, row, CLAIM_PLACE);
    uint32_t           block;
    uint16_t           offset;

    if (at.n_bytes != sizeof block + sizeof offset)
        return 0;
    memcpy(&block, at.data, sizeof block);
    memcpy(&offset, (const char *)at.data + sizeof block, sizeof offset);
    return (uint64_t)ntohl(block) << 16 | ntohs(offset);
}

static bool
take_claimed(struct pg_store *s, struct remote_call *c, const PGresult *r, int row, int32_t queue)
{
    int64_t           created_ms = il__pg_int8(r, row, CLAIM_CREATED);
    struct remote_job job        = {
               .id           = text_at(r, row, CLAIM_ID),
               .parent       = text_at(r, row, CLAIM_PARENT),
               .group        = text_at(r, row, CLAIM_GROUP),
               .unique_key   = text_at(r, row, CLAIM_UNIQUE),
               .error        = text_at(r, row, CLAIM_ERROR),
               .payload      = il__pg_bytes(r, row, COL_DATA),
               .seq          = (uint64_t)il__pg_int8(r, row, COL_SEQ),
               .token        = (uint64_t)il__pg_int8(r, row, CLAIM_TOKEN),
               .created_ms   = created_ms,
               .run_at_ms    = int8_or(r, row, CLAIM_RUN_AT, created_ms),
               .attempt      = (uint32_t)il__pg_int4(r, row, CLAIM_ATTEMPT),
               .max_attempts = (uint32_t)il__pg_int4(r, row, CLAIM_MAX_ATTEMPTS),
               .priority     = int4_or(r, row, CLAIM_PRIORITY, 0),
               .progress     = -1,
    };
    struct hint hint = { job.seq, place_at(r, row), queue };

    /* What has a group or a parent is not finished that way. */
    if (hint.place != 0 && hint.queue != 0 && job.group == NULL && job.parent == NULL)
        keep_hint(s, job.token, &hint);
    return il__remote_take_job(c, (size_t)il__pg_int4(r, row, COL_I), &job, 0);
}

static bool
take_finished(struct remote_call *c, const PGresult *r, int row)
{
    int64_t           created_ms = il__pg_int8(r, row, FINISH_CREATED);
    struct remote_job job        = {
               .queue        = text_at(r, row, FINISH_QUEUE),
               .unique_key   = text_at(r, row, FINISH_UNIQUE),
               .worker       = text_at(r, row, FINISH_WORKER),
               .error        = text_at(r, row, FINISH_ERROR),
               .message      = text_at(r, row, FINISH_MESSAGE),
               .seq          = (uint64_t)il__pg_int8(r, row, COL_SEQ),
               .created_ms   = created_ms,
               .run_at_ms    = int8_or(r, row, FINISH_RUN_AT, created_ms),
               .started_ms   = il__pg_int8(r, row, FINISH_STARTED),
               .attempt      = (uint32_t)il__pg_int4(r, row, FINISH_ATTEMPT),
               .max_attempts = (uint32_t)il__pg_int4(r, row, FINISH_MAX_ATTEMPTS),
               .priority     = int4_or(r, row, FINISH_PRIORITY, 0),
               .progress     = int4_or(r, row, FINISH_PROGRESS, -1),
               .cancelled    = int4_or(r, row, FINISH_CANCELLED, 0) != 0,
    };

    return il__remote_take_job(c, (size_t)il__pg_int4(r, row, COL_I), &job,
                               il__pg_int8(r, row, FINISH_COMPLETED));
}

bool
il__pg_take_jobs(struct pg_store *s, struct remote_call *c, const PGresult *r)
{
    bool    ok    = il__pq->PQnfields(r) == (c->bare ? (int)FINISH_COUNT : (int)CLAIM_COUNT);
    int32_t queue = 0;

    if (!c->bare)
        queue = (int32_t)il__remote_number(c->replies[0].head, "queue_no");
    for (int row = 0; ok && row < il__pq->PQntuples(r); row++) {
        if (il__pq->PQgetisnull(r, row, COL_OUT))
            ok = c->bare ? take_finished(c, r, row) : take_claimed(s, c, r, row, queue);
    }
    c->failed = c->failed || !ok;
    return ok;
}
