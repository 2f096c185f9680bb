/*
 * lease.c: il_acquire() and the lease it returns: renewal, the watchdog, waiting, giving up. On the
 * machine's own clock, since the threads of a handle use it.
 */
#include <poll.h>

#include "core/op.h"
#include "harness/event.h"
#include "harness/suite.h"
#include "runtime/handle.h"

#define LIMIT_MS 15000 /* for what should take milliseconds, on a machine that may be busy */

/* What the callbacks said. */
struct told {
    struct t_event  renewed;
    struct t_event  lost;
    char            why[256];
    _Atomic int64_t lost_ns;
};

static void
told_init(struct told *t)
{
    t_event_init(&t->renewed);
    t_event_init(&t->lost);
    t->why[0] = '\0';
    atomic_init(&t->lost_ns, 0);
}

static void
told_release(struct told *t)
{
    t_event_release(&t->renewed);
    t_event_release(&t->lost);
}

static void
on_renewed(void *cookie, il_lease *lease UNUSED, int64_t deadline_ns UNUSED)
{
    struct told *t = cookie;

    t_event_add(&t->renewed);
}

static void
on_lost(void *cookie, il_lease *lease UNUSED, const char *why)
{
    struct told *t = cookie;

    (void)snprintf(t->why, sizeof t->why, "%s", why);
    atomic_store(&t->lost_ns, t_real_ms());
    t_event_add(&t->lost);
}

static il_acquire_opts
opts_of(struct told *t, const char *holder, int64_t ttl_ms)
{
    il_acquire_opts o = IL_ACQUIRE_OPTS_INIT;

    o.holder = holder;
    o.ttl_ms = ttl_ms;
    if (t != NULL) {
        o.on_renewed = on_renewed;
        o.on_lost    = on_lost;
        o.cookie     = t;
    }
    return o;
}

static il_lease *
take(il *h, const char *key, const il_acquire_opts *o)
{
    il_lease *lease = NULL;
    il_error  err   = { 0 };

    if (il_acquire(h, key, o, &lease, &err) != IL_OK)
        T_FAIL("il_acquire '%s': %s: %s", key, il_status_name(err.status), err.message);
    return lease;
}

static bool
readable(int fd)
{
    struct pollfd pfd = { .fd = fd, .events = POLLIN };

    return poll(&pfd, 1, 0) == 1;
}

T_TEST(a_lease_says_what_it_is)
{
    il             *h     = t_store_open_real(s);
    il_acquire_opts o     = opts_of(NULL, "me", 20000);
    il_lease       *lease = take(h, "k", &o);
    il_error        err;

    T_STREQ(il_lease_key(lease), "k");
    T_STREQ(il_lease_holder(lease), "me");
    T_TRUE(il_lease_fence(lease) > 0);
    T_EQ(il_lease_status(lease), IL_OK);
    T_TRUE(il_lease_remaining_ms(lease) <= 19000); /* a margin for clocks: 5 % */
    T_TRUE(il_lease_remaining_ms(lease) > 9000);
    T_TRUE(!readable(il_lease_fd(lease)));
    T_EQ(il_check_fence(h, "k", il_lease_fence(lease), &err), IL_OK);
    T_EQ(il_lease_renew(lease, &err), IL_OK);
    T_EQ(il_lease_release(lease, &err), IL_OK);
    T_EQ(il_lease_release(lease, &err), IL_OK);
    T_EQ(il_lease_status(lease), IL_NOT_HELD);
    T_EQ(il_lease_renew(lease, &err), IL_LOST);
    T_EQ(il_check_fence(h, "k", il_lease_fence(lease), &err), IL_STALE);
    il_lease_free(lease);
    il_close(h);
}

T_TEST(a_holder_is_made_when_none_is_given)
{
    il       *h   = t_store_open_real(s);
    il_lease *one = take(h, "k1", NULL);
    il_lease *two = take(h, "k2", NULL);

    T_EQ(strlen(il_lease_holder(one)), 36);
    T_TRUE(strcmp(il_lease_holder(one), il_lease_holder(two)) != 0);
    il_lease_free(one);
    il_lease_free(two);
    il_close(h);
}

T_TEST(renewed_in_the_background)
{
    il         *h = t_store_open_real(s);
    struct told t;
    il_error    err;

    told_init(&t);
    il_acquire_opts o        = opts_of(&t, "me", 1000);
    int64_t         began    = t_real_ms();
    il_lease       *lease    = take(h, "k", &o);
    int64_t         deadline = il_lease_deadline_ns(lease);
    for (unsigned n = 1; t_real_ms() - began < 4 * o.ttl_ms / 3; n++)
        T_WAIT(&t.renewed, n, LIMIT_MS); /* early ones too: news of breaks asks for them */
    T_EQ(il_lease_status(lease), IL_OK);
    T_TRUE(il_lease_deadline_ns(lease) > deadline);
    T_EQ(il_check_fence(h, "k", il_lease_fence(lease), &err), IL_OK);
    T_EQ(il_lease_release(lease, &err), IL_OK);
    T_EQ(t_event_count(&t.lost), 0);
    il_lease_free(lease);
    il_close(h);
    told_release(&t);
}

/* The renewal of a TTL of 30 s is 10 s away: who learns it sooner was woken. */
static void
break_and_wait(struct t_store *s, uint32_t flags, il_status released)
{
    il         *h     = t_store_open_real(s);
    il         *other = t_store_open_real(s);
    struct told t;
    il_error    err;

    told_init(&t);
    il_acquire_opts o     = opts_of(&t, "me", 30000);
    il_lease       *lease = take(h, "k", &o);
    T_EQ(il_break(other, "k", il_lease_fence(lease), "a test", flags, &err), IL_OK);
    T_WAIT(&t.lost, 1, 5000);
    T_TRUE(t.why[0] != '\0');
    T_EQ(il_lease_status(lease), IL_LOST);
    T_TRUE(readable(il_lease_fd(lease)));
    T_EQ(il_lease_renew(lease, &err), IL_LOST);
    T_EQ(il_lease_release(lease, &err), released);
    T_EQ(t_event_count(&t.lost), 1);
    il_lease_free(lease);
    il_close(h);
    il_close(other);
    told_release(&t);
}

T_TEST(a_break_is_told_at_once)
{
    break_and_wait(s, 0, IL_OK); /* closing: the holder lets go */
}

T_TEST(a_break_now_is_told_at_once)
{
    break_and_wait(s, IL_BREAK_NOW, IL_LOST);
}

T_TEST(a_refused_renewal_is_a_loss)
{
    il         *h = t_store_open_real(s);
    struct told t;

    told_init(&t);
    il_acquire_opts o = opts_of(&t, "me", 30000);
    o.flags           = IL_NO_RENEW;
    il_lease *lease   = take(h, "k", &o);
    T_EQ(il_break(h, "k", il_lease_fence(lease), "test", IL_BREAK_NOW, NULL), IL_OK);
    T_EQ(il_lease_renew(lease, NULL), IL_LOST);
    T_EQ(il_lease_status(lease), IL_LOST);
    T_TRUE(readable(il_lease_fd(lease)));
    T_WAIT(&t.lost, 1, LIMIT_MS);
    T_EQ(il_lease_release(lease, NULL), IL_LOST);
    il_lease_free(lease);
    il_close(h);
}

T_TEST(without_renewal_it_is_lost_at_the_deadline)
{
    il         *h = t_store_open_real(s);
    struct told t;
    il_error    err;

    told_init(&t);
    il_acquire_opts o = opts_of(&t, "me", 1200);
    o.flags           = IL_NO_RENEW;
    o.stop_ms         = 400;
    int64_t   began   = t_real_ms();
    il_lease *lease   = take(h, "k", &o);
    T_WAIT(&t.lost, 1, LIMIT_MS);
    /* Told stop_ms before the deadline, which is a margin before the expiry; not before that. */
    T_TRUE(atomic_load(&t.lost_ns) - began >= 1200 - 400 - 60 - 5);
    T_TRUE(readable(il_lease_fd(lease)));
    T_EQ(t_event_count(&t.renewed), 0);
    T_EQ(il_lease_status(lease), IL_LOST);
    il_status st = il_lease_release(lease, &err); /* the store may still have it */
    T_TRUE(st == IL_OK || st == IL_LOST);
    il_lease_free(lease);
    il_close(h);
    told_release(&t);
}

/* ---- a store that goes away ------------------------------------------------------------------ */

struct gone_store {
    struct il__store     base;
    struct il__store    *inner;
    struct il__store_ops ops;
    atomic_bool          gone;
    atomic_int     answer; /* what renewals are answered with; IL_OK: what the inner store says */
    struct t_event answered;
    atomic_bool    sticks; /* a sweep goes on until: */
    struct t_event swept, go_on;
};

static bool
all_are(il_op *const *ops, size_t n, il_op_type type)
{
    for (size_t i = 0; i < n; i++) {
        if (ops[i]->type != type)
            return false;
    }
    return true;
}

static il_status
gone_apply(struct il__store *st, il_op *const *ops, size_t n, size_t *ret_done, il_error *reterr)
{
    struct gone_store *g = container_of(st, struct gone_store, base);

    *ret_done = n;
    if (atomic_load(&g->gone)) {
        if (reterr != NULL)
            *reterr = (il_error){ .status = IL_STORE, .message = "gone" };
        return IL_STORE;
    }
    if (atomic_load(&g->sticks) && all_are(ops, n, IL_OP_SWEEP)) {
        t_event_add(&g->swept);
        (void)t_event_wait(&g->go_on, 1, 10 * LIMIT_MS);
        return IL_STORE;
    }
    if (atomic_load(&g->answer) != IL_OK && all_are(ops, n, IL_OP_RENEW)) {
        for (size_t i = 0; i < n; i++) {
            il__op_end(ops[i], (il_status)atomic_load(&g->answer), "the weather is bad");
            t_event_add(&g->answered);
        }
        return IL_OK;
    }
    return il__store_apply(g->inner, ops, n, ret_done, reterr);
}

static void
gone_free(struct il__store *st)
{
    il__store_free(container_of(st, struct gone_store, base)->inner);
}

/* With a lane for sweeps, if it sweeps. */
static il *
open_gone(struct t_store *s, struct gone_store *g, bool sweeps)
{
    il          *h    = NULL;
    il_open_opts opts = IL_OPEN_OPTS_INIT;
    il_error     err;

    opts.flags = sweeps ? 0 : IL_OPEN_NO_SWEEP;
    t_event_init(&g->answered);
    t_event_init(&g->swept);
    t_event_init(&g->go_on);

    T_EQ(il__store_open(s->real_url, NULL, &g->inner, &err), IL_OK);
    g->ops  = (struct il__store_ops){ .name    = "gone",
                                      .caps    = g->inner->ops->caps,
                                      .n_lanes = sweeps ? 2 : 1,
                                      .free    = gone_free,
                                      .apply   = gone_apply };
    g->base = (struct il__store){ .ops = &g->ops, .board = g->inner->board };
    T_EQ(il__handle_new(&g->base, &opts, &h, &err), IL_OK);
    return h;
}

T_TEST(the_watchdog_does_not_need_the_store)
{
    struct gone_store g = { 0 };
    il               *h = open_gone(s, &g, false);
    struct told       t;

    told_init(&t);
    il_acquire_opts o = opts_of(&t, "me", 1500);
    o.stop_ms         = 300;
    il_lease *lease   = take(h, "k", &o);
    T_WAIT(&t.renewed, 1, LIMIT_MS);
    atomic_store(&g.gone, true);
    T_WAIT(&t.lost, 1, LIMIT_MS);
    T_HAS(t.why, "lease not renewed in time"); /* and why, if it was tried in time */
    T_EQ(il_lease_status(lease), IL_LOST);
    T_EQ(il_lease_release(lease, NULL), IL_STORE);
    il_lease_free(lease);
    il_close(h);
    told_release(&t);
}

T_TEST(a_store_that_comes_back_in_time)
{
    struct gone_store g = { 0 };
    il               *h = open_gone(s, &g, false);
    struct told       t;

    told_init(&t);
    il_acquire_opts o     = opts_of(&t, "me", 3000);
    il_lease       *lease = take(h, "k", &o);
    T_WAIT(&t.renewed, 1, LIMIT_MS);
    atomic_store(&g.gone, true);
    T_EQ(il_lease_renew(lease, NULL), IL_STORE); /* uncertain, not lost */
    T_EQ(il_lease_status(lease), IL_OK);
    atomic_store(&g.gone, false);
    T_WAIT(&t.renewed, 2, LIMIT_MS);
    T_EQ(t_event_count(&t.lost), 0);
    T_EQ(il_lease_release(lease, NULL), IL_OK);
    il_lease_free(lease);
    il_close(h);
    told_release(&t);
}

/* "No space", "damaged": the store does not say that the lease is over. */
T_TEST(what_is_no_answer_is_no_loss)
{
    static const il_status statuses[] = { IL_FULL, IL_CORRUPT };
    struct gone_store      g          = { 0 };
    il                    *h          = open_gone(s, &g, false);
    struct told            t;

    told_init(&t);
    il_acquire_opts o     = opts_of(&t, "me", 6000);
    il_lease       *lease = take(h, "k", &o);
    for (unsigned i = 0; i < ARRAY_LEN(statuses); i++) {
        unsigned n_answered = t_event_count(&g.answered);
        atomic_store(&g.answer, statuses[i]);
        T_EQ(il_lease_renew(lease, NULL), statuses[i]);
        T_WAIT(&g.answered, n_answered + 2, LIMIT_MS); /* the keeper's, too */
        atomic_store(&g.answer, IL_OK);
        T_WAIT(&t.renewed, t_event_count(&t.renewed) + 1, LIMIT_MS);
    }
    T_EQ(t_event_count(&t.lost), 0);
    T_EQ(il_lease_release(lease, NULL), IL_OK);
    il_lease_free(lease);
    il_close(h);
    told_release(&t);
}

T_TEST(who_cannot_renew_is_told_why)
{
    struct gone_store g = { 0 };
    il               *h = open_gone(s, &g, false);
    struct told       t;

    told_init(&t);
    il_acquire_opts o     = opts_of(&t, "me", 4000);
    il_lease       *lease = take(h, "k", &o);
    atomic_store(&g.answer, IL_FULL);
    T_WAIT(&t.lost, 1, LIMIT_MS);
    T_STREQ(t.why, "lease not renewed in time: 'k': the weather is bad");
    il_lease_free(lease);
    il_close(h);
    told_release(&t);
}

/* However long a sweep takes, leases are renewed meanwhile. */
T_TEST(a_sweep_does_not_keep_from_renewing)
{
    struct gone_store g = { .sticks = true };
    il               *h = open_gone(s, &g, true);
    struct told       t;

    told_init(&t);
    il_acquire_opts o     = opts_of(&t, "me", 5000);
    il_lease       *lease = take(h, "k", &o);
    T_WAIT(&g.swept, 1, LIMIT_MS);
    T_WAIT(&t.renewed, t_event_count(&t.renewed) + 3, LIMIT_MS);
    T_EQ(t_event_count(&g.swept), 1); /* all that was during this one */
    T_EQ(t_event_count(&t.lost), 0);
    T_EQ(il_lease_release(lease, NULL), IL_OK);
    il_lease_free(lease);
    t_event_add(&g.go_on);
    il_close(h);
    told_release(&t);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(a_lease_says_what_it_is),
        T_ROW(a_holder_is_made_when_none_is_given),
        T_ROW(renewed_in_the_background),
        T_ROW(a_break_is_told_at_once),
        T_ROW(a_break_now_is_told_at_once),
        T_ROW(a_refused_renewal_is_a_loss),
        T_ROW(without_renewal_it_is_lost_at_the_deadline),
        T_ROW(the_watchdog_does_not_need_the_store),
        T_ROW(a_store_that_comes_back_in_time),
        T_ROW(what_is_no_answer_is_no_loss),
        T_ROW(who_cannot_renew_is_told_why),
        T_ROW(a_sweep_does_not_keep_from_renewing),
    };

    return T_SUITE("lease", tests);
}
