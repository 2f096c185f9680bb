/*
 * lock_many.c: runs the acquires, renewals and releases of many callers as one dedicated statement
 * (functions/lock_many.sql), with columns instead of JSON.
 *
 * A call combines ops none of which reads what another one changes, so their order does not matter.
 * All other ops, and those that turn out not to be the usual case, are left for apply()
 * (postgres.c), which runs after this statement.
 */
#include "base/hash.h"
#include "core/key.h"
#include "store/postgres/postgres_internal.h"

#define PARAM_BYTES_MAX ((size_t)64 * 1024 * 1024)
#define SEEN_MAX 2048   /* a power of two, more than four times the ops of a call */
#define FAILURES_MAX 4  /* after so many calls in a row of which most was left, */
#define CALLS_SPARED 32 /* this many calls are not tried */

/* Parameters and columns of the statement `locks`. */
enum lock_kind {
    LOCK_NONE,
    LOCK_ACQUIRE = IL_OP_ACQUIRE,
    LOCK_RENEW   = IL_OP_RENEW,
    LOCK_RELEASE = IL_OP_RELEASE
};
enum lock_param {
    P_KINDS,
    P_TENANTS,
    P_KEYS,
    P_HOLDERS,
    P_FENCES,
    P_TTLS,
    P_SETTLES,
    P_METAS,
    P_PLACES,
    P_ARRAYS
};
enum lock_column {
    LOCK_GRANTED,
    LOCK_GRANTED_FENCES,
    LOCK_RENEWED,
    LOCK_RENEWED_TTLS,
    LOCK_ENDED,
    LOCK_COLUMNS
};

/* ---- which ----------------------------------------------------------------------------------- */

static bool
is_of_locks(const il_op *op)
{
    return op->type == IL_OP_ACQUIRE || op->type == IL_OP_RENEW || op->type == IL_OP_RELEASE;
}

static enum lock_kind
kind_of(const il_op *op)
{
    if (op->type == IL_OP_ACQUIRE)
        return op->in.lock.mode == IL_MODE_EXCLUSIVE ? LOCK_ACQUIRE : LOCK_NONE;
    if (op->fence == 0)
        return LOCK_NONE;
    return op->type == IL_OP_RENEW ? LOCK_RENEW : LOCK_RELEASE;
}

/* Hashes of the names used by earlier ops. A hash collision only means that an op is left. */
struct seen {
    size_t   mask;
    uint64_t places[SEEN_MAX]; /* 0 = empty */
};

enum seen_as {
    SEEN_KEY,
    SEEN_UNIT,
    SEEN_ACQUIRING
};

static void
seen_init(struct seen *s, size_t n_ops)
{
    s->mask = 7;
    while (s->mask < 4 * n_ops)
        s->mask = 2 * s->mask + 1;
    CHECK(s->mask < SEEN_MAX);
    memset(s->places, 0, (s->mask + 1) * sizeof *s->places);
}

/* Was it seen before? `note`: mark it as seen. */
static bool
was_seen(struct seen *s, const il_op *op, const char *name, size_t n_bytes, enum seen_as as,
         bool note)
{
    uint64_t hash =
        il__hash_bytes(op->tenant, strlen(op->tenant)) * 31 + il__hash_bytes(name, n_bytes);
    size_t at = hash & s->mask;

    hash = (hash << 2 | as) + 1; /* not 0 */
    while (s->places[at] != 0 && s->places[at] != hash)
        at = (at + 1) & s->mask;
    bool seen = s->places[at] != 0;
    if (note)
        s->places[at] = hash;
    return seen;
}

/*
 * Can it run together with those before it? It is noted in any case: later ops must not overtake an
 * op that is left. An acquire looks at what its unit of work holds, so it must be the first and
 * last op of its unit; renewals and releases look at their leases alone.
 */
static bool
goes_along(struct seen *s, const il_op *op)
{
    size_t unit_bytes = il__holder_root_bytes(op->holder);
    bool   acquires   = op->type == IL_OP_ACQUIRE;
    bool   key        = was_seen(s, op, op->key, strlen(op->key), SEEN_KEY, true);
    bool   unit       = was_seen(s, op, op->holder, unit_bytes, SEEN_UNIT, true);
    bool   acquiring  = was_seen(s, op, op->holder, unit_bytes, SEEN_ACQUIRING, acquires);

#ifdef IL_MUTANT_unit_overtaken
    acquiring = unit = false;
#endif
    return !key && !acquiring && !(acquires && unit) && kind_of(op) != LOCK_NONE;
}

bool
il__pg_locks_many_fit(struct pg_store *s, il_op *const *ops, size_t n)
{
    struct seen seen;
    size_t      n_left = 0;

    if (n == 1)
        /* alone it is as fast in apply(), and needs no second call if it is not the usual case */
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!is_of_locks(ops[i]))
            return false;
    }
    if (atomic_load_explicit(&s->n_spared, memory_order_relaxed) > 0) {
        atomic_fetch_sub_explicit(&s->n_spared, 1, memory_order_relaxed);
        return false;
    }
    seen_init(&seen, n);
    for (size_t i = 0; i < n; i++)
        n_left += !goes_along(&seen, ops[i]);
    return n_left <= n / 4; /* otherwise one batch is better for all of them */
}

bool
il__pg_is_locks_many(const struct remote_call *c)
{
    return c->bare && is_of_locks(c->requests[0].op);
}

/* ---- requests -------------------------------------------------------------------------------- */

static void
add_op(struct pg_params *p, const il_op *op)
{
    const il_lock_in *in      = &op->in.lock;
    enum lock_kind    kind    = kind_of(op);
    bool              acquire = kind == LOCK_ACQUIRE;

    il__pg_array_add_int4(&p->bufs[P_KINDS], (int32_t)kind);
    il__pg_array_add_text(&p->bufs[P_TENANTS], op->tenant);
    il__pg_array_add_text(&p->bufs[P_KEYS], op->key);
    il__pg_array_add_text(&p->bufs[P_HOLDERS], op->holder);
    il__pg_array_add_int8(&p->bufs[P_FENCES], acquire ? 0 : op->fence);
    il__pg_array_add_int8(&p->bufs[P_TTLS], kind == LOCK_RELEASE ? 0 : (uint64_t)in->ttl_ms);
    il__pg_array_add_int8(&p->bufs[P_SETTLES], acquire ? (uint64_t)in->settle_ms : 0);
    il__pg_array_add_text(&p->bufs[P_METAS], acquire && in->meta != NULL ? in->meta : "");
    il__pg_array_add_text(&p->bufs[P_PLACES], acquire && in->place != NULL ? in->place : "");
}

/* Which ops of the call go along. */
static void
pick(struct pg_params *p, const struct remote_call *c)
{
    struct seen seen;

    seen_init(&seen, c->n);
    for (size_t i = 0; i < c->n; i++) {
        if (goes_along(&seen, c->requests[i].op))
            p->picked[p->n_picked++] = (uint16_t)i;
    }
}

bool
il__pg_locks_many_params(struct pg_params *p, const struct remote_call *c)
{
    static const Oid types[P_ARRAYS][2] = {
        [P_KINDS] = { PG_INT4, PG_INT4_ARRAY },   [P_TENANTS] = { PG_TEXT, PG_TEXT_ARRAY },
        [P_KEYS] = { PG_TEXT, PG_TEXT_ARRAY },    [P_HOLDERS] = { PG_TEXT, PG_TEXT_ARRAY },
        [P_FENCES] = { PG_INT8, PG_INT8_ARRAY },  [P_TTLS] = { PG_INT8, PG_INT8_ARRAY },
        [P_SETTLES] = { PG_INT8, PG_INT8_ARRAY }, [P_METAS] = { PG_TEXT, PG_TEXT_ARRAY },
        [P_PLACES] = { PG_TEXT, PG_TEXT_ARRAY },
    };
    bool ok = true;

    pick(p, c);
    for (size_t i = 0; i < P_ARRAYS; i++) {
        il__buf_init(&p->bufs[i], PARAM_BYTES_MAX);
        il__pg_array_begin(&p->bufs[i], types[i][0], p->n_picked, false);
    }
    for (size_t i = 0; i < p->n_picked; i++)
        add_op(p, c->requests[p->picked[i]].op);
    p->query = (struct pg_query){ .n_params = P_ARRAYS + 1 };
    for (size_t i = 0; i < P_ARRAYS; i++) {
        p->query.types[i]   = types[i][1];
        p->query.values[i]  = p->bufs[i].data;
        p->query.lengths[i] = (int)p->bufs[i].n_bytes;
        p->query.formats[i] = 1;
        ok                  = ok && !p->bufs[i].failed;
    }
    p->query.types[P_ARRAYS]  = PG_INT8;
    p->query.values[P_ARRAYS] = c->timed ? p->now : NULL;
    return ok;
}

/* ---- answers --------------------------------------------------------------------------------- */

static bool
take_granted(struct remote_call *c, const struct pg_params *p, const PGresult *r, size_t *n_taken)
{
    struct pg_int8s at;
    struct pg_int8s fences;

    if (!il__pg_array_open(r, LOCK_GRANTED, &at) ||
        !il__pg_array_open(r, LOCK_GRANTED_FENCES, &fences) || at.n != fences.n)
        return false;
    *n_taken += at.n;
    for (size_t k = 0; k < at.n; k++) {
        size_t  i     = (size_t)il__pg_array_next(&at) - 1;
        int64_t fence = il__pg_array_next(&fences);
        if (i >= p->n_picked ||
            !il__remote_take_lock(c, p->picked[i], IL_OP_ACQUIRE, (uint64_t)fence,
                                  c->requests[p->picked[i]].op->in.lock.ttl_ms))
            return false;
    }
    return true;
}

/* Renewals, or releases, which have no column of ttls. */
static bool
take_changed(struct remote_call *c, const struct pg_params *p, const PGresult *r, il_op_type type,
             size_t *n_taken)
{
    bool            renews = type == IL_OP_RENEW;
    struct pg_int8s at;
    struct pg_int8s ttls;

    if (!il__pg_array_open(r, renews ? LOCK_RENEWED : LOCK_ENDED, &at) ||
        (renews && (!il__pg_array_open(r, LOCK_RENEWED_TTLS, &ttls) || ttls.n != at.n)))
        return false;
    *n_taken += at.n;
    for (size_t k = 0; k < at.n; k++) {
        size_t  i      = (size_t)il__pg_array_next(&at) - 1;
        int64_t ttl_ms = renews ? il__pg_array_next(&ttls) : 0;
        if (i >= p->n_picked ||
            !il__remote_take_lock(c, p->picked[i], type,
                                  renews ? c->requests[p->picked[i]].op->fence : 0, ttl_ms))
            return false;
    }
    return true;
}

/* Where callers compete for the same keys, most ops are not the usual case, and trying only adds a
 * round trip. Both numbers are hints: it does not matter which of several callers updates them
 * first. */
static void
note_success(struct pg_store *s, bool success)
{
    if (success) {
        atomic_store_explicit(&s->n_failures, 0, memory_order_relaxed);
    } else if (atomic_fetch_add_explicit(&s->n_failures, 1, memory_order_relaxed) + 1 >=
               FAILURES_MAX) {
        atomic_store_explicit(&s->n_failures, 0, memory_order_relaxed);
        atomic_store_explicit(&s->n_spared, CALLS_SPARED, memory_order_relaxed);
    }
}

bool
il__pg_take_locks_many(struct pg_store *s, struct remote_call *c, const struct pg_params *p,
                       const PGresult *r)
{
    size_t n_taken = 0;
    bool   ok      = il__pq->PQnfields(r) == LOCK_COLUMNS && il__pq->PQntuples(r) == 1 &&
              take_granted(c, p, r, &n_taken) && take_changed(c, p, r, IL_OP_RENEW, &n_taken) &&
              take_changed(c, p, r, IL_OP_RELEASE, &n_taken);

    note_success(s, n_taken * 2 > p->n_picked);
    return ok;
}
