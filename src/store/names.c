/*
 * names.c: prints the numbers that SQL and Lua share with C, one line "NAME NUMBER" each.
 *
 * The build runs this program and passes its output to tools/embed, which replaces @NAME@ with the
 * number. The C enum thus remains the only definition of a status, state or flag. This program is
 * not part of the library.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/conflict.h"
#include "core/job.h"
#include "core/limits.h"
#include "core/once.h"
#include "core/run.h"
#include "core/usage.h"
#include "interlock.h"

struct name {
    const char *name;
    int64_t     number;
};

/* The name of an enumerator is the part after IL_ or IL__; families without a prefix get one. */
#define PUBLIC(name)     \
    {                    \
#name, IL_##name \
    }
#define INNER(name)       \
    {                     \
#name, IL__##name \
    }
#define BIT(kind, state)                                        \
    {                                                           \
#kind "_BIT_" #state, INT64_C(1) << IL_##kind##_##state \
    }
#define FLAG(name)               \
    {                            \
        "FLAG_" #name, IL_##name \
    }

/* Totals of a queue as PostgreSQL stores them, followed by its corrections for the number of
 * jobs in each state (depth_add()). */
enum total {
    TOTAL_NONE,
#define X(name, total) TOTAL_##name,
#include "core/totals.def"
#undef X
    DEPTH_SCHEDULED,
    DEPTH_RUNNING,
    DEPTH_LIVE,
    DEPTH_FAILED,
};

static const struct name names[] = {
#define X(name, num, wire, http, exit_status, retry, text) { "STATUS_" #name, num },
    IL_STATUS_MAP(X)
#undef X
#define X(name, num, wire, writes, text) { "OP_" #name, num },
        IL_OP_MAP(X)
#undef X

            PUBLIC(MODE_EXCLUSIVE),
    PUBLIC(MODE_SHARED),
    PUBLIC(MODE_PERMIT),

    INNER(COMPATIBLE),
    INNER(CONFLICT),
    INNER(OTHER_N),

    PUBLIC(LEASE_WAITING),
    PUBLIC(LEASE_OFFERED),
    PUBLIC(LEASE_HELD),
    PUBLIC(LEASE_CLOSING),
    PUBLIC(LEASE_RELEASED),
    PUBLIC(LEASE_BROKEN),

    PUBLIC(EVENT_EXPIRED),
    PUBLIC(EVENT_BROKEN),
    PUBLIC(EVENT_REFUSED),
    PUBLIC(EVENTS_MAX),
    PUBLIC(EVENT_KEYS_MAX),
    PUBLIC(EVENT_KEEP_MS),
    INNER(EVENT_TEXT_CHARS),
    INNER(REFUSED_MAX),

    PUBLIC(RUN_NONE),
    PUBLIC(RUN_PENDING),
    PUBLIC(RUN_RUNNING),
    PUBLIC(RUN_COMPLETED),
    PUBLIC(RUN_FAILED),
    PUBLIC(RUN_CANCELLED),
    PUBLIC(RUN_TIMEOUT),
    PUBLIC(RUN_INTERRUPTED),

    PUBLIC(POLICY_JOIN),
    PUBLIC(POLICY_REJECT),
    PUBLIC(POLICY_SKIP),
    PUBLIC(POLICY_QUEUE),
    PUBLIC(POLICY_REPLACE_PENDING),
    PUBLIC(POLICY_CANCEL_RUNNING),

    PUBLIC(JOB_NONE),
    PUBLIC(JOB_SCHEDULED),
    PUBLIC(JOB_READY),
    PUBLIC(JOB_RUNNING),
    PUBLIC(JOB_COMPLETED),
    PUBLIC(JOB_FAILED),
    PUBLIC(JOB_CANCELLED),

    INNER(LAST_NONE),
    INNER(LAST_FINISHED),
    INNER(LAST_FAILED),
    INNER(LAST_SNOOZED),
    INNER(LAST_EXPIRED),
    INNER(LAST_CANCELLED),

    INNER(JOB_FLAG_CANCELLED),
    INNER(JOB_FLAG_SILENT),
    INNER(JOB_FLAG_SEALED),

#define X(name, total) { "TOTAL_" #name, TOTAL_##name },
#include "core/totals.def"
#undef X
    { "DEPTH_SCHEDULED", DEPTH_SCHEDULED },
    { "DEPTH_RUNNING", DEPTH_RUNNING },
    { "DEPTH_LIVE", DEPTH_LIVE },
    { "DEPTH_FAILED", DEPTH_FAILED },
    { "TOTALS", DEPTH_FAILED },

#define X(name, field, none, min, max, dflt) { "DEFAULT_" #name, dflt },
#include "core/queue_settings.def"
#undef X

#define X(name, number, what) { "MUTEX_" #name, number },
#include "store/postgres/mutexes.def"
#undef X

#define X(name, letter) { "PACKED_" #name, letter },
#include "store/redis/packed.def"
#undef X

    INNER(LANE_CLAIMED),
    INNER(LANE_SCHEDULED),
    INNER(LANE_READY),
    INNER(LANE_PARENT),
    INNER(LANE_BLOCKED),
    INNER(LANE_UNDECIDED),

    /* strategies as a queue has them: il_queue_opts */
    { "QUEUE_PESSIMISTIC", 1 + IL_STRATEGY_PESSIMISTIC },
    { "QUEUE_OPTIMISTIC", 1 + IL_STRATEGY_OPTIMISTIC },

    PUBLIC(MISSED_SKIP),

    INNER(ONCE_RUNNING),
    INNER(ONCE_DONE),

    INNER(USAGE_CACHE),
    INNER(USAGE_ONCE),
    INNER(USAGE_JOBS),
    INNER(USAGE_RUNS),
    INNER(USAGE_CRONS),

    /* the first state in which a lease, run or job has ended; all others follow it */
    { "LEASE_ENDED", IL_LEASE_RELEASED },
    { "RUN_ENDED", IL_RUN_COMPLETED },
    { "JOB_ENDED", IL_JOB_COMPLETED },

    /* states as bits, as listings filter by them */
    BIT(RUN, PENDING),
    BIT(RUN, RUNNING),
    BIT(RUN, FAILED),
    BIT(RUN, CANCELLED),
    { "RUN_BITS", (INT64_C(1) << IL_RUN_STATE_COUNT) - (INT64_C(1) << IL_RUN_PENDING) },
    BIT(JOB, SCHEDULED),
    BIT(JOB, READY),
    BIT(JOB, RUNNING),
    BIT(JOB, COMPLETED),
    BIT(JOB, FAILED),
    BIT(JOB, CANCELLED),
    { "JOB_BITS", (INT64_C(1) << IL_JOB_STATE_COUNT) - (INT64_C(1) << IL_JOB_SCHEDULED) },

    /* flags of an op */
    FLAG(BREAK_NOW),
    FLAG(LIST_WAITERS),
    FLAG(RUN_SLOT),
    FLAG(CLAIM_SILENT),
    FLAG(CLAIM_LEAVE),
    FLAG(FAIL_FINAL),
    FLAG(CANCEL_NOW),
    FLAG(PUSH_PARENT),
    FLAG(RESUME),
    FLAG(CACHE_NEGATIVE),
    FLAG(DROP_STALE),
    FLAG(LOG_AT),

    /* flags of a result */
    PUBLIC(OUT_RENEWED),
    PUBLIC(OUT_MORE),
    PUBLIC(OUT_CANCEL),
    PUBLIC(OUT_SKIPPED),
    PUBLIC(OUT_PAUSED),
    PUBLIC(OUT_LIMITED),
    PUBLIC(OUT_TAKEOVER),
    PUBLIC(OUT_NEGATIVE),
    PUBLIC(OUT_EARLY),
    PUBLIC(OUT_OPTIMISTIC),

    /* limits */
    PUBLIC(ATTEMPTS_MAX),
    PUBLIC(BLOB_BYTES_MAX),
    PUBLIC(CLAIM_JOBS_MAX),
    PUBLIC(COUNT_MAX),
    PUBLIC(DELAY_MS_MAX),
    PUBLIC(HOLDER_BYTES_MAX),
    PUBLIC(ID_BYTES_MAX),
    PUBLIC(KEY_BYTES_MAX),
    PUBLIC(LOG_BYTES_MAX),
    PUBLIC(META_BYTES_MAX),
    PUBLIC(PERMITS_MAX),
    PUBLIC(PLACE_BYTES_MAX),
    PUBLIC(PRIORITY_MAX),
    PUBLIC(QUEUE_BYTES_MAX),
    PUBLIC(TENANT_BYTES_MAX),
    PUBLIC(TEXT_BYTES_MAX),
    PUBLIC(TTL_MS_MAX),
    PUBLIC(TTL_MS_MIN),
    INNER(CACHE_KEEP_MS),
    INNER(ENDED_KEEP_MS),
    INNER(ENDED_MAX),
    INNER(FENCE_END),
    INNER(JOB_BYTES),
    INNER(LEASE_LOOK_MS),
    INNER(LOG_PIECE_BYTES),
    INNER(LOG_READ_BYTES),
    INNER(LOOK_MAX),
    INNER(NEVER),
    INNER(OFFER_MS),
    INNER(ORDER_EDGES_MAX),
    INNER(ORDER_HOLDS_MAX),
    INNER(PROMOTE_MAX),
    INNER(RATE_HOUR_MS),
    INNER(RATE_MINUTE_MS),
    INNER(RATE_SLOTS),
    INNER(RECOVER_MAX),
    INNER(TICKS_MAX),
    INNER(TICK_NEVER),
    INNER(TIME_MS_MAX),
    INNER(WAITER_DROP_MS),
    INNER(WAIT_MS_MAX),
    INNER(WORKER_SEEN_MS),
};

/* The edges of the state machines. */
struct edge {
    const char *kind, *from, *event;
    int         to;
};

static const struct edge edges[] = {
#define X(from, event, to, why) { "LEASE", #from, #event, IL_LEASE_##to },
#include "core/lease_edges.def"
#undef X
#define X(from, event, to, why) { "RUN", #from, #event, IL_RUN_##to },
#include "core/run_edges.def"
#undef X
#define X(from, event, to, why) { "JOB", #from, #event, IL_JOB_##to },
#include "core/job_edges.def"
#undef X
};
#define N_EDGES (sizeof edges / sizeof *edges)

/* Do all edges of this kind and event lead to the same state? */
static bool
is_the_only_way(const struct edge *e)
{
    for (const struct edge *other = edges; other < edges + N_EDGES; other++) {
        if (strcmp(other->kind, e->kind) == 0 && strcmp(other->event, e->event) == 0 &&
            other->to != e->to)
            return false;
    }
    return true;
}

/* LEASE_HELD_ON_EXPIRE: the target of this edge; JOB_ON_FINISH: the target of all edges of an
 * event. */
static void
print_edges(void)
{
    for (const struct edge *e = edges; e < edges + N_EDGES; e++) {
        (void)printf("%s_%s_ON_%s %d\n", e->kind, e->from, e->event, e->to);
        if (is_the_only_way(e))
            (void)printf("%s_ON_%s %d\n", e->kind, e->event, e->to);
    }
}

/* CONFLICTS_SHARED: the modes, as bits, that conflict with a request for this one. */
static void
print_conflicts(void)
{
    static const char *const modes[IL_MODE_COUNT]      = { "EXCLUSIVE", "SHARED", "PERMIT" };
    unsigned                 in_the_way[IL_MODE_COUNT] = { 0 };

#define X(asked, live) in_the_way[IL_MODE_##asked] |= 1U << IL_MODE_##live;
#include "core/conflicts.def"
#undef X
    for (unsigned mode = 0; mode < IL_MODE_COUNT; mode++)
        (void)printf("CONFLICTS_%s %u\n", modes[mode], in_the_way[mode]);
}

int
main(void)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        (void)printf("%s %" PRId64 "\n", names[i].name, names[i].number);
    print_edges();
    print_conflicts();
    return ferror(stdout) != 0 || fclose(stdout) != 0;
}
