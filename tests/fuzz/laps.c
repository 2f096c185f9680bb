/*
 * laps.c: lap scripts. Any text gives a bounded list of racers whose texts can be used.
 */
#include "apps/ingest/parse_lap_script.h"

#include "apps/ingest/liverc.h"
#include "base/arena.h"
#include "fuzz/fuzz.h"

/* A text of at most LIVERC_TEXT_BYTES_MAX bytes. */
static void
use(const char *text)
{
    CHECK(text != NULL && strlen(text) <= LIVERC_TEXT_BYTES_MAX);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    char         *text   = fuzz_text(data, n_bytes);
    void         *mem    = NULL;
    struct racers racers = { 0 };

    CHECK(il__racers_read(&mem, text, n_bytes, &racers));
    CHECK(racers.n <= LIVERC_RESULTS_MAX);
    for (size_t i = 0; i < racers.n; i++) {
        const struct racer *r = &racers.items[i];
        use(r->id);
        use(r->name);
        CHECK(r->n_laps <= LIVERC_LAPS_MAX + 1);
        for (size_t k = 0; k < r->n_laps; k++) {
            const struct racer_lap *lap = &r->laps[k];
            use(lap->number);
            use(lap->position);
            use(lap->time);
            use(lap->pace);
            CHECK(lap->n_segments <= LIVERC_SEGMENTS_MAX);
            for (size_t m = 0; m < lap->n_segments; m++)
                use(lap->segments[m]);
        }
    }
    CHECK(il__arena_bytes(mem) <= 4096 + 64 * (n_bytes + 64) * sizeof(struct racer_lap));
    il__arena_free(&mem);
    free(text);
    return 0;
}
