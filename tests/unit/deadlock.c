/*
 * deadlock.c: the cycle search on a mock store; first hand-written cases, then compared with a
 * simulation that lets every unit that can continue do so until nothing moves.
 */
#include "core/deadlock.h"

#include "core/conflict.h"
#include "core/key.h"
#include "harness/rng.h"
#include "harness/unit.h"

#define HOLDS_MAX 64

struct hold {
    const char *key;
    const char *holder;
    il_mode     mode;
    uint32_t    permits;
    uint64_t    ticket; /* 0 = a lease */
    bool        gone;
};

struct made_up {
    struct hold holds[HOLDS_MAX]; /* in queue order */
    size_t      n;
    size_t      n_reads;
    /* of whom a queue knows that he waits nowhere else; and is told what is asked for next */
    bool        tells;
    const char *expected[HOLDS_MAX];
    size_t      n_expected;
};

static bool
expect(void *cookie, enum il__deadlock_part part UNUSED, const char *const *names, size_t n)
{
    struct made_up *m = cookie;

    T_EQU(m->n_expected, 0); /* all of the last ones have been asked for */
    CHECK(n >= 2 && n <= HOLDS_MAX);
    memcpy(m->expected, names, n * sizeof *names);
    m->n_expected = n;
    return true;
}

/* What was expected is asked for in that order, and nothing else. */
static void
take_expected(struct made_up *m, const char *name)
{
    if (m->n_expected == 0)
        return;
    T_STREQ(name, m->expected[0]);
    memmove(m->expected, m->expected + 1, --m->n_expected * sizeof m->expected[0]);
}

static bool
waits_of(void *cookie, const char *root, size_t root_bytes UNUSED, struct il__deadlock *d)
{
    struct made_up *m = cookie;

    m->n_reads++;
    take_expected(m, root);
    for (size_t i = 0; i < m->n; i++) {
        if (m->holds[i].ticket != 0 && il__holder_same_root(m->holds[i].holder, root))
            il__deadlock_add_wanted(d, m->holds[i].key);
    }
    return true;
}

static bool
waits_elsewhere(const struct made_up *m, const struct hold *of)
{
    for (size_t i = 0; i < m->n; i++) {
        const struct hold *h = &m->holds[i];
        if (h->ticket != 0 && il__holder_same_root(h->holder, of->holder) &&
            strcmp(h->key, of->key) != 0)
            return true;
    }
    return false;
}

static bool
queue_of(void *cookie, const char *key, struct il__deadlock *d)
{
    struct made_up *m = cookie;

    m->n_reads++;
    take_expected(m, key);
    for (unsigned waits = 0; waits < 2; waits++) {
        for (size_t i = 0; i < m->n; i++) {
            const struct hold *h = &m->holds[i];
            if (strcmp(h->key, key) != 0 || (h->ticket != 0) != (waits != 0))
                continue;
            if (waits != 0)
                il__deadlock_add_wait(d, h->ticket, h->holder, h->mode, h->permits);
            else
                il__deadlock_add_lease(d, h->holder, h->mode, h->permits);
            if (m->tells && !waits_elsewhere(m, h))
                il__deadlock_waits_nowhere_else(d, h->holder);
        }
    }
    return true;
}

static il_status
search_once(struct made_up *m, const char *holder, uint64_t *ticket, struct il__buf *why)
{
    struct il__deadlock_source source = { waits_of, queue_of, m->tells ? expect : NULL, m };

    il__buf_clear(why);
    return il__deadlock_find(&source, &holder, 1, ticket, why);
}

/* By a store that tells who waits nowhere else, and reads ahead, too: it finds the same, with less
 * to read. */
static il_status
search(struct made_up *m, const char *holder, uint64_t *ticket, struct il__buf *why)
{
    struct il__buf AUTO_BUF told        = { .n_bytes_max = 4000 };
    uint64_t                told_ticket = *ticket;
    size_t                  n_before    = m->n_reads;

    il_status st      = search_once(m, holder, ticket, why);
    size_t    n_reads = m->n_reads - n_before;
    m->tells          = true;
    T_EQ(search_once(m, holder, &told_ticket, &told), st);
    m->tells = false;
    T_TRUE(m->n_reads - n_before - n_reads <= n_reads);
    T_EQU(told_ticket, *ticket);
    T_STREQ(il__buf_str(&told), il__buf_str(why));
    m->n_reads = n_before + n_reads;
    return st;
}

static void
add(struct made_up *m, const char *key, const char *holder, il_mode mode, uint32_t permits,
    uint64_t ticket)
{
    CHECK(m->n < HOLDS_MAX);
    m->holds[m->n++] = (struct hold){ key, holder, mode, permits, ticket, false };
}

U_TEST(nobody_waits)
{
    struct made_up          m   = { 0 };
    struct il__buf AUTO_BUF why = { .n_bytes_max = 1000 };
    uint64_t                ticket;

    T_EQ(search(&m, "a", &ticket, &why), IL_OK);
    add(&m, "x", "a", IL_MODE_EXCLUSIVE, 0, 0);
    T_EQ(search(&m, "a", &ticket, &why), IL_OK);
}

U_TEST(the_youngest_ticket_of_the_cycle)
{
    struct made_up          m   = { 0 };
    struct il__buf AUTO_BUF why = { .n_bytes_max = 1000 };
    uint64_t                ticket;

    add(&m, "x", "a", IL_MODE_EXCLUSIVE, 0, 0);
    add(&m, "y", "b", IL_MODE_EXCLUSIVE, 0, 0);
    add(&m, "x", "b", IL_MODE_EXCLUSIVE, 0, 9);
    add(&m, "y", "a", IL_MODE_EXCLUSIVE, 0, 4);
    T_EQ(search(&m, "a", &ticket, &why), IL_DEADLOCK);
    T_EQU(ticket, 9);
    T_EQ(search(&m, "b", &ticket, &why), IL_DEADLOCK);
    T_EQU(ticket, 9);
    /* From outside the cycle: the cycle is told, not the way to it. */
    add(&m, "x", "c", IL_MODE_EXCLUSIVE, 0, 12);
    T_EQ(search(&m, "c", &ticket, &why), IL_DEADLOCK);
    T_EQU(ticket, 9);
    T_TRUE(strstr(il__buf_str(&why), "c waits") == NULL);
}

static bool
refuse(void *cookie UNUSED, const char *root UNUSED, size_t n UNUSED, struct il__deadlock *d UNUSED)
{
    return false;
}

U_TEST(a_store_that_cannot_be_read)
{
    struct il__deadlock_source source = { refuse, queue_of, NULL, NULL };
    struct il__buf AUTO_BUF    why    = { .n_bytes_max = 1000 };
    uint64_t                   ticket;

    const char *holder = "a";
    T_EQ(il__deadlock_find(&source, &holder, 1, &ticket, &why), IL_STORE);
}

/* ---- against a simulation -------------------------------------------------------------------- */

static const char *const keys[]    = { "k0", "k1", "k2", "k3" };
static const char *const holders[] = { "a", "b", "c", "d", "e", "f" };

static struct il__occupancy
load_of(const struct made_up *m, const char *key)
{
    struct il__occupancy live = { 0 };

    for (size_t i = 0; i < m->n; i++) {
        const struct hold *h = &m->holds[i];
        if (!h->gone && h->ticket == 0 && strcmp(h->key, key) == 0)
            il__occupancy_add(&live, h->mode, h->permits);
    }
    return live;
}

/* Is this the first wait of its key that is still there? */
static bool
is_head(const struct made_up *m, size_t i_wait)
{
    for (size_t i = 0; i < i_wait; i++) {
        if (!m->holds[i].gone && m->holds[i].ticket != 0 &&
            strcmp(m->holds[i].key, m->holds[i_wait].key) == 0)
            return false;
    }
    return true;
}

/* Grant what can be granted. True when something was. */
static bool
grant_some(struct made_up *m)
{
    for (size_t i = 0; i < m->n; i++) {
        struct hold *h = &m->holds[i];
        if (h->gone || h->ticket == 0 || !is_head(m, i))
            continue;
        struct il__occupancy live = load_of(m, h->key);
        if (il__conflict(&live, h->mode, h->permits) == IL__COMPATIBLE) {
            h->ticket = 0;
            return true;
        }
    }
    return false;
}

/* Let one holder that waits for nothing finish and give everything back. True when there was
 * one. */
static bool
finish_one(struct made_up *m)
{
    for (size_t i_holder = 0; i_holder < ARRAY_LEN(holders); i_holder++) {
        bool waits = false;
        bool holds = false;
        for (size_t i = 0; i < m->n; i++) {
            const struct hold *h = &m->holds[i];
            if (h->gone || strcmp(h->holder, holders[i_holder]) != 0)
                continue;
            waits = waits || h->ticket != 0;
            holds = holds || h->ticket == 0;
        }
        if (waits || !holds)
            continue;
        for (size_t i = 0; i < m->n; i++) {
            if (strcmp(m->holds[i].holder, holders[i_holder]) == 0)
                m->holds[i].gone = true;
        }
        return true;
    }
    return false;
}

/* Does `holder` ever get all that it waits for? */
static bool
gets_through(const struct made_up *start, const char *holder)
{
    struct made_up m = *start;

    while (grant_some(&m) || finish_one(&m))
        ;
    for (size_t i = 0; i < m.n; i++) {
        if (!m.holds[i].gone && m.holds[i].ticket != 0 && strcmp(m.holds[i].holder, holder) == 0)
            return false;
    }
    return true;
}

/* A store as it can really be: requests one after the other, each granted when it can be. */
static void
make_up(struct made_up *m, struct t_rng *r)
{
    unsigned n_asks = 3 + t_rng_below(r, 14);
    uint64_t ticket = 0;

    *m = (struct made_up){ 0 };
    for (unsigned i = 0; i < n_asks; i++) {
        const char *key    = keys[t_rng_below(r, ARRAY_LEN(keys))];
        const char *holder = holders[t_rng_below(r, ARRAY_LEN(holders))];
        /* Each key has one kind, so that modes meet as they do in life. */
        il_mode  mode    = key[1] == '2' ? IL_MODE_PERMIT : IL_MODE_EXCLUSIVE;
        uint32_t permits = key[1] == '2' ? 2 : 0;
        bool     busy    = false;
        bool     queue   = false;
        if (key[1] == '3' && t_rng_one_in(r, 2))
            mode = IL_MODE_SHARED;
        for (size_t j = 0; j < m->n; j++) {
            const struct hold *h    = &m->holds[j];
            bool               same = strcmp(h->holder, holder) == 0;
            busy  = busy || (same && (h->ticket != 0 || strcmp(h->key, key) == 0));
            queue = queue || (h->ticket != 0 && strcmp(h->key, key) == 0);
        }
        if (busy)
            continue; /* it waits already, or has the key */
        struct il__occupancy live = load_of(m, key);
        bool                 free = il__conflict(&live, mode, permits) == IL__COMPATIBLE && !queue;
        add(m, key, holder, mode, permits, free ? 0 : ++ticket);
    }
}

U_TEST(all_and_only_real_deadlocks)
{
    uint64_t                seed    = t_env_u64("IL_TEST_SEED", 1);
    struct il__buf AUTO_BUF why     = { .n_bytes_max = 4000 };
    unsigned                n_found = 0;
    struct t_rng            r;

    t_rng_init(&r, seed);
    for (unsigned i = 0; i < 20000; i++) {
        struct made_up m;
        uint64_t       ticket = 0;
        make_up(&m, &r);
        for (size_t j = 0; j < ARRAY_LEN(holders); j++) {
            il_status st      = search(&m, holders[j], &ticket, &why);
            bool      through = gets_through(&m, holders[j]);
            n_found += st == IL_DEADLOCK;
            if ((st == IL_OK) == through)
                continue;
            for (size_t k = 0; k < m.n; k++)
                (void)fprintf(stderr, "  %s %s %s ticket %u\n", m.holds[k].key, m.holds[k].holder,
                              il_mode_name(m.holds[k].mode), (unsigned)m.holds[k].ticket);
            T_FAIL("seed %u, store %u: %s %s, but the search says %s (%s)", (unsigned)seed, i,
                   holders[j], through ? "gets through" : "is stuck", il_status_name(st),
                   il__buf_str(&why));
        }
    }
    T_TRUE(n_found > 1000); /* else this proves little */
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(nobody_waits),
        U_ROW(the_youngest_ticket_of_the_cycle),
        U_ROW(a_store_that_cannot_be_read),
        U_ROW(all_and_only_real_deadlocks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
