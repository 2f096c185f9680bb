/*
 * limits.c: limits of tenants. See limits.h.
 *
 * Live locks and jobs are counted in the store, so the counts cannot drift; `since` is what this
 * server has granted since the last count came back.
 */
#include "http/limits.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/map.h"
#include "http/bucket.h"
#include "http/metrics.h"
#include "http/server.h"
#include "http/server_ops.h"
#include "http/storage.h"

#define SECOND_NS (INT64_C(1000) * IL__NS_PER_MS)
#define LOOK_EVERY_NS (900 * (int64_t)IL__NS_PER_MS) /* ticks come four times a second */
#define LOOK_SHARE 20           /* a count that took t is followed by 20 t without one */
#define IDLE_NS (5 * SECOND_NS) /* tenants idle for this long are not counted */
#define UNSURE_MAX 3            /* consecutive counts that may be discarded */
#define SMALL_BODY_BYTES 65536
#define PAGES_MAX 100 /* pages of 1,000 locks per count */

enum held {
    HELD_WAIT   = 1 << 0,
    HELD_STREAM = 1 << 1,
    HELD_OPS    = 1 << 2,
};

/* A resource that is counted in the store. */
struct counted {
    int64_t seen;  /* at the last count */
    int64_t since; /* granted by this server since that count, less what was released */
    /* in progress: not known yet whether granted; without ops that may wait for long */
    int64_t asked;
};

struct http_tenant {
    struct http_server      *server;
    char                     name[IL_TENANT_BYTES_MAX + 1];
    unsigned                 n_refs;
    struct il__data_limits   own;
    int64_t                  full_ns; /* when its bucket is full again */
    struct http_buckets      buckets; /* of the routes of apps */
    int64_t                  n_waiters, n_streams;
    struct counted           locks, jobs;
    struct http_storage      storage;
    int64_t                  op_ns;           /* when it last tried to create a lock or a job */
    int64_t                  look_at_ns;      /* not before */
    bool                     looking;         /* has a count in progress */
    struct il__result_budget results, bodies; /* its share of the server's */
    uint64_t                 n_granted;       /* answers that changed a count */
    unsigned                 n_unsure;        /* consecutive counts during which that happened */
};

struct http_limits {
    struct il__map           map; /* of tenants */
    uint64_t                 n_waiters, n_streams;
    struct il__result_budget results; /* bytes of results held for clients */
    struct il__result_budget bodies;  /* and of request bodies received or announced */
};

static void
tenant_free(struct http_tenant *t)
{
    if (t != NULL)
        http_storage_release(&t->storage);
    il__free(t);
}

il_status
http_limits_open(struct http_server *s, il_error *reterr)
{
    s->limits = il__calloc(1, sizeof *s->limits);
    if (s->limits == NULL)
        return il__error_nomem(reterr);
    s->limits->results.n_max = HTTP_RESULT_BYTES_MAX;
    s->limits->bodies.n_max  = HTTP_BODIES_BYTES_MAX;
    return IL_OK;
}

void
http_limits_close(struct http_server *s)
{
    if (s->limits == NULL)
        return;
    for (size_t i = 0; i < s->limits->map.size; i++)
        tenant_free(s->limits->map.slots[i].item);
    il__map_release(&s->limits->map);
    il__free(s->limits);
    s->limits = NULL;
}

/* ---- tenants --------------------------------------------------------------------------------- */

static uint64_t
hash_of(const char *name)
{
    return il__hash_bytes(name, strlen(name));
}

struct http_tenant *
http_tenant_ref(struct http_server *s, const char *name)
{
    struct il__map     *map = &s->limits->map;
    uint64_t            h   = hash_of(name);
    size_t              i   = il__map_start(map, h);
    struct http_tenant *t;

    while ((t = il__map_next(map, h, &i)) != NULL && strcmp(t->name, name) != 0)
        i++;
    if (t == NULL) {
        t = il__calloc(1, sizeof *t);
        if (t == NULL || !il__map_reserve(map)) {
            il__free(t);
            return NULL;
        }
        t->server        = s;
        t->bodies.above  = &s->limits->bodies;
        t->bodies.n_max  = HTTP_BODIES_BYTES_MAX / 2;
        t->results.above = &s->limits->results;
        t->results.n_max = HTTP_RESULT_BYTES_MAX / 2; /* the others have the other half */
        /* checked when the key was created */
        (void)snprintf(t->name, sizeof t->name, "%s", name);
        il__map_add(map, h, t);
    }
    t->n_refs++;
    return t;
}

static void
forget(struct http_tenant *t)
{
    il__map_remove(&t->server->limits->map, hash_of(t->name), t);
    tenant_free(t);
}

/* A tenant with an empty bucket is remembered until it is full (http_limits_tick()). */
void
http_tenant_unref(struct http_tenant *t)
{
    if (t == NULL || --t->n_refs > 0 || t->server->limits == NULL ||
        !http_buckets_full(&t->buckets, il__clock_boot_ns()))
        return;
    forget(t);
}

struct http_buckets *
http_tenant_buckets(struct http_tenant *t)
{
    return &t->buckets;
}

void
http_tenant_limits(struct http_tenant *t, const struct il__data_limits *own)
{
    t->own = *own;
}

static struct il__data_limits
limits_of(const struct http_tenant *t)
{
    return il__data_limits_merge(&t->own, &t->server->o->limits);
}

/* ---- refusals -------------------------------------------------------------------------------- */

#define SAY_QUOTA "the tenant has reached its limit of %lld concurrent %s"
#define SAY_STORAGE \
    "storage quota exceeded: %lld of %lld bytes in use; delete data or wait until it expires"

static bool
refuse_quota(struct http_request *r, const char *what, int64_t limit)
{
    AUTO_BUF struct il__buf details;

    http_count(r->server, HTTP_COUNT_quota_refused, 1);
    il__buf_init(&details, 256);
    il__buf_addf(&details, "{\"quota\":\"%s\",\"limit\":%lld,\"retry_after_ms\":1000}", what,
                 (long long)limit);
    http_retry_after(r, 1000);
    http_fail(r, 429, "QUOTA_EXCEEDED", "request", il__buf_str(&details), SAY_QUOTA,
              (long long)limit, what);
    return false;
}

static bool
refuse_storage(struct http_request *r, int64_t limit)
{
    struct http_storage    *st   = &r->caller->limits->storage;
    int64_t                 used = http_storage_used(st);
    AUTO_BUF struct il__buf details;

    st->refused = true;
    http_count(r->server, HTTP_COUNT_quota_refused, 1);
    il__buf_init(&details, 256);
    il__buf_addf(&details, "{\"limit\":%lld,\"used\":%lld,\"retry_after_ms\":1000}",
                 (long long)limit, (long long)used);
    http_retry_after(r, 1000);
    http_fail(r, 507, "STORAGE_QUOTA_EXCEEDED", "request", il__buf_str(&details), SAY_STORAGE,
              (long long)used, (long long)limit);
    return false;
}

static bool
refuse_rate(struct http_request *r, int64_t rate, const char *what, const char *per,
            int64_t wait_ns)
{
    AUTO_BUF struct il__buf details;
    int64_t                 wait_ms = (wait_ns + IL__NS_PER_MS - 1) / IL__NS_PER_MS;

    http_count(r->server, HTTP_COUNT_rate_limited, 1);
    il__buf_init(&details, 256);
    il__buf_addf(&details, "{\"%s_per_%s\":%lld,\"retry_after_ms\":%lld}", what, per,
                 (long long)rate, (long long)wait_ms);
    http_retry_after(r, wait_ms);
    http_fail(r, 429, "RATE_LIMITED", "request", il__buf_str(&details),
              "the tenant exceeded its limit of %lld %s per %s", (long long)rate, what, per);
    return false;
}

/* ---- requests, waits, streams ---------------------------------------------------------------- */

bool
http_limits_request(struct http_request *r)
{
    struct http_tenant    *t = r->caller->limits;
    struct il__data_limits l = limits_of(t);
    int64_t                full_ns;

    if (l.requests_per_second == 0)
        return true;
    int64_t wait_ns =
        http_bucket_look(t->full_ns, il__clock_boot_ns(), SECOND_NS, l.requests_per_second,
                         l.burst > 0 ? l.burst : 2 * l.requests_per_second, &full_ns);
    if (wait_ns > 0)
        return refuse_rate(r, l.requests_per_second, "requests", "second", wait_ns);
    t->full_ns = full_ns;
    return true;
}

void
http_limits_triggers(const struct http_request *r, uint32_t *ret_minute, uint32_t *ret_hour)
{
    struct il__data_limits l = limits_of(r->caller->limits);

    *ret_minute = (uint32_t)l.triggers_per_minute;
    *ret_hour   = (uint32_t)l.triggers_per_hour;
}

void
http_limits_too_often(struct http_request *r, const il_op *op)
{
    bool minute = (op->out.flags & IL_OUT_MINUTE_LIMIT) != 0;

    (void)refuse_rate(r, minute ? op->in.run.minute_max : op->in.run.hour_max, "triggers",
                      minute ? "minute" : "hour", op->out.remaining_ms * IL__NS_PER_MS);
}

bool
http_limits_storage(struct http_request *r)
{
    struct http_tenant    *t = r->caller->limits;
    struct il__data_limits l = limits_of(t);

    if (l.bytes == 0)
        return true;
    t->op_ns = il__clock_boot_ns(); /* marks it for measurement */
    return http_storage_used(&t->storage) <= l.bytes || refuse_storage(r, l.bytes);
}

void
http_limits_runs(const struct http_request *r, uint32_t *ret_live, uint32_t *ret_day)
{
    struct il__data_limits l = limits_of(r->caller->limits);

    *ret_live = (uint32_t)l.runs;
    *ret_day  = (uint32_t)l.runs_per_day;
}

void
http_limits_refused(struct http_request *r)
{
    http_count(r->server, HTTP_COUNT_quota_refused, 1);
}

static void
give_back(struct http_request *r, unsigned held)
{
    struct http_limits *l = r->server->limits;

    held &= r->limits_held;
    if (held == 0)
        return;
    CHECK(r->caller != NULL); /* holding a place implies a caller */
    struct http_tenant *t = r->caller->limits;
    r->limits_held &= ~held;
    if ((held & HELD_WAIT) != 0) {
        t->n_waiters--;
        l->n_waiters--;
    }
    if ((held & HELD_STREAM) != 0) {
        t->n_streams--;
        l->n_streams--;
    }
    if ((held & HELD_OPS) != 0) {
        t->locks.asked -= r->limits_locks;
        t->jobs.asked -= r->limits_jobs;
        t->storage.asked -= r->limits_bytes;
    }
}

bool
http_limits_wait(struct http_request *r)
{
    struct http_tenant *t = r->caller != NULL ? r->caller->limits : NULL;

    if (r->limits_held != 0)
        give_back(r, HELD_OPS); /* a waiter has nothing yet, and may never have */
    if (t == NULL || (r->limits_held & HELD_WAIT) != 0)
        return true;
    int64_t max = limits_of(t).waiters;
    if (max > 0 && t->n_waiters >= max)
        return refuse_quota(r, "waiting requests", max);
    t->n_waiters++;
    r->server->limits->n_waiters++;
    r->limits_held |= HELD_WAIT;
    return true;
}

bool
http_limits_stream(struct http_request *r)
{
    struct http_tenant *t = r->caller != NULL ? r->caller->limits : NULL;

    if (t == NULL || (r->limits_held & HELD_STREAM) != 0)
        return true;
    int64_t max = limits_of(t).streams;
    if (max > 0 && t->n_streams >= max)
        return refuse_quota(r, "streams", max);
    t->n_streams++;
    r->server->limits->n_streams++;
    r->limits_held |= HELD_STREAM;
    return true;
}

void
http_limits_end(struct http_request *r)
{
    if (r->limits_held != 0)
        give_back(r, HELD_WAIT | HELD_STREAM | HELD_OPS);
}

uint64_t
http_limits_waiters(const struct http_server *s)
{
    return s->limits->n_waiters;
}

uint64_t
http_limits_streams(const struct http_server *s)
{
    return s->limits->n_streams;
}

/* ---- locks and jobs -------------------------------------------------------------------------- */

/* How an op with this answer changes the counts; before the answer, the most it could change. */
static int
locks_by(const il_op *op, bool answered)
{
    bool ok = !answered || (op->status == IL_OK && (op->out.flags & IL_OUT_RENEWED) == 0);

    if (op->type == IL_OP_ACQUIRE || op->type == IL_OP_RUN_START)
        return ok ? 1 : 0;
    return answered && ok && (op->type == IL_OP_RELEASE || op->type == IL_OP_RUN_FINISH) ? -1 : 0;
}

static int
jobs_by(const il_op *op, bool answered)
{
    bool ok = !answered || (op->status == IL_OK && (op->out.flags & IL_OUT_RENEWED) == 0);

    if (op->type == IL_OP_JOB_PUSH)
        return ok ? 1 : 0;
    return answered && ok && op->type == IL_OP_JOB_FINISH ? -1 : 0;
}

/* The total of several ops. */
struct sums {
    int64_t locks, jobs, bytes;
};

static void
add(struct sums *sums, const il_op *op, bool answered)
{
    sums->locks += locks_by(op, answered);
    sums->jobs += jobs_by(op, answered);
    sums->bytes += http_storage_by(op, answered);
}

static bool
is_over(const struct counted *c, int64_t before, int64_t more, int64_t max)
{
    return more > 0 && max > 0 && MAX(c->seen + c->since, 0) + c->asked + before + more > max;
}

/* Which limit an op would exceed, after earlier ops of the same request that add `before`. */
static enum http_over
over(const struct http_tenant *t, const struct il__data_limits *l, const struct sums *before,
     const il_op *op)
{
    int64_t used = http_storage_used(&t->storage) + before->bytes;

    if (l->bytes > 0 && http_storage_may_refuse(op) && used + http_storage_by(op, false) > l->bytes)
        return HTTP_OVER_BYTES;
    if (is_over(&t->locks, before->locks, locks_by(op, false), l->locks))
        return HTTP_OVER_LOCKS;
    if (is_over(&t->jobs, before->jobs, jobs_by(op, false), l->jobs))
        return HTTP_OVER_JOBS;
    return HTTP_OVER_NOTHING;
}

/* The request itself counted as one; each further op counts as one more, and may overdraw the
 * bucket. */
static void
charge_ops(struct http_tenant *t, size_t n_ops)
{
    int64_t rate = limits_of(t).requests_per_second;

    if (rate == 0 || n_ops < 2)
        return;
    int64_t interval_ns = MAX(SECOND_NS / rate, 1);
#ifndef IL_MUTANT_batch_counts_once
    t->full_ns = MAX(t->full_ns, il__clock_boot_ns()) + (int64_t)(n_ops - 1) * interval_ns;
#endif
}

struct il__result_budget *
http_limits_results(const struct http_request *r)
{
    return r->caller != NULL ? &r->caller->limits->results : &r->server->limits->results;
}

static struct il__result_budget *
bodies_of(const struct http_request *r)
{
    return r->caller != NULL ? &r->caller->limits->bodies : &r->server->limits->bodies;
}

/* A small body is always accepted: renewals must get through. */
bool
http_limits_body(struct http_request *r)
{
    if (r->n_expected <= SMALL_BODY_BYTES)
        return true;
    if (il__result_budget_take(bodies_of(r), r->n_expected)) {
        r->n_body_held = r->n_expected;
        return true;
    }
    http_retry_after(r, 1000);
    r->close = true; /* the body is not read */
    http_fail(r, 503, "BODIES_FULL", "request", NULL,
              "too many bytes of request bodies in progress; try again later");
    return false;
}

void
http_limits_body_end(struct http_request *r)
{
    il__result_budget_change(bodies_of(r), r->n_body_held, 0);
    r->n_body_held = 0;
}

/* The caller's tenant if its locks, jobs or bytes are limited; else NULL. */
static struct http_tenant *
limited(const struct http_request *r, struct il__data_limits *ret)
{
    struct http_tenant *t = r->caller != NULL ? r->caller->limits : NULL;

    if (t == NULL)
        return NULL;
    *ret = limits_of(t);
    return ret->locks > 0 || ret->jobs > 0 || ret->bytes > 0 ? t : NULL;
}

bool
http_limits_over(const struct http_request *r, const il_op *ops, size_t n_ops)
{
    struct il__data_limits    l;
    const struct http_tenant *t    = limited(r, &l);
    struct sums               sums = { 0 };

    for (size_t i = 0; t != NULL && i < n_ops; i++) {
        if (over(t, &l, &sums, &ops[i]) != HTTP_OVER_NOTHING)
            return true;
        add(&sums, &ops[i], false);
    }
    return false;
}

void
http_limits_judge(struct http_request *r, const il_op *ops, size_t n, unsigned char *verdicts)
{
    struct il__data_limits l;
    struct http_tenant    *t         = limited(r, &l);
    struct sums            sums      = { 0 };
    size_t                 n_refused = 0;

    for (size_t i = 0; i < n; i++) {
        bool exists = verdicts[i] == HTTP_OVER_BUT_EXISTS;
        if (exists)
            verdicts[i] = 0;
        if (t == NULL || verdicts[i] != 0)
            continue;
        enum http_over which = exists ? HTTP_OVER_NOTHING : over(t, &l, &sums, &ops[i]);
        if (which == HTTP_OVER_NOTHING) {
            add(&sums, &ops[i], false);
            continue;
        }
        n_refused++;
        verdicts[i]        = (unsigned char)which;
        t->op_ns           = il__clock_boot_ns(); /* counted and measured */
        t->storage.refused = t->storage.refused || which == HTTP_OVER_BYTES;
        http_count(r->server, HTTP_COUNT_quota_refused, 1);
    }
    if (n_refused > 0) /* http_limits_ops() charges the others */
        charge_ops(t, n_refused + (n_refused < n));
    r->limits_judged = true;
}

const char *
http_limits_say(const struct http_request *r, enum http_over which, char text[HTTP_OVER_TEXT_BYTES])
{
    const struct http_tenant *t = r->caller->limits;
    struct il__data_limits    l = limits_of(t);

    if (which == HTTP_OVER_BYTES) {
        (void)snprintf(text, HTTP_OVER_TEXT_BYTES, SAY_STORAGE,
                       (long long)http_storage_used(&t->storage), (long long)l.bytes);
        return "STORAGE_QUOTA_EXCEEDED";
    }
    bool locks = which == HTTP_OVER_LOCKS;
    (void)snprintf(text, HTTP_OVER_TEXT_BYTES, SAY_QUOTA, (long long)(locks ? l.locks : l.jobs),
                   locks ? "locks" : "jobs");
    return "QUOTA_EXCEEDED";
}

static bool
refuse(struct http_request *r, const struct il__data_limits *l, enum http_over which)
{
    if (which == HTTP_OVER_BYTES)
        return refuse_storage(r, l->bytes);
    return which == HTTP_OVER_LOCKS ? refuse_quota(r, "locks", l->locks)
                                    : refuse_quota(r, "jobs", l->jobs);
}

/* Only the loop judges and reserves, and it does both in one turn (also after
 * http_limits_judge()), so no other request comes between the check and the reservation. */
bool
http_limits_ops(struct http_request *r)
{
    struct il__data_limits l;
    struct http_tenant    *t       = limited(r, &l);
    const il_op           *ops     = r->ops != NULL ? r->ops : &r->op;
    size_t                 n_ops   = MAX(r->n_ops, 1);
    bool                   judged  = r->limits_judged;
    enum http_over         refused = HTTP_OVER_NOTHING;
    struct sums            sums    = { 0 };

    r->limits_judged = false;
    if (r->caller != NULL)
        charge_ops(r->caller->limits, r->n_ops);
    if (t == NULL)
        return true;
    for (size_t i = 0; i < n_ops; i++) {
        if (!judged && refused == HTTP_OVER_NOTHING)
            refused = over(t, &l, &sums, &ops[i]);
        add(&sums, &ops[i], false);
    }
    if (sums.locks > 0 || sums.jobs > 0 || sums.bytes > 0)
        t->op_ns = il__clock_boot_ns();
    if (refused != HTTP_OVER_NOTHING)
        return refuse(r, &l, refused);
    r->limits_locks = sums.locks;
    r->limits_jobs  = sums.jobs;
    r->limits_bytes = sums.bytes;
    t->locks.asked += sums.locks;
    t->jobs.asked += sums.jobs;
    t->storage.asked += sums.bytes;
    r->limits_held |= HELD_OPS;
    return true;
}

void
http_limits_applied(struct http_request *r)
{
    struct http_tenant *t    = r->caller != NULL ? r->caller->limits : NULL;
    struct sums         sums = { 0 };

    if (t == NULL || t->op_ns == 0 || r->call.status != IL_OK)
        return; /* op_ns: it has such a limit */
    for (size_t i = 0; i < r->call.n; i++)
        add(&sums, &r->call.ops[i], true);
    t->locks.since += sums.locks;
    t->jobs.since += sums.jobs;
    t->n_granted += sums.locks != 0 || sums.jobs != 0;
#ifdef IL_MUTANT_bytes_not_counted
    sums.bytes = 0;
#endif
    t->storage.since += sums.bytes;
}

enum kind {
    LOCKS,
    JOBS,
    KINDS
};

/* A count in progress. */
struct look {
    struct http_listings listings;
    struct http_tenant  *tenant;
    int64_t              sent_ns;
    uint64_t             n_granted;    /* of the tenant, when the count was sent */
    enum kind            kinds[KINDS]; /* of the listings, by index */
    int64_t              found[KINDS];
};

static bool
count_page(struct http_listings *l, size_t place, const il_op *op)
{
    struct look *k = container_of(l, struct look, listings);

    k->found[k->kinds[place]] += (int64_t)op->out.n_items;
    for (size_t i = 0; i < op->out.n_queues; i++) {
        const il_queue_info *q = &op->out.queues[i];
        k->found[JOBS] += (int64_t)(q->n_scheduled + q->n_ready + q->n_running);
    }
    /* Beyond the limit the exact number does not matter. */
    return k->kinds[place] != LOCKS || k->found[LOCKS] <= limits_of(k->tenant).locks;
}

static void
learn(struct counted *c, int64_t n)
{
    c->seen  = n;
    c->since = 0;
}

static void
looked(struct http_listings *l, il_status status)
{
    struct look        *k      = container_of(l, struct look, listings);
    struct http_tenant *t      = k->tenant;
    int64_t             now_ns = il__clock_boot_ns();

    t->looking    = false;
    t->look_at_ns = now_ns + MAX(LOOK_EVERY_NS, LOOK_SHARE * (now_ns - k->sent_ns));
    /* Grants made during the count may or may not be included. The previous count is good enough
     * for a few more rounds, but not indefinitely, since leases also expire. */
    bool unsure = t->n_granted != k->n_granted && t->n_unsure < UNSURE_MAX;
    t->n_unsure = unsure ? t->n_unsure + 1 : 0;
    if (status == IL_OK && !unsure) {
        learn(&t->locks, k->found[LOCKS]);
        learn(&t->jobs, k->found[JOBS]);
    }
    http_listings_release(l);
    il__free(k);
    http_tenant_unref(t);
}

static void
look(struct http_tenant *t, const struct il__data_limits *limits, int64_t now_ns)
{
    static const il_op_type types[KINDS] = { IL_OP_LIST, IL_OP_QUEUE_LIST };
    struct look            *k            = il__calloc(1, sizeof *k);

    if (k == NULL)
        return;
    k->tenant    = t;
    k->sent_ns   = now_ns;
    k->n_granted = t->n_granted;
    k->listings =
        (struct http_listings){ .pages_max = PAGES_MAX, .take = count_page, .then = looked };
    for (enum kind kind = LOCKS; kind < KINDS; kind++) {
        if ((kind == LOCKS ? limits->locks : limits->jobs) == 0)
            continue;
        k->kinds[k->listings.n]          = kind;
        k->listings.ops[k->listings.n++] = (il_op){ .type    = types[kind],
                                                    .tenant  = t->name,
                                                    .in.list = { .limit = IL_PAGE_ITEMS_MAX } };
    }
    if (!http_listings_send(t->server, &k->listings)) {
        il__free(k);
        return;
    }
    t->looking = true;
    t->n_refs++;
}

void
http_limits_tick(struct http_server *s, int64_t now_ns)
{
    struct il__map *map = &s->limits->map;

    for (size_t i = 0; i < map->size; i++) {
        struct http_tenant *t = map->slots[i].item;
        if (t != NULL && t->n_refs == 0) {
            if (http_buckets_full(&t->buckets, now_ns))
                forget(t);
            continue;
        }
        if (t == NULL || t->op_ns == 0 || now_ns - t->op_ns > IDLE_NS)
            continue;
        struct il__data_limits l = limits_of(t);
        if ((l.locks > 0 || l.jobs > 0) && !t->looking && now_ns >= t->look_at_ns)
            look(t, &l, now_ns);
        if (l.bytes > 0)
            http_storage_tick(s, &t->storage, t->name, l.bytes, now_ns);
    }
}
