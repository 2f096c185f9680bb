/*
 * play_internal.h: an order being played; shared by play.c (execution), ops.c (commands) and say.c
 * (output).
 */
#ifndef T_PLAY_INTERNAL_H
#define T_PLAY_INTERNAL_H

#include "harness/invariants.h"
#include "spec/spec.h"

#define FENCES_MAX 256

/* A session on its way through its steps. */
struct player {
    const struct session *session;
    il                   *h;
    size_t                i_step; /* under way */
    size_t                i_command;
    size_t                n_given; /* steps that its turn has come for */
    bool                  frozen;
    bool                  waiting;
    il_op                 op; /* the one that waits, or ended a wait last */
    int64_t               deadline_ms;
    int64_t               asked_ms;
    char                  schedule[NAME_BYTES];
};

#define HELD_BYTES (NAME_BYTES + 8)

struct held { /* the fence or token that a holder got for something */
    char     name[HELD_BYTES];
    char     holder[NAME_BYTES];
    uint64_t fence;
};

struct play {
    const struct spec   *sp;
    struct t_store      *s;
    struct player        players[SESSIONS_MAX + 1]; /* the last one plays the setup */
    size_t               n_players;
    struct t_watch       watch;
    char                 tenant[32];         /* of this order: one store plays them all */
    uint64_t             fences[FENCES_MAX]; /* by first appearance */
    size_t               n_fences;
    struct held          helds[FENCES_MAX];
    size_t               n_helds;
    unsigned             n_claims;
    char                 claim_id[32]; /* of the last one */
    char                *out;
    size_t               n_out;
    size_t               n_out_max;
    const struct player *speaker;   /* whose result was said last */
    bool                 unsettled; /* an op was applied: whom it woke may not know yet */
};

/* Apply in the tenant of this order. */
void play_apply(struct play *p, il *h, il_op *op);

/* The op that a command means; its strings are those of the command and of `p`. */
il_op play_op(struct play *p, struct player *pl, const struct command *c);
/* The fences and tokens that it gave, for later commands. */
void play_remember(struct play *p, const il_op *op);

/* Add to the line of this order. */
void play_say(struct play *p, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* `a1=` before the first result of a step, `,` between, `a1>` when a wait has ended, `a1+` when
 * somebody else spoke between. */
void play_say_where(struct play *p, const struct player *pl, char mark);
void play_say_lease(struct play *p, const il_lease_info *it);
void play_say_run(struct play *p, const il_run_info *run);
void play_say_job(struct play *p, const il_job_info *job);
void play_say_result(struct play *p, const il_op *op, bool waits);
/* What is left in the store: leases, waiters, runs, jobs, and the values of the keys that the spec
 * names. */
void play_say_end(struct play *p);

#endif
