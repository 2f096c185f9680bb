/*
 * source_command.c: a day from a command, under a reaper of its own (proc.h): it ends with this
 * process, and with everything that it started.
 *
 * /bin/sh runs the text of the configuration with the date as its last argument. The environment
 * has PATH, HOME, LANG and TZ of this process, and INTERLOCK_TENANT.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/usage/source_internal.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/parse.h"
#include "proc/proc.h"

#define GRACE_MS 1000
#define CHUNK_BYTES 65536
#define ERRORS_BYTES_MAX 8192
#define ERROR_BYTES 250 /* of its last line, in a message */

/* ---- starting it ----------------------------------------------------------------------------- */

static char *
pair(void **mem, const char *name, const char *value)
{
    size_t n_bytes = strlen(name) + strlen(value) + 2;
    char  *text    = il__arena_alloc(mem, n_bytes);

    if (text != NULL)
        (void)snprintf(text, n_bytes, "%s=%s", name, value);
    return text;
}

static il_status
start(struct usage_source *s, const struct usage_fetch *f, struct proc_child *ret, il_error *reterr)
{
    static const char *const   passed[] = { "PATH", "HOME", "LANG", "TZ" };
    AUTO(il__arena_free) void *mem      = NULL;
    char                      *env[ARRAY_LEN(passed) + 2];
    size_t                     n = 0, n_bytes = strlen(s->o.command) + sizeof " \"$@\"";
    char                      *script = il__arena_alloc(&mem, n_bytes);
    char                      *shell  = il__arena_strdup(&mem, "/bin/sh");
    char                      *name   = il__arena_strdup(&mem, "usage-source");
    char                      *flag   = il__arena_strdup(&mem, "-c");
    char                      *date   = il__arena_strdup(&mem, f->date);
    char                      *argv[] = { shell, flag, script, name, date, NULL };
    bool                       ok     = true;

    if (script != NULL)
        (void)snprintf(script, n_bytes, "%s \"$@\"", s->o.command);
    for (size_t i = 0; i < ARRAY_LEN(passed); i++) {
        const char *value = getenv(passed[i]);
        if (value != NULL)
            env[n++] = pair(&mem, passed[i], value);
    }
    env[n++] = pair(&mem, "INTERLOCK_TENANT", f->tenant);
    env[n]   = NULL;
    for (size_t i = 0; i < n; i++)
        ok = ok && env[i] != NULL;
    for (size_t i = 0; i + 1 < ARRAY_LEN(argv); i++)
        ok = ok && argv[i] != NULL;
    if (!ok)
        return il__error_nomem(reterr);
    const struct proc_spec spec = {
        .argv = argv, .env = env, .cwd = "/", .grace_ms = GRACE_MS, .timeout_ms = s->o.timeout_ms
    };
    return il__proc_start(s->spawner, &spec, ret, reterr);
}

/* ---- while it runs --------------------------------------------------------------------------- */

/* Add to a buffer of which only the end is kept. */
static void
add_end(struct il__buf *to, const char *data, size_t n)
{
    if (n > ERRORS_BYTES_MAX) {
        data += n - ERRORS_BYTES_MAX;
        n = ERRORS_BYTES_MAX;
    }
    if (to->n_bytes + n > ERRORS_BYTES_MAX) {
        size_t n_gone = to->n_bytes + n - ERRORS_BYTES_MAX;
        to->n_bytes -= n_gone;
        memmove(to->data, to->data + n_gone, to->n_bytes);
    }
    il__buf_add(to, data, n);
}

/* Read what one pipe has. True: more may be available at once. */
static bool
take_output(int *fd, struct il__buf *to, bool only_end)
{
    char    chunk[CHUNK_BYTES];
    ssize_t n = *fd >= 0 ? read(*fd, chunk, sizeof chunk) : 0;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return errno == EINTR;
    if (n <= 0) { /* proc owns the descriptor; we just stop watching it */
        *fd = -1;
        return false;
    }
    if (only_end)
        add_end(to, chunk, (size_t)n);
    else
        il__buf_add(to, chunk, (size_t)n);
    return true;
}

static struct proc_report
supervise(const struct usage_source *s, const struct usage_fetch *f, struct proc_child *child,
          struct il__buf *out, struct il__buf *errors)
{
    struct proc_report report = { .end = PROC_END_NONE, .wait_status = -1 };
    int                fds[2] = { child->out_fd, child->err_fd };

    while (report.end == PROC_END_NONE) {
        struct pollfd polled[] = { { child->ctl, POLLIN, 0 },
                                   { fds[0], POLLIN, 0 },
                                   { fds[1], POLLIN, 0 } };
        if (usage_fetch_stopped(s, f) || out->failed)
            il__proc_stop(child);
        if (poll(polled, ARRAY_LEN(polled), USAGE_STOP_MS) < 0)
            continue;
        if (polled[1].revents != 0)
            (void)take_output(&fds[0], out, false);
        if (polled[2].revents != 0)
            (void)take_output(&fds[1], errors, true);
        if (polled[0].revents != 0)
            il__proc_report(child, &report);
    }
    while (take_output(&fds[0], out, false) || take_output(&fds[1], errors, true))
        continue;
    return report;
}

/* ---- how it ended ---------------------------------------------------------------------------- */

/* The last line that it wrote to stderr usually says what is wrong. */
static void
last_line(const struct il__buf *errors, char out[ERROR_BYTES])
{
    size_t end = errors->n_bytes;

    while (end > 0 && (errors->data[end - 1] == '\n' || errors->data[end - 1] == '\r'))
        end--;
    size_t from = end;
    while (from > 0 && errors->data[from - 1] != '\n' && end - from < ERROR_BYTES - 3)
        from--;
    size_t n = (size_t)snprintf(out, ERROR_BYTES, "%s%.*s", from < end ? ": " : "",
                                (int)(end - from), end > 0 ? errors->data + from : "");
    il__utf8_clean(out, MIN(n, ERROR_BYTES - 1));
}

static il_status
judge(const struct proc_report *report, const struct il__buf *errors, il_error *reterr)
{
    int  status = report->wait_status;
    char line[ERROR_BYTES];

    last_line(errors, line);
    switch (report->end) {
    case PROC_END_EXITED:
        if (status >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
            return IL_OK;
        if (status >= 0 && WIFSIGNALED(status))
            return il__error_set(reterr, IL_STATE, "the command was killed by signal %d%s",
                                 WTERMSIG(status), line);
        return il__error_set(reterr, IL_STATE, "the command exited with status %d%s",
                             status >= 0 ? WEXITSTATUS(status) : -1, line);
    case PROC_END_TIMEOUT:
        return il__error_set(reterr, IL_TIMEOUT, "the command timed out%s", line);
    case PROC_END_FAILED:
        return il__error_set(reterr, IL_STATE, "cannot execute /bin/sh: %s",
                             strerror(report->error));
    case PROC_END_REAPER:
        return il__error_set(reterr, IL_STATE, "the command's supervisor was killed");
    default:
        return il__error_set(reterr, IL_CANCELLED, "stopped");
    }
}

il_status
usage_fetch_command(struct usage_source *s, const struct usage_fetch *f, struct il__buf *out,
                    il_error *reterr)
{
    AUTO_BUF struct il__buf errors = { 0 };
    struct proc_child       child  = PROC_CHILD_NONE;
    il_status               st     = start(s, f, &child, reterr);

    if (st != IL_OK)
        return st;
    il__buf_init(&errors, ERRORS_BYTES_MAX + 1);
    struct proc_report report = supervise(s, f, &child, out, &errors);
    il__proc_finish(&child);
    return out->failed ? IL_OK : judge(&report, &errors, reterr); /* too long: source.c says so */
}
