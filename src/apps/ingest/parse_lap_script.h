/*
 * parse_lap_script.h: the lap script of a race page, as texts. Internal; parse_race_laps.c checks
 * what they say.
 */
#ifndef IL_APPS_INGEST_PARSE_LAP_SCRIPT_H
#define IL_APPS_INGEST_PARSE_LAP_SCRIPT_H

#include "base/base.h"

/* Texts are "" where the script has none. */
struct racer_lap {
    const char  *number;
    const char  *position;
    const char  *time;
    const char  *pace;
    const char **segments;
    size_t       n_segments;
};

struct racer {
    const char       *id;
    const char       *name; /* not normalised */
    struct racer_lap *laps;
    size_t            n_laps;
    const char       *fault; /* what is wrong with its text; NULL = nothing */
};

struct racers {
    struct racer *items;
    size_t        n;
};

/*
 * Read the assignments to racerLaps[...] of a script, which need not be valid JavaScript, and add
 * them to `racers`; memory comes from the arena `mem`. The cost is linear in the size of the
 * script. False: out of memory.
 */
bool il__racers_read(void **mem, const char *script, size_t n_bytes, struct racers *racers)
    MUST_USE;

#endif
