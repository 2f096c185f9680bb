/*
 * metrics_held.c: the leases that this server has granted, by their fence, which is theirs alone in the whole store.
 *
 * For two things that the store does not tell: how long a lease was held, when it is given back; and that it ran out, when it is not. The second is a look:
 * what should have run out is looked up. It may have been renewed or given back through another server: a lease that is gone is
 * given back once more, which answers OK if it was given back, and LOST if it ended otherwise.
 */
#include "base/clock.h"
#include "base/hash.h"
#include "http/log.h"
#include "http/metrics_internal.h"
#include "http/own.h"
#include "http/server.h"

#define HELD_MAX \
    65536 /* leases that are remembered; those beyond have no hold time and no line when they run out */
#define CHECK_MAX 64                            /* looked up at once */
#define LATE_NS (INT64_C(1500) * IL__NS_PER_MS) /* sweeps come every second: give them the time */

struct held {
    struct il__heap_node node; /* at: when to look whether it has run out */
    uint64_t             fence;
    int64_t              granted_ns, expires_ns;
    const char          *tenant, *key, *holder, *run; /* behind the struct; run "" = a plain lock */
};

static uint64_t
hash_of(uint64_t fence)
{
    return il__hash_mix(fence, 0);
}

static struct held *
find(const struct http_held *h, uint64_t fence)
{
    size_t       i = il__map_start(&h->map, hash_of(fence));
    struct held *e;

    while ((e = il__map_next(&h->map, hash_of(fence), &i)) != NULL && e->fence != fence)
        i++;
    return e;
}

static bool
insert(struct http_held *h, struct held *e)
{
    if (h->map.n >= HELD_MAX || !il__map_reserve(&h->map))
        return false;
    il__map_add(&h->map, hash_of(e->fence), e);
    e->node = (struct il__heap_node){ .at = e->expires_ns + LATE_NS };
    il__heap_add(&h->due, &e->node);
    return true;
}

static void
take_out(struct http_held *h, struct held *e)
{
    il__map_remove(&h->map, hash_of(e->fence), e);
    il__heap_remove(&h->due, &e->node);
}

void
http_held_add(struct http_metrics *m, const char *tenant, const char *key, const char *holder,
              const char *run, uint64_t fence, int64_t remaining_ms)
{
    const char *texts[4] = { tenant, key, holder != NULL ? holder : "", run != NULL ? run : "" };
    size_t      n_bytes  = 0;
    int64_t     now_ns   = il__clock_boot_ns();

    if (find(&m->held, fence) != NULL) {
        http_held_renew(m, fence, remaining_ms);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        n_bytes += strlen(texts[i]) + 1;
    struct held *e = m->held.map.n < HELD_MAX ? il__alloc(sizeof *e + n_bytes) : NULL;
    if (e == NULL)
        return;
    char        *at = (char *)(e + 1);
    const char **to[4];
    *e    = (struct held){ .fence      = fence,
                           .granted_ns = now_ns,
                           .expires_ns = now_ns + remaining_ms * IL__NS_PER_MS };
    to[0] = &e->tenant, to[1] = &e->key, to[2] = &e->holder, to[3] = &e->run;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        *to[i] = il__put(&at, texts[i], strlen(texts[i]) + 1);
    if (!insert(&m->held, e))
        il__free(e);
}

/* The heap is not moved: when the old time comes it is seen that there is a new one. */
void
http_held_renew(struct http_metrics *m, uint64_t fence, int64_t remaining_ms)
{
    struct held *e = find(&m->held, fence);

    if (e != NULL)
        e->expires_ns = il__clock_boot_ns() + remaining_ms * IL__NS_PER_MS;
}

int64_t
http_held_end(struct http_metrics *m, uint64_t fence)
{
    struct held *e = find(&m->held, fence);

    if (e == NULL)
        return -1;
    int64_t held_ns = il__clock_boot_ns() - e->granted_ns;
    take_out(&m->held, e);
    il__free(e);
    return held_ns;
}

/* ---- those that should have run out -------------------------------------------------------------------------------------- */

enum verdict {
    UNKNOWN, /* the store could not be asked */
    LIVES,
    GONE,
    ENDED_WELL, /* given back, or broken: whoever did it has said so */
    RAN_OUT,
};

struct http_held_check {
    struct http_own      own;
    struct http_metrics *m;
    size_t               n;
    struct held         *items[CHECK_MAX];
    enum verdict         verdicts[CHECK_MAX];
    int64_t              remaining_ms[CHECK_MAX];
    size_t               places[CHECK_MAX]; /* of the second question */
    il_op                ops[CHECK_MAX];
};

static enum verdict
look_at(const il_op *op, uint64_t fence, int64_t *ret_remaining_ms)
{
    if (op->status != IL_OK && op->status != IL_NOT_HELD)
        return UNKNOWN;
    for (size_t i = 0; i < op->out.n_items; i++) {
        const il_lease_info *l = &op->out.items[i];
        if (l->fence != fence)
            continue;
        *ret_remaining_ms = l->remaining_ms;
        if (l->state == IL_LEASE_HELD)
            return LIVES;
        /* Closing: nobody gets the key yet. Broken, if there is a reason. */
        return l->reason != NULL && l->reason[0] != '\0' ? ENDED_WELL : RAN_OUT;
    }
    return GONE; /* how, is the next question */
}

static void
tell_expired(struct http_metrics *m, const struct held *e)
{
    struct http_server   *s = m->server;
    struct http_pipeline *p = http_pipeline_of(m, e->tenant, e->key);

    if (p != NULL) {
        p->expirations++;
        http_histogram_add(&p->hold, http_lock_bounds, (double)(e->expires_ns - e->granted_ns) / 1e9);
    }
    http_histogram_add(&m->hold, http_lock_bounds, (double)(e->expires_ns - e->granted_ns) / 1e9);
    if (!http_log_begin(s, HTTP_EVENT_lock_expired))
        return;
    http_log_text(s, "tenant_id", e->tenant);
    http_log_text(s, "pipeline_id", http_pipeline_name(e->key));
    http_log_text(s, "key", e->key);
    http_log_text(s, "holder", e->holder);
    http_log_text(s, "run_id", e->run[0] != '\0' ? e->run : NULL);
    http_log_int(s, "fence", (int64_t)e->fence);
    http_log_ms(s, "lock_hold_ms", e->expires_ns - e->granted_ns);
    http_log_end(s);
}

/* The server is being taken down. */
static void
drop(struct http_held *h)
{
    for (size_t i = 0; h->check != NULL && i < h->check->n; i++)
        il__free(h->check->items[i]);
    il__free(h->check);
    h->check = NULL;
}

/* All is known. */
static void
conclude(struct http_held_check *c)
{
    struct http_metrics *m      = c->m;
    int64_t              now_ns = il__clock_boot_ns();

    for (size_t i = 0; i < c->n; i++) {
        struct held *e = c->items[i];
        if (c->verdicts[i] == LIVES || c->verdicts[i] == UNKNOWN) {
            int64_t ahead = c->verdicts[i] == LIVES ? c->remaining_ms[i] : 5000;
            e->expires_ns = c->verdicts[i] == LIVES ? now_ns + ahead * IL__NS_PER_MS : e->expires_ns;
            if (find(&m->held, e->fence) == NULL && insert(&m->held, e)) {
                il__heap_move(&m->held.due, &e->node, now_ns + ahead * IL__NS_PER_MS + LATE_NS);
                continue;
            }
        } else if (c->verdicts[i] == RAN_OUT) {
            tell_expired(m, e);
        }
        il__free(e);
    }
    m->held.check = NULL;
    il__free(c);
    http_held_tick(m, now_ns); /* there may be more */
}

static void
given_back_again(struct http_own *own)
{
    struct http_held_check *c  = container_of(own, struct http_held_check, own);
    bool                    ok = own->call.status == IL_OK;

    for (size_t i = 0; i < own->call.n; i++) {
        c->verdicts[c->places[i]] = !ok                         ? UNKNOWN
                                    : c->ops[i].status == IL_OK ? ENDED_WELL
                                                                : RAN_OUT;
        il_op_release(&c->ops[i]);
    }
    conclude(c);
}

/* Those that are gone are given back once more: their fences never come again, so this can end nothing else. */
static void
looked(struct http_own *own)
{
    struct http_held_check *c  = container_of(own, struct http_held_check, own);
    bool                    ok = own->call.status == IL_OK;
    size_t                  n  = 0;

    for (size_t i = 0; i < c->n; i++) {
        c->verdicts[i] = ok ? look_at(&c->ops[i], c->items[i]->fence, &c->remaining_ms[i]) : UNKNOWN;
        il_op_release(&c->ops[i]);
    }
    for (size_t i = 0; i < c->n; i++) {
        const struct held *e = c->items[i];
        if (c->verdicts[i] != GONE)
            continue;
        c->places[n] = i;
        c->ops[n++]  = (il_op){ .type   = IL_OP_RELEASE,
                                .tenant = e->tenant,
                                .key    = e->key,
                                .holder = e->holder,
                                .fence  = e->fence };
    }
    if (n == 0)
        conclude(c);
    else if (!http_own_send(own->server, own, c->ops, n, given_back_again))
        drop(&c->m->held);
}

void
http_held_tick(struct http_metrics *m, int64_t now_ns)
{
    struct http_held       *h = &m->held;
    struct http_held_check *c = NULL;

    if (h->check != NULL || !il__heap_due(&h->due, now_ns))
        return;
    c = il__calloc(1, sizeof *c);
    if (c == NULL)
        return;
    while (c->n < CHECK_MAX && il__heap_due(&h->due, now_ns)) {
        struct held *e = container_of(h->due.first, struct held, node);
        if (e->expires_ns + LATE_NS > now_ns) {
            il__heap_move(&h->due, &e->node, e->expires_ns + LATE_NS); /* renewed */
            continue;
        }
        take_out(h, e);
        c->items[c->n++] = e;
    }
    if (c->n == 0) {
        il__free(c);
        return;
    }
    c->m     = m;
    h->check = c;
    for (size_t i = 0; i < c->n; i++)
        c->ops[i] =
            (il_op){ .type = IL_OP_GET, .tenant = c->items[i]->tenant, .key = c->items[i]->key };
    if (!http_own_send(m->server, &c->own, c->ops, c->n, looked))
        drop(h);
}

void
http_held_release(struct http_held *h)
{
    while (h->due.first != NULL) {
        struct held *e = container_of(h->due.first, struct held, node);
        il__heap_remove(&h->due, &e->node);
        il__free(e);
    }
    drop(h);
    il__map_release(&h->map);
}
