/*
 * conclude.c: what is said, kept and returned at the end of a run.
 */
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/parse.h"
#include "cli/run/run_state.h"
#include "proc/spawn.h"
#include "proc/sys.h"
#include "cli/table.h"

/* How long output may still be passed on once the command was stopped. */
#define PUMP_PATIENCE_MS 1000
#define TRY_AGAIN_MS 200 /* between two tries to tell the store how it ended */

void
il__run_tell(struct il__run_state *r, const char *fmt, ...)
{
    char    text[sizeof r->message];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (r->opts->json)
        memcpy(r->message, text, sizeof text);
    else
        il__run_say("%s", text);
}

static int
lost(struct il__run_state *r, const char *why)
{
    if (atomic_load(&r->cancelled)) {
        r->outcome = "cancelled";
        il__run_tell(r, "%s: the run was cancelled: %s", r->opts->key, r->cancel_why);
        return il_status_exit(IL_CANCELLED);
    }
    r->outcome = "lost";
    if (atomic_load(&r->lost))
        why = r->lost_why;
    il__run_tell(r, "%s: the lease was lost: %s", r->opts->key, why);
    return il_status_exit(IL_LOST);
}

static int
timed_out(struct il__run_state *r)
{
    char text[IL__DURATION_TEXT_BYTES];

    r->outcome = "timeout";
    il__run_tell(r, "%s: the command took longer than %s and was stopped", r->opts->key,
                 il__duration_text(r->opts->timeout_ms, text));
    return il_status_exit(IL_TIMEOUT);
}

static int
failed(struct il__run_state *r, const struct il__reaper_report *report)
{
    r->outcome = "failed";
    if (report->is_exec)
        return il__run_exec_failed(r->opts->argv[0], r->path, report->error);
    il__run_say("%s: the command could not be started: %s", r->opts->key, strerror(report->error));
    return IL__EXIT_OS;
}

/* The command's own status, as a shell would give it. */
static int
own_status(struct il__run_state *r, int wait_status)
{
    if (wait_status < 0)
        return IL__EXIT_SOFTWARE;
    r->outcome = WIFSIGNALED(wait_status) ? "signalled" : "exited";
    return WIFSIGNALED(wait_status) ? IL__EXIT_SIGNAL + WTERMSIG(wait_status)
                                    : WEXITSTATUS(wait_status);
}

static int
status_of(struct il__run_state *r, const struct il__reaper_report *report)
{
    switch ((enum il__reaper_end)report->end) {
    case IL__END_EXITED:
        return own_status(r, report->wait_status);
    case IL__END_LOST:
    case IL__END_DEADLINE:
        return lost(r, "it was not renewed in time");
    case IL__END_TIMEOUT:
        return timed_out(r);
    case IL__END_FAILED:
        return failed(r, report);
    case IL__END_REAPER:
        il__run_say("%s: the reaper was killed; the command was stopped", r->opts->key);
        return own_status(r, report->wait_status);
    case IL__END_NONE:
    case IL__END_ORPHANED:
        break;
    }
    il__check_failed("a report says how it ended", __FILE__, __LINE__, __func__);
}

/*
 * Pass on the rest of the output. That may take as long as somebody reads it slowly; a signal ends
 * the wait, and after a stop, or a signal that came before, there is little patience.
 */
static int
finish_output(struct il__run_state *r, const struct il__reaper_report *report, int status)
{
    int64_t give_up_ns = il__clock_boot_ns() + (int64_t)PUMP_PATIENCE_MS * IL__NS_PER_MS;
    bool    patient    = report->end == IL__END_EXITED && !r->reaper.asked_to_end;

    if (!r->pump.running)
        return status;
    il__run_pump_quit(&r->pump);
    for (;;) {
        struct pollfd fds[]   = { { r->pump.done_fd, POLLIN, 0 }, { r->sig_fd, POLLIN, 0 } };
        int64_t       left_ns = MAX(give_up_ns - il__clock_boot_ns(), 0);
        int           n = poll(fds, ARRAY_LEN(fds), patient ? -1 : (int)(left_ns / IL__NS_PER_MS));
        if (n == 0 || fds[0].revents != 0)
            break;
        int sig = n > 0 ? il__run_signals_ending(r) : 0;
        if (sig != 0) {
            r->outcome = "interrupted";
            status     = IL__EXIT_SIGNAL + sig;
            break;
        }
    }
    il__run_pump_finish(&r->pump);
    return status;
}

int
il__run_was_lost(struct il__run_state *r)
{
    r->outcome = "lost";
    il__run_tell(r,
                 "%s: the command has ended, but the lease had been lost before: somebody else may "
                 "have worked at the same time",
                 r->opts->key);
    return il_status_exit(IL_LOST);
}

bool
il__run_try_again(struct il__run_state *r, il_status status)
{
    bool          unanswered = status == IL_STORE || status == IL_FULL || status == IL_NOMEM;
    struct pollfd fd         = { r->sig_fd, POLLIN, 0 };

    if (!unanswered || il_lease_remaining_ms(r->lease) == 0)
        return false;
    (void)poll(&fd, 1, TRY_AGAIN_MS);
    return il__run_signals_ending(r) == 0;
}

/* Output that the command got rid of and we did not is a failure, if only ours. */
static int
check_output(struct il__run_state *r, int status)
{
    int error = atomic_load(&r->pump.error);

    if (error == 0)
        return status;
    il__run_tell(r, "%s: the output cannot be written: %s", r->opts->key, strerror(error));
    return status != 0 ? status : CLI_EXIT_IO;
}

int
il__run_conclude(struct il__run_state *r, const struct il__reaper_report *report)
{
    int status = status_of(r, report);

    il__reaper_dismiss(&r->reaper); /* it leaves while the store is busy */
    status = finish_output(r, report, status);
    /* Before the release: whoever finds the key free finds the end of the run, too. */
    il__spool_end(&r->spool, status);
    return check_output(r, r->hold->give(r, report, status));
}
