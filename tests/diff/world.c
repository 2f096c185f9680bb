/*
 * world.c: the memory engine is the model; the other engine must return the same results, op by op.
 * same.c defines "the same".
 */
#include "diff/world.h"

#include "diff/same.h"

#define N_HANDLES 3
#define BATCH_MAX 12
#define SWEEPS_MAX 10000

struct side {
    struct t_store *s;
    il             *h[N_HANDLES]; /* h[0] is the store's own */
    size_t          n_handles;
    struct t_watch  watch;
};

struct world {
    struct side sides[N_SIDES];
    struct same same;
    unsigned    n_marks;
};

static bool
takes_fence(il_op_type type)
{
    switch (type) {
    case IL_OP_RENEW:
    case IL_OP_RELEASE:
    case IL_OP_BREAK:
    case IL_OP_CHECK_FENCE:
    case IL_OP_RUN_STAGE:
    case IL_OP_RUN_FINISH:
    case IL_OP_ONCE_FINISH:
    case IL_OP_ONCE_ABANDON:
    case IL_OP_JOB_HEARTBEAT:
    case IL_OP_JOB_FINISH:
    case IL_OP_JOB_FAIL:
    case IL_OP_JOB_SNOOZE:
    case IL_OP_CACHE_GET:
    case IL_OP_CACHE_LOOKUP:
    case IL_OP_CACHE_FILL:
    case IL_OP_CACHE_ABANDON:
        return true;
    default:
        return false;
    }
}

/* The op names what the known number belongs to. Whoever waits for a value is somebody else than
 * who builds it. */
static void
take_names(il_op *op, const struct known *k)
{
    enum il__family family = il__op_family(op->type);
    bool            waits  = op->type == IL_OP_CACHE_LOOKUP || op->type == IL_OP_CACHE_GET;

    op->tenant = k->tenant;
    if (op->key != NULL && k->key != NULL)
        op->key = k->key;
    if (op->holder != NULL && k->holder != NULL && !waits)
        op->holder = k->holder;
    if (family == IL__FAMILY_RUN && k->id != NULL)
        op->in.run.id = k->id;
    if (family == IL__FAMILY_QUEUE && k->id != NULL)
        op->in.job.id = k->id;
}

static il_op
op_of(const struct world *w, const struct step *st, size_t i_side)
{
    il_op               op = st->op;
    const struct known *k =
        st->takes_fence ? same_known(&w->same, il__op_family(op.type), st->i_known) : NULL;

    if (k != NULL && st->own_names)
        take_names(&op, k);
    if (st->takes_fence && takes_fence(op.type))
        op.fence = k != NULL ? k->real[i_side] : 1;
    return op;
}

static il *
handle_of(const struct side *side, const struct step *st)
{
    return side->h[st->i_handle % side->n_handles];
}

static void
read_clock(struct world *w)
{
    w->same.now_ms  = t_clock_boot(&w->sides[0].s->clock);
    w->same.wall_ms = t_clock_wall(&w->sides[0].s->clock);
}

/* What the invariants can only see from the results of ops. */
static bool
watch_both(struct world *w, const il_op *a, const il_op *b)
{
    const il_op *ops[N_SIDES] = { a, b };
    char         why[T_WHY_BYTES];

    for (size_t i = 0; i < N_SIDES; i++) {
        if (!t_watch_op(&w->sides[i].watch, ops[i], w->same.now_ms, why))
            return same_differ(&w->same, "%s: invariant: %s", w->sides[i].s->engine->name, why);
    }
    return true;
}

static unsigned long counts[IL_OP_COUNT][IL_STATUS_COUNT];

void
world_print_counts(FILE *out)
{
    for (int type = 1; type < IL_OP_COUNT; type++) {
        (void)fprintf(out, "%-14s", il_op_name((il_op_type)type));
        for (int st = 0; st < IL_STATUS_COUNT; st++) {
            if (counts[type][st] > 0)
                (void)fprintf(out, " %s %lu", il_status_name((il_status)st), counts[type][st]);
        }
        (void)fputc('\n', out);
    }
}

static bool
apply_both(struct world *w, const struct step *const *steps, size_t n)
{
    il_op ops[N_SIDES][BATCH_MAX];
    bool  ok = true;

    read_clock(w);
    for (size_t i_side = 0; i_side < N_SIDES; i_side++) {
        il_error err = { 0 };
        for (size_t i = 0; i < n; i++)
            ops[i_side][i] = op_of(w, steps[i], i_side);
        if (il_apply(handle_of(&w->sides[i_side], steps[0]), ops[i_side], n, &err) != IL_OK)
            ok = same_differ(&w->same, "il_apply on side %zu: %s", i_side, err.message);
    }
    for (size_t i = 0; i < n; i++) {
        counts[ops[0][i].type][ops[0][i].status]++;
        ok = ok && same_result(&w->same, &ops[0][i], &ops[1][i]) &&
             watch_both(w, &ops[0][i], &ops[1][i]);
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
            ops[i]                = st->op;
            ops[i].in.list.cursor = page > 0 ? cursors[i] : NULL;
            if (il_apply(handle_of(&w->sides[i], st), &ops[i], 1, NULL) != IL_OK)
                return same_differ(&w->same, "list on side %zu failed", i);
        }
        bool ok   = same_result(&w->same, &ops[0], &ops[1]);
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
                return same_differ(&w->same, "%s: invariant: %s", w->sides[i].s->engine->name, why);
        }
    }
    return true;
}

/* One pass on each side, which must find the same and leave the same. */
static bool
sweep_once(struct world *w, const struct step *st, bool *ret_more)
{
    const il_op *a = T_IS(t_sweep(w->sides[0].s, .limit = st->limit), IL_OK);
    const il_op *b = T_IS(t_sweep(w->sides[1].s, .limit = st->limit), IL_OK);

    *ret_more = (a->out.flags & IL_OUT_MORE) != 0;
    return same_result(&w->same, a, b);
}

static bool
sweep_both(struct world *w, const struct step *st)
{
    bool more = true;

    read_clock(w);
    for (unsigned i = 0; more && (i == 0 || !st->partly); i++) {
        if (i == SWEEPS_MAX)
            return same_differ(&w->same, "%u sweeps with limit %u, and still MORE", i, st->limit);
        if (!sweep_once(w, st, &more))
            return false;
    }
    return look_both(w, !more);
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
            return same_differ(&w->same, "mark on side %zu failed", i);
        il_op_release(&op);
    }
    return true;
}

/*
 * Another boot. The engine continues from the last time it committed, and counts again from its
 * first commit on; with one on either side the model's clock simply goes on.
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
    if (other->s->engine->server == NULL) { /* else the clock is the server's, and goes on */
        t_clock_reboot(&other->s->clock, 5000, st->ms);
        t_clock_set_wall(&w->sides[0].s->clock, 5000);
    }
    t_store_reopen(other->s);
    open_extra(other);
    return mark(w);
}

static void
pass(struct world *w, int64_t ms)
{
    t_clock_step(&w->sides[0].s->clock, ms);
    t_clock_step(&w->sides[1].s->clock, ms);
}

/* To one of the dates that were told, if it is still to come. */
static void
pass_until(struct world *w, const struct step *st)
{
    const struct same *s = &w->same;

    if (s->n_dates <= st->i_known || st->i_known >= DATES_MAX)
        return;
    int64_t date = s->dates[(s->n_dates - 1 - st->i_known) % DATES_MAX];
    pass(w, MAX(date + st->ms - t_clock_boot(&w->sides[0].s->clock), 0));
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
        pass(w, st->ms);
        return true;
    case STEP_UNTIL:
        pass_until(w, st);
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

/* Settings of a queue are what invariants are measured by: they are looked at right after a
 * change. */
static bool
changes_rules(const struct step *st)
{
    return st->kind == STEP_OP && st->op.type == IL_OP_QUEUE_SET;
}

static bool
joins(const struct step *st, const struct step *before)
{
    return st->kind == STEP_OP && st->joins && !changes_rules(before);
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
        bool looks = false;
        do {
            looks            = steps[i].looks || changes_rules(&steps[i]);
            batch[n_batch++] = &steps[i++];
        } while (i < n && n_batch < BATCH_MAX && joins(&steps[i], batch[n_batch - 1]));
        if (!apply_both(w, batch, n_batch) || (looks && !look_both(w, false)))
            return i - 1;
    }
    return n;
}

size_t
world_run(const struct t_engine *engine, bool ranked, const struct step *steps, size_t n,
          char why[T_WHY_BYTES * 4])
{
    static const char *const ranks[] = { "a", "b", "c" };
    struct world            *w       = calloc(1, sizeof *w);

    CHECK(w != NULL);
    w->same.why   = why;
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
