/*
 * source.h: where the figures of a day come from: an HTTP endpoint, a SQL query, a command, or the
 * generator of the demo. Each gives a day as JSON (usage_figures_read()).
 */
#ifndef IL_APPS_USAGE_SOURCE_H
#define IL_APPS_USAGE_SOURCE_H

#include "apps/usage/day.h"
#include "base/connection.h"

struct proc_spawner;

enum usage_source_type {
    USAGE_SOURCE_none,
    USAGE_SOURCE_generator,
    USAGE_SOURCE_http,
    USAGE_SOURCE_sql,
    USAGE_SOURCE_command,
};

/* Copied. */
struct usage_source_opts {
    enum usage_source_type type;
    int64_t                timeout_ms;   /* of a day */
    const char            *url;          /* http: with {date}, and perhaps {tenant} */
    const char            *header;       /* http: "Name: value"; NULL = none */
    const char            *database;     /* sql: the URL of its connection */
    uint32_t               n_conns;      /* sql: at the same time; 0 = 8 */
    const char            *query;        /* sql: $1 is the date, $2 the tenant */
    const char            *command;      /* command: for /bin/sh; the date is its last argument */
    int64_t                cost_ms;      /* generator: how long a day takes */
    int64_t                fail_percent; /* generator: how many days fail */
};

struct usage_source;

/* Open it. IL_OK, IL_INVAL (the message begins with the key of the configuration), IL_STORE,
 * IL_NOMEM. */
il_status usage_source_open(const struct usage_source_opts *o, struct usage_source **ret,
                            il_error *reterr) MUST_USE;
/* From any thread: running and later fetches end soon. */
void usage_source_stop(struct usage_source *s);
/* No fetch may be running. NULL is fine. */
void usage_source_close(struct usage_source *s);

/* What to fetch. Borrowed for the call. */
struct usage_fetch {
    const char *tenant;
    const char *date;
    /* Should it stop? Asked several times a second, from this thread. */
    bool (*should_stop)(void *cookie);
    void *cookie;
};

/*
 * Fetch a day into `out`, which is empty. Blocks; several threads may do so at once. IL_OK;
 * IL_CANCELLED (should_stop, or usage_source_stop()); IL_TIMEOUT; anything else: it failed, and the
 * message says why.
 */
il_status usage_source_fetch(struct usage_source *s, const struct usage_fetch *f,
                             struct il__buf *out, il_error *reterr) MUST_USE;

#endif
