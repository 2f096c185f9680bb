/*
 * play.c: playing one order of a spec. No threads: a session that waits has a queued op, and is asked
 * again when the library says that it was woken. So a wake-up that is lost shows as a session that waits
 * for ever, and the last check of an order finds it.
 */
#include <inttypes.h>
#include <stdio.h>

#include "core/limits.h"
#include "spec/play_internal.h"

#define TICK_MS 1000

static const char *
holder_of(const struct player *pl, const struct command *c)
{
    return c->holder[0] != '\0' ? c->holder : pl->session->name;
}

static uint64_t
held_fence(const struct play *p, const char *key, const char *holder)
{
    for (size_t i = p->n_helds; i-- > 0;) {
        if (strcmp(p->helds[i].key, key) == 0 && strcmp(p->helds[i].holder, holder) == 0)
            return p->helds[i].fence;
    }
    return 1; /* never had it: a fence that nobody has */
}

static void
remember(struct play *p, const char *key, const char *holder, uint64_t fence)
{
    CHECK(p->n_helds < FENCES_MAX);
    struct held *h = &p->helds[p->n_helds++];
    (void)snprintf(h->key, sizeof h->key, "%s", key);
    (void)snprintf(h->holder, sizeof h->holder, "%s", holder);
    h->fence = fence;
}

static void
apply(struct play *p, il *h, il_op *op)
{
    il_error err;

    op->tenant = p->tenant;
    if (il_apply(h, op, 1, &err) != IL_OK)
        T_FAIL("%s: il_apply: %s", p->sp->path, err.message);
}

/* ---- commands ------------------------------------------------------------------------------------ */

static void let_wake(struct play *p);

static void
sweep(struct play *p)
{
    for (bool more = true; more;) {
        il_op op = { .type = IL_OP_SWEEP };
        apply(p, p->players[p->n_players - 1].h, &op);
        more = (op.out.flags & IL_OUT_MORE) != 0;
        il_op_release(&op);
    }
}

/* The longest step of time in which nothing that a living session would do is missed. */
static int64_t
tick_of(const struct play *p, int64_t most_ms)
{
    int64_t now_ms = t_clock_boot(&p->s->clock);
    int64_t tick   = MIN(most_ms, TICK_MS);

    for (size_t i = 0; i < p->n_players; i++) {
        const struct player *pl = &p->players[i];
        if (pl->waiting && !pl->frozen && pl->deadline_ms > now_ms)
            tick = MIN(tick, pl->deadline_ms - now_ms);
    }
    return tick;
}

static void
pass_time(struct play *p, int64_t ms)
{
    while (ms > 0) {
        int64_t tick = tick_of(p, ms);
        t_clock_step(&p->s->clock, tick);
        ms -= tick;
        sweep(p);
        let_wake(p);
    }
}

static void
freeze(struct play *p, const char *name, bool frozen)
{
    for (size_t i = 0; i < p->n_players; i++) {
        if (strcmp(p->players[i].session->name, name) == 0) {
            p->players[i].frozen = frozen;
            return;
        }
    }
    T_FAIL("%s: there is no session '%s'", p->sp->path, name);
}

/* Commands that are not ops. False: it is an op. */
static bool
run_other(struct play *p, struct player *pl, const struct command *c)
{
    switch (c->verb) {
    case VERB_CLOCK:
        play_say(p, "+%" PRId64 "ms", c->ms);
        pass_time(p, c->ms);
        return true;
    case VERB_JUMP:
        play_say(p, "+%" PRId64 "ms", c->ms);
        t_clock_step(&p->s->clock, c->ms);
        return true;
    case VERB_WALL:
        play_say(p, "ok");
        t_clock_set_wall(&p->s->clock, c->ms);
        return true;
    case VERB_SWEEP:
        play_say(p, "ok");
        sweep(p);
        return true;
    case VERB_REOPEN:
        play_say(p, "ok");
        il_close(pl->h);
        pl->h = t_store_open(p->s);
        return true;
    case VERB_FREEZE:
    case VERB_THAW:
        play_say(p, "ok");
        freeze(p, c->name, c->verb == VERB_FREEZE);
        return true;
    default:
        return false;
    }
}

static uint64_t
newest_fence(struct play *p, struct player *pl, const char *key)
{
    il_op op = { .type = IL_OP_GET, .key = key };

    apply(p, pl->h, &op);
    uint64_t fence = op.out.fence;
    il_op_release(&op);
    return fence != 0 ? fence : 1;
}

static il_op
op_of(struct play *p, struct player *pl, const struct command *c)
{
    static const il_op_type types[VERB_COUNT] = {
        [VERB_ACQUIRE] = IL_OP_ACQUIRE, [VERB_RENEW] = IL_OP_RENEW,
        [VERB_RELEASE] = IL_OP_RELEASE, [VERB_CHECK] = IL_OP_CHECK_FENCE,
        [VERB_BREAK] = IL_OP_BREAK,     [VERB_GET] = IL_OP_GET,
        [VERB_LIST] = IL_OP_LIST,
    };
    const char   *holder = holder_of(pl, c);
    struct t_args args   = {
          .ttl_ms    = c->ttl_ms,
          .wait_ms   = c->wait_ms,
          .settle_ms = c->settle_ms,
          .mode      = c->mode,
          .permits   = c->permits,
          .place     = c->place[0] != '\0' ? c->place : NULL,
          .reason    = "spec",
          .flags     = c->now ? IL_BREAK_NOW : 0,
    };
    uint64_t fence = 0;

    if (c->verb == VERB_BREAK && c->holder[0] == '\0')
        fence = newest_fence(p, pl, c->name); /* whoever has it */
    else if (c->verb != VERB_ACQUIRE && c->verb != VERB_GET && c->verb != VERB_LIST)
        fence = held_fence(p, c->name, holder);
    return t_op(types[c->verb], c->verb == VERB_LIST ? NULL : c->name, holder, fence, args);
}

/* What came of the acquire under way: false when it waits. */
static bool
take_result(struct play *p, struct player *pl)
{
    int64_t now_ms = t_clock_boot(&p->s->clock);

    if (pl->op.status == IL_QUEUED) {
        pl->asked_ms = now_ms;
        return false;
    }
    if (pl->op.status == IL_OK)
        remember(p, pl->op.key, pl->op.holder, pl->op.out.fence);
    pl->waiting = false;
    return true;
}

/* Run one command; false when the session waits now. */
static bool
run_command(struct play *p, struct player *pl, const struct command *c)
{
    if (run_other(p, pl, c))
        return true;
    il_op op = op_of(p, pl, c);
    apply(p, pl->h, &op);
    play_say_result(p, &op);
    if (c->verb != VERB_ACQUIRE) {
        il_op_release(&op);
        return true;
    }
    il_op_release(&pl->op);
    pl->op          = op;
    pl->waiting     = op.status == IL_QUEUED;
    pl->deadline_ms = c->wait_ms == IL_FOREVER ? IL__NEVER : t_clock_boot(&p->s->clock) + c->wait_ms;
    return take_result(p, pl);
}

/* Go on with the steps whose turn has come, as far as the session does not wait. */
static void
go_on(struct play *p, struct player *pl)
{
    while (!pl->waiting && pl->i_step < pl->n_given) {
        const struct step *st = &pl->session->steps[pl->i_step];
        if (pl->i_command == st->n_commands) {
            pl->i_step++;
            pl->i_command = 0;
            continue;
        }
        play_say_where(p, pl, pl->i_command == 0 ? '=' : ',');
        if (!run_command(p, pl, &st->commands[pl->i_command++]))
            return;
    }
}

/* ---- waiting ------------------------------------------------------------------------------------- */

/* Repeat the queued acquire with what remains of its wait, as il_acquire() does. True when it has ended. */
static bool
ask_again(struct play *p, struct player *pl)
{
    int64_t now_ms = t_clock_boot(&p->s->clock);

    if (pl->deadline_ms != IL__NEVER)
        pl->op.in.lock.wait_ms = MAX(pl->deadline_ms - now_ms, 0);
    apply(p, pl->h, &pl->op);
    if (!take_result(p, pl))
        return false;
    play_say_where(p, pl, '>');
    play_say_result(p, &pl->op);
    go_on(p, pl);
    return true;
}

static bool
should_ask(const struct play *p, const struct player *pl)
{
    int64_t now_ms = t_clock_boot(&p->s->clock);

    if (!pl->waiting || pl->frozen)
        return false;
    if (now_ms >= pl->deadline_ms || now_ms - pl->asked_ms >= IL__WAITER_REFRESH_MS)
        return true;
    il_status st = il_wait(pl->h, &pl->op, 0);
    if (st != IL_OK && st != IL_TIMEOUT)
        T_FAIL("il_wait: %s", il_status_name(st));
    return st == IL_OK;
}

static void
let_wake(struct play *p)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < p->n_players; i++) {
            if (should_ask(p, &p->players[i]))
                changed = ask_again(p, &p->players[i]) || changed;
        }
    }
}

/* ---- an order ------------------------------------------------------------------------------------ */

static void
check_invariants(struct play *p)
{
    char why[T_WHY_BYTES];

    if (!t_watch_look(&p->watch, p->players[0].h, p->tenant, false, why))
        T_FAIL("%s: after %s: %s", p->sp->path, p->out, why);
}

/* What is left: leases, then waiters. And whoever still waits must have a reason to. */
static void
say_end(struct play *p)
{
    play_say(p, " |");
    for (unsigned waiters = 0; waiters < 2; waiters++) {
        il_op op = { .type = IL_OP_LIST, .flags = waiters != 0 ? IL_LIST_WAITERS : 0 };
        apply(p, p->players[0].h, &op);
        for (size_t i = 0; i < op.out.n_items; i++) {
            play_say(p, " %s%c", op.out.items[i].key, waiters != 0 ? '<' : '=');
            if (waiters != 0)
                play_say(p, "%s", op.out.items[i].holder);
            else
                play_say_lease(p, &op.out.items[i]);
        }
        il_op_release(&op);
    }
    for (size_t i = 0; i < p->n_players; i++) {
        struct player *pl = &p->players[i];
        if (pl->waiting && !pl->frozen && ask_again(p, pl))
            play_say(p, " WAKE-UP LOST");
    }
}

static void
reset(struct play *p, size_t i_order)
{
    (void)snprintf(p->tenant, sizeof p->tenant, "order%zu", i_order);
    p->n_fences = 0;
    p->n_helds  = 0;
    p->speaker  = NULL;
    t_watch_release(&p->watch);
    for (size_t i = 0; i < p->n_players; i++) {
        struct player *pl = &p->players[i];
        il_op_release(&pl->op);
        *pl = (struct player){ .session = pl->session, .h = pl->h };
    }
}

void
play_order(struct play *p, size_t i_order, char *out, size_t n_bytes)
{
    const struct order *o     = &p->sp->orders[i_order];
    struct player      *setup = &p->players[p->n_players - 1];

    p->out       = out;
    p->n_out     = 0;
    p->n_out_max = n_bytes;
    reset(p, i_order);
    setup->n_given = setup->session->n_steps;
    go_on(p, setup);
    for (size_t i = 0; i < o->n; i++) {
        struct player *pl = &p->players[o->i_session[i]];
        pl->n_given++;
        go_on(p, pl);
        let_wake(p);
        check_invariants(p);
    }
    say_end(p);
}

struct play *
play_new(const struct t_engine *engine, const struct spec *sp)
{
    struct play *p = calloc(1, sizeof *p);

    CHECK(p != NULL);
    p->sp = sp;
    p->s  = t_store_new(engine);
    if (sp->n_ranks > 0)
        t_store_set_ranks(p->s, sp->ranks, sp->n_ranks);
    p->n_players = sp->n_sessions + 1;
    for (size_t i = 0; i < p->n_players; i++) {
        p->players[i].session = i < sp->n_sessions ? &sp->sessions[i] : &sp->setup;
        p->players[i].h       = t_store_open(p->s);
    }
    return p;
}

void
play_free(struct play *p)
{
    for (size_t i = 0; i < p->n_players; i++) {
        il_op_release(&p->players[i].op);
        il_close(p->players[i].h);
    }
    t_watch_release(&p->watch);
    t_store_free(p->s);
    free(p);
}
