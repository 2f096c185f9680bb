/*
 * work_internal.h: shared by the files of the executor. work.h gives the overview.
 *
 * Mutexes, in locking order (enforced by src/base/mutex.def): those of apps; work.mutex,
 * work_execution.mutex; those that callbacks of an app take; work_live.mutex, work_writers.mutex;
 * work_recorder.mutex last. None is held during a call that may wait for the store or the data
 * store. Callbacks of il_run (on_cancel, on_lost, on_renewed) take only work_execution.mutex and
 * what callbacks take.
 */
#ifndef IL_APPS_WORK_INTERNAL_H
#define IL_APPS_WORK_INTERNAL_H

#include <stdatomic.h>

#include "apps/work/slots.h"
#include "apps/work/work.h"

#define WORK_NS_PER_S INT64_C(1000000000)
#define WORK_NODE_BYTES 96 /* a host name of 64, a pid */
#define WORK_PREFIX_BYTES 64
#define WORK_LEASE_OVER "lease not renewed in time"

/* ---- one run (execute.c, outcome.c) ---------------------------------------------------------- */

struct work_execution {
    struct work_run        pub;
    struct work           *w;
    struct work_execution *next; /* of work.executions, or of work.ended */
    pthread_t              thread;
    char                   tenant[IL_TENANT_BYTES_MAX + 1];
    char                   key[IL_KEY_BYTES_MAX + 1];
    char                   id[IL_ID_BYTES_MAX + 1];
    char                   holder[IL_HOLDER_BYTES_MAX + 1];
    il_run                *run;
    int64_t                ttl_ms;
    int64_t                created_at_ms;
    int64_t                began_ns;
    json_t                *meta;       /* of the slot; owns pub.parameters */
    char                  *parameters; /* JSON text, for the history; set once, under mutex */
    struct work_live       live;
    bool                   live_ready;
    _Atomic int64_t        sign_ns; /* last sign of life; 0 = never */
    /* set under the mutex, before the callback is called; read without it */
    atomic_bool should_stop;

    struct il__mutex             mutex;     /* protects what follows */
    const struct work_callbacks *callbacks; /* NULL = none */
    void                        *callbacks_cookie;
    bool                         executing; /* between start and finish: it can be stopped */
    bool                         concluded; /* the outcome is decided */
    il_run_state                 end_state; /* what it was, for hook.c */
    char                         end_text[WORK_TEXT_BYTES];
    enum work_reason             reason;
    bool                         failed_by_timeout;
    char                         text[WORK_TEXT_BYTES]; /* of the reason */
    int64_t                      renewals, renewed_at_ms, renewed_ns;
    int64_t                      lease_ns;  /* its last known local deadline */
    int64_t                      told_ns;   /* when renewals were last recorded in the history */
    bool                         unrenewed; /* the warning was given for this lapse */
    bool                         expiring;  /* was noted */
};

/* Start executing a slot on its own thread, with a reference to the subject of its own. work.mutex
 * is held. Returns 0, or an errno: nothing was started. */
int work_execute(struct work *w, const char *run_id, void *subject) MUST_USE;
/* After its thread was joined. */
void work_execution_free(struct work_execution *e);
/* The watch thread: compares deadlines with the clock and never blocks on anything else. */
void *work_watch_main(void *arg);
/* After the end of the run is in the store and its lease released: call its hook, if it has one.
 * Blocks. */
void work_call_hook(struct work_execution *e);
/* Write its details into the history. */
void work_execution_record(struct work_execution *e);
/* Decide how the run has ended, and end it in the store (outcome.c). */
void work_conclude(struct work_execution *e, bool done);

/* ---- slots (dispatch.c) ---------------------------------------------------------------------- */

/* The slot is RUNNING here and no longer waits; others of its subject do until work_started(). */
void work_running(struct work_execution *e);
/* The outcome of executing a slot; called on the run thread. */
enum work_started {
    WORK_STARTED_OVER,    /* executed, or not ours to execute: forget it */
    WORK_STARTED_LATER,   /* the key is held: try again */
    WORK_STARTED_TROUBLE, /* the store could not be reached: try again later */
};
void  work_started(struct work_execution *e, enum work_started how, const char *before_id);
void *work_dispatch_main(void *arg);

/* Apply listings, repeating the call for those that it left out because of large pages. */
il_status work_list_all(struct work *w, il_op *ops, size_t n, il_error *reterr);
/* Is it being started or executed here? work.mutex is held. */
bool work_is_executing(const struct work *w, const char *tenant, const char *id);

/* ---- runs of servers that died (orphan.c) ---------------------------------------------------- */

struct orphans *work_orphans_new(struct work *w);
void            work_orphans_free(struct orphans *o);
/* Scan the runs of these tenants for those that another server executed and no server does any
 * more. Waits for the store. */
void work_orphans_look(struct orphans *o, char (*tenants)[IL_TENANT_BYTES_MAX + 1], size_t n);
/* Should this server report that the run's lease expired? Of all servers that ask within a
 * minute, one gets true. */
bool work_claim_expiry_report(struct work *w, const char *tenant, const char *run);

/* ---- presence of a server (presence.c); dispatcher only -------------------------------------- */

void work_presence_tell(struct work *w, int64_t now_ns);
void work_presence_end(struct work *w);

/* ---- schedules (schedule.c) ------------------------------------------------------------------ */

void *work_tick_main(void *arg);

/* ---- the executor ---------------------------------------------------------------------------- */

/* clang-format off */
#define WORK_COUNTERS(X) \
    X(started) X(completed) X(failed) X(cancelled) X(timeout) X(interrupted) X(schedule_ticks) \
    X(schedule_skipped) X(hooks_failed)
/* clang-format on */

struct work {
    struct work_options     o;
    const struct work_kind *kind;
    char                    prefix[WORK_PREFIX_BYTES]; /* of keys: "CLASS:" */
    size_t                  n_prefix;
    char                    node[WORK_NODE_BYTES]; /* host:pid */
    char instance[WORK_NODE_BYTES + 16]; /* host:pid:nonce: never used by another process */
    struct work_recorder recorder;
    struct work_writers  writers;
    uint64_t             presence_fence; /* the dispatcher's, like presence_ns; 0 = none */
    int64_t              presence_ns;

    struct il__mutex       mutex; /* protects what follows */
    pthread_cond_t         wake;  /* the dispatcher */
    pthread_cond_t         watch; /* the watch */
    pthread_cond_t         tick;  /* the ticker */
    pthread_cond_t         idle;  /* an execution has ended, or the executor stops */
    struct slots           slots;
    struct work_execution *executions; /* threads that run */
    struct work_execution *ended;      /* threads to be joined */
    size_t                 n_executions;
    uint64_t               version;  /* of the subjects: changes with work_rescan() */
    bool                   rescan;   /* list, and try everything again, now */
    bool                   changed;  /* something may be started */
    bool                   stopping; /* no more runs */
    bool                   closing;  /* threads end */
    int64_t                stop_ns;  /* when active runs are stopped */
    size_t                 n_expiring, n_unrenewed;
    bool                   dispatch_started, watch_started, tick_started;
    pthread_t              dispatcher, watcher, ticker;
    int64_t                trouble_ns; /* the last one noted */

#define X(name) _Atomic uint64_t n_##name;
    WORK_COUNTERS(X)
#undef X
};

/* Wait for the condition, at most timeout_ns; negative: no limit. Callers check the clock
 * themselves. */
static inline void
work_wait(pthread_cond_t *c, struct il__mutex *m, int64_t timeout_ns)
{
    (void)il__cond_wait(c, m, timeout_ns);
}

/* Report an event. */
void work_note(struct work *w, struct work_note note);
/* Report an event of a run; text NULL = none. */
void work_note_run(const struct work_execution *e, enum work_event event, const char *text);

#endif
