/*
 * world.c: the memory engine is the model; the other one must say the same, op by op. Fences and tickets
 * are compared by first appearance: the n-th one seen on one side is the n-th one of the other.
 */
#include "diff/world.h"

#include <inttypes.h>
#include <stdarg.h>

#define N_SIDES 2
#define N_HANDLES 3
#define BATCH_MAX 12
#define KNOWN_MAX 4096

struct known { /* a fence or a ticket, as each side calls it */
    uint64_t    real[N_SIDES];
    const char *key;
    const char *holder;
    const char *tenant;
};

struct side {
    struct t_store *s;
    il             *h[N_HANDLES]; /* h[0] is the store's own */
    size_t          n_handles;
    struct t_watch  watch;
};

struct world {
    struct side  sides[N_SIDES];
    struct known fences[KNOWN_MAX];
    size_t       n_fences;
    struct known tickets[KNOWN_MAX];
    size_t       n_tickets;
    unsigned     n_marks;
    char        *why;
};

#define WHY_BYTES (T_WHY_BYTES * 4)

static bool PRINTF_LIKE(2, 3) differ(struct world *w, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(w->why, WHY_BYTES, fmt, ap);
    va_end(ap);
    return false;
}

/* Is the pair known as a pair, or new on both sides (then it is from now on)? */
static bool
same_number(struct known *known, size_t *n, uint64_t a, uint64_t b, const struct known *names)
{
    if ((a == 0) != (b == 0))
        return false;
    if (a == 0)
        return true;
    for (size_t i = *n; i-- > 0;) {
        if (known[i].real[0] == a || known[i].real[1] == b)
            return known[i].real[0] == a && known[i].real[1] == b;
    }
    if (*n < KNOWN_MAX) {
        known[*n]         = *names;
        known[*n].real[0] = a;
        known[*n].real[1] = b;
        (*n)++;
    }
    return true;
}

/* The table's own string, which outlives the op. */
static const char *
own_name(const char *const *table, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (name != NULL && strcmp(table[i], name) == 0)
            return table[i];
    }
    return table[0];
}

static struct known
names_of(const char *tenant, const char *key, const char *holder)
{
    return (struct known){
        .tenant = own_name(t_tenants, N_TENANTS, tenant),
        .key    = own_name(t_keys, N_KEYS, key),
        .holder = own_name(t_holders, N_HOLDERS, holder),
    };
}

static bool
same_item(struct world *w, const il_lease_info *a, const il_lease_info *b)
{
    struct known names = names_of(a->tenant, a->key, a->holder);

    if (strcmp(a->tenant, b->tenant) != 0 || strcmp(a->key, b->key) != 0 ||
        strcmp(a->holder, b->holder) != 0 || strcmp(a->meta, b->meta) != 0 ||
        strcmp(a->place, b->place) != 0)
        return differ(w, "items name '%s' %s and '%s' %s", a->key, a->holder, b->key, b->holder);
    if (!same_number(w->fences, &w->n_fences, a->fence, b->fence, &names) ||
        !same_number(w->tickets, &w->n_tickets, a->ticket, b->ticket, &names))
        return differ(w, "an item of %s has another fence or ticket", a->holder);
#define SAME(field)                                                                     \
    if (a->field != b->field)                                                           \
    return differ(w, "'%s' %s: " #field " %" PRId64 " and %" PRId64, a->key, a->holder, \
                  (int64_t)a->field, (int64_t)b->field)
    SAME(mode);
    SAME(permits);
    SAME(state);
    SAME(n_waiters);
    SAME(ttl_ms);
    SAME(age_ms);
    SAME(remaining_ms);
    SAME(renewed_ms);
    SAME(acquired_at_ms);
    SAME(expires_at_ms);
#undef SAME
    return true;
}

static bool
same_result(struct world *w, const il_op *a, const il_op *b)
{
    char         text_a[T_OP_TEXT_BYTES];
    char         text_b[T_OP_TEXT_BYTES];
    struct known names = names_of(a->tenant, a->key, a->holder);

    if (a->status != b->status || a->out.flags != b->out.flags ||
        a->out.position != b->out.position || a->out.remaining_ms != b->out.remaining_ms ||
        a->out.n_items != b->out.n_items || (a->out.detail == NULL) != (b->out.detail == NULL) ||
        (a->out.next == NULL) != (b->out.next == NULL))
        return differ(w, "model: %.900s\nother: %.900s", t_op_text(a, text_a), t_op_text(b, text_b));
    for (size_t i = 0; i < a->out.n_items; i++) {
        if (!same_item(w, &a->out.items[i], &b->out.items[i]))
            return false;
    }
    if (!same_number(w->fences, &w->n_fences, a->out.fence, b->out.fence, &names) ||
        !same_number(w->tickets, &w->n_tickets, a->out.ticket, b->out.ticket, &names))
        return differ(w, "other fence or ticket\nmodel: %.900s\nother: %.900s",
                      t_op_text(a, text_a), t_op_text(b, text_b));
    return true;
}

static il_op
op_of(const struct world *w, const struct step *st, size_t i_side)
{
    struct t_args args = {
        .ttl_ms    = st->ttl_ms,
        .wait_ms   = st->wait_ms,
        .settle_ms = st->settle_ms,
        .mode      = st->mode,
        .permits   = st->permits,
        .flags     = st->flags,
        .place     = st->i_handle % 2 == 0 ? "here" : NULL,
        .meta      = st->i_handle == 1 ? "meta" : NULL,
        .reason    = "test",
        .tenant    = t_tenants[st->i_tenant],
    };
    const char *key    = t_keys[st->i_key];
    const char *holder = t_holders[st->i_holder];
    uint64_t    fence  = 1;

    if (st->type != IL_OP_ACQUIRE && st->type != IL_OP_GET && w->n_fences > 0) {
        const struct known *k = &w->fences[w->n_fences - 1 - st->i_fence % w->n_fences];
        fence                 = k->real[i_side];
        if (st->own_names) {
            key         = k->key;
            holder      = k->holder;
            args.tenant = k->tenant;
        }
    }
    return t_op(st->type, key, holder, fence, args);
}

static il *
handle_of(const struct side *side, const struct step *st)
{
    return side->h[st->i_handle % side->n_handles];
}

static bool
apply_both(struct world *w, const struct step *const *steps, size_t n)
{
    il_op ops[N_SIDES][BATCH_MAX];
    bool  ok = true;

    for (size_t i_side = 0; i_side < N_SIDES; i_side++) {
        il_error err = { 0 };
        for (size_t i = 0; i < n; i++)
            ops[i_side][i] = op_of(w, steps[i], i_side);
        if (il_apply(handle_of(&w->sides[i_side], steps[0]), ops[i_side], n, &err) != IL_OK)
            ok = differ(w, "il_apply on side %zu: %s", i_side, err.message);
    }
    for (size_t i = 0; i < n; i++) {
        ok = ok && same_result(w, &ops[0][i], &ops[1][i]);
        il_op_release(&ops[0][i]);
        il_op_release(&ops[1][i]);
    }
    return ok;
}

static bool
list_both(struct world *w, const struct step *st)
{
    char cursors[N_SIDES][IL_KEY_BYTES_MAX + 32] = { "", "" };

    for (unsigned page = 0;; page++) {
        il_op ops[N_SIDES];
        for (size_t i = 0; i < N_SIDES; i++) {
            struct t_args args = { .tenant = t_tenants[st->i_tenant],
                                   .limit  = st->limit,
                                   .flags  = st->flags,
                                   .cursor = page > 0 ? cursors[i] : NULL };
            ops[i]             = t_op(IL_OP_LIST, st->i_key % 2 == 0 ? NULL : "a:", NULL, 0, args);
            if (il_apply(handle_of(&w->sides[i], st), &ops[i], 1, NULL) != IL_OK)
                return differ(w, "list on side %zu failed", i);
        }
        bool ok   = same_result(w, &ops[0], &ops[1]);
        bool more = ops[0].out.next != NULL;
        for (size_t i = 0; i < N_SIDES; i++) {
            if (ok && more)
                (void)snprintf(cursors[i], sizeof cursors[i], "%s", ops[i].out.next);
            il_op_release(&ops[i]);
        }
        if (!ok || !more)
            return ok;
    }
}

static bool
look_both(struct world *w, bool settled)
{
    char why[T_WHY_BYTES];

    for (size_t i = 0; i < N_SIDES; i++) {
        for (size_t t = 0; t < N_TENANTS; t++) {
            if (!t_watch_look(&w->sides[i].watch, w->sides[i].h[0], t_tenants[t], settled, why))
                return differ(w, "%s: invariant: %s", w->sides[i].s->engine->name, why);
        }
    }
    return true;
}

static bool
sweep_both(struct world *w, const struct step *st)
{
    il_sweep_out a = t_sweep_all(w->sides[0].s, st->limit);
    il_sweep_out b = t_sweep_all(w->sides[1].s, st->limit);

    if (a.n_expired != b.n_expired || a.n_offered != b.n_offered || a.n_dropped != b.n_dropped ||
        a.n_deadlocks != b.n_deadlocks)
        return differ(
            w, "sweep: expired %u and %u, offered %u and %u, dropped %u and %u, deadlocks %u and %u",
            a.n_expired, b.n_expired, a.n_offered, b.n_offered, a.n_dropped, b.n_dropped,
            a.n_deadlocks, b.n_deadlocks);
    return look_both(w, true);
}

static void
close_extra(struct side *side)
{
    for (size_t i = 1; i < side->n_handles; i++)
        il_close(side->h[i]);
    side->n_handles = 1;
}

static void
open_extra(struct side *side)
{
    side->h[0]      = side->s->handles[0];
    side->n_handles = 1;
    while (side->s->engine->shared && side->n_handles < N_HANDLES)
        side->h[side->n_handles++] = t_store_open(side->s);
}

/* Both sides commit something, so that the moment is on record. */
static bool
mark(struct world *w)
{
    char holder[32];

    (void)snprintf(holder, sizeof holder, "mark%u", w->n_marks++);
    for (size_t i = 0; i < N_SIDES; i++) {
        il_op op = t_op(IL_OP_ACQUIRE, holder, holder, 0, T_ARGS(.tenant = "marks"));
        if (il_apply(w->sides[i].h[0], &op, 1, NULL) != IL_OK)
            return differ(w, "mark on side %zu failed", i);
        il_op_release(&op);
    }
    return true;
}

/*
 * Another boot. The engine continues from the last time it committed, and counts again from its first
 * commit on; with one on either side the model's clock simply goes on.
 */
static bool
reboot(struct world *w, const struct step *st)
{
    struct side *other = &w->sides[1];

    if (!other->s->engine->durable)
        return true;
    if (!mark(w))
        return false;
    close_extra(other);
    t_clock_reboot(&other->s->clock, 5000, st->ms);
    t_clock_set_wall(&w->sides[0].s->clock, 5000);
    t_store_reopen(other->s);
    open_extra(other);
    return mark(w);
}

static bool
run_step(struct world *w, const struct step *st)
{
    switch (st->kind) {
    case STEP_SWEEP:
        return sweep_both(w, st);
    case STEP_LIST:
        return list_both(w, st);
    case STEP_PASS:
        t_clock_step(&w->sides[0].s->clock, st->ms);
        t_clock_step(&w->sides[1].s->clock, st->ms);
        return true;
    case STEP_WALL:
        t_clock_set_wall(&w->sides[0].s->clock, st->ms);
        t_clock_set_wall(&w->sides[1].s->clock, st->ms);
        return true;
    case STEP_REOPEN:
        close_extra(&w->sides[1]);
        if (w->sides[1].s->engine->durable)
            t_store_reopen(w->sides[1].s);
        open_extra(&w->sides[1]);
        return true;
    case STEP_REBOOT:
        return reboot(w, st);
    case STEP_OP:
    case STEP_KIND_COUNT:
    default:
        CHECK(false);
        return false;
    }
}

static size_t
run_steps(struct world *w, const struct step *steps, size_t n)
{
    for (size_t i = 0; i < n;) {
        const struct step *batch[BATCH_MAX];
        size_t             n_batch = 0;
        size_t             i_first = i;
        if (steps[i].kind != STEP_OP) {
            if (!run_step(w, &steps[i++]))
                return i_first;
            continue;
        }
        do {
            batch[n_batch++] = &steps[i++];
        } while (i < n && n_batch < BATCH_MAX && steps[i].kind == STEP_OP && steps[i].joins);
        if (!apply_both(w, batch, n_batch) || (batch[n_batch - 1]->looks && !look_both(w, false)))
            return i - 1;
    }
    return n;
}

size_t
world_run(const struct t_engine *engine, bool ranked, const struct step *steps, size_t n,
          char why[WHY_BYTES])
{
    static const char *const ranks[] = { "a", "b", "c" };
    struct world            *w       = calloc(1, sizeof *w);

    CHECK(w != NULL);
    w->why        = why;
    w->sides[0].s = t_store_new(t_engine_find("memory"));
    w->sides[1].s = t_store_new(engine);
    for (size_t i = 0; i < N_SIDES; i++) {
        if (ranked)
            t_store_set_ranks(w->sides[i].s, ranks, ARRAY_LEN(ranks));
        open_extra(&w->sides[i]);
    }
    size_t i_bad = run_steps(w, steps, n);
    if (i_bad == n && !look_both(w, false))
        i_bad = n - 1;
    for (size_t i = 0; i < N_SIDES; i++) {
        close_extra(&w->sides[i]);
        t_store_free(w->sides[i].s);
        t_watch_release(&w->sides[i].watch);
    }
    free(w);
    return i_bad;
}
