/*
 * run_state.h: what the files of the wrapper share: run.c, conclude.c, held.c, supervise.c,
 * join.c.
 */
#ifndef IL_CLI_RUN_RUN_STATE_H
#define IL_CLI_RUN_RUN_STATE_H

#include <signal.h>
#include <stdatomic.h>

#include "base/base.h"
#include "cli/run/pump.h"
#include "cli/run/reaper.h"
#include "cli/run/run.h"
#include "cli/run/spool.h"
#include "cli/run/tty.h"

#define IL__EXIT_SIGNAL 128 /* plus the signal's number */
#define IL__EXIT_SOFTWARE \
    70                 /* sysexits.h: the reaper was killed and took the command's status along */
#define IL__EXIT_OS 71 /* sysexits.h: no process or memory to be had */

struct il__run_state {
    const struct il__run_opts *opts;
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
    il_lease                  *lease;
    bool                       released; /* or tried to */
    /* Written by the watchdog's thread, `lost` last; read when `lost` is set. */
    char         lost_why[256];
    _Atomic bool lost;
    /* --on-conflict join only. */
    struct il__spool    spool;
    struct il__run_pump pump;
};

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

/* il_acquire(), ended by the same signals: IL_CANCELLED, and *ret_sig is the number. */
il_status il__run_signals_acquire(struct il__run_state *r, const il_acquire_opts *opts,
                                  int *ret_sig, il_error *reterr);

/* ---- supervise.c ------------------------------------------------------------------------ */

/* Start the command and see to it until nothing of it is left, whatever happens to the reaper. */
struct il__reaper_report il__run_supervise(struct il__run_state *r);

/* ---- conclude.c ------------------------------------------------------------------------ */

/*
 * The command is over: say what there is to say, keep the end for joiners, release. The exit
 * status.
 */
int il__run_conclude(struct il__run_state *r, const struct il__reaper_report *report);

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

#endif
