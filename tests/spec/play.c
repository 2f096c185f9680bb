/*
 * play.c: plays one order of a spec. No threads: a waiting session has a queued op, which is
 * repeated when the library reports a wake-up. So a lost wake-up shows as a session that waits
 * forever, and the final check of an order finds it.
 */
#include <inttypes.h>
#include <stdio.h>

#include "core/limits.h"
#include "spec/play_internal.h"

#define TICK_MS 1000

void
play_apply(struct play *p, il *h, il_op *op)
{
    il_error err;

    op->tenant = p->tenant;
    if (il_apply(h, op, 1, &err) != IL_OK)
        T_FAIL("%s: il_apply: %s", p->sp->path, err.message);
    p->unsettled = true;
}

/* What was woken by one handle is known to the others, as it is where they share a board. */
static void
settle(struct play *p)
{
    il *handles[SESSIONS_MAX + 1];

    if (!p->unsettled)
        return;
    p->unsettled = false;
    for (size_t i = 0; i < p->n_players; i++)
        handles[i] = p->players[i].h;
    t_settle(p->s, handles, p->n_players);
}

/* ---- commands -------------------------------------------------------------------------------- */

static void let_wake(struct play *p);

static void
sweep(struct play *p, il *h)
{
    for (bool more = true; more;) {
        il_op op = { .type = IL_OP_SWEEP };
        play_apply(p, h, &op);
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
        sweep(p, p->players[p->n_players - 1].h);
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
        sweep(p, pl->h);
        return true;
    case VERB_REOPEN:
        play_say(p, "ok");
        il_close(pl->h);
        pl->h = t_store_open(p->s);
        t_attend(pl->h);
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

/* Can the session wait for this, and does it have to? */
static bool
has_to_wait(const il_op *op, int64_t wait_ms)
{
    if (op->type == IL_OP_ACQUIRE || op->type == IL_OP_RUN_START)
        return op->status == IL_QUEUED;
    return wait_ms != 0 && ((op->type == IL_OP_ONCE_BEGIN && op->status == IL_BUSY) ||
                            (op->type == IL_OP_CACHE_LOOKUP && op->status == IL_WAIT) ||
                            (op->type == IL_OP_JOB_CLAIM && op->status == IL_EMPTY));
}

/* Run one command; false when the session waits now. */
static bool
run_command(struct play *p, struct player *pl, const struct command *c)
{
    int64_t now_ms = t_clock_boot(&p->s->clock);
    bool    queues = c->type == IL_OP_RUN_START && c->wait_ms == 0;

    if (run_other(p, pl, c))
        return true;
    il_op op = play_op(p, pl, c);
    play_apply(p, pl->h, &op);
    play_remember(p, &op);
    bool waits = has_to_wait(&op, c->wait_ms);
    play_say_result(p, &op, waits);
    il_op_release(&pl->op);
    pl->op          = op;
    pl->waiting     = waits;
    pl->asked_ms    = now_ms;
    pl->deadline_ms = c->wait_ms == IL_FOREVER || queues ? IL__NEVER : now_ms + c->wait_ms;
    return !waits;
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

/* ---- waiting --------------------------------------------------------------------------------- */

/* What is repeated is not quite the same: what remains of the wait, the value that is waited for, a
 * new claim. */
static void
prepare_again(struct play *p, struct player *pl)
{
    int64_t now_ms = t_clock_boot(&p->s->clock);
    int64_t left   = pl->deadline_ms == IL__NEVER ? IL_FOREVER : MAX(pl->deadline_ms - now_ms, 0);

    if (pl->op.type == IL_OP_ACQUIRE && pl->deadline_ms != IL__NEVER)
        pl->op.in.lock.wait_ms = left;
    if (pl->op.type == IL_OP_RUN_START && left > 0)
        pl->op.in.run.wait_ms = left; /* 0 would be for ever: its time is over in the store */
    if (pl->op.type == IL_OP_CACHE_LOOKUP)
        pl->op.fence = pl->op.out.fence;
    if (pl->op.type == IL_OP_JOB_CLAIM) {
        (void)snprintf(p->claim_id, sizeof p->claim_id, "claim-%u", p->n_claims++);
        pl->op.in.job.id = p->claim_id;
    }
    pl->asked_ms = now_ms;
}

/* Repeat the op that waits. True when its wait has ended. */
static bool
ask_again(struct play *p, struct player *pl)
{
    prepare_again(p, pl);
    play_apply(p, pl->h, &pl->op);
    bool patient = t_clock_boot(&p->s->clock) < pl->deadline_ms || pl->op.status == IL_QUEUED;
    if (patient && has_to_wait(&pl->op, 1))
        return false;
    pl->waiting = false;
    play_remember(p, &pl->op);
    play_say_where(p, pl, '>');
    play_say_result(p, &pl->op, false);
    go_on(p, pl);
    return true;
}

static bool
should_ask(struct play *p, const struct player *pl)
{
    int64_t now_ms = t_clock_boot(&p->s->clock);

    if (!pl->waiting || pl->frozen)
        return false;
    if (now_ms >= pl->deadline_ms || now_ms - pl->asked_ms >= IL__WAITER_REFRESH_MS)
        return true;
    if (pl->op.status != IL_QUEUED && pl->op.out.remaining_ms != IL_FOREVER &&
        now_ms - pl->asked_ms >= pl->op.out.remaining_ms)
        return true; /* the other one's time is over, or something is due */
    settle(p);
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

/* ---- an order -------------------------------------------------------------------------------- */

static void
check_invariants(struct play *p)
{
    char why[T_WHY_BYTES];

    if (!t_watch_look(&p->watch, p->players[0].h, p->tenant, false, why))
        T_FAIL("%s: after %s: %s", p->sp->path, p->out, why);
}

/* What is left; and whoever still waits must have a reason to. */
static void
say_end(struct play *p)
{
    play_say(p, " |");
    play_say_end(p);
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
    p->n_claims = 0;
    p->speaker  = NULL;
    t_watch_release(&p->watch);
    /* Each order begins at the same hour; what is left of the others is another tenant's. */
    t_clock_set_wall(&p->s->clock, T_WALL_MS_START - t_clock_wall(&p->s->clock));
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
        t_attend(p->players[i].h);
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
