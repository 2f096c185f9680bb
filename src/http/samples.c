/* samples.c: an hour of samples of each tenant. See samples.h. */
#include "http/samples.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "http/handler.h"
#include "http/server.h"
#include "http/server_ops.h"

#define EVERY_NS (HTTP_SAMPLE_MS * (int64_t)IL__NS_PER_MS)
#define IDLE_NS (HTTP_SAMPLES_KEPT * EVERY_NS)
#define COUNT_MAX 1000
#define PAGES_MAX 5 /* of one listing: a page may be short and have a next one */

struct sampled {
    char               tenant[IL_TENANT_BYTES_MAX + 1]; /* "": a free place */
    uint64_t           hash;
    int64_t            asked_ns; /* its last request */
    struct http_sample now;      /* being filled */
    size_t             n_taken;
    struct http_sample ring[HTTP_SAMPLES_KEPT]; /* number i is at i % KEPT */
};

enum kind {
    LOCKS,
    RUNS,
    QUEUES,
    KINDS
};
_Static_assert(HTTP_SAMPLED_TENANTS_MAX *KINDS <= HTTP_LISTINGS_MAX, "one round has them all");

struct http_samples {
    struct sampled      *tenants[HTTP_SAMPLED_TENANTS_MAX]; /* the first n */
    size_t               n;
    struct http_sample   nobody;
    int64_t              sampled_ns; /* when the last round began; 0 = never */
    bool                 busy;       /* a round is under way; of these: */
    struct sampled      *round[HTTP_SAMPLED_TENANTS_MAX];
    size_t               n_round;
    struct http_listings listings;
};

il_status
http_samples_open(struct http_server *s, il_error *reterr)
{
    s->samples = il__calloc(1, sizeof *s->samples);
    return s->samples != NULL ? IL_OK : il__error_nomem(reterr);
}

void
http_samples_close(struct http_server *s)
{
    if (s->samples == NULL)
        return;
    if (s->samples->busy)
        http_listings_release(&s->samples->listings);
    for (size_t i = 0; i < s->samples->n; i++)
        il__free(s->samples->tenants[i]);
    il__free(s->samples);
    s->samples = NULL;
}

/* ---- tenants --------------------------------------------------------------------------------- */

static struct sampled *
find(const struct http_samples *all, const char *tenant)
{
    uint64_t hash = il__hash_bytes(tenant, strlen(tenant));

    for (size_t i = 0; i < all->n; i++) {
        if (all->tenants[i]->hash == hash && strcmp(all->tenants[i]->tenant, tenant) == 0)
            return all->tenants[i];
    }
    return NULL;
}

/* A new place, or that of the tenant that was idle for longest, if that was an hour. NULL: none. */
static struct sampled *
free_place(struct http_samples *all, int64_t now_ns)
{
    struct sampled *oldest = NULL;

    if (all->n < HTTP_SAMPLED_TENANTS_MAX) {
        struct sampled *new = il__calloc(1, sizeof *new);
        if (new != NULL)
            all->tenants[all->n++] = new;
        return new;
    }
    for (size_t i = 0; i < all->n; i++) {
        if (oldest == NULL || all->tenants[i]->asked_ns < oldest->asked_ns)
            oldest = all->tenants[i];
    }
    /* a round in progress would add to it what belongs to another tenant */
    return !all->busy && now_ns - oldest->asked_ns >= IDLE_NS ? oldest : NULL;
}

struct http_sample *
http_sample_of(struct http_server *s, const char *tenant)
{
    struct sampled *t = find(s->samples, tenant);

    return t != NULL ? &t->now : &s->samples->nobody;
}

void
http_samples_request(struct http_server *s, const char *tenant)
{
    struct sampled *t = find(s->samples, tenant);

    if (t == NULL) {
        t = free_place(s->samples, s->now_ns);
        if (t == NULL)
            return;
        memset(t, 0, sizeof *t);
        (void)snprintf(t->tenant, sizeof t->tenant, "%s", tenant); /* always fits */
        t->hash = il__hash_bytes(tenant, strlen(tenant));
    }
    t->asked_ns = s->now_ns;
    t->now.requests++;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static bool
take_page(struct http_listings *l, size_t place, const il_op *op)
{
    struct http_samples *all = container_of(l, struct http_samples, listings);
    struct http_sample  *to  = &all->round[place / KINDS]->now;

    switch ((enum kind)(place % KINDS)) {
    case LOCKS:
        to->locks = MIN(to->locks + op->out.n_items, COUNT_MAX);
        return to->locks < COUNT_MAX;
    case RUNS:
        to->runs = MIN(to->runs + op->out.n_runs, COUNT_MAX);
        return to->runs < COUNT_MAX;
    case QUEUES:
    case KINDS:
    default:
        for (size_t i = 0; i < op->out.n_queues; i++) {
            to->jobs_ready += op->out.queues[i].n_ready;
            to->jobs_running += op->out.queues[i].n_running;
            to->jobs_failed += op->out.queues[i].n_failed;
        }
        return true;
    }
}

static void
round_came(struct http_listings *l, il_status status)
{
    struct http_samples *all = container_of(l, struct http_samples, listings);

    http_listings_release(l);
    all->busy = false;
    for (size_t i = 0; i < all->n_round; i++) {
        struct sampled    *t   = all->round[i];
        struct http_sample now = t->now;
        now.at_ms              = il__clock_wall_ms();
        if (status == IL_OK) {
            t->ring[t->n_taken++ % HTTP_SAMPLES_KEPT] = now;
            t->now                                    = (struct http_sample){ 0 };
        } else { /* what was counted here belongs to the next sample */
            t->now.locks = t->now.runs = 0;
            t->now.jobs_ready = t->now.jobs_running = t->now.jobs_failed = 0;
        }
    }
}

static void
ask(struct http_listings *l, const char *tenant)
{
    static const struct {
        il_op_type type;
        uint32_t   states;
    } rows[KINDS] = {
        [LOCKS]  = { IL_OP_LIST, 0 },
        [RUNS]   = { IL_OP_RUN_LIST, 1U << IL_RUN_RUNNING },
        [QUEUES] = { IL_OP_QUEUE_LIST, 0 },
    };

    for (size_t k = 0; k < KINDS; k++)
        l->ops[l->n++] = (il_op){ .type    = rows[k].type,
                                  .tenant  = tenant,
                                  .in.list = { .limit = COUNT_MAX, .states = rows[k].states } };
}

void
http_samples_tick(struct http_server *s, int64_t now_ns)
{
    struct http_samples  *all = s->samples;
    struct http_listings *l   = &all->listings;

    if (all->busy || (all->sampled_ns != 0 && now_ns - all->sampled_ns < EVERY_NS))
        return;
    all->n_round = 0;
    *l = (struct http_listings){ .pages_max = PAGES_MAX, .take = take_page, .then = round_came };
    for (size_t i = 0; i < all->n; i++) {
        if (now_ns - all->tenants[i]->asked_ns >= IDLE_NS)
            continue;
        all->round[all->n_round++] = all->tenants[i];
        ask(l, all->tenants[i]->tenant);
    }
    if (l->n == 0)
        return;
    all->sampled_ns = now_ns;
    all->busy       = http_listings_send(s, l);
}

/* ---- GET /samples ---------------------------------------------------------------------------- */

void
http_samples_get(struct http_request *r)
{
    const struct sampled     *t     = find(r->server->samples, r->caller->tenant);
    size_t                    n     = t != NULL ? MIN(t->n_taken, HTTP_SAMPLES_KEPT) : 0;
    struct http_sample       *items = http_calloc(r, (n + 1) * sizeof *items);
    struct http_samples_shown shown = { .interval_ms = HTTP_SAMPLE_MS, .samples = items, .n = n };

    if (items == NULL)
        return;
    for (size_t i = 0; i < n; i++)
        items[i] = t->ring[(t->n_taken - n + i) % HTTP_SAMPLES_KEPT];
    http_say(r, 200, &http_out_samples, &shown);
}
