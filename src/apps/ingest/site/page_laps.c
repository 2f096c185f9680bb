/*
 * page_laps.c: the script of a race page that holds the laps: racerLaps[ID] = { … }; for each
 * driver. See model.h.
 */
#include <stdio.h>

#include "apps/ingest/site/model.h"

#define DEPTH 7 /* the script is deep in the page */

struct script {
    struct il__buf *b;
    char            quote;
    bool            bare_keys, trailing, compact, chatter, clock;
};

static void
add_line(const struct script *s, unsigned depth)
{
    if (s->compact)
        return;
    il__buf_addc(s->b, '\n');
    for (unsigned i = 0; i < DEPTH + depth; i++)
        il__buf_addc(s->b, '\t');
}

static void
add_string(const struct script *s, const char *text)
{
    il__buf_addc(s->b, s->quote);
    for (; *text != '\0'; text++) {
        if (*text == s->quote || *text == '\\')
            il__buf_addc(s->b, '\\');
        il__buf_addc(s->b, *text);
    }
    il__buf_addc(s->b, s->quote);
}

static void
add_key(const struct script *s, unsigned depth, const char *key)
{
    add_line(s, depth);
    if (s->bare_keys)
        il__buf_adds(s->b, key);
    else
        add_string(s, key);
    il__buf_adds(s->b, s->compact ? ":" : " : ");
}

static void
add_member(const struct script *s, unsigned depth, const char *key, const char *value)
{
    add_key(s, depth, key);
    add_string(s, value);
    il__buf_addc(s->b, ',');
}

static void
add_number(const struct script *s, unsigned depth, const char *key, unsigned value)
{
    char text[16];

    (void)snprintf(text, sizeof text, "%u", value);
    add_member(s, depth, key, text);
}

/* A time, "" for none; without the zeros at its end. */
static void
add_time(const struct script *s, unsigned depth, const char *key, uint32_t ms)
{
    char text[32] = "";

    if (ms != 0 && s->clock && ms >= 60000)
        (void)snprintf(text, sizeof text, "%u:%02u.%03u", ms / 60000, ms / 1000 % 60, ms % 1000);
    else if (ms != 0)
        (void)snprintf(text, sizeof text, "%u.%03u", ms / 1000, ms % 1000);
    size_t n = strlen(text);
    while (n > 0 && (text[n - 1] == '0' || text[n - 1] == '.')) {
        bool point = text[n - 1] == '.';
        text[--n]  = '\0';
        if (point)
            break;
    }
    add_member(s, depth, key, text);
}

/* The result that the driver is heading for: "17/10:28.285". */
static void
add_pace(const struct script *s, unsigned depth, unsigned length_s, unsigned n_laps,
         uint64_t elapsed_ms)
{
    AUTO_BUF struct il__buf text;
    uint64_t                length_ms = (uint64_t)length_s * 1000;
    uint64_t                laps      = (length_ms * n_laps + elapsed_ms - 1) / elapsed_ms;

    il__buf_init(&text, 64);
    laps = MAX(laps, n_laps);
    il__buf_addf(&text, "%u/", (unsigned)laps);
    il__site_add_time(&text, (uint32_t)(elapsed_ms * laps / n_laps));
    add_member(s, depth, "pace", il__buf_str(&text));
    s->b->failed |= text.failed;
}

static void
add_lap(const struct script *s, unsigned number, unsigned position)
{
    add_line(s, 5);
    il__buf_addc(s->b, '{');
    add_number(s, 6, "lapNum", number);
    add_number(s, 6, "pos", position);
}

static void
end_lap(const struct script *s, bool last)
{
    add_key(s, 6, "segments");
    il__buf_addc(s->b, '[');
    add_line(s, 6);
    il__buf_adds(s->b, s->trailing ? "]," : "]");
    add_line(s, 5);
    il__buf_adds(s->b, last && !s->trailing ? "}" : "},");
}

static void
add_laps(const struct script *s, const struct site_results *results,
         const struct site_result *result)
{
    uint64_t elapsed_ms = 0;

    add_key(s, 2, "laps");
    il__buf_addc(s->b, '[');
    if (result->n_laps > 0) {
        add_lap(s, 0, result->grid + 1);
        add_member(s, 6, "time", "0");
        add_member(s, 6, "pace", "0");
        end_lap(s, false);
    }
    for (unsigned i = 0; i < result->n_laps; i++) {
        elapsed_ms += result->lap_ms[i];
        add_lap(s, i + 1, result->lap_position[i]);
        add_time(s, 6, "time", result->lap_ms[i]);
        add_pace(s, 6, results->length_s, i + 1, elapsed_ms);
        end_lap(s, i + 1 == result->n_laps);
    }
    add_line(s, 2);
    il__buf_adds(s->b, s->trailing ? "]," : "]");
}

/* "" for a driver without laps. */
static void
add_hundredths(const struct script *s, const char *key, bool any, unsigned value)
{
    char text[32] = "";

    if (any)
        (void)snprintf(text, sizeof text, "%u.%02u", value / 100, value % 100);
    add_member(s, 2, key, text);
}

static void
add_driver(const struct script *s, const struct site_entry *entry,
           const struct site_results *results, const struct site_result *result)
{
    char     name[SITE_TEXT_BYTES];
    unsigned id = il__site_driver_id(entry->driver);

    (void)snprintf(name, sizeof name, "%s %s", entry->first, entry->last);
    if (s->chatter) {
        add_line(s, 1);
        il__buf_adds(s->b, "positionDataDriver = {};positionDataDriver.data = [];");
        add_line(s, 1);
        il__buf_adds(s->b, "driverNames.push(");
        add_string(s, name);
        il__buf_adds(s->b, ");");
    }
    add_line(s, 1);
    il__buf_addf(s->b, s->compact ? "racerLaps[%u]={" : "racerLaps[%u] = {", id);
    add_member(s, 2, "driverName", name);
    add_time(s, 2, "fastLap", result->fast_ms);
    add_time(s, 2, "avgLap", result->average_ms);
    add_time(s, 2, "avgTop5", result->top5_ms);
    add_time(s, 2, "avgTop10", result->top10_ms);
    add_time(s, 2, "avgTop15", result->top15_ms);
    add_time(s, 2, "top3Consecutive", result->top3_ms);
    add_hundredths(s, "stdDeviation", result->n_laps > 0, result->deviation_cs);
    add_hundredths(s, "consistency", result->n_laps > 0, result->consistency);
    add_laps(s, results, result);
    add_line(s, 1);
    il__buf_adds(s->b, "};");
    if (!s->chatter)
        return;
    for (unsigned i = 0; i < result->n_laps; i++) {
        add_line(s, 2);
        il__buf_addf(s->b, "positionDataDriver.data.push([%u, %u]);", i + 1,
                     result->lap_position[i]);
    }
    add_line(s, 1);
    il__buf_addf(s->b, "positionData.push(positionDataDriver);console.log(racerLaps[%u]);", id);
}

void
il__site_add_laps(struct il__buf *b, const struct site_options *o, const struct site_event *e,
                  const struct site_race *r, const struct site_results *results)
{
    struct script s   = { .b         = b,
                          .quote     = site_has(r->styles, SITE_STYLE_DOUBLE_QUOTES) ? '"' : '\'',
                          .bare_keys = site_has(r->styles, SITE_STYLE_BARE_KEYS),
                          .trailing  = site_has(r->styles, SITE_STYLE_TRAILING_COMMAS),
                          .compact   = site_has(r->styles, SITE_STYLE_COMPACT),
                          .chatter   = !site_has(r->styles, SITE_STYLE_NO_CHATTER),
                          .clock     = site_has(r->styles, SITE_STYLE_LONG_LAPS) };
    bool          any = false;

    for (unsigned i = 0; i < results->n; i++)
        any |= results->rows[i].listed;
    if (!any)
        return; /* a race that was not run has no script */
    il__buf_adds(b, "<script type=\"text/javascript\">");
    add_line(&s, 0);
    il__buf_adds(b, "var racerLaps = {};");
    if (s.chatter)
        il__buf_adds(b, "var positionData = [];var driverNames = [];");
    for (unsigned i = 0; i < results->n; i++) {
        struct site_entry entry;
        il__site_entry(o, e, results->rows[i].entry, &entry);
        if (results->rows[i].listed)
            add_driver(&s, &entry, results, &results->rows[i]);
    }
    il__buf_adds(b, "\n</script>\n");
}
