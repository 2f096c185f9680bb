/*
 * conclude.c: the end of a run: messages, stored results and the exit status.
 */
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/parse.h"
#include "cli/defs.h"
#include "cli/wrap/wrap_internal.h"
#include "proc/spawn.h"
#include "proc/sys.h"

/* How long output may still be passed on after the command was stopped. */
#define PUMP_PATIENCE_MS 1000
#define TRY_AGAIN_MS 200 /* between two attempts to report the outcome */

void
wrap_tell(struct wrap *r, const char *fmt, ...)
{
    char    text[sizeof r->message];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    memcpy(r->message, text, sizeof text); /* for --json and hooks */
    if (!r->opts->json)
        il__proc_say("%s", text);
}

static int
lost(struct wrap *r, const char *why)
{
    if (atomic_load(&r->cancelled)) {
        r->outcome = "cancelled";
        wrap_tell(r, "%s: run cancelled: %s", r->opts->key, r->cancel_why);
        return il_status_exit(IL_CANCELLED);
    }
    r->outcome = "lost";
    if (atomic_load(&r->lost))
        why = r->lost_why;
    wrap_tell(r, "%s: %s; the command was stopped", r->opts->key, why);
    return il_status_exit(IL_LOST);
}

static int
timed_out(struct wrap *r)
{
    char text[IL__DURATION_TEXT_BYTES];

    r->outcome = "timeout";
    wrap_tell(r, "%s: the command took longer than %s and was stopped", r->opts->key,
              il__duration_text(r->opts->timeout_ms, text));
    return il_status_exit(IL_TIMEOUT);
}

static int
failed(struct wrap *r, const struct il__reaper_report *report)
{
    r->outcome = "failed";
    if (report->is_exec)
        return il__proc_exec_failed(r->opts->argv[0], r->path, report->error);
    il__proc_say("%s: cannot start the command: %s", r->opts->key, strerror(report->error));
    return IL__EXIT_OS;
}

/* The command's own status, as a shell would report it. */
static int
own_status(struct wrap *r, int wait_status)
{
    if (wait_status < 0)
        return IL__EXIT_SOFTWARE;
    r->outcome = WIFSIGNALED(wait_status) ? "signalled" : "exited";
    return WIFSIGNALED(wait_status) ? IL__EXIT_SIGNAL + WTERMSIG(wait_status)
                                    : WEXITSTATUS(wait_status);
}

static int
status_of(struct wrap *r, const struct il__reaper_report *report)
{
    switch ((enum il__reaper_end)report->end) {
    case IL__END_EXITED:
        return own_status(r, report->wait_status);
    case IL__END_LOST:
    case IL__END_DEADLINE:
        return lost(r, "lease not renewed in time");
    case IL__END_TIMEOUT:
        return timed_out(r);
    case IL__END_FAILED:
        return failed(r, report);
    case IL__END_REAPER:
        il__proc_say("%s: the supervisor process was killed; the command was stopped",
                     r->opts->key);
        return own_status(r, report->wait_status);
    case IL__END_NONE:
    case IL__END_ORPHANED:
        break;
    }
    il__check_failed("a report says how it ended", __FILE__, __LINE__, __func__);
}

/* Pass on the rest of the output. A slow reader may delay that without limit; a signal ends the
 * wait, and after a stop or an earlier signal the wait is short. */
static int
finish_output(struct wrap *r, const struct il__reaper_report *report, int status)
{
    int64_t give_up_ns = il__clock_boot_ns() + (int64_t)PUMP_PATIENCE_MS * IL__NS_PER_MS;
    bool    patient    = report->end == IL__END_EXITED && !r->reaper.asked_to_end;

    if (!r->pump.running)
        return status;
    wrap_pump_quit(&r->pump);
    for (;;) {
        struct pollfd fds[]   = { { r->pump.done_fd, POLLIN, 0 }, { r->sig_fd, POLLIN, 0 } };
        int64_t       left_ns = MAX(give_up_ns - il__clock_boot_ns(), 0);
        int           n = poll(fds, ARRAY_LEN(fds), patient ? -1 : (int)(left_ns / IL__NS_PER_MS));
        if (n == 0 || fds[0].revents != 0)
            break;
        int sig = n > 0 ? wrap_signals_ending(r) : 0;
        if (sig != 0) {
            r->outcome = "interrupted";
            status     = IL__EXIT_SIGNAL + sig;
            break;
        }
    }
    wrap_pump_finish(&r->pump);
    return status;
}

int
wrap_report_lost(struct wrap *r)
{
    r->outcome = "lost";
    wrap_tell(r,
              "%s: the command finished, but its lease was lost earlier; another holder may "
              "have run at the same time",
              r->opts->key);
    return il_status_exit(IL_LOST);
}

bool
wrap_try_again(struct wrap *r, il_status status, const il_error *error)
{
    bool          unanswered = status == IL_STORE || status == IL_FULL || status == IL_NOMEM;
    struct pollfd fd         = { r->sig_fd, POLLIN, 0 };

    if (!unanswered || strcmp(error->native, IL__NATIVE_GONE) == 0 || r->stuck ||
        il_lease_remaining_ms(r->lease) == 0)
        return false;
    (void)poll(&fd, 1, TRY_AGAIN_MS);
    return wrap_signals_ending(r) == 0;
}

/* Output that the command wrote but we could not is a failure, even if only ours. */
static int
check_output(struct wrap *r, int status)
{
    int error = atomic_load(&r->pump.error);

    if (error == 0)
        return status;
    wrap_tell(r, "%s: cannot write the output: %s", r->opts->key, strerror(error));
    return status != 0 ? status : CLI_EXIT_IO;
}

static bool
is_ending(void *cookie)
{
    return wrap_signals_ending(cookie) != 0;
}

void
wrap_hook(struct wrap *r, int status)
{
    struct il__hook_facts f = { .n = 0 };
    struct il__hook       h = {
              .facts = &f, .stop_fd = r->sig_fd, .should_stop = is_ending, .cookie = r
    };
    enum cli_hook_event event = strcmp(r->outcome, "lost") == 0 ? CLI_HOOK_LOST
                                : status == 0                   ? CLI_HOOK_SUCCESS
                                                                : CLI_HOOK_FAILURE;

    if (r->opts->hooks == NULL || r->began_ns == 0)
        return;
    il__hook_text(&f, "event", il__cli_hook_event(event));
    il__hook_text(&f, "key", r->opts->key);
    il__hook_text(&f, "holder", r->holder);
    il__hook_number(&f, "fence", (int64_t)r->fence);
    il__hook_text(&f, "run", r->id);
    il__hook_text(&f, "command", r->opts->argv[0]);
    il__hook_text(&f, "outcome", r->outcome);
    il__hook_number(&f, "exit_status", status);
    il__hook_number(&f, "ran_ms", (r->ended_ns - r->began_ns) / IL__NS_PER_MS);
    il__hook_text(&f, "message", r->message);
    r->hook_failed = !il__cli_hook_call(r->opts->hooks, event, &h, r->opts->key);
}

int
wrap_conclude(struct wrap *r, const struct il__reaper_report *report)
{
    int status = status_of(r, report);

    il__reaper_dismiss(&r->reaper); /* it exits while the store is busy */
    status = finish_output(r, report, status);
    wrap_bound_calls(r, report->end == IL__END_DEADLINE ||
                            (atomic_load(&r->lost) && r->lost_in_silence));
    /* Before the release: whoever finds the key free must find the end of the run as well. */
    il__spool_end(&r->spool, status);
    return check_output(r, r->hold->give(r, report, status));
}
