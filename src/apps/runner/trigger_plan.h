/*
 * trigger_plan.h: decides what a trigger does next. The rules of joining, skipping, rejecting,
 * retrying, probing and following the probe of another are only here. It is a state machine without
 * I/O, clock or threads: a driver reports what happened and gets the next action. trigger.c drives
 * it with blocking calls (the CLI, schedules), routes_trigger.c with the callbacks of a request.
 *
 *   begin ──> LOOK ──> PROBE ──> START ──> END
 *     │         └── live run ──>  │  ^
 *     └──────── no probe ───────> │  │
 *                            PAUSE ──┘   on_conflict: reject, while retries are left
 */
#ifndef IL_APPS_RUNNER_TRIGGER_PLAN_H
#define IL_APPS_RUNNER_TRIGGER_PLAN_H

#include "apps/runner/runner.h"

/* What to do. */
enum trigger_do {
    TRIGGER_LOOK,  /* list the live runs of the pipeline: trigger_look_op() */
    TRIGGER_PROBE, /* run the probe: is the external job running? */
    TRIGGER_START, /* apply plan.op */
    TRIGGER_PAUSE, /* release plan.op, wait for lock_retry_delay_ms of the pipeline */
    TRIGGER_END,   /* plan.answer and its fields */
};

/* What happened. */
enum trigger_happened {
    TRIGGER_LOOKED,   /* .status; .live */
    TRIGGER_PROBED,   /* .status: as runner_probe(); .outside */
    TRIGGER_FOLLOWED, /* the same, from the probe of another trigger of the pipeline */
    TRIGGER_STARTED,  /* .status: of the call; plan.op has its own */
    TRIGGER_PAUSED,   /* .stopping */
};
struct trigger_event {
    enum trigger_happened what;
    il_status             status;
    bool                  live;     /* the pipeline has a live run */
    bool                  stopping; /* the server stops: this is the last attempt */
    const char           *outside;  /* id of the external job; must live as long as the plan */
};

struct trigger_plan {
    const struct pipeline *pipeline;
    il_op                 *op;        /* of runner_trigger_op() */
    uint32_t               n_retries; /* retries left: with any, a conflict is not final */

    /* At the end. Strings belong to op->out and the event. */
    enum runner_answer answer;
    const char        *id;      /* RUNNING, SKIPPED: id of the running job */
    const char        *run;     /* ... if it is a run in the store; REJECTED: the one ahead of us */
    const char        *holder;  /* REJECTED: the holder of the key */
    bool               outside; /* reported by a probe */
    bool               execute; /* TRIGGERED: the slot is new */
    bool               unheard; /* FAILED: the store did not answer; a retry may succeed */
};

enum trigger_do trigger_begin(struct trigger_plan *plan, const struct pipeline *p, il_op *op);
enum trigger_do trigger_next(struct trigger_plan *plan, const struct trigger_event *e);

/* ---- one probe of a pipeline at a time ------------------------------------------------------- */

/*
 * Probes in progress, in a list. The first trigger of a pipeline that is to probe leads; those that
 * come meanwhile follow it and wait. When its probe has ended, a refusal or a failure is that of
 * the followers with the same values as well; the others get IL_OK and begin again with LOOK
 * (TRIGGER_FOLLOWED), since much may have changed.
 *
 * A list belongs to its driver, which synchronises it: that of trigger.c is protected by the
 * runner's mutex, that of routes_trigger.c is used on the loop.
 */
struct trigger_probe {
    const struct pipeline        *pipeline; /* set these two, the rest 0 */
    const struct pipeline_values *values;

    bool      ended;   /* of a follower: the probe that it followed, with this outcome */
    il_status status;  /* as TRIGGER_FOLLOWED */
    char     *outside; /* owned by the follower's driver; NULL: none, or no memory */
    il_error  error;

    struct trigger_probe *next;      /* in the list, or among the followers */
    struct trigger_probe *leader;    /* of a follower, until it has ended */
    struct trigger_probe *followers; /* newest first */
};
/* True: it leads and is in the list, so probe. False: it follows, until `ended`. */
bool trigger_probe_begin(struct trigger_probe **list, struct trigger_probe *me) MUST_USE;
/* The leader's probe has ended. Returns its followers, linked by `next`, which have ended too. */
struct trigger_probe *trigger_probe_end(struct trigger_probe **list, struct trigger_probe *me,
                                        il_status status, const char *outside,
                                        const il_error *error);
/* A follower that has not ended gives up. */
void trigger_probe_leave(struct trigger_probe *me);

/* A trigger of the pipeline may need more than one op. */
bool trigger_is_slow(const struct pipeline *p);
/* The op of TRIGGER_LOOK, without its tenant; its key is the pipeline's. */
il_op trigger_look_op(const struct pipeline *p);

#endif
