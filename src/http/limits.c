/*
 * limits.c: how much a tenant may do. See limits.h.
 *
 * A token bucket is one number: the time at which it would be full again (the "theoretical arrival time" of GCRA). Live locks and jobs are counted where they
 * are, in the store, so that the counts cannot drift; `since` is what this server has granted since that look came back.
 */
#include "http/limits.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/map.h"
#include "http/metrics.h"
#include "http/own.h"
#include "http/server.h"

#define SECOND_NS (INT64_C(1000) * IL__NS_PER_MS)
#define LOOK_EVERY_NS (900 * (int64_t)IL__NS_PER_MS) /* ticks come four times a second */
#define LOOK_SHARE 20           /* a look that took t is followed by 20 t without one */
#define IDLE_NS (5 * SECOND_NS) /* tenants that were quiet for this long are not counted */
#define UNSURE_MAX 3            /* looks in a row that are not believed */
#define PAGES_MAX 100           /* of 1,000 locks in one look */

enum held {
    HELD_WAIT   = 1 << 0,
    HELD_STREAM = 1 << 1,
    HELD_OPS    = 1 << 2,
};

/* Something that is counted in the store. */
struct counted {
    int64_t seen;  /* at the last look */
    int64_t since; /* granted by this server since that came back, less what was given back */
    int64_t asked; /* under way: granted or not, nobody knows yet; without those that may wait for long */
};

struct http_tenant {
    struct http_server    *server;
    char                   name[IL_TENANT_BYTES_MAX + 1];
    unsigned               n_refs;
    struct il__data_limits own;
    int64_t                full_ns;                      /* when its bucket is full again */
    int64_t                minute_full_ns, hour_full_ns; /* those of triggers */
    int64_t                n_waiters, n_streams;
    struct counted         locks, jobs;
    int64_t                op_ns;      /* when it last tried to make a lock or a job */
    int64_t                look_at_ns; /* not before */
    bool                   looking;    /* has a look under way */
    uint64_t               n_granted;  /* answers that changed a count */
    unsigned               n_unsure;   /* looks in a row during which that happened */
};

struct http_limits {
    struct il__map map; /* of tenants */
    uint64_t       n_waiters, n_streams;
};

il_status
http_limits_open(struct http_server *s, il_error *reterr)
{
    s->limits = il__calloc(1, sizeof *s->limits);
    return s->limits != NULL ? IL_OK : il__error_set(reterr, IL_NOMEM, "out of memory");
}

void
http_limits_close(struct http_server *s)
{
    if (s->limits == NULL)
        return;
    for (size_t i = 0; i < s->limits->map.size; i++)
        il__free(s->limits->map.slots[i].item);
    il__map_release(&s->limits->map);
    il__free(s->limits);
    s->limits = NULL;
}

void
http_limits_reload(struct http_server *s)
{
    (void)s; /* the defaults are read where they count */
}

/* ---- tenants ------------------------------------------------------------------------------------------------------------- */

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
        t->server = s;
        (void)snprintf(t->name, sizeof t->name, "%s", name); /* it was checked when the key was made */
        il__map_add(map, h, t);
    }
    t->n_refs++;
    return t;
}

void
http_tenant_unref(struct http_tenant *t)
{
    if (t == NULL || --t->n_refs > 0 || t->server->limits == NULL)
        return;
    il__map_remove(&t->server->limits->map, hash_of(t->name), t);
    il__free(t);
}

void
http_tenant_limits(struct http_tenant *t, const struct il__data_limits *own)
{
    t->own = *own;
}

/* What counts: its own, else the server's; 0 = no limit. A tenant that has -1 has none, whatever the server says. */
static int64_t
effective(int64_t own, int64_t by_default)
{
    return MAX(own != 0 ? own : by_default, 0);
}

static struct il__data_limits
limits_of(const struct http_tenant *t)
{
    const struct il__data_limits *by_default = &t->server->o->limits;

    return (struct il__data_limits){
        .requests_per_second = effective(t->own.requests_per_second, by_default->requests_per_second),
        .burst = t->own.requests_per_second != 0 ? MAX(t->own.burst, 0) : MAX(by_default->burst, 0),
        .waiters             = effective(t->own.waiters, by_default->waiters),
        .streams             = effective(t->own.streams, by_default->streams),
        .locks               = effective(t->own.locks, by_default->locks),
        .jobs                = effective(t->own.jobs, by_default->jobs),
        .triggers_per_minute = effective(t->own.triggers_per_minute, by_default->triggers_per_minute),
        .triggers_per_hour   = effective(t->own.triggers_per_hour, by_default->triggers_per_hour),
        .runs                = effective(t->own.runs, by_default->runs),
        .runs_per_day        = effective(t->own.runs_per_day, by_default->runs_per_day),
    };
}

/* ---- refusals ------------------------------------------------------------------------------------------------------------ */

static bool
refuse_quota(struct http_request *r, const char *what, int64_t limit)
{
    AUTO_BUF struct il__buf details;

    http_count(r->server, HTTP_COUNT_quota_refused, 1);
    il__buf_init(&details, 256);
    il__buf_addf(&details, "{\"quota\":\"%s\",\"limit\":%lld,\"retry_after_ms\":1000}", what,
                 (long long)limit);
    http_retry_after(r, 1000);
    http_fail(r, 429, "QUOTA_EXCEEDED", "request", il__buf_str(&details),
              "the tenant may have %lld %s at once", (long long)limit, what);
    return false;
}

static bool
refuse_rate(struct http_request *r, int64_t rate, const char *what, const char *per, int64_t wait_ns)
{
    AUTO_BUF struct il__buf details;
    int64_t                 wait_ms = (wait_ns + IL__NS_PER_MS - 1) / IL__NS_PER_MS;

    http_count(r->server, HTTP_COUNT_rate_limited, 1);
    il__buf_init(&details, 256);
    il__buf_addf(&details, "{\"%s_per_%s\":%lld,\"retry_after_ms\":%lld}", what, per,
                 (long long)rate, (long long)wait_ms);
    http_retry_after(r, wait_ms);
    http_fail(r, 429, "RATE_LIMITED", "request", il__buf_str(&details),
              "the tenant may make %lld %s per %s", (long long)rate, what, per);
    return false;
}

/* ---- requests, waits, streams -------------------------------------------------------------------------------------------- */

/*
 * What a bucket would be if one more were taken, of `rate` in `span_ns` and `burst` at once. How long to wait for that: ns, at most 0: it may be taken now.
 */
static int64_t
look_into(int64_t full_ns, int64_t now_ns, int64_t span_ns, int64_t rate, int64_t burst,
          int64_t *ret_full_ns)
{
    int64_t interval_ns = MAX(span_ns / rate, 1);

    burst        = MIN(burst, INT64_MAX / 2 / interval_ns);
    *ret_full_ns = MAX(full_ns, now_ns) + interval_ns;
    return *ret_full_ns - now_ns - burst * interval_ns;
}

bool
http_limits_request(struct http_request *r)
{
    struct http_tenant    *t = r->caller->limits;
    struct il__data_limits l = limits_of(t);
    int64_t                full_ns;

    if (l.requests_per_second == 0)
        return true;
    int64_t wait_ns = look_into(t->full_ns, il__clock_boot_ns(), SECOND_NS, l.requests_per_second,
                                l.burst > 0 ? l.burst : 2 * l.requests_per_second, &full_ns);
    if (wait_ns > 0)
        return refuse_rate(r, l.requests_per_second, "requests", "second", wait_ns);
    t->full_ns = full_ns;
    return true;
}

/* One that is refused takes from neither bucket. */
bool
http_limits_trigger(struct http_request *r)
{
    struct http_tenant    *t         = r->caller->limits;
    struct il__data_limits l         = limits_of(t);
    int64_t                now_ns    = il__clock_boot_ns();
    int64_t                minute_ns = t->minute_full_ns, hour_ns = t->hour_full_ns;
    int64_t                wait_ns = 0;

    if (l.triggers_per_minute > 0)
        wait_ns = look_into(t->minute_full_ns, now_ns, 60 * SECOND_NS, l.triggers_per_minute,
                            l.triggers_per_minute, &minute_ns);
    if (wait_ns > 0)
        return refuse_rate(r, l.triggers_per_minute, "triggers", "minute", wait_ns);
    if (l.triggers_per_hour > 0)
        wait_ns = look_into(t->hour_full_ns, now_ns, 3600 * SECOND_NS, l.triggers_per_hour,
                            l.triggers_per_hour, &hour_ns);
    if (wait_ns > 0)
        return refuse_rate(r, l.triggers_per_hour, "triggers", "hour", wait_ns);
    t->minute_full_ns = minute_ns;
    t->hour_full_ns   = hour_ns;
    return true;
}

void
http_limits_runs(const struct http_request *r, uint32_t *ret_live, uint32_t *ret_day)
{
    struct il__data_limits l = limits_of(r->caller->limits);

    *ret_live = (uint32_t)MIN(l.runs, UINT32_MAX);
    *ret_day  = (uint32_t)MIN(l.runs_per_day, UINT32_MAX);
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
    CHECK(r->caller != NULL); /* who holds something is somebody */
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
    }
}

bool
http_limits_wait(struct http_request *r)
{
    struct http_tenant *t = r->caller != NULL ? r->caller->limits : NULL;

    if (r->limits_held != 0)
        give_back(r, HELD_OPS); /* who waits has nothing yet, and may never have */
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

/* ---- locks and jobs ------------------------------------------------------------------------------------------------------ */

/* What an op that is answered like this changes; before it is answered, what it would change at most. */
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

static void
sum(const il_op *ops, size_t n_ops, bool answered, int64_t *ret_locks, int64_t *ret_jobs)
{
    *ret_locks = *ret_jobs = 0;
    for (size_t i = 0; i < n_ops; i++) {
        *ret_locks += locks_by(&ops[i], answered);
        *ret_jobs += jobs_by(&ops[i], answered);
    }
}

static bool
is_over(const struct counted *c, int64_t more, int64_t max)
{
    return more > 0 && max > 0 && MAX(c->seen + c->since, 0) + c->asked + more > max;
}

bool
http_limits_ops(struct http_request *r)
{
    struct http_tenant *t = r->caller != NULL ? r->caller->limits : NULL;
    int64_t             locks, jobs;

    if (t == NULL)
        return true;
    struct il__data_limits l = limits_of(t);
    if (l.locks == 0 && l.jobs == 0)
        return true;
    sum(r->ops != NULL ? r->ops : &r->op, MAX(r->n_ops, 1), false, &locks, &jobs);
    if (locks > 0 || jobs > 0)
        t->op_ns = il__clock_boot_ns();
    if (is_over(&t->locks, locks, l.locks))
        return refuse_quota(r, "locks", l.locks);
    if (is_over(&t->jobs, jobs, l.jobs))
        return refuse_quota(r, "jobs", l.jobs);
    r->limits_locks = locks;
    r->limits_jobs  = jobs;
    t->locks.asked += locks;
    t->jobs.asked += jobs;
    r->limits_held |= HELD_OPS;
    return true;
}

void
http_limits_applied(struct http_request *r)
{
    struct http_tenant *t = r->caller != NULL ? r->caller->limits : NULL;
    int64_t             locks, jobs;

    if (t == NULL || t->op_ns == 0 || r->call.status != IL_OK)
        return; /* op_ns: it has such a limit */
    sum(r->call.ops, r->call.n, true, &locks, &jobs);
    t->locks.since += locks;
    t->jobs.since += jobs;
    t->n_granted += locks != 0 || jobs != 0;
}

enum kind {
    LOCKS,
    JOBS,
    KINDS
};

/* A count that is under way. */
struct look {
    struct http_listings listings;
    struct http_tenant  *tenant;
    int64_t              sent_ns;
    uint64_t             n_granted;    /* the tenant's, when it was sent */
    enum kind            kinds[KINDS]; /* of the listings, by their places */
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
    /* Beyond the limit it does not matter how many there are. */
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
    /* What was granted meanwhile may be in it or not. What is known is good enough for some looks more: in the long run it is not, since leases also run out. */
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
    k->listings = (struct http_listings){ .pages_max = PAGES_MAX, .take = count_page, .then = looked };
    for (enum kind kind = LOCKS; kind < KINDS; kind++) {
        if ((kind == LOCKS ? limits->locks : limits->jobs) == 0)
            continue;
        k->kinds[k->listings.n] = kind;
        k->listings.ops[k->listings.n++] =
            (il_op){ .type = types[kind], .tenant = t->name, .in.list = { .limit = IL_PAGE_ITEMS_MAX } };
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
        if (t == NULL || t->looking || now_ns < t->look_at_ns || t->op_ns == 0 ||
            now_ns - t->op_ns > IDLE_NS)
            continue;
        struct il__data_limits l = limits_of(t);
        if (l.locks > 0 || l.jobs > 0)
            look(t, &l, now_ns);
    }
}
