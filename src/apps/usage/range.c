/* range.c: the days of a range, added up. See usage.h. */
#include <stdio.h>

#include "apps/usage/usage.h"
#include "base/clock.h"
#include "base/error.h"

const char *const usage_state_names[] = { "fresh", "stale", "pending", "missing", NULL };

#define PARTS_MAX 1000000 /* of a range, before equal names are added up */

void
usage_range_release(struct usage_range *r)
{
    il__arena_free(&r->mem);
}

/* ---- reading --------------------------------------------------------------------------------- */

struct loading {
    struct usage                *u;
    const struct usage_range_in *in;
    struct usage_range          *r;
    size_t                       capacity; /* of r->parts */
    int64_t                      now_ms;
    usage_date                   dates[USAGE_DAYS_MAX]; /* to build */
    size_t                       n_dates;
    bool                         built[USAGE_DAYS_MAX]; /* by the index of the day: just now */
    bool                         failed[USAGE_DAYS_MAX];
    il_status                    status;
};

static bool
add_parts(struct loading *l, const struct usage_parts *more)
{
    struct usage_parts *to = &l->r->parts;

    if (to->n + more->n > PARTS_MAX)
        return false;
    if (to->n + more->n > l->capacity) {
        size_t             n     = MAX(2 * l->capacity, to->n + more->n);
        struct usage_part *items = il__arena_alloc(&l->r->mem, n * sizeof *items);
        if (items == NULL)
            return false;
        if (to->n > 0)
            memcpy(items, to->items, to->n * sizeof *items);
        to->items   = items;
        l->capacity = n;
    }
    if (more->n > 0)
        memcpy(to->items + to->n, more->items, more->n * sizeof *to->items);
    to->n += more->n;
    return true;
}

static void
take_row(void *cookie, const struct usage_row *row)
{
    struct loading         *l   = cookie;
    size_t                  i   = (size_t)(row->date - l->r->from);
    struct usage_range_day *day = &l->r->days[i];

    day->complete   = row->complete;
    day->updated_ms = row->updated_ms;
    day->metrics    = row->figures.total;
    day->state = l->built[i] || usage_is_fresh(usage_life_of(l->u), row->complete, row->updated_ms,
                                               l->now_ms)
                     ? USAGE_FRESH
                     : USAGE_STALE;
    if (!usage_metrics_add(&l->r->total, &row->figures.total) ||
        (l->in->by != USAGE_BY_NONE && !add_parts(l, &row->figures.by[l->in->by])))
        l->status = IL_LIMIT;
}

/* Read all rows, in one statement: old ones or new ones, never half. */
static il_status
read_rows(struct loading *l, il_error *reterr)
{
    struct usage_range *r = l->r;

    il__arena_free(&r->mem);
    r->parts    = (struct usage_parts){ 0 };
    r->total    = (struct usage_metrics){ 0 };
    l->capacity = 0;
    l->now_ms   = usage_now_ms(l->u);
    for (size_t i = 0; i < r->n; i++)
        r->days[i] =
            (struct usage_range_day){ .date = r->from + (usage_date)i, .state = USAGE_MISSING };
    il_status st = usage_row_range(usage_tables_of(l->u), l->in->tenant, r->from, r->to, l->in->by,
                                   &r->mem, take_row, l, reterr);
    if (st == IL_OK && (l->status != IL_OK || !usage_parts_fold(&r->parts)))
        st = il__error_set(reterr, IL_LIMIT, "the range, or one of its sums, is too large");
    return st;
}

/* ---- building -------------------------------------------------------------------------------- */

static void
take_result(void *cookie, size_t k, const struct usage_result *result, size_t n_done)
{
    struct loading *l = cookie;
    size_t          i = (size_t)(l->dates[k] - l->r->from);

    l->built[i]  = result->status == IL_OK;
    l->failed[i] = result->status != IL_OK && result->status != IL_TIMEOUT;
    if (result->status != IL_OK && l->r->error[0] == '\0')
        (void)snprintf(l->r->error, sizeof l->r->error, "%s", result->text);
    if (l->in->progress != NULL)
        l->in->progress(l->in->cookie, n_done, l->n_dates);
}

static bool
should_stop(void *cookie)
{
    const struct loading *l = cookie;

    return l->in->should_stop != NULL && l->in->should_stop(l->in->cookie);
}

il_status
usage_range_load(struct usage *u, const struct usage_range_in *in, struct usage_range *ret,
                 il_error *reterr)
{
    struct loading l = { .u = u, .in = in, .r = ret };

    *ret = (struct usage_range){ .from = in->from, .to = in->to };
    CHECK(in->to >= in->from && in->to - in->from < USAGE_DAYS_MAX);
    ret->n       = (size_t)(in->to - in->from) + 1;
    il_status st = read_rows(&l, reterr);
    if (st != IL_OK || !in->build)
        return st;
    for (size_t i = 0; i < ret->n; i++) {
        const struct usage_range_day *day = &ret->days[i];
        if (day->state == USAGE_FRESH) {
            usage_count(u, USAGE_COUNT_hits);
            if (usage_is_ageing(usage_life_of(u), day->complete, day->updated_ms, l.now_ms))
                IGNORE(usage_join(u, in->tenant, day->date, USAGE_REFRESH, NULL, NULL));
        } else {
            l.dates[l.n_dates++] = day->date;
        }
    }
    if (l.n_dates == 0)
        return IL_OK;
    (void)usage_join_many(u, &(struct usage_many){ .tenant      = in->tenant,
                                                   .dates       = l.dates,
                                                   .n           = l.n_dates,
                                                   .way         = USAGE_TAKE,
                                                   .until_ns    = in->until_ns,
                                                   .should_stop = should_stop,
                                                   .each        = take_result,
                                                   .cookie      = &l });
    st = read_rows(&l, reterr);
    for (size_t i = 0; i < ret->n; i++) {
        if (ret->days[i].state == USAGE_MISSING && !l.failed[i])
            ret->days[i].state = USAGE_PENDING;
    }
    return st;
}
