/* usage.c: opens and closes the cache of daily usage, and counts. See usage.h. */
#include "apps/usage/usage_internal.h"
#include "base/clock.h"
#include "base/error.h"

il_status
usage_open(const struct usage_opts *o, struct usage **ret, il_error *reterr)
{
    struct usage *u = il__calloc(1, sizeof *u);

    if (u != NULL)
        u->threads = il__calloc(MAX(o->n_threads, 1), sizeof *u->threads);
    if (u == NULL || u->threads == NULL) {
        il__free(u);
        return il__error_set(reterr, IL_NOMEM, "out of memory for the usage cache");
    }
    u->o           = *o;
    u->o.n_threads = MAX(o->n_threads, 1);
    il__mutex_init(&u->mutex, IL__MUTEX_usage);
    il__mutex_init(&u->copies_mutex, IL__MUTEX_usage_copies);
    il__cond_init(&u->work);
    *ret = u;
    return IL_OK;
}

void
usage_stop(struct usage *u)
{
    il__mutex_lock(&u->mutex);
    atomic_store(&u->stopping, true);
    (void)pthread_cond_broadcast(&u->work); /* cannot fail on a valid object */
    il__mutex_unlock(&u->mutex);
    usage_source_stop(u->o.source);
}

void
usage_close(struct usage *u)
{
    if (u == NULL)
        return;
    usage_stop(u);
    usage_threads_end(u);
    usage_copies_release(u);
    (void)pthread_cond_destroy(&u->work);
    il__mutex_destroy(&u->mutex);
    il__mutex_destroy(&u->copies_mutex);
    il__free(u->threads);
    il__free(u);
}

int64_t
usage_now_ms(const struct usage *u)
{
    return u->o.now_ms != NULL ? u->o.now_ms(u->o.cookie) : il__clock_wall_ms();
}

il_guard *
usage_tables_of(const struct usage *u)
{
    return u->o.tables;
}

const struct usage_life *
usage_life_of(const struct usage *u)
{
    return &u->o.life;
}

void
usage_note(struct usage *u, enum usage_event event, const struct usage_flight *f, const char *text,
           int64_t took_ms)
{
    char date[IL__DATE_TEXT_BYTES];

    if (u->o.note != NULL)
        u->o.note(u->o.cookie, &(struct usage_note){ event, f->tenant, il__date_text(f->date, date),
                                                     text, took_ms });
}

/* ---- counters -------------------------------------------------------------------------------- */

void
usage_count(struct usage *u, enum usage_counter which)
{
    atomic_fetch_add_explicit(&u->counts[which], 1, memory_order_relaxed);
}

void
usage_counts(const struct usage *u, struct usage_counts *ret)
{
    *ret = (struct usage_counts){
#define X(member, name, type, help) .member = atomic_load(&u->counts[USAGE_COUNT_##member]),
#include "apps/usage/metrics.def"
#undef X
    };
}

int64_t
usage_rate(uint64_t part, uint64_t rest)
{
    uint64_t all = part + rest;

    return all == 0 ? 0 : (int64_t)((part * 10000 + all / 2) / all);
}
