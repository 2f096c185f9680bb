/*
 * parse_race_laps.c: the laps of a race page, checked, and the ids of its drivers. Bad laps never
 * cost a driver the result: they are left out with a warning.
 */
#include <inttypes.h>
#include <stdio.h>

#include "apps/ingest/parse_lap_script.h"
#include "apps/ingest/parse_race_laps.h"

/* ---- driver ids ------------------------------------------------------------------------------ */

static bool
is_claimed(const struct liverc_race *race, const char *id)
{
    for (size_t i = 0; i < race->n_results; i++) {
        if (strcmp(race->results[i].driver_id, id) == 0)
            return true;
    }
    return false;
}

/* The one racer of this name that no other result has; NULL = none, or several. */
static const struct racer *
racer_named(const struct racers *racers, const char *const *upper_names,
            const struct liverc_race *race, const char *upper_name)
{
    const struct racer *found = NULL;

    for (size_t i = 0; i < racers->n; i++) {
        if (strcmp(upper_names[i], upper_name) != 0 || is_claimed(race, racers->items[i].id))
            continue;
        if (found != NULL)
            return NULL;
        found = &racers->items[i];
    }
    return found;
}

/* How many results without a link have this name? */
static size_t
count_namesakes(const struct liverc_race *race, const bool *linked, const char *upper_name)
{
    size_t n = 0;

    for (size_t i = 0; i < race->n_results; i++)
        n += !linked[i] && strcmp(race->results[i].upper_name, upper_name) == 0;
    return n;
}

static bool
has_namesake(const struct liverc_race *race, size_t of)
{
    for (size_t i = 0; i < race->n_results; i++) {
        if (i != of && strcmp(race->results[i].upper_name, race->results[of].upper_name) == 0)
            return true;
    }
    return false;
}

/* From the link; else from the script, if the name is not ambiguous there; else synthetic. */
static void
add_ids(struct reader *r, struct liverc_race *race, const struct racers *racers)
{
    const char **upper_names                = NULL;
    bool         linked[LIVERC_RESULTS_MAX] = { false };

    if (racers->n > 0)
        upper_names = il__reader_alloc(r, racers->n * sizeof *upper_names);
    for (size_t i = 0; upper_names != NULL && i < racers->n; i++)
        upper_names[i] = il__reader_upper(r, il__reader_clean(r, racers->items[i].name));
    for (size_t i = 0; i < race->n_results; i++)
        linked[i] = race->results[i].driver_id[0] != '\0';
    for (size_t i = 0; i < race->n_results; i++) {
        struct liverc_result *out = &race->results[i];
        if (linked[i])
            continue;
        const struct racer *racer = NULL;
        if (upper_names != NULL && count_namesakes(race, linked, out->upper_name) == 1)
            racer = racer_named(racers, upper_names, race, out->upper_name);
        if (racer != NULL)
            (void)snprintf(out->driver_id, sizeof out->driver_id, "%s", racer->id);
        else if (r->source->slug != NULL)
            il__liverc_synthetic_id(r->source->slug, out->upper_name,
                                    has_namesake(race, i) ? out->car_number : NULL, out->driver_id);
    }
}

static il_status
check_ids(struct reader *r, const struct liverc_race *race)
{
    for (size_t i = 0; i < race->n_results; i++) {
        const char *id = race->results[i].driver_id;
        for (size_t k = 0; k < i && id[0] != '\0'; k++) {
            if (strcmp(race->results[k].driver_id, id) == 0)
                return il__reader_fail(r, LIVERC_VALIDATION_ERROR,
                                       "rows %zu and %zu of the results have the same driver %s",
                                       k + 1, i + 1, id);
        }
    }
    return IL_OK;
}

/* ---- laps ------------------------------------------------------------------------------------ */

/* Check lap `i` of a driver and fill *out. Returns what is wrong, or NULL. */
static const char *
read_lap(struct reader *r, const struct racer_lap *lap, int64_t elapsed_ms, struct liverc_lap *out)
{
    if (!il__liverc_time_ms(lap->time, &out->time_ms))
        return "invalid time";
    if (out->time_ms <= 0)
        return "time is 0";
    out->position = LIVERC_NONE;
    if (lap->position[0] != '\0' &&
        (!il__liverc_count(lap->position, &out->position) || out->position < 1))
        return "position is not a positive number";
    out->elapsed_ms = elapsed_ms + out->time_ms;
    out->time_raw   = il__reader_clean(r, lap->time);
    out->pace       = il__reader_clean(r, lap->pace);
    out->segments   = lap->segments;
    out->n_segments = lap->n_segments;
    for (size_t i = 0; i < lap->n_segments; i++)
        out->segments[i] = il__reader_clean(r, lap->segments[i]);
    return NULL;
}

/* Lap 0 is skipped; the others must be 1, 2, 3 and so on. */
static const char *
read_laps(struct reader *r, const struct racer *racer, struct liverc_result *out,
          int32_t *ret_number)
{
    int64_t elapsed_ms = 0;

    for (size_t i = 0; i < racer->n_laps; i++) {
        struct liverc_lap *lap = &out->laps[out->n_laps];
        if (!il__liverc_count(racer->laps[i].number, &lap->number))
            return "a lap has no number";
        if (lap->number == 0 && i == 0)
            continue;
        *ret_number = lap->number;
        if (lap->number != (int32_t)out->n_laps + 1)
            return "lap numbers are not consecutive from 1";
        const char *why = read_lap(r, &racer->laps[i], elapsed_ms, lap);
        if (why != NULL)
            return why;
        elapsed_ms = lap->elapsed_ms;
        out->n_laps++;
    }
    if (out->n_laps > (size_t)out->n_laps_completed)
        return "more laps than the driver completed";
    return NULL;
}

static void
add_laps(struct reader *r, const struct racer *racer, struct liverc_result *out)
{
    int32_t     number = 0;
    const char *why    = racer->fault;

    if (why == NULL && racer->n_laps > 0) {
        out->laps = il__reader_alloc(r, racer->n_laps * sizeof *out->laps);
        if (out->laps == NULL)
            return;
        why = read_laps(r, racer, out, &number);
    }
    if (why == NULL)
        return;
    il__reader_warn(r, "ignoring the laps of driver %s (%.80s), at lap %d: %s", racer->id,
                    out->name, number, why);
    out->laps   = NULL;
    out->n_laps = 0;
}

static struct liverc_result *
result_of(struct liverc_race *race, const char *driver_id)
{
    for (size_t i = 0; i < race->n_results; i++) {
        if (strcmp(race->results[i].driver_id, driver_id) == 0)
            return &race->results[i];
    }
    return NULL;
}

il_status
il__race_add_laps(struct reader *r, struct liverc_race *race)
{
    struct racers racers = { 0 };

    for (size_t i = 0; i < r->html.n_scripts; i++) {
        const struct html_script *s = &r->html.scripts[i];
        r->no_memory |= !il__racers_read(&r->page->mem, s->text, s->n_bytes, &racers);
    }
    race->has_laps = racers.n > 0;
    add_ids(r, race, &racers);
    for (size_t i = 0; i < racers.n; i++) {
        struct liverc_result *out = result_of(race, racers.items[i].id);
        if (out != NULL)
            add_laps(r, &racers.items[i], out);
        else if (racers.items[i].n_laps > 0)
            il__reader_warn(r, "ignoring the laps of driver %s: no such driver in the results",
                            racers.items[i].id);
    }
    return check_ids(r, race);
}

/* ---- digest ---------------------------------------------------------------------------------- */

/* Texts are normalised, so they hold neither tabs nor newlines. */
static void
digest_result(struct il__buf *b, const struct liverc_result *s)
{
    il__buf_addf(b, "%d\t%s\t%s\t%s\t%d\t%d\t%s\t%s\t", s->position, s->car_number, s->name,
                 s->driver_id, s->qualified, s->n_laps_completed, s->total_raw, s->behind_raw);
    il__buf_addf(b, "%" PRId64 "\t%d\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t",
                 s->fastest_ms, s->fastest_lap, s->average_ms, s->average_top_5_ms,
                 s->average_top_10_ms, s->average_top_15_ms);
    il__buf_addf(b, "%" PRId64 "\t%" PRId64 "\t%d\n", s->top_3_consecutive_ms, s->deviation_ms,
                 s->consistency_milli);
    for (size_t i = 0; i < s->n_laps; i++) {
        const struct liverc_lap *lap = &s->laps[i];
        il__buf_addf(b, "\t%d\t%d\t%s\t%s", lap->number, lap->position, lap->time_raw, lap->pace);
        for (size_t k = 0; k < lap->n_segments; k++)
            il__buf_addf(b, "\t%s", lap->segments[k]);
        il__buf_addc(b, '\n');
    }
}

void
il__race_digest(struct reader *r, struct liverc_race *race)
{
    AUTO_BUF struct il__buf b = { 0 };

    il__buf_init(&b, 32 << 20);
    il__buf_addf(&b, "%d\t%s\t%s\t%s\n", race->number, race->label, race->round, race->length);
    for (size_t i = 0; i < race->n_results; i++)
        digest_result(&b, &race->results[i]);
    r->no_memory |= b.failed;
    il__liverc_digest(il__buf_str(&b), b.n_bytes, race->digest);
}
