/* wrap_internal.h: shared by the files of the wrapper. */
#ifndef IL_CLI_WRAP_INTERNAL_H
#define IL_CLI_WRAP_INTERNAL_H

#include <signal.h>
#include <stdatomic.h>

#include "base/base.h"
#include "cli/wrap/capture.h"
#include "cli/wrap/log.h"
#include "cli/wrap/pump.h"
#include "proc/reaper.h"
#include "cli/wrap/wrap.h"
#include "cli/wrap/spool.h"
#include "proc/tty.h"

#define IL__EXIT_SIGNAL 128 /* plus the signal's number */
/* sysexits.h: the reaper was killed, so the command's status is lost */
#define IL__EXIT_SOFTWARE 70
#define IL__EXIT_OS 71 /* sysexits.h: cannot create a process or allocate memory */

#define WRAP_GO_ON (-1) /* instead of an exit status: continue */

struct wrap;

/* What one kind of run takes before the command starts, and gives back when it has ended. */
struct wrap_hold {
    /* The store is open: take it. WRAP_GO_ON and r->lease, or the exit status: the command is
     * not started. */
    int (*take)(struct wrap *r);
    /* The command is over, with `status`, and its output is passed on. Returns the exit status. */
    int (*give)(struct wrap *r, const struct il__reaper_report *report, int status);
    /* At the end, in any case: give back what was taken but not used, and free. */
    void (*drop)(struct wrap *r);
    /* Its output comes through the pump and is delivered here, on the pump's thread; add NULL =
     * it is not. */
    struct wrap_sink sink;
    bool told; /* the watchdog reports renewals, losses and cancellations by callbacks */
    /* The command continues if the store takes its claim away, unlike after a missed renewal. */
    bool goes_on;
};
extern const struct wrap_hold wrap_hold_lease;
extern const struct wrap_hold wrap_hold_join; /* the same, with its output spooled */
extern const struct wrap_hold wrap_hold_record;
extern const struct wrap_hold wrap_hold_once;
extern const struct wrap_hold wrap_hold_build;

struct wrap {
    const struct wrap_opts *opts;
    const struct wrap_hold *hold;
    const char             *outcome;       /* one word, for --json; docs/CLI.md lists them */
    char                    message[2048]; /* the sentence about the outcome, or "" */
    bool                    hook_failed;
    int64_t                 ttl_ms;
    int64_t                 grace_ms; /* at most a third of the TTL */
    int64_t                 began_ns; /* the command's start; 0 = never */
    int64_t                 ended_ns;
    uint64_t                fence;
    char                    holder[IL_HOLDER_BYTES_MAX + 1];
    char                    meta[IL_META_BYTES_MAX + 1];
    char                   *path;       /* of the command; NULL = not found: */
    int                     path_error; /* errno */
    struct proc_tty         tty;
    struct il__reaper       reaper;
    int                     sig_fd;
    sigset_t                mask_before;
    il                     *store;
    const il_lease         *lease;    /* the watched lease: that of one of these */
    il_lease               *own;      /* LEASE */
    il_run                 *run;      /* RECORD */
    il_once                *once;     /* ONCE */
    il_build               *build;    /* BUILD */
    bool                    released; /* or tried to */
    bool                    bounded;  /* bounded_call.c: the remaining calls have a deadline */
    int64_t                 leave_by_ns;
    bool                    stuck; /* a call missed it: the store is in use until we exit */
    /* Written by the watchdog's thread, the flag last; read when the flag is set. */
    char               lost_why[256];
    bool               lost_in_silence; /* it was not renewed; otherwise the store refused it */
    _Atomic bool       lost;
    char               cancel_why[IL_PLACE_BYTES_MAX + 1]; /* RECORD */
    _Atomic bool       cancelled;
    struct wrap_pump   pump;
    struct il__spool   spool;   /* --on-conflict join only */
    struct wrap_log    log;     /* RECORD */
    struct il__capture capture; /* ONCE, BUILD */
    struct il__buf     stale;   /* BUILD: the previous value */
    bool               has_stale;
    bool               is_void; /* BUILD: dropped or filled meanwhile; no one waits for ours */
    char               id[IL_ID_BYTES_MAX + 1]; /* RECORD: of our own run */
    /* RECORD: the run that prevented ours; or "" */
    char in_the_way[IL_ID_BYTES_MAX + 1];
};

/* ---- wrap.c -------------------------------------------------------------------------- */

/* Report an error; returns the exit status. */
int wrap_give_up(struct wrap *r, const il_error *error);

/* A signal came before the command was started; returns the exit status. */
int wrap_interrupted(struct wrap *r, int sig);

/* Publish the deadline of the lease to the reaper; it only grows, in whatever order calls
 * arrive. */
void wrap_publish_deadline(struct wrap *r, int64_t deadline_ns);

/* ---- signals.c ------------------------------------------------------------------------ */

/* Block the signals to pass on, and read them from r->sig_fd instead. Signals that were ignored
 * at start-up (HUP under nohup) stay ignored, here and in the command. */
bool wrap_signals_open(struct wrap *r);
/* Restore the state at start-up. */
void wrap_signals_close(struct wrap *r);

/* Has INT, TERM, HUP or QUIT arrived? Its number, else 0; other signals are discarded. Never
 * blocks. */
int wrap_signals_ending(struct wrap *r);

/*
 * Call `take`, which waits for something if `waits`. The same signals end the wait: IL_CANCELLED,
 * and *ret_sig is the number. Signal and success may coincide, so check *ret_sig as well.
 */
typedef il_status wrap_take_fn(struct wrap *r, void *cookie, il_error *reterr);
il_status         wrap_signals_take(struct wrap *r, bool waits, wrap_take_fn *take, void *cookie,
                                    int *ret_sig, il_error *reterr);

/* ---- supervise.c ------------------------------------------------------------------------ */

/* Start the command and supervise it until all its processes have ended, whatever happens to the
 * reaper. */
struct il__reaper_report wrap_supervise(struct wrap *r);

/* ---- conclude.c ------------------------------------------------------------------------ */

/* The command is over: print messages, store the end for joiners, release. Returns the exit
 * status. */
int wrap_conclude(struct wrap *r, const struct il__reaper_report *report);

/* After everything was given back: call the hook, if the command had been started. */
void wrap_hook(struct wrap *r, int status);

/* The lease had ended before it was given back: report it; returns the exit status. */
int wrap_report_lost(struct wrap *r);

/*
 * The store answered the report of the outcome with `status`. Should it be repeated after a moment?
 * Yes while the lease or claim lives and no signal comes: a busy store must not cause work to be
 * done twice.
 */
bool wrap_try_again(struct wrap *r, il_status status, const il_error *error);

/* Report the outcome: as a line on stderr, or with --json in r->message. */
void wrap_tell(struct wrap *r, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* ---- bounded_call.c -------------------------------------------------------------------------- */

/* The command is over. `silent`: its lease too, because the store did not answer. */
void wrap_bound_calls(struct wrap *r, bool silent);

/* Call `fn`, which calls the store. Returns its result; or IL_STORE, with r->stuck set, if it
 * takes too long or a signal comes. `cookie` must be static: `fn` may still use it then. */
il_status wrap_bounded_call(struct wrap *r, wrap_take_fn *fn, void *cookie, il_error *reterr);

/* ---- holder_text.c --------------------------------------------------------------------------- */

/* Report who holds the key. `more` is appended to the message. */
void wrap_tell_held(struct wrap *r, const il_error *error, const char *more);

/* About to wait: on a terminal, say for whom, unless the key looks free for us. */
void wrap_say_waiting(const struct wrap *r);

/* ---- report_refusal.c ------------------------------------------------------------------------ */

/* After the caller was told: report to the store that the key is held; of an idempotency key, that
 * the attempt with this meta is still running. */
void wrap_report_refusal(struct wrap *r, const il_error *error);
void wrap_report_refusal_once(struct wrap *r, const char *meta, int64_t age_ms);

/* ---- join.c ------------------------------------------------------------------------ */

enum wrap_joined {
    IL__JOIN_DONE,   /* *ret_status is the exit status */
    IL__JOIN_AGAIN,  /* the holder has gone meanwhile: try to acquire again */
    IL__JOIN_CANNOT, /* it cannot be joined; the reason has been reported */
};

/* Follow the run of the holder named by `held`. If it can be followed, the reaper is dismissed. */
enum wrap_joined wrap_join(struct wrap *r, const il_error *held, int *ret_status);

/* ---- hold_lease.c ------------------------------------------------------------------------ */

/* The key is held, as the options provide for: returns the exit status. */
int wrap_conflict(struct wrap *r, const il_error *error);

/* Callbacks of a lease or a run, on the watchdog's thread: it is lost. */
void wrap_on_lost(struct wrap *r, const il_lease *lease, const char *why);

/* The spool as a sink of the pump. */
bool wrap_spool_add(void *cookie, uint32_t stream, const void *data, size_t n_bytes);
void wrap_spool_mark_incomplete(void *cookie);

#endif
