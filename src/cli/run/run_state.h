/*
 * run_state.h: what the files of the wrapper share: run.c, hold_*.c, conclude.c, held.c, supervise.c,
 * join.c.
 */
#ifndef IL_CLI_RUN_RUN_STATE_H
#define IL_CLI_RUN_RUN_STATE_H

#include <signal.h>
#include <stdatomic.h>

#include "base/base.h"
#include "cli/run/capture.h"
#include "cli/run/log.h"
#include "cli/run/pump.h"
#include "proc/reaper.h"
#include "cli/run/run.h"
#include "cli/run/spool.h"
#include "proc/tty.h"

#define IL__EXIT_SIGNAL 128 /* plus the signal's number */
#define IL__EXIT_SOFTWARE \
    70                 /* sysexits.h: the reaper was killed and took the command's status along */
#define IL__EXIT_OS 71 /* sysexits.h: no process or memory to be had */

#define IL__RUN_GO_ON (-1) /* instead of an exit status: not at the end yet */

struct il__run_state;

/* What one kind of run takes before the command starts, and gives back when it has ended. */
struct il__run_hold {
    /* The store is open: take it. IL__RUN_GO_ON and r->lease, or the exit status: the command is not started. */
    int (*take)(struct il__run_state *r);
    /* The command is over, with `status`, and its output is passed on. Returns the exit status. */
    int (*give)(struct il__run_state *r, const struct il__reaper_report *report, int status);
    /* At the end, whatever happened: give back what was taken for nothing, and free. */
    void (*drop)(struct il__run_state *r);
    /* Its output comes through the pump, and is told here, on the pump's thread; add NULL = it is not. */
    struct il__run_sink sink;
    bool told; /* the watchdog tells of renewals, losses and cancellations by callbacks */
};
extern const struct il__run_hold il__run_hold_lease;
extern const struct il__run_hold il__run_hold_join; /* the same, and its output is spooled */
extern const struct il__run_hold il__run_hold_record;
extern const struct il__run_hold il__run_hold_once;
extern const struct il__run_hold il__run_hold_build;

struct il__run_state {
    const struct il__run_opts *opts;
    const struct il__run_hold *hold;
    const char                *outcome;       /* one word, for --json; docs/CLI.md lists them */
    char                       message[2048]; /* --json: the sentence about the outcome, or "" */
    int64_t                    ttl_ms;
    int64_t                    grace_ms; /* at most a third of the TTL */
    int64_t                    began_ns; /* the command's start; 0 = never */
    int64_t                    ended_ns;
    uint64_t                   fence;
    char                       holder[IL_HOLDER_BYTES_MAX + 1];
    char                       meta[IL_META_BYTES_MAX + 1];
    char                      *path; /* of the command */
    struct il__run_tty         tty;
    struct il__reaper          reaper;
    int                        sig_fd;
    sigset_t                   mask_before;
    il                        *store;
    const il_lease            *lease;    /* what is watched: that of one of these */
    il_lease                  *own;      /* LEASE */
    il_run                    *run;      /* RECORD */
    il_once                   *once;     /* ONCE */
    il_build                  *build;    /* BUILD */
    bool                       released; /* or tried to */
    /* Written by the watchdog's thread, the flag last; read when the flag is set. */
    char                lost_why[256];
    _Atomic bool        lost;
    char                cancel_why[IL_PLACE_BYTES_MAX + 1]; /* RECORD */
    _Atomic bool        cancelled;
    struct il__run_pump pump;
    struct il__spool    spool;   /* --on-conflict join only */
    struct il__run_log  log;     /* RECORD */
    struct il__capture  capture; /* ONCE, BUILD */
    struct il__buf      stale;   /* BUILD: the value before */
    bool                has_stale;
    char                id[IL_ID_BYTES_MAX + 1]; /* RECORD: of our own run */
    char in_the_way[IL_ID_BYTES_MAX + 1]; /* RECORD: the run because of which there is none; or "" */
};

/* ---- run.c --------------------------------------------------------------------------- */

/* Say what went wrong; the exit status. */
int il__run_give_up(struct il__run_state *r, const il_error *error);

/* A signal came before the command was started; the exit status. */
int il__run_interrupted(struct il__run_state *r, int sig);

/* The deadline of the lease for the reaper; it only grows, whoever of several comes first. */
void il__run_publish_deadline(struct il__run_state *r, int64_t deadline_ns);

/* ---- signals.c ------------------------------------------------------------------------ */

/*
 * Block what is passed on, and have it in r->sig_fd instead. What was ignored when we were started
 * (HUP under nohup) stays ignored, here and in the command.
 */
bool il__run_signals_open(struct il__run_state *r);
/* Back to how it was when we were started. */
void il__run_signals_close(struct il__run_state *r);

/*
 * Has INT, TERM, HUP or QUIT come? Its number, else 0; what else has come is forgotten. Never
 * blocks.
 */
int il__run_signals_ending(struct il__run_state *r);

/*
 * Call `take`, which waits for something if `waits`, ended by the same signals: IL_CANCELLED, and *ret_sig is the
 * number. Signal and success may come together: look at *ret_sig, too.
 */
typedef il_status il__run_take_fn(struct il__run_state *r, void *cookie, il_error *reterr);
il_status         il__run_signals_take(struct il__run_state *r, bool waits, il__run_take_fn *take,
                                       void *cookie, int *ret_sig, il_error *reterr);

/* ---- supervise.c ------------------------------------------------------------------------ */

/* Start the command and see to it until nothing of it is left, whatever happens to the reaper. */
struct il__reaper_report il__run_supervise(struct il__run_state *r);

/* ---- conclude.c ------------------------------------------------------------------------ */

/*
 * The command is over: say what there is to say, keep the end for joiners, release. The exit
 * status.
 */
int il__run_conclude(struct il__run_state *r, const struct il__reaper_report *report);

/* The lease had ended before it was given back: say so; the exit status. */
int il__run_was_lost(struct il__run_state *r);

/*
 * The store was told how the command ended, and answered with `status`. Is it to be told again, after a moment? As long as
 * what was taken lives, and no signal comes: a store that is busy for a while must not make work be done twice.
 */
bool il__run_try_again(struct il__run_state *r, il_status status);

/* Say what the outcome is: as a line on stderr, or with --json in r->message. */
void il__run_tell(struct il__run_state *r, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* ---- held.c ------------------------------------------------------------------------ */

/* Somebody else holds the key: tell who. `more` is added to the sentence. */
void il__run_tell_held(struct il__run_state *r, const il_error *error, const char *more);

/* About to wait: on a terminal, say for whom, unless the key looks free for us. */
void il__run_say_waiting(const struct il__run_state *r);

/* ---- join.c ------------------------------------------------------------------------ */

enum il__run_joined {
    IL__JOIN_DONE,   /* *ret_status is the exit status */
    IL__JOIN_AGAIN,  /* the holder has gone meanwhile: try to acquire again */
    IL__JOIN_CANNOT, /* it cannot be joined, and why has been said */
};

/*
 * Follow the run of the holder named by `held`. When it can be followed, the reaper is dismissed.
 */
enum il__run_joined il__run_join(struct il__run_state *r, const il_error *held, int *ret_status);

/* ---- hold_lease.c ------------------------------------------------------------------------ */

/* Somebody else holds the key, and that was to be expected: the exit status. */
int il__run_conflict(struct il__run_state *r, const il_error *error);

/* The callbacks of a lease or a run, on the watchdog's thread: it is lost. */
void il__run_lost(struct il__run_state *r, const char *why);

/* The spool as a sink. */
bool il__run_spool_add(void *cookie, uint32_t stream, const void *data, size_t n_bytes);
void il__run_spool_incomplete(void *cookie);

#endif
