/*
 * day.h: a day of usage: its date, its figures, and when it may be kept. All of it is pure: no
 * clock, no time zone, no I/O.
 *
 * Money is an integer of micro-units (1.25 is 1250000), so that sums are exact.
 */
#ifndef IL_APPS_USAGE_DAY_H
#define IL_APPS_USAGE_DAY_H

#include "base/buf.h"
#include "base/parse.h"
#include "wire/wire.h"

/* ---- dates: date.c --------------------------------------------------------------------------- */

/* A day of UTC: days since 1970-01-01. */
typedef int32_t usage_date;

#define USAGE_DAY_MS INT64_C(86400000)

/* Parse YYYY-MM-DD, 2000 to 9999. */
bool usage_date_parse(const char *text, usage_date *ret);
/* The day of UTC that a time belongs to. */
usage_date usage_date_of(int64_t wall_ms);
/* 20260115: the id of the advisory lock that programs in a mixed fleet take. */
int64_t usage_date_id(usage_date date);

/* ---- how long a build is good for: date.c ---------------------------------------------------- */

enum usage_keep {
    USAGE_KEEP_FUTURE, /* the day has not begun: nothing can be built */
    USAGE_KEEP_TODAY,  /* the day is not over */
    USAGE_KEEP_GRACE,  /* the day is over, but its last figures may still be on their way */
    USAGE_KEEP_GOOD,   /* complete: kept */
};

/* Judge a build by when it *started*: what the source was asked then may be from that moment. A day
 * is within its grace period while the whole minutes since its midnight are at most
 * grace_minutes. */
enum usage_keep usage_keep(usage_date date, int64_t started_ms, int64_t grace_minutes);

/* What decides whether a stored day is fresh. */
struct usage_life {
    int64_t current_ttl_ms;    /* of a day that is not complete */
    int64_t historical_ttl_ms; /* of a complete day; 0 = forever */
};
bool usage_is_fresh(const struct usage_life *life, bool complete, int64_t updated_ms,
                    int64_t now_ms);
/* Is it older than 80 % of its life? Then a hit refreshes it in the background. */
bool usage_is_ageing(const struct usage_life *life, bool complete, int64_t updated_ms,
                     int64_t now_ms);
/* What is left of its life, in ms: at least 1, at most IL_DELAY_MS_MAX. */
int64_t usage_life_left(const struct usage_life *life, bool complete, int64_t updated_ms,
                        int64_t now_ms);

/* ---- figures: figures.c ---------------------------------------------------------------------- */

/* The metrics of a day: member, name in JSON. `spend` is in micro-units. */
#define USAGE_METRICS(X)                          \
    X(api_requests, "api_requests")               \
    X(total_tokens, "total_tokens")               \
    X(prompt_tokens, "prompt_tokens")             \
    X(completion_tokens, "completion_tokens")     \
    X(spend, "spend")                             \
    X(successful_requests, "successful_requests") \
    X(failed_requests, "failed_requests")

struct usage_metrics {
#define X(member, name) int64_t member;
    USAGE_METRICS(X)
#undef X
};
/* The members as a table. */
struct usage_metric {
    const char *name;
    size_t      offset;
};
#define USAGE_METRIC_COUNT (sizeof(struct usage_metrics) / sizeof(int64_t))
extern const struct usage_metric usage_metric_list[USAGE_METRIC_COUNT];
static inline int64_t *
usage_metric_at(struct usage_metrics *m, const struct usage_metric *which)
{
    return (int64_t *)(void *)((char *)m + which->offset);
}
static inline int64_t
usage_metric_of(const struct usage_metrics *m, const struct usage_metric *which)
{
    return *(const int64_t *)(const void *)((const char *)m + which->offset);
}
static inline bool
usage_metric_is_money(const struct usage_metric *which)
{
    return which->offset == offsetof(struct usage_metrics, spend);
}

#define USAGE_MONEY_DIGITS 6
#define USAGE_MONEY 1000000 /* micro-units of one */

/* Add; false: a sum does not fit, and *to is unchanged. */
bool usage_metrics_add(struct usage_metrics *to, const struct usage_metrics *more) MUST_USE;

enum usage_by {
    USAGE_BY_USER,
    USAGE_BY_MODEL,
    USAGE_BY_PROVIDER,
    USAGE_BY_COUNT,
    USAGE_BY_NONE = USAGE_BY_COUNT,
};
extern const char *const usage_by_names[USAGE_BY_COUNT + 1]; /* "user", …; NULL at the end */

#define USAGE_NAME_BYTES_MAX 512
#define USAGE_RAW_BYTES_MAX ((size_t)16 << 20) /* of the JSON that a source gives for a day */

/* The share of one user, model or provider. */
struct usage_part {
    const char          *name;
    struct usage_metrics metrics;
};
struct usage_parts {
    struct usage_part *items; /* by name, each once */
    size_t             n;
};

/* Everything lives in the arena `mem`. */
struct usage_figures {
    struct usage_metrics total;
    struct usage_parts   by[USAGE_BY_COUNT];
    void                *mem;
};
void usage_figures_release(struct usage_figures *f);

/*
 * Read what a source gives for a day (docs/USAGE.md). IL_OK; IL_INVAL: what is wrong, and where;
 * IL_LIMIT: a sum does not fit; IL_NOMEM. Release *ret in any case.
 */
il_status usage_figures_read(const char *text, size_t n_bytes, usage_date date,
                             struct usage_figures *ret, il_error *reterr) MUST_USE;

/* As answers show them: `spend` as a decimal number, and in micro-units as `spend_micros`. A part
 * has its `name` beside them. */
extern const struct wire_object usage_wire_metrics, usage_wire_part;

/* The columns of a row: JSON with integers only, names in order, so that equal figures give equal
 * texts. The inverses return IL_CORRUPT for anything else, or IL_NOMEM. */
void      usage_metrics_store(struct il__buf *b, const struct usage_metrics *m);
void      usage_parts_store(struct il__buf *b, const struct usage_parts *parts);
il_status usage_metrics_load(const char *text, size_t n_bytes, struct usage_metrics *ret,
                             il_error *reterr) MUST_USE;
il_status usage_parts_load(const char *text, size_t n_bytes, struct usage_parts *ret, void **mem,
                           il_error *reterr) MUST_USE;

/* Sort parts by name and add up equal names, in place. False: a sum does not fit. */
bool usage_parts_fold(struct usage_parts *parts) MUST_USE;
/* Largest spend first, then by name. */
void usage_parts_rank(struct usage_parts *parts);

#endif
