/*
 * race.c: the laps of a race and the results that follow from them; see model.h.
 *
 * A race has a length in time: each driver starts laps until it is over. Whole milliseconds
 * throughout, so that the results are the same on every machine.
 */
#include "apps/ingest/site/model.h"

#define FASTEST_MS 36000 /* no lap is faster */
#define PACE_MS 5000     /* what the best driver is faster than the worst */
#define LAP_MS 2000      /* what laps of a driver differ by */
#define CRASH_MS 6000
#define CRASH_ONE_IN 29
#define STOP_ONE_IN 12 /* drivers that retire */

/* Laps of a race with long laps take 11/5 as long. */
static uint32_t
scaled(const struct site_race *r, uint32_t ms)
{
    return site_has(r->styles, SITE_STYLE_LONG_LAPS) ? ms * 11 / 5 : ms;
}

/* How many drivers of the grid, counted from its end, do not start. */
static unsigned
n_absent(const struct site_race *r)
{
    if (site_has(r->styles, SITE_STYLE_NOT_RUN) && r->revision == 0)
        return r->n_entries;
    if (!site_has(r->styles, SITE_STYLE_ABSENT) || r->n_entries < 3)
        return 0;
    return r->n_entries >= 6 ? 2 : 1;
}

/* ---- laps ------------------------------------------------------------------------------------ */

/* The results of one driver of a race differ between its revisions. */
static bool
is_changed(const struct site_race *r, unsigned grid, unsigned n_starters)
{
    return r->revision > 0 && grid == r->revision % n_starters;
}

static void
drive(const struct site_options *o, const struct site_event *e, const struct site_race *r,
      unsigned length_s, bool changed, struct site_result *row)
{
    struct site_entry entry;
    uint64_t          stop  = il__site_draw(o, SITE_DRAW_STOP, r->id, row->grid);
    unsigned          laps  = e->n_laps;
    uint64_t          which = (uint64_t)row->grid << 32 | (changed ? r->revision : 0);

    il__site_entry(o, e, row->entry, &entry);
    uint32_t pace =
        FASTEST_MS + (uint32_t)(il__site_draw(o, SITE_DRAW_PACE, 0, entry.driver) % PACE_MS);
    if (row->grid > 0 && stop % STOP_ONE_IN == 0 && laps >= 8)
        laps = laps / 4 + (unsigned)(stop / STOP_ONE_IN % (laps / 2));
    while (row->n_laps < laps && (row->n_laps == 0 || row->total_ms < length_s * 1000)) {
        uint64_t draw = il__site_draw(o, SITE_DRAW_LAP, r->id, which << 8 | row->n_laps);
        uint32_t ms =
            pace + (uint32_t)(draw % LAP_MS) + (draw / LAP_MS % CRASH_ONE_IN == 0 ? CRASH_MS : 0);
        row->lap_ms[row->n_laps] = scaled(r, ms);
        row->total_ms += row->lap_ms[row->n_laps++];
    }
    /* A lap can disappear, too. */
    if (changed && r->revision % 2 == 0 && row->n_laps > 1)
        row->total_ms -= row->lap_ms[--row->n_laps];
}

/* Positions at the end of each lap: how many have completed as many laps before. */
static void
set_lap_positions(struct site_results *results)
{
    uint32_t at_ms[SITE_GROUP_MAX] = { 0 };

    for (unsigned lap = 0; lap < SITE_LAPS_MAX; lap++) {
        for (unsigned i = 0; i < results->n; i++)
            at_ms[i] += results->rows[i].n_laps > lap ? results->rows[i].lap_ms[lap] : 0;
        for (unsigned i = 0; i < results->n; i++) {
            struct site_result *row = &results->rows[i];
            if (row->n_laps <= lap)
                continue;
            row->lap_position[lap] = 1;
            for (unsigned j = 0; j < results->n; j++)
                row->lap_position[lap] += results->rows[j].n_laps > lap &&
                                          (at_ms[j] < at_ms[i] || (j < i && at_ms[j] == at_ms[i]));
        }
    }
}

/* ---- statistics ------------------------------------------------------------------------------ */

static uint32_t
rounded(uint64_t sum, uint64_t n)
{
    return (uint32_t)((sum + n / 2) / n);
}

static int
compare_ms(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* The average of the `n` fastest laps; 0: fewer than that. */
static uint32_t
average_of_best(const uint32_t *sorted, unsigned n_laps, unsigned n)
{
    uint64_t sum = 0;

    if (n_laps < n)
        return 0;
    for (unsigned i = 0; i < n; i++)
        sum += sorted[i];
    return rounded(sum, n);
}

static uint32_t
best_three(const struct site_result *row)
{
    uint32_t best = 0;

    for (unsigned i = 2; i < row->n_laps; i++) {
        uint32_t sum = row->lap_ms[i - 2] + row->lap_ms[i - 1] + row->lap_ms[i];
        if (best == 0 || sum < best)
            best = sum;
    }
    return best;
}

/* The integer square root, rounded down. */
static uint64_t
root(uint64_t square)
{
    uint64_t low = 0, high = UINT64_C(1) << 32;

    while (low + 1 < high) {
        uint64_t middle = (low + high) / 2;
        if (middle * middle <= square)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void
set_deviation(struct site_result *row)
{
    uint64_t squares = 0;

    for (unsigned i = 0; i < row->n_laps; i++) {
        int64_t off = (int64_t)row->lap_ms[i] - row->average_ms;
        squares += (uint64_t)(off * off);
    }
    uint64_t deviation_ms = root(squares / row->n_laps);
    row->deviation_cs     = rounded(deviation_ms, 10);
    row->consistency      = 10000 - rounded(deviation_ms * 10000, row->average_ms);
}

static void
set_statistics(struct site_result *row)
{
    uint32_t sorted[SITE_LAPS_MAX];

    if (row->n_laps == 0)
        return;
    memcpy(sorted, row->lap_ms, row->n_laps * sizeof sorted[0]);
    qsort(sorted, row->n_laps, sizeof sorted[0], compare_ms);
    row->fast_ms  = sorted[0];
    row->fast_lap = 1;
    while (row->lap_ms[row->fast_lap - 1] != row->fast_ms)
        row->fast_lap++;
    row->average_ms = rounded(row->total_ms, row->n_laps);
    row->top5_ms    = average_of_best(sorted, row->n_laps, 5);
    row->top10_ms   = average_of_best(sorted, row->n_laps, 10);
    row->top15_ms   = average_of_best(sorted, row->n_laps, 15);
    row->top3_ms    = best_three(row);
    set_deviation(row);
}

/* ---- results --------------------------------------------------------------------------------- */

/* By laps, then by time, then by grid. */
static int
compare_results(const void *a, const void *b)
{
    const struct site_result *x = a, *y = b;

    if (x->n_laps != y->n_laps)
        return x->n_laps > y->n_laps ? -1 : 1;
    if (x->total_ms != y->total_ms)
        return x->total_ms < y->total_ms ? -1 : 1;
    return x->grid < y->grid ? -1 : 1;
}

/* Do the last two of the grid have the same name? Then a name in the lap script could mean either,
 * so the script does not list them when they have no link. */
static bool
namesakes_end_the_grid(const struct site_options *o, const struct site_event *e,
                       const struct site_race *r)
{
    struct site_entry last, before;

    if (r->n_entries < 2)
        return false;
    il__site_entry(o, e, r->first_entry + r->n_entries - 1, &last);
    il__site_entry(o, e, r->first_entry + r->n_entries - 2, &before);
    return strcmp(last.first, before.first) == 0 && strcmp(last.last, before.last) == 0;
}

void
il__site_results(const struct site_options *o, const struct site_event *e,
                 const struct site_race *r, struct site_results *ret)
{
    uint64_t draw       = il__site_draw(o, SITE_DRAW_LENGTH, r->id, 0);
    unsigned laps       = e->n_laps - (unsigned)(draw % (e->n_laps / 10 + 1));
    unsigned n_starters = r->n_entries - n_absent(r);
    bool     listed = !site_has(r->styles, SITE_STYLE_UNLISTED) && !namesakes_end_the_grid(o, e, r);

    CHECK(r->n_entries <= SITE_GROUP_MAX);
    *ret = (struct site_results){ .length_s = scaled(r, (laps - 1) * FASTEST_MS) / 1000,
                                  .n        = r->n_entries };
    for (unsigned i = 0; i < ret->n; i++) {
        struct site_result *row = &ret->rows[i];
        row->entry              = r->first_entry + i;
        row->grid               = i;
        row->listed             = i < n_starters || (n_starters > 0 && listed);
        if (i < n_starters)
            drive(o, e, r, ret->length_s, is_changed(r, i, n_starters), row);
        set_statistics(row);
    }
    set_lap_positions(ret);
    qsort(ret->rows, ret->n, sizeof ret->rows[0], compare_results);
}
