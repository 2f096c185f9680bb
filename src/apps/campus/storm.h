/*
 * storm.h: a bounded storm of mixed operations by several processes on the data of `campus seed`,
 * some of which are killed in the middle. The invariants give the verdict.
 */
#ifndef IL_APPS_CAMPUS_STORM_H
#define IL_APPS_CAMPUS_STORM_H

#include "apps/campus/verify.h"

#define CAMPUS_STORM_PROCESSES_MAX 64

/* What a process may do. */
#define CAMPUS_STORM_ACTS(X) \
    X(enroll)                \
    X(unenroll) X(book) X(cancel) X(confirm) X(attend) X(assess) X(move) X(finalize) X(call_off)
enum campus_act {
#define X(name) CAMPUS_ACT_##name,
    CAMPUS_STORM_ACTS(X)
#undef X
    CAMPUS_ACT_COUNT
};
extern const char *const campus_act_names[CAMPUS_ACT_COUNT];

#define CAMPUS_STORM_PIPELINES 4
extern const char *const campus_storm_pipelines[CAMPUS_STORM_PIPELINES];

struct campus_storm {
    const char       *store_url, *data_url, *tenant; /* data_url may be NULL */
    uint64_t          seed;
    unsigned          n_processes;
    int64_t           time_ms;             /* it ends after this long, */
    uint64_t          n_calls_max;         /* or after so many calls and a kill; 0: no limit */
    int64_t           kill_ms;             /* kill a process this often; 0: never */
    int64_t           n_users, n_sessions; /* of the seed */
    campus_broken_fn *broken;              /* may be NULL */
    void             *cookie;
    void (*progress)(void *cookie, uint64_t n_calls); /* may be NULL */
};

struct campus_storm_result {
    int64_t  took_ms;
    uint64_t n_calls, n_killed, n_failed, n_races;
    uint64_t n_done[CAMPUS_ACT_COUNT], n_refused[CAMPUS_ACT_COUNT];
    /* of each pipeline: row locks whose transaction was undone because of others, and repeated */
    uint64_t n_conflicts[CAMPUS_STORM_PIPELINES];
    int64_t  wait_p95_us[CAMPUS_STORM_PIPELINES], hold_p95_us[CAMPUS_STORM_PIPELINES];
    size_t   n_broken;     /* invariants of severity error */
    char     failure[256]; /* the first call or process that failed, "" if none */
};

/* Nothing of the store or the tables may be open in this process: it forks. */
il_status campus_storm(const struct campus_storm *s, struct campus_storm_result *ret,
                       il_error *reterr) MUST_USE;

#endif
