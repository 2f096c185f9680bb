/*
 * work.h: executes runs in the background, on one of several servers or in a command; the shared
 * base of every app that has background runs. An app says what its runs are (struct work_kind);
 * everything that is the same for all of them is here.
 *
 * A run belongs to a *subject* (a pipeline, an import): its key is CLASS:NAME in a tenant's
 * namespace. A trigger creates a *slot* (a PENDING run, work_start_op()); an executor starts that
 * slot by its id. The store lets only one do so, and only when the key is free, so that a run is
 * executed once, however many servers know of it.
 *
 * Threads of an executor: the *dispatcher* looks for slots that no server executes, and starts runs
 * while there is room. Slots of this process are reported at once (work_slot_created()); those
 * created by other servers, by the CLI or by a server that died are found in a listing, once a
 * second. The *ticker* triggers the ticks of schedules. The *watch* compares deadlines with the
 * clock. A *run thread* executes one run. Two *writers* write the live logs (live_log.h), the
 * *recorder* the history (record.h). Nothing that a run does waits for these.
 *
 *   work.c      opens and closes an executor; notes and counters
 *   start.c     the op of a trigger
 *   slots.c     the slots that wait for execution in this process
 *   dispatch.c  the dispatcher
 *   execute.c   one run; the watch
 *   outcome.c   how a run has ended
 *   hook.c      on_success, on_failure and on_lost of a run that has ended
 *   schedule.c  the ticker
 *   orphan.c    runs of servers that died
 *   presence.c  tells whether a server executes this class
 *   live_log.c  live logs, and the writers
 *   record.c    the recorder
 */
#ifndef IL_APPS_WORK_WORK_H
#define IL_APPS_WORK_WORK_H

#include <jansson.h>

#include "core/cron.h"
#include "apps/work/live_log.h"
#include "apps/work/record.h"

struct work;     /* the executor of one class of runs in this process */
struct work_run; /* a run that is executed */

#define WORK_NAME_BYTES_MAX 256
#define WORK_TEXT_BYTES 1200 /* why a run stopped, or failed */
#define WORK_ALARM_BYTES 160
#define WORK_CRASHED "worker may have crashed" /* part of a run's error: its lease expired */
/* share of the TTL after which an unrenewed lease causes a warning */
#define WORK_UNRENEWED_PERMILLE 800
/* wall clocks of servers, and of the store, may differ by this much */
#define WORK_CLOCKS_MS 60000

enum work_event {
#define X(id, text) WORK_EVENT_##id,
#include "apps/work/events.def"
#undef X
    WORK_EVENT_COUNT
};
/* One event for the log. Strings live until the callback returns; NULL = does not apply. */
struct work_note {
    enum work_event event;
    const char     *tenant, *name, *run, *text;
    int64_t         wait_ms, hold_ms; /* -1 = does not apply */
    uint64_t        fence;
};

/* What is to be done with a subject. Its strings belong to the subject. */
struct work_plan {
    const char *tenant, *name;
    const char *version;          /* for the history; "" = none */
    int64_t     timeout_ms;       /* of a run; 0 = no limit */
    int64_t     stall_timeout_ms; /* without a sign of life; 0 = no limit */
    /* how long a run should hold its key, "lock_timeout_seconds" to users; 0 = no warning */
    int64_t lock_timeout_ms;
    /* The schedule: */
    const struct il__cron *cron; /* NULL = none */
    const struct il__zone *zone;
    /* a tick missed while no server was running is made up for within this time */
    int64_t catch_up_ms;
    /* a trigger may have to wait (tick_slowly), for at most slow_ms */
    bool    slow;
    int64_t slow_ms;
    /* Commands to call when a run has ended (proc/hook.h); NULL = none. They live as long as the
     * subject. */
    char *const *on_success;
    char *const *on_failure;
    char *const *on_lost;
};

/* A tick that is due. Triggered with this id by every server, and created by one of them. */
struct work_tick {
    void            *subject; /* borrowed */
    struct work_plan plan;
    int64_t          at_ms;
    /* How long the run must be kept: for as long as a server may make up for its tick, or it would
     * be started again. */
    int64_t keep_ms;
    char    id[IL_ID_BYTES_MAX + 1];
};
enum work_ticked {
    WORK_TICK_STARTED, /* this server created the run */
    WORK_TICK_EXISTS,  /* another one did */
    WORK_TICK_SKIPPED, /* no run: the error says why */
    WORK_TICK_UNHEARD, /* the store was unreachable: try again */
};
/* Interpret the answer to a tick's op. The error is set for SKIPPED, unless it has a text. */
enum work_ticked work_ticked(const struct work *w, const struct work_tick *tick, const il_op *op,
                             il_error *reterr);

/*
 * What an app tells the executor. `cookie` is that of the options. Every function may be called by
 * any thread of the executor. find, ref, drop, plan, tenants and note may be called with its mutex
 * held: they must not wait, and take only mutexes ranked below it.
 */
struct work_kind {
    const char *class;    /* "pipeline" */
    const char *presence; /* tenant of the lock that says that a server executes this class */

    /* A reference to the subject of this name; NULL: this process does not execute it. */
    void *(*find)(void *cookie, const char *tenant, const char *name);
    void *(*ref)(void *subject);
    void (*drop)(void *subject);
    void (*plan)(void *cookie, const void *subject, struct work_plan *ret);
    /* Tenants that have subjects, each once, in order, until `each` returns false. */
    void (*tenants)(void *cookie, bool (*each)(void *each_cookie, const char *tenant),
                    void *each_cookie);
    /*
     * Execute the run, on its own thread. True: all of it was done. False: it was stopped, or said
     * that it failed (work_run_fail()). It should return soon after work_run_should_stop(), within
     * run->stop_ms if it can: that is when the lease may pass to another holder.
     */
    bool (*execute)(struct work_run *run);
    /* After the end of the run is in the store. May be NULL. */
    void (*ended)(struct work_run *run);
    /* About once a minute, if this process lists slots; may wait for the store. May be NULL. */
    void (*tidy)(void *cookie);
    void (*note)(void *cookie, const struct work_note *note); /* must not block */

    /* Schedules; all NULL: none. */
    /* Subjects in order of (tenant, name), after these (NULL = from the first), as references;
     * returns how many, less than n at the end. */
    size_t (*list)(void *cookie, const char *after_tenant, const char *after_name, void **subjects,
                   size_t n);
    /* Build the op that starts the tick's run, usually with work_start_op(). */
    il_status (*tick_op)(void *cookie, const struct work_tick *tick, void **mem, il_op *op,
                         il_error *reterr);
    /* Trigger a tick of a slow plan; may block. NULL: no plan is slow. */
    enum work_ticked (*tick_slowly)(void *cookie, const struct work_tick *tick, il_error *reterr);
};

enum work_mode {
    WORK_SERVE, /* all of it */
    WORK_HERE,  /* execute only the slots of work_slot_created(): no listing, no schedules */
    WORK_ASK,   /* execute nothing: only triggers, for others to execute */
};
struct work_options {
    const struct work_kind *kind;
    void                   *cookie;
    il                     *h; /* open handle; outlives the executor */
    /* outlives it as well; NULL: the app keeps a history of its runs itself */
    struct il__data *data;
    enum work_mode   mode;
    int64_t          lease_ms;       /* TTL of a run's lease: 30 s */
    int64_t          grace_ms;       /* time to stop: 5 s, at most a third of the lease */
    int64_t          shutdown_ms;    /* time for active runs to finish when it is closed */
    int64_t          keep_ms;        /* runs in the history and of schedules: 30 days */
    uint32_t         runs_max;       /* concurrent runs of this process: 32 */
    int64_t          alert_permille; /* of the lock timeout: 800 */
};

/* Nothing is called and nothing runs before work_start(). */
il_status work_open(const struct work_options *o, struct work **ret, il_error *reterr) MUST_USE;
il_status work_start(struct work *w, il_error *reterr) MUST_USE;
/* Start no more runs; active ones continue. Does not block. */
void work_stop(struct work *w);
/* Waits for active runs, at most shutdown_ms from the stop; then they are stopped and end as
 * INTERRUPTED. Slots are left for other servers. Accepts NULL. */
void work_close(struct work *w);
bool work_is_stopping(struct work *w);
/* Sleep; false: the executor is stopping. */
bool work_pause(struct work *w, int64_t ms);

/* A slot was created by this process: execute it as soon as there is room. Any thread; never waits
 * for the store. */
void work_slot_created(struct work *w, const char *tenant, const char *run_id, const char *name);
/* A run was cancelled through this process: it is not started any more, and the next one of its
 * subject is tried at once. Runs of other classes are ignored. Any thread; never waits. */
void work_cancelled(struct work *w, const il_run_info *run);
/* Subjects have changed: look for their slots and their ticks now. */
void work_rescan(struct work *w);
/* Is this process executing the run, by what the store says of it? Any thread. */
bool work_executes(const struct work *w, const il_run_info *run);
/* Does a server execute this class on the store? True if the store cannot be reached. Waits for
 * it. */
bool work_is_served(il *h, const struct work_kind *kind);
/* Report an error that will be retried; at most once a second. */
void                  work_trouble(struct work *w, const char *what, const il_error *error);
struct work_recorder *work_recorder(struct work *w);

/* ---- triggers (start.c) ---------------------------------------------------------------------- */

/* A new run. Strings are borrowed while the op is built. */
struct work_start {
    const char   *tenant, *class, *name;
    const char   *version;              /* noted in the run; NULL = none */
    const char   *id;                   /* il_uuid(), or of a tick */
    const char   *by;                   /* "" = unknown */
    const char   *type;                 /* "api", "cli", "schedule" */
    const json_t *parameters;           /* an object; NULL = none */
    il_policy     policy;               /* what to do if the subject is running */
    uint32_t      queue_max;            /* of IL_POLICY_QUEUE */
    uint32_t      live_max;             /* concurrent runs of the tenant; 0 = no limit */
    uint32_t      day_max;              /* runs of the tenant since midnight UTC; 0 = no limit */
    uint32_t      minute_max, hour_max; /* triggers of the tenant; 0 = no limit */
    int64_t       keep_ms;
};
/* Build the RUN_START op (IL_RUN_SLOT); *mem owns what it points to (il__arena). IL_INVAL: the
 * parameters are not an object; IL_LIMIT: they are too long. */
il_status work_start_op(const struct work_start *s, void **mem, il_op *op, il_error *reterr)
    MUST_USE;

/* ---- a run, for its executor (execute.c) ----------------------------------------------------- */

/* Why a run is to stop. */
enum work_reason {
    WORK_GO,
    WORK_FAILED, /* it said so */
    WORK_CANCELLED,
    WORK_TIMEOUT,  /* the total time is over, or it showed no sign of life */
    WORK_SHUTDOWN, /* the server's */
    WORK_LOST,     /* the lease was lost: overrides any earlier reason */
};

/* Constant while it is executed, except `own`. */
struct work_run {
    struct work      *work;
    void             *cookie, *subject;
    il               *h;
    struct work_plan  plan;
    const char       *tenant, *key, *id, *holder;
    uint64_t          fence;
    const json_t     *parameters;  /* an object */
    int64_t           deadline_ns; /* total, CLOCK_BOOTTIME; INT64_MAX = none */
    int64_t           stop_ms;     /* it is asked to stop this long before the lease expires */
    struct work_live *live;        /* for output that arrives in pieces (work_lines_add()) */
    void             *own;         /* the app's, until kind->ended() has returned */
    /* The app's: the run was done, but what it found calls for on_failure: why; "" = it does not */
    char alarm[WORK_ALARM_BYTES];
};

/* Should it stop (cancel, lost lease, timeout, shutdown, failure)? Cheap; any thread. */
bool work_run_should_stop(const struct work_run *run);
/* The same before something new begins: also notices a lease that has ended while this process was
 * stopped. False: do not begin. */
bool work_run_may_begin(struct work_run *run);
/* Why it is to stop; text: what was said about it. */
enum work_reason work_run_reason(struct work_run *run, char text[WORK_TEXT_BYTES]);
/* It has failed and is to stop, as FAILED or, timed_out, as TIMEOUT. The first reason stays. */
void work_run_fail(struct work_run *run, bool timed_out, const char *text);
/* The executor noticed by itself that the lease is over. */
void work_run_lost(struct work_run *run);

/*
 * What is to be called when something happens to the run; any may be NULL. All are called with the
 * run's mutex held: they must not block, and must not call functions that take it (work_run_reason,
 * _fail, _lost, _may_begin, _callbacks).
 */
struct work_callbacks {
    void (*stop)(void *cookie); /* it is to stop; perhaps more than once */
    /* its lease was renewed: the new local deadline, CLOCK_BOOTTIME; also called by
     * work_run_callbacks() */
    void (*renewed)(void *cookie, int64_t deadline_ns);
    /* Compare deadlines of the app's own with the clock. Returns when to call it again; INT64_MAX
     * = never. Now, if work_run_poke() is called. */
    int64_t (*watch)(void *cookie, int64_t now_ns);
};
/* Set them, or with NULL remove them: no call is in progress when it returns. If the run is to stop
 * already, stop is called at once. */
void work_run_callbacks(struct work_run *run, const struct work_callbacks *callbacks, void *cookie);
/* Have `watch` called now. Not from a callback: it takes the executor's mutex, which is ranked
 * above the run's. */
void work_run_poke(struct work_run *run);

/* Show what it does, and how far it is (percent). A sign of life. */
void work_run_stage(struct work_run *run, const char *stage, int32_t percent);
/* Add a line of its own to the log: "== text". A sign of life. */
void work_run_say(struct work_run *run, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* It is alive and makes progress. Cheap; any thread. */
void work_run_alive(struct work_run *run);

/* ---- for metrics ----------------------------------------------------------------------------- */

struct work_stats {
    /* runs of this process: executing; waiting for a place */
    uint64_t n_running, n_waiting;
    uint64_t n_started, n_completed, n_failed, n_cancelled, n_timeout, n_interrupted;
    uint64_t n_schedule_ticks, n_schedule_skipped;
    uint64_t n_hooks_failed;
    /* own runs that have held their keys for longer than alert_permille of the lock timeout */
    uint64_t n_expiring;
    /* own leases that are beyond WORK_UNRENEWED_PERMILLE of their TTL */
    uint64_t n_unrenewed;
    uint64_t n_history_dropped;
};
void work_stats(struct work *w, struct work_stats *ret);

#endif
