/* columns.c: the columns of `interlock top`. */
#include "cli/top/columns.h"

#include <inttypes.h>

#include "cli/find_id.h"
#include "cli/print_lease.h"
#include "cli/run_show.h"

#define BAR_CELLS 10

#define BY_TEXT(name, type, member)                                          \
    static int name(const void *a, const void *b)                            \
    {                                                                        \
        return strcmp(((const type *)a)->member, ((const type *)b)->member); \
    }
#define BY_NUMBER(name, type, member)                             \
    static int name(const void *a, const void *b)                 \
    {                                                             \
        const type *x = a;                                        \
        const type *y = b;                                        \
        return (x->member > y->member) - (x->member < y->member); \
    }
#define TEXT(name, type, member)                                          \
    static void name(const void *item, int64_t now_ms, struct il__buf *b) \
    {                                                                     \
        (void)now_ms;                                                     \
        il__buf_adds(b, ((const type *)item)->member);                    \
    }
#define NUMBER(name, type, member)                                           \
    static void name(const void *item, int64_t now_ms, struct il__buf *b)    \
    {                                                                        \
        (void)now_ms;                                                        \
        il__buf_addf(b, "%" PRIu64, (uint64_t)((const type *)item)->member); \
    }

/* ---- overview -------------------------------------------------------------------------------- */

TEXT(problem_what, struct top_problem, what)
TEXT(problem_name, struct top_problem, name)
TEXT(problem_detail, struct top_problem, detail)
BY_TEXT(by_problem_what, struct top_problem, what)
BY_TEXT(by_problem_name, struct top_problem, name)
BY_TEXT(by_problem_detail, struct top_problem, detail)

static void
problem_id(const void *item, char out[TOP_ID_BYTES])
{
    const struct top_problem *p = item;

    /* A key may have several leases. */
    (void)snprintf(out, TOP_ID_BYTES, "%" PRIu64 " %s %s", p->lease != NULL ? p->lease->fence : 0,
                   p->what, p->name);
}

static const struct top_column overview[] = {
    { "PROBLEM", problem_what, by_problem_what },
    { "NAME", problem_name, by_problem_name },
    { "DETAIL", problem_detail, by_problem_detail },
};

/* ---- locks ----------------------------------------------------------------------------------- */

TEXT(lock_key, il_lease_info, key)
TEXT(lock_holder, il_lease_info, holder)
NUMBER(lock_waiters, il_lease_info, n_waiters)
BY_TEXT(by_lock_key, il_lease_info, key)
BY_TEXT(by_lock_holder, il_lease_info, holder)
BY_NUMBER(by_lock_mode, il_lease_info, mode)
BY_NUMBER(by_lock_age, il_lease_info, age_ms)
BY_NUMBER(by_lock_waiters, il_lease_info, n_waiters)

static void
lock_mode(const void *item, int64_t now_ms, struct il__buf *b)
{
    char mode[CLI_MODE_BYTES];

    (void)now_ms;
    il__buf_adds(b, il__cli_lease_mode(item, mode));
}

static void
lock_age(const void *item, int64_t now_ms, struct il__buf *b)
{
    char age[CLI_AGE_BYTES];

    (void)now_ms;
    il__buf_adds(b, il__cli_lease_age(item, age));
}

/* The share of the TTL that is left, as a bar, and the time. */
static void
lock_left(const void *item, int64_t now_ms, struct il__buf *b)
{
    const il_lease_info *info = item;
    char                 expiry[CLI_EXPIRY_BYTES];
    int64_t              full = BAR_CELLS;

    (void)now_ms;
    if (info->remaining_ms != IL_FOREVER && info->ttl_ms > 0)
        full = MIN(MAX(info->remaining_ms, 0), info->ttl_ms) * BAR_CELLS / info->ttl_ms;
    il__buf_addc(b, '[');
    for (int64_t i = 0; i < BAR_CELLS; i++)
        il__buf_addc(b, i < full ? '#' : '.');
    il__buf_addf(b, "] %s", il__cli_lease_expiry(info, expiry));
}

static int64_t
left_ms(const il_lease_info *info)
{
    return info->remaining_ms == IL_FOREVER ? INT64_MAX : info->remaining_ms;
}

static int
by_lock_left(const void *a, const void *b)
{
    int64_t x = left_ms(a);
    int64_t y = left_ms(b);

    return (x > y) - (x < y);
}

static void
lock_id(const void *item, char out[TOP_ID_BYTES])
{
    const il_lease_info *info = item;

    (void)snprintf(out, TOP_ID_BYTES, "%" PRIu64 " %s", info->fence, info->key);
}

static const struct top_column locks[] = {
    { "KEY", lock_key, by_lock_key },    { "HOLDER", lock_holder, by_lock_holder },
    { "MODE", lock_mode, by_lock_mode }, { ">AGE", lock_age, by_lock_age },
    { "LEFT", lock_left, by_lock_left }, { ">WAITERS", lock_waiters, by_lock_waiters },
};

/* ---- runs ------------------------------------------------------------------------------------ */

TEXT(run_key, il_run_info, key)
BY_TEXT(by_run_id, il_run_info, id)
BY_TEXT(by_run_key, il_run_info, key)
BY_NUMBER(by_run_state, il_run_info, state)
BY_NUMBER(by_run_progress, il_run_info, progress)

static void
run_id(const void *item, int64_t now_ms, struct il__buf *b)
{
    (void)now_ms;
    il__buf_adds(b, il__cli_short_id(((const il_run_info *)item)->id));
}

static void
run_state(const void *item, int64_t now_ms, struct il__buf *b)
{
    const il_run_info *info = item;

    (void)now_ms;
    il__buf_addf(b, "%s%s", il_run_state_name(info->state), il__cli_run_note(info));
}

static void
run_stage(const void *item, int64_t now_ms, struct il__buf *b)
{
    (void)now_ms;
    il__buf_adds(b, il__cli_run_stage(item));
}

static int
by_run_stage(const void *a, const void *b)
{
    return strcmp(il__cli_run_stage(a), il__cli_run_stage(b));
}

static void
run_progress(const void *item, int64_t now_ms, struct il__buf *b)
{
    const il_run_info *info = item;

    (void)now_ms;
    if (info->progress >= 0)
        il__buf_addf(b, "%" PRId32 "%%", info->progress);
}

static void
run_age(const void *item, int64_t now_ms, struct il__buf *b)
{
    const il_run_info *info = item;
    char               age[CLI_AGE_BYTES];

    il__buf_adds(b, il__cli_age(now_ms - info->created_at_ms, age));
}

/* The youngest first. */
static int
by_run_age(const void *a, const void *b)
{
    const il_run_info *x = a;
    const il_run_info *y = b;

    return (x->created_at_ms < y->created_at_ms) - (x->created_at_ms > y->created_at_ms);
}

static void
run_ident(const void *item, char out[TOP_ID_BYTES])
{
    (void)snprintf(out, TOP_ID_BYTES, "%s", ((const il_run_info *)item)->id);
}

static const struct top_column runs[] = {
    { "ID", run_id, by_run_id },
    { "KEY", run_key, by_run_key },
    { "STATE", run_state, by_run_state },
    { "STAGE OR ERROR", run_stage, by_run_stage },
    { ">PROGRESS", run_progress, by_run_progress },
    { ">AGE", run_age, by_run_age },
};

/* ---- queues ---------------------------------------------------------------------------------- */

TEXT(queue_name, il_queue_info, name)
NUMBER(queue_ready, il_queue_info, n_ready)
NUMBER(queue_running, il_queue_info, n_running)
NUMBER(queue_scheduled, il_queue_info, n_scheduled)
NUMBER(queue_failed, il_queue_info, n_failed)
BY_TEXT(by_queue_name, il_queue_info, name)
BY_NUMBER(by_queue_ready, il_queue_info, n_ready)
BY_NUMBER(by_queue_running, il_queue_info, n_running)
BY_NUMBER(by_queue_scheduled, il_queue_info, n_scheduled)
BY_NUMBER(by_queue_failed, il_queue_info, n_failed)
BY_NUMBER(by_queue_oldest, il_queue_info, oldest_ms)
BY_NUMBER(by_queue_paused, il_queue_info, paused)

static void
queue_oldest(const void *item, int64_t now_ms, struct il__buf *b)
{
    const il_queue_info *info = item;
    char                 age[CLI_AGE_BYTES];

    (void)now_ms;
    if (info->n_ready > 0)
        il__buf_adds(b, il__cli_age(info->oldest_ms, age));
}

static void
queue_paused(const void *item, int64_t now_ms, struct il__buf *b)
{
    const il_queue_info *info = item;

    (void)now_ms;
    if (info->paused)
        il__buf_adds(b, info->reason[0] != '\0' ? info->reason : "yes");
}

static void
queue_id(const void *item, char out[TOP_ID_BYTES])
{
    (void)snprintf(out, TOP_ID_BYTES, "%s", ((const il_queue_info *)item)->name);
}

static const struct top_column queues[] = {
    { "QUEUE", queue_name, by_queue_name },
    { ">READY", queue_ready, by_queue_ready },
    { ">RUNNING", queue_running, by_queue_running },
    { ">SCHEDULED", queue_scheduled, by_queue_scheduled },
    { ">FAILED", queue_failed, by_queue_failed },
    { ">OLDEST", queue_oldest, by_queue_oldest },
    { "PAUSED", queue_paused, by_queue_paused },
};

const struct top_columns il__top_columns[TOP_TAB_COUNT] = {
    [TOP_OVERVIEW] = { "overview", overview, ARRAY_LEN(overview), 0, 2, problem_id },
    [TOP_LOCKS]    = { "locks", locks, ARRAY_LEN(locks), 0, 1, lock_id },
    [TOP_RUNS]     = { "runs", runs, ARRAY_LEN(runs), 5, 3, run_ident },
    [TOP_QUEUES]   = { "queues", queues, ARRAY_LEN(queues), 0, 0, queue_id },
};
