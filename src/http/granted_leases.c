/* granted_leases.c: tracks the leases granted by this server. See granted_leases.h. */
#include "http/granted_leases.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/map.h"
#include "http/log.h"
#include "http/metrics.h"
#include "http/server.h"
#include "http/server_ops.h"

/* leases tracked; any beyond this have no hold time and no log line when they expire */
#define HELD_MAX 65536
#define CHECK_MAX 64                            /* looked up in one call */
#define LATE_NS (INT64_C(1500) * IL__NS_PER_MS) /* margin for the store's sweep (every second) */

struct lease {
    struct il__heap_node node; /* at: when to check whether it has expired */
    uint64_t             fence;
    int64_t              granted_ns, expires_ns;
    const char          *tenant, *key, *holder, *run; /* behind the struct; run "" = a plain lock */
};

struct check;
struct http_leases {
    struct http_server *server;
    struct il__map      map;   /* by fence */
    struct il__heap     due;   /* by expiry, as far as known */
    struct check       *check; /* the check in progress, or NULL */
};

static uint64_t
hash_of(uint64_t fence)
{
    return il__hash_mix(fence, 0);
}

static struct lease *
find(const struct http_leases *h, uint64_t fence)
{
    size_t        i = il__map_start(&h->map, hash_of(fence));
    struct lease *e;

    while ((e = il__map_next(&h->map, hash_of(fence), &i)) != NULL && e->fence != fence)
        i++;
    return e;
}

static bool
insert(struct http_leases *h, struct lease *e)
{
    if (h->map.n >= HELD_MAX || !il__map_reserve(&h->map))
        return false;
    il__map_add(&h->map, hash_of(e->fence), e);
    e->node = (struct il__heap_node){ .at = e->expires_ns + LATE_NS };
    il__heap_add(&h->due, &e->node);
    return true;
}

static void
take_out(struct http_leases *h, struct lease *e)
{
    il__map_remove(&h->map, hash_of(e->fence), e);
    il__heap_remove(&h->due, &e->node);
}

void
http_lease_granted(struct http_server *s, const char *tenant, const char *key, const char *holder,
                   const char *run, uint64_t fence, int64_t remaining_ms)
{
    struct http_leases *h = s->leases;
    const char *texts[4]  = { tenant, key, holder != NULL ? holder : "", run != NULL ? run : "" };
    size_t      n_bytes   = 0;
    int64_t     now_ns    = il__clock_boot_ns();

    if (find(h, fence) != NULL) {
        http_lease_renewed(s, fence, remaining_ms);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        n_bytes += strlen(texts[i]) + 1;
    struct lease *e = h->map.n < HELD_MAX ? il__alloc(sizeof *e + n_bytes) : NULL;
    if (e == NULL)
        return;
    char        *at = (char *)(e + 1);
    const char **to[4];
    *e    = (struct lease){ .fence      = fence,
                            .granted_ns = now_ns,
                            .expires_ns = now_ns + remaining_ms * IL__NS_PER_MS };
    to[0] = &e->tenant, to[1] = &e->key, to[2] = &e->holder, to[3] = &e->run;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        *to[i] = il__put(&at, texts[i], strlen(texts[i]) + 1);
    if (!insert(h, e))
        il__free(e);
}

/* The heap is not updated: when the old time comes, the check finds the new one. */
void
http_lease_renewed(struct http_server *s, uint64_t fence, int64_t remaining_ms)
{
    struct lease *e = find(s->leases, fence);

    if (e != NULL)
        e->expires_ns = il__clock_boot_ns() + remaining_ms * IL__NS_PER_MS;
}

int64_t
http_lease_ended(struct http_server *s, uint64_t fence)
{
    struct lease *e = find(s->leases, fence);

    if (e == NULL)
        return -1;
    int64_t held_ns = il__clock_boot_ns() - e->granted_ns;
    take_out(s->leases, e);
    il__free(e);
    return held_ns;
}

/* ---- leases that should have expired --------------------------------------------------------- */

enum verdict {
    UNKNOWN, /* the store could not be reached, or does not show it: check again later */
    LIVES,
    GONE,       /* the second query tells how it ended */
    ENDED_WELL, /* released or broken, and reported by the caller that did it */
    RAN_OUT,
};

struct check {
    struct http_server_call own;
    struct http_leases     *h;
    size_t                  n;
    struct lease           *items[CHECK_MAX];
    enum verdict            verdicts[CHECK_MAX];
    int64_t                 remaining_ms[CHECK_MAX];
    size_t                  places[CHECK_MAX]; /* for the second query */
    il_op                   ops[CHECK_MAX];
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
        /* Closing: the key is not free yet. Broken if there is a reason. */
        return l->reason != NULL && l->reason[0] != '\0' ? ENDED_WELL : RAN_OUT;
    }
    /* Leases are shown in the order of their fences, up to a limit, and out.fence is the newest:
     * nothing is known of those between the last one shown and that. */
    uint64_t last = op->out.n_items > 0 ? op->out.items[op->out.n_items - 1].fence : 0;
    return fence > last && op->out.fence > last ? UNKNOWN : GONE;
}

static void
tell_expired(struct http_server *s, const struct lease *e)
{
    http_metrics_lock(s, HTTP_LOCK_EXPIRED, e->tenant, e->key, -1,
                      (e->expires_ns - e->granted_ns) / IL__NS_PER_MS);
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

/* The server is shutting down. */
static void
drop(struct http_leases *h)
{
    for (size_t i = 0; h->check != NULL && i < h->check->n; i++)
        il__free(h->check->items[i]);
    il__free(h->check);
    h->check = NULL;
}

/* Both queries have been answered. */
static void
conclude(struct check *c)
{
    struct http_leases *h      = c->h;
    int64_t             now_ns = il__clock_boot_ns();

    for (size_t i = 0; i < c->n; i++) {
        struct lease *e = c->items[i];
        if (c->verdicts[i] == LIVES || c->verdicts[i] == UNKNOWN) {
            int64_t ahead = c->verdicts[i] == LIVES ? c->remaining_ms[i] : 5000;
            e->expires_ns =
                c->verdicts[i] == LIVES ? now_ns + ahead * IL__NS_PER_MS : e->expires_ns;
            if (find(h, e->fence) == NULL && insert(h, e)) {
                il__heap_move(&h->due, &e->node, now_ns + ahead * IL__NS_PER_MS + LATE_NS);
                continue;
            }
        } else if (c->verdicts[i] == RAN_OUT) {
            tell_expired(h->server, e);
        }
        il__free(e);
    }
    h->check = NULL;
    il__free(c);
    http_leases_tick(h->server, now_ns); /* more may be due */
}

static void
released_again(struct http_server_call *own)
{
    struct check *c  = container_of(own, struct check, own);
    bool          ok = own->call.status == IL_OK;

    for (size_t i = 0; i < own->call.n; i++) {
        bool broken               = (c->ops[i].out.flags & IL_OUT_BROKEN) != 0;
        bool well                 = c->ops[i].status == IL_OK || broken;
        c->verdicts[c->places[i]] = !ok ? UNKNOWN : well ? ENDED_WELL : RAN_OUT;
        il_op_release(&c->ops[i]);
    }
    conclude(c);
}

/* Release leases that no longer exist once more, to learn how they ended. This ends nothing: a
 * lease that is GONE does not come back, and fences are never reused. */
static void
looked(struct http_server_call *own)
{
    struct check *c  = container_of(own, struct check, own);
    bool          ok = own->call.status == IL_OK;
    size_t        n  = 0;

    for (size_t i = 0; i < c->n; i++) {
        c->verdicts[i] =
            ok ? look_at(&c->ops[i], c->items[i]->fence, &c->remaining_ms[i]) : UNKNOWN;
        il_op_release(&c->ops[i]);
    }
    for (size_t i = 0; i < c->n; i++) {
        const struct lease *e = c->items[i];
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
    else if (!http_server_apply(own->server, own, c->ops, n, released_again))
        drop(c->h);
}

void
http_leases_tick(struct http_server *s, int64_t now_ns)
{
    struct http_leases *h = s->leases;
    struct check       *c = NULL;

    if (h->check != NULL || !il__heap_due(&h->due, now_ns))
        return;
    c = il__calloc(1, sizeof *c);
    if (c == NULL)
        return;
    while (c->n < CHECK_MAX && il__heap_due(&h->due, now_ns)) {
        struct lease *e = container_of(h->due.first, struct lease, node);
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
    c->h     = h;
    h->check = c;
    for (size_t i = 0; i < c->n; i++)
        c->ops[i] =
            (il_op){ .type = IL_OP_GET, .tenant = c->items[i]->tenant, .key = c->items[i]->key };
    if (!http_server_apply(s, &c->own, c->ops, c->n, looked))
        drop(h);
}

il_status
http_leases_open(struct http_server *s, il_error *reterr)
{
    s->leases = il__calloc(1, sizeof *s->leases);
    if (s->leases == NULL)
        return il__error_nomem(reterr);
    s->leases->server = s;
    return IL_OK;
}

void
http_leases_close(struct http_server *s)
{
    struct http_leases *h = TAKE(s->leases);

    if (h == NULL)
        return;
    while (h->due.first != NULL) {
        struct lease *e = container_of(h->due.first, struct lease, node);
        il__heap_remove(&h->due, &e->node);
        il__free(e);
    }
    drop(h);
    il__map_release(&h->map);
    il__free(h);
}
