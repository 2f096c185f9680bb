/*
 * metrics_gather.c: gathers values that only the store knows: queue depths and ages, live locks,
 * running runs. They are read in small portions and cached until the next round: every 5 s while
 * the server is scraped, otherwise once a minute.
 */
#include <dirent.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/clock.h"
#include "http/metrics_internal.h"
#include "http/server.h"
#include "http/server_ops.h"
#include "runtime/handle.h"

#define SECOND_NS (INT64_C(1000) * IL__NS_PER_MS)
#define EVERY_NS (5 * SECOND_NS)
#define IDLE_EVERY_NS (60 * SECOND_NS)
#define SCRAPED_NS (90 * SECOND_NS) /* a scrape this recent means that someone scrapes */
#define GATHER_SHARE 10             /* a round that took t is followed by 10 t without one */
#define TENANTS_MAX 1000
#define PORTION 8    /* tenants in one errand */
#define KINDS 5      /* queries per tenant */
#define PAGES_MAX 20 /* of one listing */

struct http_gather {
    struct http_job       job; /* lists the tenants, on the errand thread */
    struct http_listings  listings;
    struct http_metrics  *m;
    void                 *mem;
    char                **tenants;
    size_t                n_tenants, i_tenant; /* the first tenant of the current portion */
    struct http_gathered  out;                 /* arrays by il__alloc(), texts in mem */
    struct http_queue_row other;
    bool                  has_other;
};

/* Make room for one more element in a growing array; NULL: out of memory. */
static void *
grow(void *array, size_t n, size_t item_bytes)
{
    void **at = array;

    if ((n & (n - 1)) == 0) { /* full at every power of two */
        void *larger = il__realloc(*at, (n == 0 ? 1 : 2 * n) * item_bytes);
        if (larger == NULL)
            return NULL;
        *at = larger;
    }
    memset((char *)*at + n * item_bytes, 0, item_bytes);
    return (char *)*at + n * item_bytes;
}

static void
copy(char *to, size_t size, const char *from)
{
    (void)snprintf(to, size, "%s", from); /* names always fit */
}

/* ---- on the errand thread -------------------------------------------------------------------- */

static void
take_tenant(void *cookie, const struct il__data_tenant *t)
{
    struct http_gather *g = cookie;

    if (g->n_tenants < TENANTS_MAX &&
        (g->tenants[g->n_tenants] = il__arena_strdup(&g->mem, t->id)) != NULL)
        g->n_tenants++;
}

static uint64_t
count_fds(void)
{
    DIR     *dir = opendir("/proc/self/fd");
    uint64_t n   = 0;

    if (dir == NULL)
        return 0;
    while (readdir(dir) != NULL)
        n++;
    (void)closedir(dir);
    return n > 3 ? n - 3 : 0; /* ".", ".." and the directory itself */
}

static void
take_guard(void *cookie, const struct il__table_guard *guard)
{
    struct http_gather    *g   = cookie;
    struct http_guard_row *row = g->out.n_guards < HTTP_LABELS_MAX
                                     ? grow(&g->out.guards, g->out.n_guards, sizeof *row)
                                     : NULL;

    if (row == NULL)
        return;
    g->out.n_guards++;
    copy(row->tenant, sizeof row->tenant, guard->tenant);
    copy(row->table, sizeof row->table, guard->table);
    row->n_refused = guard->n_refused;
}

/* A store without guards returns an error, and so does one that is down, which is reported
 * elsewhere. */
static void
list_guards(struct http_gather *g)
{
    IGNORE(il__handle_guard_table(g->m->server->h, NULL, take_guard, g, NULL));
}

static void
list_tenants(struct http_job *job)
{
    struct http_gather *g = container_of(job, struct http_gather, job);

    g->tenants = il__arena_alloc(&g->mem, TENANTS_MAX * sizeof *g->tenants);
    g->out.data_up =
        g->tenants != NULL &&
        il__data_tenant_list(g->m->server->data, NULL, TENANTS_MAX, take_tenant, g, NULL) == IL_OK;
    g->out.n_fds = count_fds();
    list_guards(g);
}

/* ---- results --------------------------------------------------------------------------------- */

static struct http_queue_row *
queue_row(struct http_gather *g, const il_queue_info *q)
{
    struct http_queue_row *row = NULL;

    if (g->out.n_queues < HTTP_LABELS_MAX)
        row = grow(&g->out.queues, g->out.n_queues, sizeof *row);
    if (row == NULL) {
        g->has_other = true;
        return &g->other;
    }
    g->out.n_queues++;
    copy(row->tenant, sizeof row->tenant, q->tenant);
    copy(row->name, sizeof row->name, q->name);
    return row;
}

static void
take_queues(struct http_gather *g, const il_op *op)
{
    for (size_t i = 0; i < op->out.n_queues; i++) {
        const il_queue_info   *q   = &op->out.queues[i];
        struct http_queue_row *row = queue_row(g, q);
        row->scheduled += q->n_scheduled;
        row->ready += q->n_ready;
        row->running += q->n_running;
        row->n_failed += q->n_failed;
        row->n_workers += q->n_workers;
        row->n_paused += q->paused != 0;
        row->oldest_ms = MAX(row->oldest_ms, q->oldest_ms);
        row->pushed += q->pushed;
        row->claimed += q->claimed;
        row->completed += q->completed;
        row->failed_attempts += q->failed_attempts;
        row->failed += q->failed;
        row->snoozed += q->snoozed;
        row->cancelled += q->cancelled;
        row->recovered += q->recovered;
        row->duplicates += q->duplicates;
        row->stale += q->stale;
    }
}

/* Rows of one key are adjacent; pipelines are merged on the loop. */
static struct http_pipeline_row *
pipeline_row(struct http_gather *g, const char *tenant, const char *key)
{
    struct http_pipeline_row *last =
        g->out.n_pipelines > 0 ? &g->out.pipelines[g->out.n_pipelines - 1] : NULL;

    if (last != NULL && strcmp(last->key, key) == 0 && strcmp(last->tenant, tenant) == 0)
        return last;
    struct http_pipeline_row *row = grow(&g->out.pipelines, g->out.n_pipelines, sizeof *row);
    if (row == NULL)
        return NULL;
    row->tenant = il__arena_strdup(&g->mem, tenant);
    row->key    = il__arena_strdup(&g->mem, key);
    if (row->tenant == NULL || row->key == NULL)
        return NULL;
    g->out.n_pipelines++;
    return row;
}

/* The timeout to compare its age with: from the app, or the TTL for a lock outside any app. */
static double
lock_timeout(const struct http_metrics *m, const char *tenant, const il_lease_info *l)
{
    int64_t ms = l->ttl_ms;

    if (m->known != NULL)
        (void)m->known(m->known_cookie, tenant, http_pipeline_name(l->key), &ms);
    return (double)ms / 1e3;
}

static void
take_pipeline_locks(struct http_gather *g, const il_op *op)
{
    for (size_t i = 0; i < op->out.n_items; i++) {
        const il_lease_info      *l = &op->out.items[i];
        struct http_pipeline_row *row =
            l->state == IL_LEASE_HELD ? pipeline_row(g, op->tenant, l->key) : NULL;
        if (row == NULL)
            continue;
        row->n_locks++;
        row->age     = MAX(row->age, (double)l->age_ms / 1e3);
        row->timeout = lock_timeout(g->m, op->tenant, l);
    }
}

static void
take_pipeline_runs(struct http_gather *g, const il_op *op)
{
    for (size_t i = 0; i < op->out.n_runs; i++) {
        struct http_pipeline_row *row = pipeline_row(g, op->tenant, op->out.runs[i].key);
        if (row != NULL)
            row->n_runs++;
    }
}

static struct http_tenant_row *
tenant_row(struct http_gather *g, const char *tenant)
{
    for (size_t i = g->out.n_tenants; i > 0 && i + PORTION > g->out.n_tenants;
         i--) { /* it is one of the last */
        if (strcmp(g->out.tenants[i - 1].tenant, tenant) == 0)
            return &g->out.tenants[i - 1];
    }
    struct http_tenant_row *row = grow(&g->out.tenants, g->out.n_tenants, sizeof *row);
    if (row == NULL)
        return NULL;
    copy(row->tenant, sizeof row->tenant, tenant);
    g->out.n_tenants++;
    return row;
}

static void
take_locks(struct http_gather *g, const il_op *op)
{
    struct http_tenant_row *row = tenant_row(g, op->tenant);

    if (row != NULL)
        row->n_locks += op->out.n_items;
}

static void
take_waiters(struct http_gather *g, const il_op *op)
{
    struct http_tenant_row *row = tenant_row(g, op->tenant);

    if (row != NULL)
        row->n_waiters += op->out.n_items;
}

/* The queries for each tenant. */
static const struct question {
    il_op_type  type;
    uint32_t    flags;
    const char *prefix;
    uint32_t    states;
    void (*take)(struct http_gather *g, const il_op *op);
} questions[KINDS] = {
    { IL_OP_QUEUE_LIST, 0, NULL, 0, take_queues },
    { IL_OP_LIST, 0, "pipeline:", 0, take_pipeline_locks },
    { IL_OP_RUN_LIST, 0, "pipeline:", 1U << IL_RUN_RUNNING, take_pipeline_runs },
    { IL_OP_LIST, 0, NULL, 0, take_locks },
    { IL_OP_LIST, IL_LIST_WAITERS, NULL, 0, take_waiters },
};

/* ---- on the loop ----------------------------------------------------------------------------- */

static void
free_gathered(struct http_gathered *out)
{
    il__free(out->queues);
    il__free(out->tenants);
    il__free(out->guards);
    il__free(out->pipelines);
    *out = (struct http_gathered){ .n_queues = 0 };
}

static void
free_gather(struct http_gather *g)
{
    free_gathered(&g->out);
    il__arena_free(&g->mem);
    il__free(g);
}

static void
forget_pipelines(struct http_metrics *m)
{
    for (size_t i = 0; i <= m->pipelines.size; i++) {
        struct http_pipeline *p = i < m->pipelines.size ? m->pipelines.slots[i].item : &m->other;
        if (p == NULL)
            continue;
        p->n_locks = p->n_runs = 0;
        p->age = p->timeout = 0;
    }
}

static void
take_over(struct http_metrics *m, struct http_gather *g)
{
    forget_pipelines(m);
    for (size_t i = 0; i < g->out.n_pipelines; i++) {
        const struct http_pipeline_row *row = &g->out.pipelines[i];
        struct http_pipeline           *p   = http_pipeline_of(m, row->tenant, row->key);
        if (p == NULL)
            continue;
        p->n_locks += row->n_locks;
        p->n_runs += row->n_runs;
        if (row->timeout > 0 &&
            (p->timeout <= 0 || row->age / row->timeout >= p->age / p->timeout)) {
            p->age     = row->age;
            p->timeout = row->timeout;
        }
    }
    if (g->has_other) {
        struct http_queue_row *row = grow(&g->out.queues, g->out.n_queues, sizeof *row);
        copy(g->other.tenant, sizeof g->other.tenant, "other");
        copy(g->other.name, sizeof g->other.name, "other");
        if (row != NULL) {
            *row = g->other;
            g->out.n_queues++;
        }
    }
    free_gathered(&m->seen);
    m->seen = g->out;
    il__free(m->seen.pipelines); /* its texts are freed with the gather */
    m->seen.pipelines   = NULL;
    m->seen.n_pipelines = 0;
    g->out              = (struct http_gathered){ .n_queues = 0 };
}

static void ask_portion(struct http_gather *g);

static void
finish(struct http_gather *g, il_status status)
{
    struct http_metrics *m = g->m;

    g->out.store_up = status == IL_OK;
    if (status == IL_OK) {
        take_over(m, g);
        /* keep the previous values, marked as old */
    } else if (status != IL_CANCELLED) {
        m->seen.store_up = false;
        m->seen.data_up  = g->out.data_up;
    }
    m->gather_took_ns = il__clock_boot_ns() - m->gathered_ns;
    m->gathered_ns    = il__clock_boot_ns();
    m->gather         = NULL;
    free_gather(g);
}

static bool
take_page(struct http_listings *l, size_t place, const il_op *op)
{
    struct http_gather *g = container_of(l, struct http_gather, listings);

    if (g->n_tenants > 0)
        questions[place % KINDS].take(g, op);
    return true;
}

static void
portion_came(struct http_listings *l, il_status status)
{
    struct http_gather *g = container_of(l, struct http_gather, listings);

    http_listings_release(l);
    g->i_tenant += PORTION;
    if (status == IL_OK && g->i_tenant < g->n_tenants)
        ask_portion(g);
    else
        finish(g, status);
}

static void
ask_portion(struct http_gather *g)
{
    struct http_listings *l = &g->listings;

    *l = (struct http_listings){ .pages_max = PAGES_MAX, .take = take_page, .then = portion_came };
    for (size_t i = g->i_tenant; i < MIN(g->i_tenant + PORTION, g->n_tenants); i++) {
        for (size_t k = 0; k < KINDS; k++)
            l->ops[l->n++] = (il_op){ .type    = questions[k].type,
                                      .flags   = questions[k].flags,
                                      .tenant  = g->tenants[i],
                                      .in.list = { .prefix = questions[k].prefix,
                                                   .limit  = IL_PAGE_ITEMS_MAX,
                                                   .states = questions[k].states } };
    }
    if (l->n == 0) /* is the store reachable at all? */
        l->ops[l->n++] = (il_op){ .type = IL_OP_GET, .tenant = "default", .key = "ping" };
    if (!http_listings_send(g->m->server, l))
        finish(g, IL_CANCELLED);
}

static void
tenants_listed(struct http_job *job)
{
    ask_portion(container_of(job, struct http_gather, job));
}

void
http_metrics_tick(struct http_server *s, int64_t now_ns)
{
    struct http_metrics *m = s->metrics;

    bool    scraped  = m->scraped_ns != 0 && now_ns - m->scraped_ns < SCRAPED_NS;
    int64_t pause_ns = MAX(scraped || !m->seen.store_up ? EVERY_NS : IDLE_EVERY_NS,
                           GATHER_SHARE * m->gather_took_ns);

    if (m->gather != NULL || (m->gathered_ns != 0 && now_ns - m->gathered_ns < pause_ns))
        return;
    struct http_gather *g = il__calloc(1, sizeof *g);
    if (g == NULL)
        return;
    g->m           = m;
    g->job         = (struct http_job){ .work = list_tenants, .then = tenants_listed };
    m->gather      = g;
    m->gathered_ns = now_ns; /* start of the measured time */
    http_errand_send(m->server, &g->job);
}

void
http_gather_close(struct http_metrics *m)
{
    if (m->gather != NULL)
        free_gather(m->gather);
    free_gathered(&m->seen);
}
