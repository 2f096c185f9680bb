/*
 * load.c: callers as threads. They start together and stop by the clock; the round lasts until the
 * last one has finished its step.
 */
#include "load.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "bench.h"

/* ---- names ----------------------------------------------------------------------------------- */

/* Increment a decimal number in place; `last` is its last digit. */
static inline void
count_up(char *last)
{
    while (*last == '9')
        *last-- = '0';
    (*last)++;
}

#define KEY_TEXT "bench:%03u-%04u"
#define KEY_LAST 13 /* the key's last digit */
#define HOLDER_TEXT "holder-%03u-%012u"
#define HOLDER_LAST 22

void
names_init(struct names *n, unsigned i_caller, unsigned n_keys)
{
    CHECK(i_caller < 1000 && n_keys > 0 && n_keys <= 10000);
    *n = (struct names){ .n_keys = n_keys };
    (void)snprintf(n->key, sizeof n->key, KEY_TEXT, i_caller, 0U);
    (void)snprintf(n->holder, sizeof n->holder, HOLDER_TEXT, i_caller, 0U);
    CHECK(strlen(n->key) == KEY_LAST + 1 && strlen(n->holder) == HOLDER_LAST + 1);
}

void
names_next(struct names *n)
{
    count_up(n->holder + HOLDER_LAST);
    if (++n->i_key < n->n_keys) {
        count_up(n->key + KEY_LAST);
    } else {
        n->i_key = 0;
        memset(n->key + KEY_LAST - 3, '0', 4);
    }
}

/* ---- callers --------------------------------------------------------------------------------- */

void
load_init(struct load *l)
{
    CHECK(l->n_threads > 0 && l->sample_every > 0 && l->round_ns > 0);
    l->callers = must_calloc(l->n_threads, sizeof *l->callers);
    for (unsigned i = 0; i < l->n_threads; i++) {
        l->callers[i].load = l;
        names_init(&l->callers[i].names, l->i_first + i, l->n_keys);
    }
}

void
load_release(struct load *l)
{
    for (unsigned i = 0; l->callers != NULL && i < l->n_threads; i++)
        samples_release(&l->callers[i].latency);
    free(l->callers);
    l->callers = NULL;
}

/* Otherwise the scheduler may run them alternately on one CPU, without contention. */
static void
pin(unsigned i)
{
    cpu_set_t allowed;
    cpu_set_t own;
    size_t    cpu = 0;

    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) == 0)
        return;
    i %= (unsigned)CPU_COUNT(&allowed);
    for (; i > 0 || !CPU_ISSET(cpu, &allowed); cpu++)
        i -= CPU_ISSET(cpu, &allowed) != 0;
    CPU_ZERO(&own);
    CPU_SET(cpu, &own);
    if (sched_setaffinity(0, sizeof own, &own) != 0)
        die("cannot use CPU %zu", cpu);
}

static void *
caller_main(void *cookie)
{
    struct caller *c = cookie;
    struct load   *l = c->load;

    if (l->one_per_cpu)
        pin((unsigned)(c - l->callers));
    while (!atomic_load(&l->go))
        IGNORE(sched_yield()); /* never fails on Linux */
    int64_t now_ns = il__clock_boot_ns();
    int64_t end_ns = now_ns + l->round_ns;
    c->n_pairs     = 0;
    while (now_ns < end_ns) {
        for (unsigned i = 1; i < l->sample_every; i++)
            c->n_pairs += l->step(l->cookie, c);
        int64_t before_ns = il__clock_boot_ns();
        c->n_pairs += l->step(l->cookie, c);
        now_ns = il__clock_boot_ns();
        samples_add(&c->latency, now_ns - before_ns);
    }
    c->end_ns = now_ns;
    return NULL;
}

double
load_round(struct load *l)
{
    pthread_t *threads = must_calloc(l->n_threads, sizeof *threads);
    uint64_t   n_pairs = 0;
    int64_t    last_ns = 0;

    atomic_store(&l->go, false);
    for (unsigned i = 0; i < l->n_threads; i++) {
        if (pthread_create(&threads[i], NULL, caller_main, &l->callers[i]) != 0)
            die("cannot start thread %u of %u", i + 1, l->n_threads);
    }
    int64_t start_ns = il__clock_boot_ns();
    atomic_store(&l->go, true);
    for (unsigned i = 0; i < l->n_threads; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        n_pairs += l->callers[i].n_pairs;
        last_ns = MAX(last_ns, l->callers[i].end_ns);
    }
    free(threads);
    return (double)n_pairs * (double)BENCH_NS_PER_S / (double)(last_ns - start_ns);
}

struct quantiles
load_latency(struct load *l)
{
    struct samples all = { 0 };

    for (unsigned i = 0; i < l->n_threads; i++)
        samples_add_all(&all, &l->callers[i].latency);
    struct quantiles q = samples_quantiles(&all);
    samples_release(&all);
    return q;
}

void
load_forget_latency(struct load *l)
{
    for (unsigned i = 0; i < l->n_threads; i++)
        samples_release(&l->callers[i].latency);
}

double
load_side(void *cookie)
{
    return load_round(cookie);
}

unsigned
load_il_pair(void *cookie, struct caller *c)
{
    il     **h  = cookie;
    il_op    op = { .type = IL_OP_ACQUIRE, .key = c->names.key, .holder = c->names.holder };
    uint64_t fence;

    store_apply(*h, &op, 1, &fence, &c->err);
    op.type  = IL_OP_RELEASE;
    op.fence = fence;
    store_apply(*h, &op, 1, NULL, &c->err);
    names_next(&c->names);
    return 1;
}

void
compare(struct result *r, unsigned n_rounds, struct side ours, struct side baseline)
{
    CHECK(n_rounds > 0 && n_rounds <= REPORT_ROUNDS_MAX);
    (void)ours.round(ours.cookie); /* warms caches; files and tables reach their size */
    (void)baseline.round(baseline.cookie);
    for (unsigned i = 0; i < n_rounds; i++) {
        r->ours[i]     = ours.round(ours.cookie);
        r->baseline[i] = baseline.round(baseline.cookie);
    }
    r->n_rounds = n_rounds;
}
