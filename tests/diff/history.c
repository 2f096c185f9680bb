/*
 * history.c: generates random histories. Values are few and close to the protocol's own times (2 s,
 * 15 s, 60 s), so that events collide. history_lock.c and its siblings generate the ops of one
 * family each.
 */
#include "diff/history.h"

#include <inttypes.h>

const char *const t_keys[N_KEYS]       = { "a:1",     "a:2",        "b:1", "b:2", "c",   "d:x",
                                           "a:1:sub", "\xc3\xa9:1", "e:1", "e:2", "e:3", "e:4",
                                           "e:5",     "e:6",        "e:7", "e:8", "f:1", "f:2",
                                           "f:3",     "f:4",        "f:5", "f:6", "f:7", "f:8" };
const char *const t_holders[N_HOLDERS] = { "h1",    "h2",  "h3",  "h4",  "j/1", "j/2", "j",   "u/1",
                                           "u/1/2", "h5",  "h6",  "h7",  "h8",  "h9",  "h10", "h11",
                                           "h12",   "h13", "h14", "h15", "h16", "h17", "h18", "h19",
                                           "h20",   "h21", "h22", "h23", "h24", "h25", "h26", "h27",
                                           "h28",   "h29", "h30", "h31", "h32", "h33", "h34", "h35",
                                           "h36",   "h37", "h38", "h39", "j/3", "j/4", "j/5", "j/6",
                                           "j/7",   "u/2", "u/3", "u/4", "u/5", "u/6" };
const char *const t_tenants[N_TENANTS] = { "default", "other" };
const char *const t_queues[N_QUEUES]   = { "mail", "mail:slow", "pdf" };

/* ---- names ----------------------------------------------------------------------------------- */

#define NAMES_MAX 65536

const char *
t_name(const char *text)
{
    static const char *names[NAMES_MAX];
    uint32_t           hash = 5381;

    for (const char *c = text; *c != '\0'; c++)
        hash = hash * 33 + (unsigned char)*c;
    for (uint32_t i = hash;; i++) {
        const char **slot = &names[i % NAMES_MAX];
        if (*slot == NULL) {
            *slot = strdup(text);
            CHECK(*slot != NULL);
        }
        if (strcmp(*slot, text) == 0)
            return *slot;
        CHECK(i - hash < NAMES_MAX / 2);
    }
}

const char *
t_id(char letter, unsigned i)
{
    char text[16];

    (void)snprintf(text, sizeof text, "%c%u", letter, i);
    return t_name(text);
}

unsigned
t_near(struct t_rng *r, size_t i_step, unsigned every)
{
    return (unsigned)i_step / every + t_rng_below(r, 6);
}

struct blob
history_blob(struct t_rng *r)
{
    static char              large[70000]; /* more than one page of a log */
    static const char        nul[] = "with\0nul";
    static const struct blob few[] = {
        { NULL, 0 }, { "", 0 }, { "x", 1 }, { "payload", 7 }, { nul, 8 }
    };

    if (t_rng_one_in(r, 60)) {
        memset(large, '.', sizeof large);
        return (struct blob){ large, sizeof large };
    }
    return PICK(r, few);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static struct taste
taste_of(struct t_rng *r)
{
    static const int64_t rates[] = { 1000, 3000, 10000 };
    bool         many = t_rng_one_in(r, 4); /* names, so that ops of a batch need not meet */
    struct taste t    = {
           .n_keys    = many ? N_KEYS : 1 + t_rng_below(r, N_KEYS_FEW),
           .n_holders = many ? N_HOLDERS_MANY : 2 + t_rng_below(r, N_HOLDERS_FEW - 1),
           .n_tenants = t_rng_one_in(r, 4) ? 2 : 1,
           .mode_mix  = t_rng_below(r, 3),
           .wait_mix  = t_rng_below(r, 11),
           .batch_mix = t_rng_one_in(r, 2) ? 0 : 1 + t_rng_below(r, 8),
           .settles   = t_rng_one_in(r, 3),
           .rate_ms   = PICK(r, rates),
           .deep      = t_rng_one_in(r, 5),
    };

    if (t.deep) {
        t.n_keys    = 1 + t_rng_below(r, 3);
        t.n_holders = 12 + t_rng_below(r, N_HOLDERS - 11);
        t.n_tenants = 1;
        t.wait_mix  = 6 + t_rng_below(r, 5);
    }
    uint64_t only = t_env_u64("IL_TEST_FAMILIES", UINT64_MAX);
    unsigned main = t_rng_below(r, N_FAMILIES); /* one for certain, others perhaps */
    for (unsigned i = 0; i < N_FAMILIES; i++) {
        unsigned weight = t_rng_one_in(r, 2) ? 1 : 1 + t_rng_below(r, 10);
        t.weights[i]    = (only >> i & 1) == 0 ? 0 : i == main ? 15 : weight;
    }
    return t;
}

typedef void family_fn(struct t_rng *r, const struct taste *t, size_t i_step, struct step *st);

static family_fn *
choose_family(struct t_rng *r, const struct taste *t)
{
    static family_fn *const families[N_FAMILIES] = {
        [IL__FAMILY_LOCK] = history_lock,   [IL__FAMILY_RUN] = history_run,
        [IL__FAMILY_ONCE] = history_once,   [IL__FAMILY_QUEUE] = history_job,
        [IL__FAMILY_CACHE] = history_cache,
    };
    unsigned sum = 0;

    for (unsigned i = 0; i < N_FAMILIES; i++)
        sum += t->weights[i];
    unsigned dice = t_rng_below(r, sum);
    unsigned i    = 0;
    while (dice >= t->weights[i])
        dice -= t->weights[i++];
    return families[i];
}

/* How far time passes, and the wall clock is set. */
static void
make_time(struct t_rng *r, const struct taste *t, struct step *st)
{
    static const int64_t passes[] = { 1,    10,   500,  999,   1000,  1000,  1001,  1999, 2000,
                                      2001, 3000, 5000, 14999, 15000, 30000, 59999, 60000 };
    static const int64_t near[]   = { 0, 0, 0, -1, 1 };

    if (t->deep && !t_rng_one_in(r, 12)) {
        st->kind = STEP_PASS;
        st->ms   = 1 + t_rng_below(r, 400);
    } else if (t_rng_one_in(r, 3)) {
        st->kind    = STEP_UNTIL;
        st->i_known = t_rng_below(r, t_rng_one_in(r, 3) ? 60 : 8);
        st->ms      = PICK(r, near);
    } else {
        st->kind = STEP_PASS;
        st->ms   = t_rng_one_in(r, 6) ? PICK(r, passes) : 1 + t_rng_below(r, 1500);
    }
}

static void
make_step(struct t_rng *r, const struct taste *t, size_t i_step, struct step *st)
{
    static const int64_t walls[] = { -86400000, 86400000, 3600000, -3600000,
                                     -1,        1000,     65000,   -400 * INT64_C(86400000) };
    unsigned             dice    = t_rng_below(r, 100);

    *st = (struct step){
        .op.key    = t_keys[t_rng_below(r, t->n_keys)],
        .op.holder = t_holders[t_rng_below(r, t->n_holders)],
        .op.tenant = t_tenants[t_rng_below(r, t->n_tenants)],
        .i_handle  = t_rng_below(r, 8),
        .i_known   = t_rng_one_in(r, 5) ? t_rng_below(r, 40) : t_rng_below(r, 6),
        .own_names = !t_rng_one_in(r, 8),
        .looks     = t_rng_one_in(r, 6),
    };
    if (dice < 80) {
        st->kind  = dice < 76 ? STEP_OP : STEP_LIST;
        st->joins = t_rng_below(r, 10) < t->batch_mix;
        choose_family(r, t)(r, t, i_step, st);
    } else if (dice < 93) {
        make_time(r, t, st);
    } else if (dice < 97) {
        st->kind   = STEP_SWEEP;
        st->limit  = t_rng_one_in(r, 2) ? 0 : 1 + t_rng_below(r, 4);
        st->partly = t_rng_one_in(r, 3);
    } else if (dice < 98) {
        st->kind = STEP_WALL;
        st->ms   = PICK(r, walls);
    } else {
        st->kind = t_rng_one_in(r, 3) ? STEP_REBOOT : STEP_REOPEN;
        st->ms   = t_rng_one_in(r, 2) ? 0 : (int64_t)t_rng_below(r, 100000000);
    }
}

void
history_make(uint64_t seed, struct step *steps, size_t n)
{
    struct t_rng r;

    t_rng_init(&r, seed);
    struct taste t = taste_of(&r);
    for (size_t i = 0; i < n; i++)
        make_step(&r, &t, i, &steps[i]);
}

bool
history_ranked(uint64_t seed)
{
    return seed % 4 == 3;
}

void
step_print(FILE *out, size_t i, const struct step *st)
{
    static const char *const kinds[STEP_KIND_COUNT] = { "op",    "sweep", "list",   "pass",
                                                        "until", "wall",  "reopen", "reboot" };

    (void)fprintf(out, "%4zu %s", i, kinds[st->kind]);
    if (st->kind == STEP_OP || st->kind == STEP_LIST) {
        (void)fprintf(out, " %s", st->joins ? "+" : "");
        step_print_in(out, &st->op);
        if (st->takes_fence)
            (void)fprintf(out, " fence=-%u%s", st->i_known,
                          st->own_names ? " (its own names)" : "");
        (void)fprintf(out, " handle=%u%s", st->i_handle, st->looks ? " looks" : "");
    } else if (st->kind == STEP_UNTIL) {
        (void)fprintf(out, " date -%u%+" PRId64 " ms", st->i_known, st->ms);
    } else {
        (void)fprintf(out, " ms=%" PRId64 " limit=%u%s", st->ms, st->limit,
                      st->partly ? " partly" : "");
    }
    (void)fputc('\n', out);
}
