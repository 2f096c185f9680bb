/*
 * task.c: one job: starts its command with the payload as standard input, passes on and keeps its
 * output, and derives the outcome of the job from how the command ends.
 */
#include "cli/worker/task.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"
#include "cli/out.h"
#include "proc/spawn.h"
#include "proc/sys.h"
#include "runtime/handle.h"

#define CHUNK_BYTES 65536
#define TAIL_BYTES 3500  /* of stderr; with the text before it, it fits IL_TEXT_BYTES_MAX */
#define EXIT_DEAD 65     /* EX_DATAERR: the job itself is bad, retrying is useless */
#define EXIT_LATER 75    /* EX_TEMPFAIL: not now */
#define TRY_AGAIN_MS 200 /* between two attempts to report the outcome */
#define PATIENCE_NS (INT64_C(250) * IL__NS_PER_MS) /* time for a reaper to report */

/* The outcome of the job. */
enum verdict {
    VERDICT_FINISH,
    VERDICT_FAIL,
    VERDICT_FINAL,
    VERDICT_SNOOZE, /* later */
    VERDICT_BACK,   /* retried at once, by another worker */
    VERDICT_NONE,   /* it is no longer ours */
};

/* ---- output ---------------------------------------------------------------------------------- */

/* As in pump.c: never block in a write that only the reader could end. What cannot be written is
 * dropped. */
static void
pass_on(struct il__worker *w, int fd, const char *data, size_t n_bytes)
{
    il__mutex_lock(&w->out_mutex);
    while (n_bytes > 0) {
        struct pollfd fds[] = { { fd, POLLOUT, 0 }, { w->abort_fd, POLLIN, 0 } };
        if (poll(fds, ARRAY_LEN(fds), -1) < 0)
            continue;
        if (fds[1].revents != 0 && fds[0].revents == 0)
            break;
        ssize_t n = write(fd, data, MIN(n_bytes, PIPE_BUF));
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (n < 0)
            break;
        data += n;
        n_bytes -= (size_t)n;
    }
    il__mutex_unlock(&w->out_mutex);
}

static void
keep_result(struct il__task *t, const char *data, size_t n_bytes)
{
    size_t room = IL_BLOB_BYTES_MAX - t->result.n_bytes;

    il__buf_add(&t->result, data, MIN(n_bytes, room));
    t->cut |= n_bytes > room;
}

static void
keep_tail(struct il__task *t, const char *data, size_t n_bytes)
{
    if (n_bytes > TAIL_BYTES) {
        data += n_bytes - TAIL_BYTES;
        n_bytes = TAIL_BYTES;
    }
    if (t->tail.n_bytes + n_bytes > (size_t)2 * TAIL_BYTES) {
        size_t n_old = t->tail.n_bytes - TAIL_BYTES;
        memmove(t->tail.data, t->tail.data + n_old, TAIL_BYTES + 1);
        t->tail.n_bytes = TAIL_BYTES;
    }
    il__buf_add(&t->tail, data, n_bytes);
}

/* Read what one pipe has; close it at end of file. true: more may be available at once. */
static bool
take_output(struct il__task *t, int *fd, bool out)
{
    struct il__worker *w = t->worker;
    char               chunk[CHUNK_BYTES];
    ssize_t            n = *fd >= 0 ? read(*fd, chunk, sizeof chunk) : 0;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return errno == EINTR;
    if (n <= 0) {
        il__proc_fd_close(fd);
        return false;
    }
    if (out)
        keep_result(t, chunk, (size_t)n);
    else
        keep_tail(t, chunk, (size_t)n);
    if (!out || !w->opts->quiet)
        pass_on(w, out ? STDOUT_FILENO : STDERR_FILENO, chunk, (size_t)n);
    return true;
}

static void
send_payload(struct il__task *t, const il_job_info *info)
{
    const char *data = info->payload;
    ssize_t     n    = 0;

    if (t->n_sent < info->payload_bytes)
        n = write(t->child.in_fd, data + t->n_sent, info->payload_bytes - t->n_sent);
    if (n > 0)
        t->n_sent += (size_t)n;
    bool again = n < 0 && (errno == EAGAIN || errno == EINTR);
    /* Everything is sent, or the command does not want the rest, which is not an error. */
    if (t->n_sent == info->payload_bytes || (n < 0 && !again))
        il__proc_fd_close(&t->child.in_fd);
}

/* ---- while the command runs ------------------------------------------------------------------ */

static bool
is_reaper(const void *cookie, pid_t pid)
{
    const struct il__worker *w = cookie;

    for (size_t i = 0; i < ARRAY_LEN(w->tasks); i++) {
        if (atomic_load(&w->tasks[i].reaper_pid) == pid)
            return true;
    }
    return false;
}

/* The reaper is gone, or hangs and is killed. The command dies with it, and what it left behind
 * is ended here. */
static void
take_over(struct il__task *t, struct il__reaper_report *report)
{
    struct il__worker *w = t->worker;

    il__reaper_reap(&t->child.reaper);
    atomic_store(&t->reaper_pid, 0);
    il__mutex_lock(&w->spawn_mutex);
    il__child_end_orphans(is_reaper, w);
    il__mutex_unlock(&w->spawn_mutex);
    report->wait_status = atomic_load(&t->child.reaper.shared->wait_status);
    report->end         = IL__END_REAPER;
}

static void
on_lost(struct il__task *t)
{
    il__worker_lock(t->worker);
    t->lost |= !t->cancelled && !t->stopped;
    il__worker_unlock(t->worker);
    il__reaper_order(&t->child.reaper, IL__ORDER_STOP, 0);
}

/* Wait until the reaper reports the end; after a loss, until there is no more time to wait. */
static struct il__reaper_report
supervise(struct il__task *t, const il_job_info *info, int lease_fd)
{
    struct il__reaper_report report     = { .wait_status = -1 };
    int64_t                  give_up_ns = IL__NEVER_NS;

    while (report.end == IL__END_NONE) {
        struct pollfd fds[] = {
            { t->child.reaper.ctl, POLLIN, 0 },
            { t->child.in_fd, POLLOUT, 0 },
            { t->child.out_fd, POLLIN, 0 },
            { t->child.err_fd, POLLIN, 0 },
            { lease_fd, POLLIN, 0 },
        };
        int64_t now_ns = il__clock_boot_ns();
        int64_t left_ms =
            give_up_ns != IL__NEVER_NS ? MAX(give_up_ns - now_ns, 0) / IL__NS_PER_MS + 1 : -1;
        if (now_ns >= give_up_ns) {
            take_over(t, &report);
            break;
        }
        if (poll(fds, ARRAY_LEN(fds), (int)MIN(left_ms, 60000)) < 0)
            continue;
        if (fds[4].revents != 0) {
            lease_fd   = -1; /* it stays readable */
            give_up_ns = MIN(atomic_load(&t->child.reaper.shared->deadline_ns),
                             now_ns + t->worker->grace_ms * IL__NS_PER_MS + PATIENCE_NS);
            give_up_ns = MAX(give_up_ns, now_ns + PATIENCE_NS);
            on_lost(t);
        }
        if (fds[1].revents != 0)
            send_payload(t, info);
        if (fds[2].revents != 0)
            (void)take_output(t, &t->child.out_fd, true);
        if (fds[3].revents != 0)
            (void)take_output(t, &t->child.err_fd, false);
        if (fds[0].revents != 0) {
            struct il__reaper_report got;
            ssize_t                  n = recv(t->child.reaper.ctl, &got, sizeof got, MSG_DONTWAIT);
            if (n == (ssize_t)sizeof got)
                report = got;
            else if (n >= 0 || (errno != EAGAIN && errno != EINTR))
                take_over(t, &report);
        }
    }
    /* All processes of the command have ended: the pipes hold the rest of the output. */
    while (take_output(t, &t->child.out_fd, true) || take_output(t, &t->child.err_fd, false))
        continue;
    return report;
}

/* ---- how it ended ---------------------------------------------------------------------------- */

/* Turn the end of stderr into a text: from the first whole character on, without invalid
 * characters or a newline at its end. */
static void
make_text(struct il__buf *tail)
{
    size_t n = tail->n_bytes;
    size_t i = 0;

    if (n > TAIL_BYTES)
        i = n - TAIL_BYTES;
    while (i > 0 && i < n && ((unsigned char)tail->data[i] & 0xC0U) == 0x80)
        i++;
    while (n > i && tail->data[n - 1] == '\n')
        n--;
    bool valid = n > i && il__utf8_valid(tail->data + i, n - i);
    for (size_t k = i; k < n; k++) {
        unsigned char c = (unsigned char)tail->data[k];
        if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7F || (!valid && c >= 0x80))
            tail->data[k] = '?';
    }
    if (n > 0)
        memmove(tail->data, tail->data + i, n - i);
    tail->n_bytes = n - i;
    if (tail->data != NULL)
        tail->data[tail->n_bytes] = '\0';
}

static enum verdict
own_verdict(int wait_status, char *why, size_t n_why)
{
    if (wait_status < 0) {
        (void)snprintf(why, n_why, "exit status unknown");
        return VERDICT_FAIL;
    }
    if (WIFSIGNALED(wait_status)) {
        (void)snprintf(why, n_why, "killed by signal %d", WTERMSIG(wait_status));
        return VERDICT_FAIL;
    }
    int status = WEXITSTATUS(wait_status);
    (void)snprintf(why, n_why, "exit status %d", status);
    return status == 0            ? VERDICT_FINISH
           : status == EXIT_LATER ? VERDICT_SNOOZE
           : status == EXIT_DEAD  ? VERDICT_FINAL
                                  : VERDICT_FAIL;
}

static enum verdict
judge(struct il__task *t, const struct il__reaper_report *report, char *why, size_t n_why)
{
    struct il__worker *w = t->worker;
    char               text[IL__DURATION_TEXT_BYTES];

    switch ((enum il__reaper_end)report->end) {
    case IL__END_EXITED:
        break;
    case IL__END_TIMEOUT:
        (void)snprintf(why, n_why, "timed out after %s",
                       il__duration_text(w->opts->timeout_ms, text));
        return VERDICT_FAIL;
    case IL__END_REAPER:
        (void)snprintf(why, n_why, "its supervisor process was killed");
        return t->lost ? VERDICT_NONE : t->stopped ? VERDICT_BACK : VERDICT_FAIL;
    case IL__END_FAILED: /* not the job's fault: the next one would fail the same way */
        if (report->is_exec)
            il__worker_stop(w, il__proc_exec_failed(w->opts->argv[0], w->path, report->error));
        else
            il__worker_stop(w, il_status_exit(IL_NOMEM));
        (void)snprintf(why, n_why, "cannot start the command");
        return VERDICT_BACK;
    case IL__END_LOST:
    case IL__END_DEADLINE:
    case IL__END_NONE:
    case IL__END_ORPHANED:
        if (t->cancelled) /* the store knows the reason, and marks it cancelled */
            return VERDICT_FAIL;
        if (t->stopped && report->end == IL__END_LOST)
            return VERDICT_BACK;
        (void)snprintf(why, n_why, "claim lost");
        return VERDICT_NONE;
    }
    enum verdict verdict = own_verdict(report->wait_status, why, n_why);
    /* We ended it, even if its own TERM handler made it exit. */
    return t->stopped && verdict != VERDICT_FINISH ? VERDICT_BACK : verdict;
}

/* Report the outcome to the store. */
static il_status
conclude(struct il__task *t, il_job *job, enum verdict verdict, const char *why, il_error *reterr)
{
    const struct il__worker_opts *o     = t->worker->opts;
    AUTO_BUF struct il__buf       error = { 0 };

    switch (verdict) {
    case VERDICT_FINISH:
        return il_job_finish(job, il__buf_str(&t->result), t->result.n_bytes, reterr);
    case VERDICT_SNOOZE:
        return il_job_snooze(job, o->snooze_ms, reterr);
    case VERDICT_BACK:
        return il_job_snooze(job, 0, reterr);
    case VERDICT_FAIL:
    case VERDICT_FINAL:
        il__buf_init(&error, IL_TEXT_BYTES_MAX);
        make_text(&t->tail);
        il__buf_addf(&error, "%s%s%s", why, t->tail.n_bytes > 0 && why[0] != '\0' ? ": " : "",
                     il__buf_str(&t->tail));
        return il_job_fail(job, il__buf_str(&error), verdict == VERDICT_FINAL ? IL_FAIL_FINAL : 0,
                           0, reterr);
    case VERDICT_NONE:
        break;
    }
    return IL_STALE;
}

/* Retry while the claim lives and the worker is not told to hurry: a busy store must not cause a
 * job to be done twice. Repeating is safe. */
static il_status
conclude_surely(struct il__task *t, il_job *job, enum verdict verdict, const char *why,
                il_error *reterr)
{
    struct pollfd fd = { t->worker->abort_fd, POLLIN, 0 };

    for (;;) {
        il_status st         = conclude(t, job, verdict, why, reterr);
        bool      unanswered = st == IL_STORE || st == IL_FULL || st == IL_NOMEM;
        if (!unanswered || il_lease_remaining_ms(il_job_lease(job)) == 0 ||
            poll(&fd, 1, TRY_AGAIN_MS) > 0)
            return st;
    }
}

static const char *
outcome_name(enum il__outcome outcome)
{
    static const char *const names[IL__OUTCOME_COUNT] = { "finished", "retrying", "failed",
                                                          "snoozed",  "returned", "cancelled",
                                                          "lost" };

    return names[outcome];
}

static enum il__outcome
outcome_of(enum verdict verdict, bool cancelled, const il_job_info *info)
{
    static const enum il__outcome outcomes[] = { IL__OUTCOME_FINISHED, IL__OUTCOME_RETRYING,
                                                 IL__OUTCOME_FAILED,   IL__OUTCOME_SNOOZED,
                                                 IL__OUTCOME_RETURNED, IL__OUTCOME_LOST };

    if (cancelled && verdict != VERDICT_FINISH && verdict != VERDICT_NONE)
        return IL__OUTCOME_CANCELLED;
    if (verdict == VERDICT_FAIL && info->attempt >= info->max_attempts)
        verdict = VERDICT_FINAL; /* that was the last attempt */
    return outcomes[verdict];
}

/* What a task reports about its job. */
struct told {
    enum il__outcome outcome;
    const char      *why;
    int64_t          ran_ms;
    int64_t          due_ms; /* when it is due again, from now on; -1 = not or unknown */
};

static void
report_json(const il_job_info *info, const struct told *r)
{
    json_t *object =
        json_pack("{s:s, s:s, s:I, s:I, s:s, s:s, s:I, s:o}", "id", info->id, "queue", info->queue,
                  "attempt", (json_int_t)info->attempt, "token", (json_int_t)info->token, "outcome",
                  outcome_name(r->outcome), "message", r->why, "ran_ms", (json_int_t)r->ran_ms,
                  "due_in_ms", r->due_ms >= 0 ? json_integer(r->due_ms) : json_null());
    char *text = object != NULL ? json_dumps(object, JSON_COMPACT) : NULL;

    if (text != NULL) {
        AUTO_BUF struct il__buf line = { 0 };
        il__buf_init(&line, 16384);
        il__buf_addf(&line, "%s\n", text);
        il__proc_write_stderr(il__buf_str(&line), line.n_bytes);
    }
    free(text);
    json_decref(object);
}

/* q: job ID failed (exit status 1), attempt 1 of 5; retrying in 1.0s */
static void
say_outcome(const il_job_info *info, const struct told *r)
{
    static const char *const what[IL__OUTCOME_COUNT] = {
        "finished", "failed", "failed", "snoozed", "returned to the queue", "cancelled", "lost"
    };
    bool        retrying = r->outcome == IL__OUTCOME_RETRYING;
    const char *open     = r->why[0] != '\0' ? " (" : "";
    const char *close    = r->why[0] != '\0' ? ")" : "";
    char        due[CLI_AGE_BYTES];
    char        rest[128] = "";

    if (retrying && r->due_ms >= 0)
        (void)snprintf(rest, sizeof rest, "; retrying in %s", il__cli_age(r->due_ms, due));
    else if (retrying)
        (void)snprintf(rest, sizeof rest, "; will be retried");
    else if (r->outcome == IL__OUTCOME_FAILED)
        (void)snprintf(rest, sizeof rest, "; will not be retried");
    else if (r->outcome == IL__OUTCOME_SNOOZED && r->due_ms >= 0)
        (void)snprintf(rest, sizeof rest, "; due in %s", il__cli_age(r->due_ms, due));
    il__proc_say("%s: job %s %s%s%s%s, attempt %u of %u%s", info->queue, info->id, what[r->outcome],
                 open, r->why, close, info->attempt, info->max_attempts, rest);
}

static void
tell(struct il__task *t, const il_job_info *info, const struct told *r)
{
    const struct il__worker_opts *o        = t->worker->opts;
    bool                          finished = r->outcome == IL__OUTCOME_FINISHED;

    if (o->json)
        report_json(info, r);
    else if (!o->quiet && !finished)
        say_outcome(info, r);
    if (t->cut && !o->quiet && finished)
        il__proc_say("%s: job %s printed more than 1 MiB; result truncated", info->queue, info->id);
}

/* The job is given back: call the hook, which nobody else waits for. */
static void
call_hook(struct il__task *t, const il_job_info *info, const struct told *r)
{
    static const enum cli_hook_event events[IL__OUTCOME_COUNT] = {
        CLI_HOOK_SUCCESS, CLI_HOOK_COUNT, CLI_HOOK_FAILURE, CLI_HOOK_COUNT,
        CLI_HOOK_COUNT,   CLI_HOOK_COUNT, CLI_HOOK_LOST,
    };
    struct il__hook_facts f     = { .n = 0 };
    struct il__hook       h     = { .facts = &f, .stop_fd = t->worker->abort_fd };
    enum cli_hook_event   event = events[r->outcome];

    if (event == CLI_HOOK_COUNT)
        return;
    il__hook_text(&f, "event", il__cli_hook_event(event));
    il__hook_text(&f, "queue", info->queue);
    il__hook_text(&f, "job_id", info->id);
    il__hook_number(&f, "job_attempt", info->attempt);
    il__hook_number(&f, "job_max_attempts", info->max_attempts);
    il__hook_number(&f, "fence", (int64_t)info->token);
    il__hook_text(&f, "worker", t->worker->name);
    il__hook_text(&f, "outcome", outcome_name(r->outcome));
    il__hook_number(&f, "ran_ms", r->ran_ms);
    il__hook_text(&f, "message", r->why);
    if (!il__cli_hook_call(t->worker->opts->hooks, event, &h, info->queue)) {
        il__worker_lock(t->worker);
        t->worker->n_hooks_failed++;
        il__worker_unlock(t->worker);
    }
}

/* ---- the task as a whole --------------------------------------------------------------------- */

/* Start the command. From then on others may stop it; earlier requests to stop are carried out. */
static il_status
start(struct il__task *t, il_job *job, il_error *reterr)
{
    struct il__worker    *w    = t->worker;
    const il_job_info    *info = il_job_look(job);
    struct il__child_opts o    = {
           .path        = w->path,
           .argv        = w->opts->argv,
           .queue       = info->queue,
           .job         = info->id,
           .token       = info->token,
           .attempt     = info->attempt,
           .grace_ms    = w->grace_ms,
           .timeout_ms  = w->opts->timeout_ms,
           .deadline_ns = il_lease_deadline_ns(il_job_lease(job)),
           .quiet       = w->opts->quiet,
    };

    il__mutex_lock(&w->spawn_mutex);
    il_status st = il__child_start(&o, &t->child, reterr);
    atomic_store(&t->reaper_pid, st == IL_OK ? t->child.reaper.pid : 0);
    il__mutex_unlock(&w->spawn_mutex);
    if (st != IL_OK)
        return st;
    il__worker_lock(w);
    t->alive  = true;
    bool stop = t->cancelled || t->lost || t->stopped;
    il__worker_unlock(w);
    if (stop)
        il__reaper_order(&t->child.reaper, IL__ORDER_STOP, 0);
    return IL_OK;
}

/* From here on no other thread touches the job or the reaper. */
static void
claim_alone(struct il__task *t)
{
    il__worker_lock(t->worker);
    t->alive = false;
    t->job   = NULL;
    il__worker_unlock(t->worker);
}

static enum verdict
run(struct il__task *t, il_job *job, char *why, size_t n_why)
{
    const il_job_info *info = il_job_look(job);
    il_error           error;

    if (start(t, job, &error) != IL_OK) {
        il__proc_say("%s: %s", info->queue, error.message);
        il__worker_stop(t->worker, il_status_exit(IL_NOMEM));
        claim_alone(t);
        return VERDICT_BACK;
    }
    struct il__reaper_report report = supervise(t, info, il_lease_fd(il_job_lease(job)));
    claim_alone(t);
    il__reaper_dismiss(&t->child.reaper);
    return judge(t, &report, why, n_why);
}

/* Give back the task's place. */
static void
leave(struct il__task *t, enum il__outcome outcome)
{
    struct il__worker *w = t->worker;

    il__child_finish(&t->child);
    atomic_store(&t->reaper_pid, 0);
    il__buf_release(&t->result);
    il__buf_release(&t->tail);
    il__worker_lock(w);
    w->n_jobs[outcome]++;
    w->n_busy--;
    t->busy = false;
    CHECK(pthread_cond_signal(&w->cond) == 0);
    il__worker_unlock(w);
}

void *
il__task_main(void *arg)
{
    struct il__task   *t        = arg;
    il_job            *job      = t->job;
    const il_job_info *info     = il_job_look(job);
    int64_t            began_ns = il__clock_boot_ns();
    char               why[128] = "";
    il_error           error    = { .message = "" };

    il__buf_init(&t->result, IL_BLOB_BYTES_MAX);
    il__buf_init(&t->tail, (size_t)2 * TAIL_BYTES);
    enum verdict verdict  = run(t, job, why, sizeof why);
    int64_t      ran_ms   = (il__clock_boot_ns() - began_ns) / IL__NS_PER_MS;
    il_status    told     = conclude_surely(t, job, verdict, why, &error);
    bool         finished = verdict == VERDICT_FINISH && told == IL_OK;
    if (told != IL_OK && told != IL_STALE)
        il__proc_say("%s: job %s: cannot report the outcome, so the job will be claimed again: %s",
                     info->queue, info->id, error.message);
    enum il__outcome outcome =
        told == IL_OK ? outcome_of(verdict, t->cancelled, info) : IL__OUTCOME_LOST;
    const struct told report = { outcome, finished ? "" : why, ran_ms, il__job_due_ms(job) };
    tell(t, info, &report);
    call_hook(t, info, &report);
    il_job_free(job);
    leave(t, outcome);
    return NULL;
}
