/*
 * rows.c: claims and finishes of jobs as statements of their own, with columns in place of JSON.
 *
 * These are what a queue spends its time with, a hundred jobs at once. JSON was four fifths of what a job
 * cost us, and about a quarter of what it cost the server. Everything else, and what these statements leave, goes through apply() (postgres.c).
 */
#include <arpa/inet.h>
#include <inttypes.h>

#include "base/hash.h"
#include "store/postgres/postgres_internal.h"

#define PARAM_BYTES_MAX ((size_t)512 * 1024 * 1024)
#define TOKENS_SEEN 1024 /* places, a power of two, four for each token of the largest batch */

/* Of sql/claim.sql; with a text in the second one it is a row as those of apply(). */
enum claim_column {
    CLAIM_I,
    CLAIM_OUT,
    CLAIM_DATA,
    CLAIM_DATA2,
    CLAIM_SEQ,
    CLAIM_TOKEN,
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

/* Of sql/finish.sql. The last two are in a row of their own, the last one. */
enum finish_column {
    FINISH_TOKEN,
    FINISH_STARTED,
    FINISH_ATTEMPT,
    FINISH_PROGRESS,
    FINISH_CANCELLED,
    FINISH_WORKER,
    FINISH_UNIQUE,
    FINISH_ERROR,
    FINISH_MESSAGE,
    FINISH_COMPLETED,
    FINISH_QUEUE,
    FINISH_COUNT
};

/* ---- requests ----------------------------------------------------------------------------------------------------------- */

/* What is known of the job that a finish names; empty if it is not the one that was claimed with its token. Under lanes_mutex. */
static struct pg_hint
find_hint(const struct pg_store *s, const il_op *op)
{
    const struct pg_hint *h = &s->hints[op->fence % PG_HINTS];

    if (op->fence == 0 || h->token != op->fence ||
        h->id != il__hash_bytes(op->in.job.id, strlen(op->in.job.id)))
        return (struct pg_hint){ 0 };
    return *h;
}

/*
 * Many finishes of one tenant, and nothing else, whose first job was claimed here. No token may be there twice: in one statement it would be open
 * which of two results is kept. (Of two tokens for one job only one can be the right one.)
 */
bool
il__pg_takes_ops(struct remote_store *base, il_op *const *ops, size_t n)
{
    struct pg_store *s                 = il__pg_from(base);
    uint64_t         seen[TOKENS_SEEN] = { 0 };

    if (n < 2 || n > TOKENS_SEEN / 4 || ops[0]->type != IL_OP_JOB_FINISH)
        return false;
    il__mutex_lock(&s->lanes_mutex);
    bool known = find_hint(s, ops[0]).token != 0;
    il__mutex_unlock(&s->lanes_mutex);
    for (size_t i = 0; known && i < n; i++) {
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
    return known;
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

/* Of each; what nothing is known of, and what is of another queue than the first, is left to the batch that follows. */
static bool
find_hints(struct pg_store *s, struct pg_params *p, const struct remote_call *c)
{
    p->hints = il__calloc(c->n, sizeof *p->hints);
    if (p->hints == NULL)
        return false;
    il__mutex_lock(&s->lanes_mutex);
    for (size_t i = 0; i < c->n; i++)
        p->hints[i] = find_hint(s, c->requests[i].op);
    il__mutex_unlock(&s->lanes_mutex);
    return true;
}

bool
il__pg_finish_params(struct pg_store *s, struct pg_params *p, const struct remote_call *c)
{
    struct il__buf *tokens = &p->bufs[0];
    struct il__buf *places = &p->bufs[1];
    bool            keyed  = false;

    for (size_t i = 0; i < ARRAY_LEN(p->bufs); i++)
        il__buf_init(&p->bufs[i], PARAM_BYTES_MAX);
    if (!find_hints(s, p, c))
        return false;
    begin_array(tokens, PG_INT8, c->n, false);
    begin_array(places, PG_TID, c->n, false);
    for (size_t i = 0; i < c->n; i++) {
        add_int64(tokens, p->hints[i].token); /* 0, no job's, and 0, no row's, if nothing is known */
        add_place(places, p->hints[i].place);
        keyed = keyed || p->hints[i].keyed;
    }
    add_results(&p->bufs[2], c);
    (void)snprintf(p->queue, sizeof p->queue, "%" PRId32, p->hints[0].queue);
    p->query = (struct pg_query){
        .n_params = 8,
        .types  = { PG_TEXT, PG_INT4, PG_INT8_ARRAY, PG_TID_ARRAY, PG_BYTEA_ARRAY, PG_BOOL, PG_INT8,
                    PG_INT8 },
        .values = { c->requests[0].op->tenant, p->queue, tokens->data, places->data, p->bufs[2].data,
                    keyed ? "t" : "f", c->timed ? p->now : NULL, c->timed ? p->wall : NULL },
        .formats = { 0, 0, 1, 1, 1, 0, 0, 0 },
    };
    bool ok = true;
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
    il__free(p->hints);
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

static void
keep_hint(struct pg_store *s, const struct pg_hint *hint)
{
    il__mutex_lock(&s->lanes_mutex);
    s->hints[hint->token % PG_HINTS] = *hint;
    il__mutex_unlock(&s->lanes_mutex);
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
               .payload      = il__pg_bytes(r, row, CLAIM_DATA),
               .seq          = (uint64_t)il__pg_int8(r, row, CLAIM_SEQ),
               .token        = (uint64_t)il__pg_int8(r, row, CLAIM_TOKEN),
               .created_ms   = created_ms,
               .run_at_ms    = int8_or(r, row, CLAIM_RUN_AT, created_ms),
               .attempt      = (uint32_t)int4_or(r, row, CLAIM_ATTEMPT, 1),
               .max_attempts = (uint32_t)il__pg_int4(r, row, CLAIM_MAX_ATTEMPTS),
               .priority     = int4_or(r, row, CLAIM_PRIORITY, 0),
               .progress     = -1,
    };
    struct pg_hint hint = {
        .token        = job.token,
        .seq          = job.seq,
        .place        = place_at(r, row),
        .created_ms   = job.created_ms,
        .run_at_ms    = job.run_at_ms,
        .queue        = queue,
        .priority     = job.priority,
        .max_attempts = job.max_attempts,
        .keyed        = job.unique_key != NULL,
    };

    /* What has a group or a parent is not finished that way. */
    if (job.id != NULL && hint.place != 0 && hint.queue != 0 && job.group == NULL &&
        job.parent == NULL) {
        hint.id = il__hash_bytes(job.id, strlen(job.id));
        keep_hint(s, &hint);
    }
    return il__remote_take_job(c, 0, &job, 0);
}

bool
il__pg_take_claimed(struct pg_store *s, struct remote_call *c, const PGresult *r)
{
    int32_t queue = (int32_t)il__remote_number(c->replies[0].head, "queue_no");
    bool    ok    = il__pq->PQnfields(r) == (int)CLAIM_COUNT;

    for (int row = 0; ok && row < il__pq->PQntuples(r); row++) {
        if (il__pq->PQgetisnull(r, row, CLAIM_OUT))
            ok = take_claimed(s, c, r, row, queue);
    }
    c->failed = c->failed || !ok;
    return ok;
}

/* `all`: the row that says what they have in common. */
static bool
take_finished(struct remote_call *c, size_t i, const struct pg_hint *h, const PGresult *r, int row,
              int all)
{
    struct remote_job job = {
        .queue        = text_at(r, all, FINISH_QUEUE),
        .unique_key   = text_at(r, row, FINISH_UNIQUE),
        .worker       = text_at(r, row, FINISH_WORKER),
        .error        = text_at(r, row, FINISH_ERROR),
        .message      = text_at(r, row, FINISH_MESSAGE),
        .seq          = h->seq,
        .created_ms   = h->created_ms,
        .run_at_ms    = h->run_at_ms,
        .started_ms   = il__pg_int8(r, row, FINISH_STARTED),
        .attempt      = (uint32_t)il__pg_int4(r, row, FINISH_ATTEMPT),
        .max_attempts = h->max_attempts,
        .priority     = h->priority,
        .progress     = int4_or(r, row, FINISH_PROGRESS, -1),
        .cancelled    = int4_or(r, row, FINISH_CANCELLED, 0) != 0,
    };

    return il__remote_take_job(c, i, &job, il__pg_int8(r, all, FINISH_COMPLETED));
}

/* The rows come in the order of their places, which is mostly that of the ops; where it is not, the next one is looked for from there. */
bool
il__pg_take_finished(struct remote_call *c, const struct pg_params *p, const PGresult *r)
{
    bool   ok  = il__pq->PQnfields(r) == (int)FINISH_COUNT;
    int    all = il__pq->PQntuples(r) - 1;
    size_t at  = 0;

    for (int row = 0; ok && row < all; row++) {
        uint64_t token  = (uint64_t)il__pg_int8(r, row, FINISH_TOKEN);
        size_t   n_seen = 0;
        for (; n_seen < c->n && p->hints[at].token != token; n_seen++)
            at = (at + 1) % c->n;
        ok = token != 0 && n_seen < c->n && take_finished(c, at, &p->hints[at], r, row, all);
    }
    c->failed = c->failed || !ok;
    return ok;
}
