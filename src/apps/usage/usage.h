/*
 * usage.h: the cache of daily usage: each day is fetched once from a slow source, by one process,
 * however many ask. Used by the server, by commands and by tests; it knows nothing of HTTP.
 *
 * A day is a row of daily_usage_cache, which is the truth. Beside it the store has a cached value
 * with the key usage_day:DATE, the *marker*. It elects the process that builds a missing day and
 * wakes the others, and its token identifies the version of the row: a process that has a copy of
 * the row (day_copies.c) asks for the marker, and reads the row only if the token is another one.
 *
 * Who writes a row holds the lease usage_day:DATE, writes in a transaction that shows its fence,
 * and renews the marker before it releases the lease. So rows and markers change in the same order,
 * and a row that is read after its marker is at least as new as that.
 *
 * Threads: callers join a *flight* (flight.c), of which this process has at most one per day; one
 * of a few threads makes it (build.c) and all who joined get its result. Nothing waits for a day
 * with a mutex held.
 *
 *   usage.c           opens and closes the cache, and counts
 *   setup.c           the same as the configuration says
 *   flight.c          requested days: all callers that want one day share one flight
 *   build.c           builds one day
 *   day_copies.c      a per-process cache of days in response form
 *   row.c             rows of daily_usage_cache
 *   date.c            days of UTC, and how long figures are good for
 *   figures.c         the figures of a day
 *   source.c          where the figures come from (source.h)
 *   source_http.c     an HTTP endpoint
 *   source_sql.c      a SQL query
 *   source_command.c  a command
 *   range.c           the days of a range, added up
 *   range_json.c      ranges as JSON
 *   csv.c             ranges as CSV
 *   app.c             the cache in the server (serve.h)
 *   routes.c          the route table, and the handlers for one day
 *   routes_range.c    ranges
 *   routes_rebuild.c  starts a rebuild
 *   routes_tables.c   the JSON tables of the inputs
 *   work_kind.c       rebuilds as a kind of work (apps/work)
 *   cmd_usage.c       `interlock usage`
 *   cmd_usage_show.c  prints days and ranges
 */
#ifndef IL_APPS_USAGE_USAGE_H
#define IL_APPS_USAGE_USAGE_H

#include <stdatomic.h>

#include "apps/usage/row.h"
#include "apps/usage/source.h"

#define USAGE_KEY "usage_day:" /* and the date: of the marker and of the lease */
#define USAGE_KEY_BYTES (sizeof USAGE_KEY + IL__DATE_TEXT_BYTES)
#define USAGE_DAYS_MAX 90      /* of a range */
#define USAGE_FLIGHTS_MAX 4096 /* of one process */

struct usage;

/* ---- opening: usage.c ------------------------------------------------------------------------ */

/* Where a build is; for tests, which stop it there. */
enum usage_phase {
    USAGE_PHASE_LEADS,   /* elected by the marker */
    USAGE_PHASE_LOCKED,  /* has the lease */
    USAGE_PHASE_FETCHED, /* has the figures */
    USAGE_PHASE_WRITTEN, /* the row is committed */
    USAGE_PHASE_FILLED   /* the marker is filled, the lease still held */
};

enum usage_event {
    USAGE_EVENT_built,
    USAGE_EVENT_failed,
    USAGE_EVENT_contention,
    USAGE_EVENT_trouble,
    USAGE_EVENT_COUNT
};
/* A log line. Texts live for the call; NULL = does not apply. */
struct usage_note {
    enum usage_event event;
    const char      *tenant, *date, *text;
    int64_t          took_ms;
};

struct usage_opts {
    il                  *h;      /* outlives it, as do the next two */
    il_guard            *tables; /* of usage_tables */
    struct usage_source *source;
    struct usage_life    life;
    int64_t              grace_minutes;
    int64_t              wait_ms;    /* how long a caller waits for a day */
    int64_t              lease_ms;   /* of a build: another process takes over this long after */
    uint32_t             n_threads;  /* days that are built at the same time */
    int64_t (*now_ms)(void *cookie); /* wall clock; NULL = the machine's */
    void (*note)(void *cookie, const struct usage_note *note);         /* NULL = none; any thread */
    void (*phase)(void *cookie, enum usage_phase phase, bool refresh); /* NULL = none */
    void *cookie;
};

/* IL_OK, IL_NOMEM. */
il_status usage_open(const struct usage_opts *o, struct usage **ret, il_error *reterr) MUST_USE;
/* Builds end soon, and all who wait get IL_CANCELLED. Does not block. */
void usage_stop(struct usage *u);
/* Stops, and waits for the threads. Nobody may wait any more. NULL is fine. */
void                     usage_close(struct usage *u);
int64_t                  usage_now_ms(const struct usage *u);
il_guard                *usage_tables_of(const struct usage *u);
const struct usage_life *usage_life_of(const struct usage *u);

/* ---- counters: usage.c ----------------------------------------------------------------------- */

/* What this process did: member, name in JSON. metrics.def has the rows. */
struct usage_counts {
#define X(member, name, type, help) uint64_t member;
#include "apps/usage/metrics.def"
#undef X
};
enum usage_counter {
#define X(member, name, type, help) USAGE_COUNT_##member,
#include "apps/usage/metrics.def"
#undef X
    USAGE_COUNTER_COUNT
};
void usage_count(struct usage *u, enum usage_counter which);
void usage_counts(const struct usage *u, struct usage_counts *ret);
/* Part / (part + rest), in ten-thousandths; 0 if there is nothing to divide. */
int64_t usage_rate(uint64_t part, uint64_t rest);
#define USAGE_RATE_DIGITS 4

/* ---- copies of rows: day_copies.c ------------------------------------------------------------ */

/* A day as it is answered, shared by those who asked for it. */
struct usage_copy {
    atomic_uint n_refs;
    char        tenant[IL_TENANT_BYTES_MAX + 1];
    usage_date  date;
    uint64_t    token; /* of the marker that was current before the row was read; 0 = none */
    int64_t     updated_ms;
    bool        complete;
    atomic_int_fast64_t refresh_ns; /* no refresh before this time */
    size_t              n_bytes;
    char               *body; /* its JSON, without the last brace; see usage_copy_print() */
};
struct usage_copy *usage_copy_ref(struct usage_copy *c);
void               usage_copy_unref(struct usage_copy *c); /* NULL is fine */
/* Of a row. NULL: out of memory. */
struct usage_copy *usage_copy_new(const char *tenant, const struct usage_row *row, uint64_t token);
/* The answer: the day, whether it is stale, and if so why (may be NULL). */
void usage_copy_print(struct il__buf *b, const struct usage_copy *c, bool stale, const char *why);

/* Keep a copy with a token for usage_copy_find(). A bounded number is kept. */
void usage_copy_keep(struct usage *u, struct usage_copy *c);
/* The copy of a day with this token, as a reference; NULL: none. Cheap; any thread. */
struct usage_copy *usage_copy_find(struct usage *u, const char *tenant, usage_date date,
                                   uint64_t token);
bool               usage_copy_is_fresh(const struct usage *u, const struct usage_copy *c);
/* A hit: count it, and refresh it in the background if it is old. */
void usage_copy_hit(struct usage *u, struct usage_copy *c);

/* ---- asking for days: flight.c --------------------------------------------------------------- */

enum usage_way {
    USAGE_TAKE,    /* the day if it is fresh, else build it */
    USAGE_FORCE,   /* build it, unless a build has started since the call */
    USAGE_REFRESH, /* in the background, unless somebody builds it */
};

struct usage_result {
    /*
     * IL_OK: `copy` is the day. IL_TIMEOUT: somebody builds it for too long; IL_CANCELLED: this
     * process stops; IL_STATE: the source failed; IL_STORE and kin: the store or the tables did. In
     * all of these `copy` is the stored day, which is stale, or NULL.
     */
    il_status          status;
    char               text[sizeof((il_error *)NULL)->message]; /* why */
    struct usage_copy *copy; /* a reference, if this is not NULL */
    bool               hit;
};

/* Somebody who waits for a day. The caller owns it, from the join until done() is called or
 * usage_leave() returned true. */
struct usage_waiter {
    /* Any thread, no mutex held; must not block. The result is the waiter's: it drops the copy. */
    void (*done)(struct usage_waiter *w, struct usage_result *result);
    bool urgent; /* somebody waits for this very day: before those of ranges */
    bool silent; /* not counted as a hit or a miss */
    /* flight.c's own, protected by the mutex of its cache: */
    struct usage_flight *flight; /* NULL: left, or landed */
    struct usage_waiter *next;
};

/* Ask for a day; never blocks. w NULL: nobody waits. IL_OK; IL_LIMIT: too many flights; IL_NOMEM;
 * IL_CANCELLED. */
il_status usage_join(struct usage *u, const char *tenant, usage_date date, enum usage_way way,
                     struct usage_waiter *w, il_error *reterr) MUST_USE;
/* Stop waiting; the flight continues. True: done() will not be called; *ret_old (may be NULL) is a
 * reference to the stored day as the flight found it, or NULL. False: it was called, or is. */
bool usage_leave(struct usage *u, struct usage_waiter *w, struct usage_copy **ret_old);

/* Join several flights and wait for them on this thread. */
struct usage_many {
    const char       *tenant;
    const usage_date *dates;
    size_t            n;
    enum usage_way    way;
    bool              silent;
    bool              patient;  /* ask again for a day that others build for too long */
    size_t            window;   /* at the same time; 0 = all */
    int64_t           until_ns; /* CLOCK_BOOTTIME; INT64_MAX = none */
    /* Asked at least ten times a second; may be NULL. */
    bool (*should_stop)(void *cookie);
    /* On this thread, in any order; the result is borrowed. Days that are not ready in time are not
     * reported. */
    void (*each)(void *cookie, size_t i, const struct usage_result *result, size_t n_done);
    void *cookie;
};
/* Returns how many were reported. IL_NOMEM and IL_LIMIT are reported as results. */
size_t usage_join_many(struct usage *u, const struct usage_many *m);

/* ---- ranges: range.c ------------------------------------------------------------------------- */

enum usage_state {
    USAGE_FRESH,
    USAGE_STALE,   /* old figures, which are part of the sums */
    USAGE_PENDING, /* no figures: being built, or waiting for that */
    USAGE_MISSING, /* no figures */
};
extern const char *const usage_state_names[];

struct usage_range_day {
    usage_date           date;
    enum usage_state     state;
    bool                 complete;
    int64_t              updated_ms;
    struct usage_metrics metrics;
};
/* False: its figures are unknown, not 0. */
static inline bool
usage_day_has_figures(const struct usage_range_day *day)
{
    return day->state == USAGE_FRESH || day->state == USAGE_STALE;
}
struct usage_range {
    usage_date             from, to;
    struct usage_range_day days[USAGE_DAYS_MAX];
    size_t                 n;
    struct usage_metrics   total;
    struct usage_parts     parts;                   /* of one breakdown, added up */
    char  error[sizeof((il_error *)NULL)->message]; /* why a day is stale or missing; "" */
    void *mem;
};
void usage_range_release(struct usage_range *r);

struct usage_range_in {
    const char   *tenant;
    usage_date    from, to;            /* at most USAGE_DAYS_MAX days */
    enum usage_by by;                  /* or USAGE_BY_NONE */
    bool          build;               /* build days that are not fresh; else only read */
    int64_t       until_ns;            /* wait no longer */
    bool (*should_stop)(void *cookie); /* may be NULL */
    void (*progress)(void *cookie, size_t n_done, size_t n); /* of days to build; may be NULL */
    void *cookie;
};
/* Load a range: every day of it is listed. Blocks. IL_OK, IL_LIMIT (a sum does not fit), IL_STORE
 * and kin. Release *ret in any case. */
il_status usage_range_load(struct usage *u, const struct usage_range_in *in,
                           struct usage_range *ret, il_error *reterr) MUST_USE;

#endif
