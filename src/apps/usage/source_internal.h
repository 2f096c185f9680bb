/* source_internal.h: declarations shared by source.c and source_*.c. */
#ifndef IL_APPS_USAGE_SOURCE_INTERNAL_H
#define IL_APPS_USAGE_SOURCE_INTERNAL_H

#include <stdatomic.h>

#include "apps/usage/source.h"
#include "interlock-guard.h"

#define USAGE_STOP_MS 100 /* between two looks at should_stop */

struct usage_source {
    struct usage_source_opts o; /* with texts in mem */
    void                    *mem;
    atomic_bool              stopped;
    atomic_uint              n_fetches;
    struct proc_spawner     *spawner; /* command */
    il_guard                *guard;   /* sql */
};

typedef il_status usage_fetch_fn(struct usage_source *s, const struct usage_fetch *f,
                                 struct il__buf *out, il_error *reterr);
usage_fetch_fn    usage_fetch_http, usage_fetch_sql, usage_fetch_command;

/* Can a source of http send its requests? As usage_source_open(). */
il_status usage_http_check(const struct usage_source_opts *o, il_error *reterr) MUST_USE;

/* Does a statement use the parameter $1, or $2, as such and not in a text or a comment? */
bool usage_sql_uses(const char *sql, char digit);

/* Has the caller, or the owner of the source, given up? */
bool usage_fetch_stopped(const struct usage_source *s, const struct usage_fetch *f);

#endif
