/*
 * cmd_demo_load.c: a thread that talks to the server of the demo as an application would: first it
 * loads sample data, then it gives the server a little to do, about seven requests a second, so
 * that there is something to see.
 *
 * Whatever fails is tried again with the next turn: the server may have been killed.
 */
#include <poll.h>
#include <stdio.h>

#include "apps/demo/cmd_demo.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/parse.h"
#include "runtime/handle.h"

#define TURN_MS 250
#define TIMEOUT_MS 2000
#define DAY_MS 86400000
#define CARTS 4 /* customers that hold something */
#define CART_TTL_MS 15000
#define PAYMENT_KEEP_MS (INT64_C(600) * 1000)
#define JOBS_KEEP_MS (INT64_C(3600) * 1000)

/* A customer: holds an order, and mostly a part of the stock. */
struct cart {
    char     holder[37]; /* "" = none */
    char     order[32], stock[32];
    uint64_t order_fence, stock_fence;
    uint64_t until; /* turn */
};

struct load {
    struct demo *d;
    il          *h;
    size_t       n_steps; /* of the sample data, done */
    uint64_t     turn, n_customers;
    uint64_t     random;
    struct cart  carts[CARTS];
};

/* ---- small helpers --------------------------------------------------------------------------- */

static uint64_t
below(struct load *l, uint64_t n)
{
    l->random = l->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (l->random >> 33) % n;
}

static bool
every(const struct load *l, unsigned seconds, unsigned offset)
{
    return l->turn % (seconds * 1000 / TURN_MS) == offset;
}

/* True: it has this status. The caller reads what it needs, and releases the op. */
static bool
apply(const struct load *l, il_op *op, il_status wanted)
{
    return il_apply(l->h, op, 1, NULL) == IL_OK && op->status == wanted;
}

static bool
call(const struct load *l, const char *method, const char *path, const char *body, json_t **ret)
{
    struct il__request r = { .method = method, .path = path, .body = body };

    if (il__handle_request(l->h, &r, NULL) != IL_OK)
        return false;
    bool ok = r.status >= 200 && r.status < 300;
    if (ok && ret != NULL)
        *ret = r.answer;
    else
        json_decref(r.answer);
    return ok;
}

static bool
post(const struct load *l, const char *path, const char *body)
{
    return call(l, "POST", path, body, NULL);
}

/* A day in UTC, as 2026-11-18. */
static void
day(int64_t days_ago, char out[IL__DATE_TEXT_BYTES])
{
    (void)il__date_text(il__clock_wall_ms() / DAY_MS - days_ago, out);
}

/* ---- sample data ----------------------------------------------------------------------------- */

static bool
set_queue(const struct load *l)
{
    il_op op    = { .type = IL_OP_QUEUE_SET, .key = DEMO_QUEUE };
    op.in.queue = (il_queue_opts){ .max_attempts   = 3,
                                   .lease_ms       = DEMO_LEASE_MS,
                                   .keep_ms        = JOBS_KEEP_MS,
                                   .keep_failed_ms = JOBS_KEEP_MS };
    bool ok     = apply(l, &op, IL_OK);
    il_op_release(&op);
    return ok;
}

/* The table that the invariants look at; then the invariants. */
static bool
fill_job_table(const struct load *l)
{
    json_t *answer = NULL;
    char    path[128];

    if (!call(l, "POST", "/pipelines/run/job_table", NULL, &answer))
        return false;
    const char *run = json_string_value(json_object_get(answer, "pipeline_logging_id"));
    (void)snprintf(path, sizeof path, "/pipelines/runs/%.64s", run != NULL ? run : "");
    json_decref(answer);
    for (bool ended = false; !ended;) {
        if (atomic_load(&l->d->load.stop) || !call(l, "GET", path, NULL, &answer))
            return false;
        const char *status = json_string_value(json_object_get(answer, "status"));
        ended =
            status == NULL || (strcmp(status, "PENDING") != 0 && strcmp(status, "RUNNING") != 0);
        json_decref(answer);
        (void)poll(NULL, 0, TURN_MS);
    }
    return post(l, "/checks/run", "{}");
}

static bool
rebuild_usage(const struct load *l)
{
    char from[IL__DATE_TEXT_BYTES], to[IL__DATE_TEXT_BYTES], body[128];

    day(30, from);
    day(1, to);
    (void)snprintf(body, sizeof body, "{\"startDate\":\"%s\",\"endDate\":\"%s\"}", from, to);
    IGNORE(post(l, "/admin/usage/rebuild-cache", body)); /* else days are built when asked for */
    return true;
}

static bool
ingest(const struct load *l)
{
    return post(l, "/events/ingest",
                "{\"source_event_id\":\"100000\",\"track_slug\":\"hilltoprc\","
                "\"on_conflict\":\"join\"}") &&
           post(l, "/events/sync", "{\"track_slug\":\"hilltoprc\",\"on_conflict\":\"join\"}");
}

/* Each is done once, but repeated until it succeeds. */
static bool (*const steps[])(const struct load *l) = {
    set_queue,
    ingest,
    rebuild_usage,
    fill_job_table,
};

static void
load_samples(struct load *l)
{
    while (l->n_steps < ARRAY_LEN(steps) && steps[l->n_steps](l))
        l->n_steps++;
    atomic_store(&l->d->load.ready, l->n_steps == ARRAY_LEN(steps));
}

/* ---- a little to do -------------------------------------------------------------------------- */

static bool
acquire(const struct load *l, const struct cart *cart, const char *key, const char *place,
        uint64_t *ret_fence)
{
    il_op op   = { .type = IL_OP_ACQUIRE, .key = key, .holder = cart->holder };
    op.in.lock = (il_lock_in){ .ttl_ms = CART_TTL_MS, .place = place };
    bool ok    = apply(l, &op, IL_OK);
    *ret_fence = ok ? op.out.fence : 0;
    il_op_release(&op);
    return ok;
}

static void
release(const struct load *l, const struct cart *cart, const char *key, uint64_t fence)
{
    il_op op = { .type = IL_OP_RELEASE, .key = key, .holder = cart->holder, .fence = fence };

    if (fence != 0)
        IGNORE(il_apply(l->h, &op, 1, NULL) != IL_OK); /* then it expires */
    il_op_release(&op);
}

/* One customer of the shop: order first, then stock. A refund now and then takes them the other way
 * round, for the lock order graph. A customer who finds one of them held gives up. */
static void
shop(struct load *l)
{
    struct cart *cart = &l->carts[l->turn % CARTS];

    if (cart->holder[0] != '\0' && l->turn < cart->until)
        return;
    if (cart->holder[0] != '\0') {
        release(l, cart, cart->stock, cart->stock_fence);
        release(l, cart, cart->order, cart->order_fence);
        cart->holder[0] = '\0';
        return;
    }
    (void)snprintf(cart->order, sizeof cart->order, "order:%u", (unsigned)below(l, 8) + 1);
    (void)snprintf(cart->stock, sizeof cart->stock, "stock:%u", (unsigned)below(l, 6) + 1);
    cart->order_fence = cart->stock_fence = 0;
    if (il_uuid(cart->holder) != IL_OK) {
        cart->holder[0] = '\0';
        return;
    }
    if (l->n_customers++ % 12 == 5) {
        (void)snprintf(cart->order, sizeof cart->order, "order:returned");
        (void)snprintf(cart->stock, sizeof cart->stock, "stock:returned");
        if (acquire(l, cart, cart->stock, "shop/refund.py:41", &cart->stock_fence))
            IGNORE(acquire(l, cart, cart->order, "shop/refund.py:47", &cart->order_fence));
    } else if (acquire(l, cart, cart->order, "shop/checkout.py:88", &cart->order_fence)) {
        IGNORE(acquire(l, cart, cart->stock, "shop/checkout.py:102", &cart->stock_fence));
    }
    cart->until = l->turn + 8 + below(l, 24);
}

static void
push_job(struct load *l)
{
    static const char *const people[] = { "ann", "bob", "eve", "joe" };
    char                     id[37], payload[64];
    bool                     fails = every(l, 60, 4);

    if (il_uuid(id) != IL_OK)
        return;
    (void)snprintf(payload, sizeof payload, "{\"to\":\"%s@example.org\"}",
                   fails ? "nobody" : people[below(l, ARRAY_LEN(people))]);
    il_op op             = { .type = IL_OP_JOB_PUSH, .key = DEMO_QUEUE };
    op.in.job.id         = id;
    op.in.job.data       = payload;
    op.in.job.data_bytes = strlen(payload);
    IGNORE(apply(l, &op, IL_OK));
    il_op_release(&op);
}

/* Exchange rates: a client that finds a rate missing or stale builds it. */
static void
look_up(struct load *l)
{
    static const char *const keys[] = { "rates:CHF", "rates:EUR", "rates:GBP", "rates:JPY" };
    const char              *key    = keys[below(l, ARRAY_LEN(keys))];
    char                     holder[37], value[32];
    uint64_t                 token = 0;

    if (il_uuid(holder) != IL_OK)
        return;
    il_op op             = { .type = IL_OP_CACHE_LOOKUP, .key = key, .holder = holder };
    op.in.cache.lease_ms = DEMO_LEASE_MS;
    if (apply(l, &op, IL_LEAD))
        token = op.out.fence;
    il_op_release(&op);
    if (token == 0)
        return;
    (void)snprintf(value, sizeof value, "1.%04u", (unsigned)below(l, 10000));
    op = (il_op){ .type = IL_OP_CACHE_FILL, .key = key, .holder = holder, .fence = token };
    op.in.cache.value       = value;
    op.in.cache.value_bytes = strlen(value);
    op.in.cache.ttl_ms      = 20000;
    op.in.cache.grace_ms    = 10000;
    IGNORE(apply(l, &op, IL_OK));
    il_op_release(&op);
}

/* Every payment is sent twice; the second request gets the answer of the first. */
static void
pay(struct load *l)
{
    static const char answer[] = "{\"paid\":true}";
    char              attempt[37], key[64];
    uint64_t          token = 0;

    if (il_uuid(attempt) != IL_OK)
        return;
    (void)snprintf(key, sizeof key, "payment-%llu",
                   (unsigned long long)(l->turn / (8 * 1000 / TURN_MS)));
    il_op op           = { .type = IL_OP_ONCE_BEGIN, .key = key, .holder = attempt };
    op.in.once.keep_ms = PAYMENT_KEEP_MS;
    if (apply(l, &op, IL_OK))
        token = op.out.fence;
    il_op_release(&op);
    if (token == 0)
        return;
    op = (il_op){ .type = IL_OP_ONCE_FINISH, .key = key, .holder = attempt, .fence = token };
    op.in.once.response       = answer;
    op.in.once.response_bytes = strlen(answer);
    op.in.once.code           = 201;
    IGNORE(apply(l, &op, IL_OK));
    il_op_release(&op);
}

static void
look_at_usage(struct load *l)
{
    char date[IL__DATE_TEXT_BYTES], path[64];

    day((int64_t)below(l, 7), date);
    (void)snprintf(path, sizeof path, "/admin/usage/days/%s", date);
    IGNORE(call(l, "GET", path, NULL, NULL));
}

static void
take_turn(struct load *l)
{
    shop(l);
    if (every(l, 1, 1))
        look_up(l);
    if (every(l, 4, 2))
        pay(l);
    if (every(l, 3, 4))
        push_job(l);
    if (every(l, 10, 7))
        look_at_usage(l);
    if (every(l, 30, 9))
        IGNORE(post(l, "/pipelines/run/export_and_check", "{\"trigger_by\":\"shop\"}"));
    if (every(l, 60, 70))
        IGNORE(post(l, "/pipelines/run/flaky", "{\"trigger_by\":\"shop\"}"));
    if (every(l, 180, 400))
        IGNORE(ingest(l));
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void *
run(void *cookie)
{
    struct demo *d    = cookie;
    struct load  l    = { .d = d, .random = (uint64_t)il__clock_wall_us() };
    il_open_opts opts = { .struct_size = sizeof opts, .timeout_ms = TIMEOUT_MS };
    char         url[64];

    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u", d->port);
    while (!atomic_load(&d->load.stop)) {
        if (l.h == NULL && il_open(url, &opts, &l.h, NULL) != IL_OK)
            l.h = NULL;
        if (l.h != NULL) {
            load_samples(&l);
            take_turn(&l);
        }
        l.turn++;
        (void)poll(NULL, 0, TURN_MS);
    }
    il_close(l.h);
    return NULL;
}

il_status
demo_load_start(struct demo *d, il_error *reterr)
{
    d->load.started = pthread_create(&d->load.thread, NULL, run, d) == 0;
    return d->load.started ? IL_OK : il__error_set(reterr, IL_NOMEM, "cannot start a thread");
}

void
demo_load_end(struct demo *d)
{
    atomic_store(&d->load.stop, true);
    if (d->load.started)
        CHECK(pthread_join(d->load.thread, NULL) == 0);
    d->load.started = false;
}
