/*
 * job_many.c: claims and finishes of jobs as dedicated statements, with columns instead of JSON.
 *
 * A queue spends most of its time on these, a hundred jobs per call. JSON used to take four fifths
 * of our own cost per job, and about a quarter of the server's. All other ops, and those that these
 * statements skip, go through apply() (postgres.c).
 */
#include <arpa/inet.h>
#include <inttypes.h>

#include "base/hash.h"
#include "store/postgres/postgres_internal.h"

#define PARAM_BYTES_MAX ((size_t)512 * 1024 * 1024)
#define TOKENS_SEEN 1024 /* slots, a power of two, four for each token of the largest batch */

/* Columns of the statement `work`; if the second is not empty, it is a row like those of apply(),
 * or WORK_FINISHED. */
enum work_column {
    WORK_I,
    WORK_OUT,
    WORK_DATA,
    WORK_SEQ,
    WORK_TOKEN,
    WORK_PLACE,
    WORK_CREATED,
    WORK_RUN_AT,
    WORK_ATTEMPT,
    WORK_MAX_ATTEMPTS,
    WORK_PRIORITY,
    WORK_ID,
    WORK_PARENT,
    WORK_GROUP,
    WORK_UNIQUE,
    WORK_ERROR,
    WORK_COUNT
};
#define WORK_WAKES (-1) /* values of the first one; 0: of the claim */
#define WORK_FINISHED (-2)

/* ---- requests -------------------------------------------------------------------------------- */

/* What is known about the job that a finish names; empty if it is not the one that was claimed with
 * its token. Under the mutex of the connections. */
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
 * Finishes of one tenant, the first one of a job that was claimed here, optionally followed by a
 * claim. No token may occur twice: one statement could keep either of the two results. (Of two
 * tokens for one job only one can be valid.)
 */
bool
il__pg_jobs_many_fit(struct pg_store *s, il_op *const *ops, size_t n)
{
    uint64_t seen[TOKENS_SEEN] = { 0 };

    if (n < 2 || n > TOKENS_SEEN / 4 || ops[0]->type != IL_OP_JOB_FINISH)
        return false;
    if (ops[n - 1]->type == IL_OP_JOB_CLAIM) {
        if (strcmp(ops[n - 1]->tenant, ops[0]->tenant) != 0)
            return false;
        n--;
    }
    il__mutex_lock(&s->connections.mutex);
    bool known = find_hint(s, ops[0]).token != 0;
    il__mutex_unlock(&s->connections.mutex);
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

/* Results of n finishes; none if all are empty. */
static void
add_results(struct il__buf *b, const struct remote_call *c, size_t n)
{
    bool any = false;

    for (size_t i = 0; i < n; i++)
        any = any || c->requests[i].op->in.job.data_bytes > 0;
    if (!any)
        return;
    il__pg_array_begin(b, PG_BYTEA, n, false);
    for (size_t i = 0; i < n; i++)
        il__pg_array_add(b, c->requests[i].op->in.job.data, c->requests[i].op->in.job.data_bytes);
}

/* For each finish; unknown jobs, and those of another queue than the first, are left to the batch
 * that follows. */
static bool
find_hints(struct pg_store *s, struct pg_params *p, const struct remote_call *c)
{
    p->hints = il__calloc(p->n_finishes, sizeof *p->hints);
    if (p->hints == NULL)
        return false;
    il__mutex_lock(&s->connections.mutex);
    for (size_t i = 0; i < p->n_finishes; i++)
        p->hints[i] = find_hint(s, c->requests[i].op);
    memcpy(p->worker, s->worker, sizeof p->worker);
    il__mutex_unlock(&s->connections.mutex);
    return true;
}

/* Parameters 2 to 8. */
static bool
add_finishes(struct pg_store *s, struct pg_params *p, const struct remote_call *c)
{
    struct il__buf *tokens = &p->bufs[0];
    struct il__buf *places = &p->bufs[1];
    bool            keyed  = false;
    bool            ok     = true;

    for (size_t i = 0; i < 3; i++)
        il__buf_init(&p->bufs[i], PARAM_BYTES_MAX);
    if (!find_hints(s, p, c))
        return false;
    il__pg_array_begin(tokens, PG_INT8, p->n_finishes, false);
    il__pg_array_begin(places, PG_TID, p->n_finishes, false);
    for (size_t i = 0; i < p->n_finishes; i++) {
        /* 0 (no job) and 0 (no row) if nothing is known */
        il__pg_array_add_int8(tokens, p->hints[i].token);
        il__pg_array_add_tid(places, p->hints[i].place);
        keyed = keyed || p->hints[i].keyed;
    }
    add_results(&p->bufs[2], c, p->n_finishes);
    (void)snprintf(p->queue, sizeof p->queue, "%" PRId32, p->hints[0].queue);
    p->query.values[1] = c->requests[0].op->tenant;
    p->query.values[2] = p->queue;
    p->query.values[3] = p->worker;
    p->query.values[7] = keyed ? "t" : "f";
    for (size_t i = 0; i < 3; i++) {
        p->query.values[4 + i]  = p->bufs[i].data;
        p->query.lengths[4 + i] = (int)p->bufs[i].n_bytes;
        ok                      = ok && !p->bufs[i].failed;
    }
    return ok;
}

bool
il__pg_is_jobs_many(const struct remote_call *c)
{
    const il_op *first = c->requests[0].op;

    return c->bare || (c->n == 1 && first != NULL && first->type == IL_OP_JOB_CLAIM);
}

bool
il__pg_jobs_many_params(struct pg_store *s, struct pg_params *p, const struct remote_call *c)
{
    const struct remote_request *last  = &c->requests[c->n - 1];
    bool                         claim = last->op->type == IL_OP_JOB_CLAIM;

    p->n_finishes = claim ? c->n - 1 : c->n;
    p->query      = (struct pg_query){
             .n_params = 10,
             .types    = { PG_JSONB, PG_TEXT, PG_INT4, PG_TEXT, PG_INT8_ARRAY, PG_TID_ARRAY,
                        PG_BYTEA_ARRAY, PG_BOOL, PG_INT8, PG_INT8, },
             .formats  = { 0, 0, 0, 0, 1, 1, 1, 0, 0, 0 },
    };
    p->query.values[0] = claim ? il__buf_str(&last->json) : NULL;
    p->query.values[8] = c->timed ? p->now : NULL;
    p->query.values[9] = c->timed ? p->wall : NULL;
    return p->n_finishes == 0 || add_finishes(s, p, c);
}

/* ---- answers --------------------------------------------------------------------------------- */

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

/* The location of a claimed job's row; 0: unknown. */
static uint64_t
place_at(const PGresult *r, int row)
{
    struct remote_blob at = il__pg_bytes(r, row, WORK_PLACE);
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
    il__mutex_lock(&s->connections.mutex);
    s->hints[hint->token % PG_HINTS] = *hint;
    il__mutex_unlock(&s->connections.mutex);
}

/* What the head of a claim says about all its jobs. */
struct claim {
    int64_t wall_ms, remaining_ms;
    int32_t queue;
};

static bool
take_claimed(struct pg_store *s, struct remote_call *c, const PGresult *r, int row,
             const struct claim *claim)
{
    int64_t           created_ms = il__pg_int8(r, row, WORK_CREATED);
    struct remote_job job        = {
               .id           = text_at(r, row, WORK_ID),
               .parent       = text_at(r, row, WORK_PARENT),
               .group        = text_at(r, row, WORK_GROUP),
               .unique_key   = text_at(r, row, WORK_UNIQUE),
               .error        = text_at(r, row, WORK_ERROR),
               .payload      = il__pg_bytes(r, row, WORK_DATA),
               .seq          = (uint64_t)il__pg_int8(r, row, WORK_SEQ),
               .token        = (uint64_t)il__pg_int8(r, row, WORK_TOKEN),
               .created_ms   = created_ms,
               .run_at_ms    = int8_or(r, row, WORK_RUN_AT, created_ms),
               .attempt      = (uint32_t)int4_or(r, row, WORK_ATTEMPT, 1),
               .max_attempts = (uint32_t)il__pg_int4(r, row, WORK_MAX_ATTEMPTS),
               .priority     = int4_or(r, row, WORK_PRIORITY, 0),
               .progress     = -1,
    };
    struct pg_hint hint = {
        .token        = job.token,
        .seq          = job.seq,
        .place        = place_at(r, row),
        .created_ms   = job.created_ms,
        .run_at_ms    = job.run_at_ms,
        .started_ms   = claim->wall_ms,
        .queue        = claim->queue,
        .priority     = job.priority,
        .attempt      = job.attempt,
        .max_attempts = job.max_attempts,
        .keyed        = job.unique_key != NULL,
    };

    /* Jobs with a group or a parent are not finished that way. */
    if (job.id != NULL && hint.place != 0 && hint.queue != 0 && job.group == NULL &&
        job.parent == NULL) {
        hint.id = il__hash_bytes(job.id, strlen(job.id));
        keep_hint(s, &hint);
    }
    return il__remote_take_job(c, c->n - 1, &job, claim->wall_ms, claim->remaining_ms);
}

/* The jobs of a claim whose head was taken. */
static bool
take_jobs(struct pg_store *s, struct remote_call *c, const PGresult *r)
{
    const il_op  *op    = c->requests[c->n - 1].op;
    const json_t *head  = c->replies[c->n - 1].head;
    struct claim  claim = {
         .wall_ms      = il__remote_number(head, "wall_ms"),
         .remaining_ms = il__remote_number(head, "expires_ms") - il__remote_number(head, "now_ms"),
         .queue        = (int32_t)il__remote_number(head, "queue_no"),
    };
    bool ok = true;

    il__mutex_lock(&s->connections.mutex);
    (void)snprintf(s->worker, sizeof s->worker, "%s", op->holder);
    il__mutex_unlock(&s->connections.mutex);
    for (int row = 0; ok && row < il__pq->PQntuples(r); row++) {
        if (il__pq->PQgetisnull(r, row, WORK_OUT))
            ok = take_claimed(s, c, r, row, &claim);
    }
    return ok;
}

/* A finish, built from what is known about its job and from what is unusual about it, or NULL. */
static bool
take_finish(struct remote_call *c, size_t i, const struct pg_params *p, const char *queue,
            int64_t wall_ms, const json_t *odd)
{
    const struct pg_hint *h   = &p->hints[i];
    struct remote_job     job = {
            .queue        = queue,
            .worker       = odd != NULL ? il__remote_text_or_null(odd, "worker") : p->worker,
            .unique_key   = il__remote_text_or_null(odd, "unique_key"),
            .error        = il__remote_text_or_null(odd, "error"),
            .message      = il__remote_text_or_null(odd, "message"),
            .seq          = h->seq,
            .created_ms   = h->created_ms,
            .run_at_ms    = h->run_at_ms,
            .started_ms   = h->started_ms,
            .attempt      = h->attempt,
            .max_attempts = h->max_attempts,
            .priority     = h->priority,
            .progress     = odd != NULL ? (int32_t)il__remote_number(odd, "progress") : -1,
            .cancelled    = odd != NULL && il__remote_number(odd, "cancelled") != 0,
    };

    return il__remote_take_job(c, i, &job, wall_ms, 0);
}

/* The finish with this token, searched from *at on: they come in the order of their rows, which is
 * usually that of the ops. */
static bool
find_finish(const struct pg_params *p, uint64_t token, size_t *at)
{
    for (size_t i = 0; token != 0 && i < p->n_finishes; i++) {
        if (p->hints[*at].token == token)
            return true;
        *at = (*at + 1) % p->n_finishes;
    }
    return false;
}

/* What was done, and what is unusual, by the index of the finishes. False: it makes no sense, or
 * there is no memory. */
static bool
sort_out(const struct pg_params *p, const json_t *all, bool *done, const json_t **odd)
{
    const json_t *tokens = json_object_get(all, "done");
    const json_t *rows   = json_object_get(all, "odd");
    size_t        at     = 0;
    bool          ok     = true;

    for (size_t i = 0; i < p->n_finishes; i++)
        done[i] = tokens == NULL;
    for (size_t i = 0; ok && i < json_array_size(tokens); i++) {
        ok       = find_finish(p, (uint64_t)il__remote_number_of(json_array_get(tokens, i)), &at);
        done[at] = true;
    }
    for (size_t i = 0; ok && i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        ok                = find_finish(p, (uint64_t)il__remote_number(row, "token"), &at);
        odd[at]           = row;
    }
    return ok;
}

/* What finish_take() says. */
static bool
take_finishes(struct remote_call *c, const struct pg_params *p, struct remote_blob out)
{
    json_t                  *all     = json_loadb(out.data, out.n_bytes, 0, NULL);
    AUTO_FREE bool          *done    = il__calloc(p->n_finishes + 1, sizeof *done);
    AUTO_FREE const json_t **odd     = il__calloc(p->n_finishes + 1, sizeof *odd);
    const char              *queue   = il__remote_text_or_null(all, "queue");
    int64_t                  wall_ms = il__remote_number(all, "wall_ms");
    bool ok = all != NULL && done != NULL && odd != NULL && sort_out(p, all, done, odd);

    for (size_t i = 0; ok && i < p->n_finishes; i++) {
        if (done[i])
            ok = p->hints[i].token != 0 && take_finish(c, i, p, queue, wall_ms, odd[i]);
    }
    json_decref(all);
    return ok;
}

/* A row that has a text. */
static bool
take_text(struct remote_call *c, const struct pg_params *p, const PGresult *r, int row)
{
    struct remote_blob out = il__pg_bytes(r, row, WORK_OUT);

    switch (il__pg_int4(r, row, WORK_I)) {
    case WORK_FINISHED:
        return take_finishes(c, p, out);
    case WORK_WAKES:
        return il__remote_take_wakes(c, out.data, out.n_bytes);
    default:
        return il__remote_take_row(c, c->n - 1, out.data, out.n_bytes,
                                   il__pg_bytes(r, row, WORK_DATA),
                                   (struct remote_blob){ NULL, 0 });
    }
}

bool
il__pg_take_jobs_many(struct pg_store *s, struct remote_call *c, const struct pg_params *p,
                      const PGresult *r)
{
    bool ok = il__pq->PQnfields(r) == (int)WORK_COUNT;

    for (int row = 0; ok && row < il__pq->PQntuples(r); row++) {
        if (!il__pq->PQgetisnull(r, row, WORK_OUT))
            ok = take_text(c, p, r, row);
    }
    return ok && (c->replies[c->n - 1].head == NULL || take_jobs(s, c, r));
}
