/*
 * page.c: pages of LiveRC. Any page is read or refused with a code and a reason, by every parser;
 * what is read keeps the promises of liverc.h.
 */
#include "apps/ingest/liverc.h"
#include "base/parse.h"
#include "fuzz/fuzz.h"

/* A normalised text. */
static void
use(const char *text)
{
    size_t n = strlen(text);

    CHECK(n <= LIVERC_TEXT_BYTES_MAX && il__utf8_valid(text, n) && !il__utf8_has_control(text, n));
    CHECK(n == 0 || (text[0] != ' ' && text[n - 1] != ' '));
}

static void
use_race(const struct liverc_race *race)
{
    CHECK(race->n_results <= LIVERC_RESULTS_MAX);
    for (size_t i = 0; i < race->n_results; i++) {
        const struct liverc_result *r          = &race->results[i];
        int64_t                     elapsed_ms = 0;
        use(r->name);
        use(r->upper_name);
        use(r->car_number);
        CHECK(r->name[0] != '\0' && r->driver_id[0] != '\0' && r->position >= 1);
        CHECK(r->n_laps_completed >= 0 && r->n_laps <= (size_t)r->n_laps_completed);
        CHECK(r->total_ms == LIVERC_NONE || (r->total_ms > 0 && r->n_laps_completed > 0));
        CHECK(r->consistency_milli >= LIVERC_NONE && r->consistency_milli <= 100000);
        for (size_t k = 0; k < r->n_laps; k++) {
            const struct liverc_lap *lap = &r->laps[k];
            elapsed_ms += lap->time_ms;
            use(lap->time_raw);
            use(lap->pace);
            CHECK(lap->number == (int32_t)k + 1 && lap->time_ms > 0);
            CHECK(lap->elapsed_ms == elapsed_ms);
        }
    }
}

static void
use_event(const struct liverc_event *e)
{
    use(e->name);
    CHECK(e->name[0] != '\0' && e->id[0] != '\0' && strcmp(e->first_day, e->last_day) <= 0);
    for (size_t i = 0; i < e->n_races; i++) {
        use(e->races[i].class_name);
        use(e->races[i].label);
        CHECK(e->races[i].id[0] != '\0' && e->races[i].session < LIVERC_SESSION_COUNT);
    }
}

static void
use_entries(const struct liverc_entry_list *l)
{
    CHECK(l->n_entries > 0 && l->n_classes > 0);
    for (size_t i = 0; i < l->n_entries; i++) {
        use(l->entries[i].name);
        use(l->entries[i].class_name);
        CHECK(l->entries[i].name[0] != '\0' && l->entries[i].class_name[0] != '\0');
    }
}

static void
check(il_status st, struct liverc_page *p, const il_error *err)
{
    CHECK(st == IL_OK || (st == IL_INVAL && p->code != LIVERC_OK && err->message[0] != '\0'));
    for (size_t i = 0; i < MIN(p->n_warnings, LIVERC_WARNINGS_MAX); i++)
        CHECK(p->warnings[i][0] != '\0');
    il__liverc_page_release(p);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    char                            *text    = fuzz_text(data, n_bytes);
    struct liverc_source             s       = { .body = text, .n_bytes = n_bytes, .slug = "x" };
    struct liverc_page               p       = { 0 };
    const struct liverc_event       *event   = NULL;
    const struct liverc_entry_list  *entries = NULL;
    const struct liverc_race        *race    = NULL;
    const struct liverc_event_links *events  = NULL;
    const struct liverc_tracks      *tracks  = NULL;
    enum liverc_kind                 kind;
    il_error                         err = { 0 };

    CHECK(il__liverc_load(&err) == IL_OK);
    il_status st = il__liverc_event(&p, &s, &event, &err);
    if (st == IL_OK)
        use_event(event);
    check(st, &p, &err);
    st = il__liverc_entries(&p, &s, &entries, &err);
    if (st == IL_OK)
        use_entries(entries);
    check(st, &p, &err);
    st = il__liverc_race(&p, &s, &race, &err);
    if (st == IL_OK)
        use_race(race);
    check(st, &p, &err);
    check(il__liverc_events(&p, &s, &events, &err), &p, &err);
    check(il__liverc_tracks(&p, &s, &tracks, &err), &p, &err);
    st = il__liverc_detect(&s, &kind, &err);
    CHECK(st == IL_OK || st == IL_INVAL);
    free(text);
    return 0;
}
