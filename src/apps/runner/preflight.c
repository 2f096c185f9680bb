/*
 * preflight.c: runs the preflight probe of a pipeline: is the external job of an earlier run still
 * running? Any result other than a clear yes or no is an error, and nothing starts.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/runner/runner_internal.h"
#include "apps/runner/step_run.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/parse.h"

#define GRACE_MS 1000
#define LOOK_MS 200  /* how often to check whether the runner stops */
#define LATE_MS 5000 /* beyond timeout and grace: then stop waiting for it */
#define OUT_BYTES_MAX 4096
#define ANSWER_BYTES_MAX 65536
#define ID_BYTES_MAX 256
#define NO_ID "(no id)"

static il_status
unknown(const struct pipeline *p, il_error *reterr, const char *why)
{
    return il__error_set(
        reterr, IL_STORE,
        "pipeline %s: preflight cannot determine whether the external job is running: %s", p->id,
        why);
}

/* The job is running, and the first line is its id. */
static il_status
held(const struct pipeline *p, const char *id, char **ret_id, il_error *reterr)
{
    id += strspn(id, " \t");
    size_t n = MIN(strcspn(id, "\r\n"), il__utf8_cut(id, ID_BYTES_MAX));
    while (n > 0 && (id[n - 1] == ' ' || id[n - 1] == '\t'))
        n--;
    *ret_id = n > 0 ? il__strndup(id, n) : il__strdup(NO_ID);
    if (*ret_id == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a probe");
    for (char *at = *ret_id; *at != '\0'; at++) {
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            *at = '?';
    }
    il__error_set(reterr, IL_HELD, "pipeline %s: the external job is running: %s", p->id, *ret_id);
    return IL_HELD;
}

/* ---- a command ------------------------------------------------------------------------------- */

struct probe {
    char            **argv; /* owned */
    size_t            n_argv;
    char            **env; /* owned */
    struct proc_child child;
    char              out[OUT_BYTES_MAX + 1], err[OUT_BYTES_MAX + 1]; /* their beginnings */
    size_t            n_out, n_err;
};

static void
free_texts(char **texts)
{
    for (char **at = texts; at != NULL && *at != NULL; at++)
        il__free(*at);
    il__free(texts);
}

static void
probe_release(struct probe *b)
{
    il__proc_finish(&b->child);
    free_texts(b->argv);
    free_texts(b->env);
}

static il_status
make_argv(struct probe *b, const struct pipeline_command *c, const struct pipeline_values *v,
          il_error *reterr)
{
    static const char *const shell[] = { "/bin/sh", "-c" };
    size_t                   n       = c->script != NULL ? 3 : c->n_argv;

    b->argv = il__calloc(n + 1, sizeof *b->argv);
    for (size_t i = 0; b->argv != NULL && i < n; i++) {
        struct il__buf AUTO_BUF text = { 0 };
        il_status               st   = IL_OK;
        il__buf_init(&text, PROC_SPEC_BYTES_MAX);
        if (c->script != NULL)
            il__buf_adds(&text, i < 2 ? shell[i] : c->script);
        else
            st = il__pipeline_expand(&c->argv[i], v, PIPELINE_PLAIN, &text, reterr);
        if (st != IL_OK)
            return st;
        il__buf_adds(&text, ""); /* an empty argument is an argument */
        b->argv[i] = text.n_bytes > 0 ? il__buf_take(&text) : il__strdup("");
        if (b->argv[i] == NULL)
            break;
        b->n_argv = i + 1;
    }
    return b->argv != NULL && b->n_argv == n
               ? IL_OK
               : il__error_set(reterr, IL_NOMEM, "out of memory for a probe");
}

/* Read what is available, keeping the beginning. False: end of stream. */
static bool
take_output(int fd, char *to, size_t *n_kept)
{
    char data[4096];

    for (;;) {
        ssize_t n = read(fd, data, sizeof data);
        if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
            return false;
        if (n < 0 && errno == EAGAIN)
            return true;
        if (n > 0) {
            size_t keep = MIN((size_t)n, OUT_BYTES_MAX - *n_kept);
            memcpy(to + *n_kept, data, keep);
            *n_kept += keep;
            to[*n_kept] = '\0';
        }
    }
}

static il_status
cancelled(const struct pipeline *p, il_error *reterr)
{
    return il__error_set(reterr, IL_CANCELLED,
                         "pipeline %s: preflight interrupted, the server is shutting down", p->id);
}

/* Wait until the probe and all its descendants have ended and its output is read; at most until
 * until_ns, or until the runner stops. */
static void
wait_for_end(struct probe *b, struct runner *r, int64_t until_ns, struct proc_report *ret)
{
    struct pollfd fds[3] = { { .fd = b->child.ctl, .events = POLLIN },
                             { .fd = b->child.out_fd, .events = POLLIN },
                             { .fd = b->child.err_fd, .events = POLLIN } };

    *ret = (struct proc_report){ .end = PROC_END_NONE };
    while (ret->end == PROC_END_NONE) {
        int64_t left_ms = (until_ns - il__clock_boot_ns()) / IL__NS_PER_MS;
        if (left_ms <= 0 || runner_is_stopping(r))
            return;
        (void)poll(fds, 3, (int)MIN(left_ms + 1, LOOK_MS));
        if (fds[1].fd >= 0 && !take_output(fds[1].fd, b->out, &b->n_out))
            fds[1].fd = -1;
        if (fds[2].fd >= 0 && !take_output(fds[2].fd, b->err, &b->n_err))
            fds[2].fd = -1;
        il__proc_report(&b->child, ret);
    }
    /* All of them have ended: the pipes hold everything they wrote. */
    if (fds[1].fd >= 0)
        (void)take_output(fds[1].fd, b->out, &b->n_out);
    if (fds[2].fd >= 0)
        (void)take_output(fds[2].fd, b->err, &b->n_err);
}

static il_status
understand(const struct probe *b, const struct pipeline *p, const struct proc_report *end,
           char **ret_id, il_error *reterr)
{
    char why[400];

    switch (end->end) {
    case PROC_END_EXITED:
        if (WIFEXITED(end->wait_status) && WEXITSTATUS(end->wait_status) == 0)
            return held(p, b->out, ret_id, reterr);
        if (WIFEXITED(end->wait_status) && WEXITSTATUS(end->wait_status) == 1)
            return IL_OK;
        (void)snprintf(why, sizeof why, "the command %s %d%s%.*s",
                       WIFEXITED(end->wait_status) ? "exited with status" : "was killed by signal",
                       WIFEXITED(end->wait_status) ? WEXITSTATUS(end->wait_status)
                                                   : WTERMSIG(end->wait_status),
                       b->n_err > 0 ? ": " : "", (int)MIN(strcspn(b->err, "\r\n"), 200), b->err);
        return unknown(p, reterr, why);
    case PROC_END_FAILED:
        (void)snprintf(why, sizeof why, "cannot execute %.200s: %s", b->argv[0],
                       strerror(end->error));
        return unknown(p, reterr, why);
    case PROC_END_TIMEOUT:
    case PROC_END_NONE:
        return unknown(p, reterr, "the command timed out");
    default:
        return unknown(p, reterr, "the command was stopped");
    }
}

static il_status
ask_command(struct runner *r, const struct pipeline *p, const struct pipeline_values *v,
            char **ret_id, il_error *reterr)
{
    struct probe       b = { .child = PROC_CHILD_NONE };
    struct proc_report end;

    il_status st = make_argv(&b, &p->probe_command, v, reterr);
    if (st == IL_OK) {
        b.env = runner_probe_env(r, p, v, reterr);
        if (b.env == NULL)
            st = reterr != NULL && reterr->status != IL_OK ? reterr->status : IL_NOMEM;
    }
    if (st == IL_OK) {
        struct proc_spec spec = { .argv       = b.argv,
                                  .env        = b.env,
                                  .cwd        = runner_work_dir(r),
                                  .grace_ms   = GRACE_MS,
                                  .timeout_ms = p->preflight_timeout_ms,
                                  .limits     = p->probe_command.limits };
        st                    = il__proc_start(runner_spawner(r), &spec, &b.child, reterr);
    }
    if (st == IL_OK) {
        int64_t wait_ms = p->preflight_timeout_ms + GRACE_MS + LATE_MS;
        wait_for_end(&b, r, il__clock_boot_ns() + wait_ms * IL__NS_PER_MS, &end);
        st = end.end == PROC_END_NONE && runner_is_stopping(r)
                 ? cancelled(p, reterr)
                 : understand(&b, p, &end, ret_id, reterr);
    }
    probe_release(&b);
    return st;
}

/* ---- a request ------------------------------------------------------------------------------- */

static void
take_answer(void *cookie, const void *data, size_t n_bytes)
{
    il__buf_add(cookie, data, n_bytes);
}

static il_status
understand_answer(const struct pipeline *p, const struct il__buf *body, char **ret_id,
                  il_error *reterr)
{
    json_error_t ignored;
    char         number[32];
    json_t      *answer =
        body->failed ? NULL : json_loadb(il__buf_str(body), body->n_bytes, 0, &ignored);
    json_t   *running = json_object_get(answer, "running");
    json_t   *id      = json_object_get(answer, "id");
    il_status st;

    if (!json_is_boolean(running)) {
        st = unknown(p, reterr, "the response is not JSON with \"running\": true or false");
    } else if (!json_is_true(running)) {
        st = IL_OK;
    } else if (json_is_integer(id)) {
        (void)snprintf(number, sizeof number, "%lld", (long long)json_integer_value(id));
        st = held(p, number, ret_id, reterr);
    } else {
        st = held(p, json_is_string(id) ? json_string_value(id) : "", ret_id, reterr);
    }
    json_decref(answer);
    return st;
}

static il_status
ask_http(struct runner *r, const struct pipeline *p, const struct pipeline_values *v, char **ret_id,
         il_error *reterr)
{
    struct il__buf AUTO_BUF body = { 0 };
    struct fetch            f    = { .http       = &p->probe_http,
                                     .values     = v,
                                     .timeout_ms = p->preflight_timeout_ms,
                                     .runner     = r,
                                     .take       = take_answer,
                                     .cookie     = &body };
    struct fetch_answer     answer;

    il__buf_init(&body, ANSWER_BYTES_MAX);
    runner_fetch(&f, &answer);
    if (answer.stopped)
        return cancelled(p, reterr);
    if (answer.status == 404)
        return IL_OK;
    if (answer.status == 200)
        return understand_answer(p, &body, ret_id, reterr);
    if (answer.error[0] == '\0')
        (void)snprintf(answer.error, sizeof answer.error, "%s: HTTP status %ld", answer.url,
                       answer.status);
    return unknown(p, reterr, answer.error);
}

il_status
runner_preflight(struct runner *r, const struct pipeline *p, const struct pipeline_values *v,
                 char **ret_id, il_error *reterr)
{
    il_error ignored = { .message = "" };

    CHECK(ret_id != NULL);
    if (reterr == NULL)
        reterr = &ignored;
    switch (p->preflight) {
    case PIPELINE_PROBE_COMMAND:
        return ask_command(r, p, v, ret_id, reterr);
    case PIPELINE_PROBE_HTTP:
        return ask_http(r, p, v, ret_id, reterr);
    case PIPELINE_NO_PROBE:
    default:
        return IL_OK;
    }
}
