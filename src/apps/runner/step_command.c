/*
 * step_command.c: command steps. Each command runs under its own reaper (proc.h), and its output is
 * read as it arrives; nothing here waits for anything but the command.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/runner/runner_internal.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/error.h"

#define CHUNK_BYTES 65536
#define VALUE_BYTES_MAX ((size_t)1 << 20) /* of one argument, or variable, after substitution */
/* time for a reaper to report that everything it stopped has ended */
#define PATIENCE_NS (INT64_C(500) * IL__NS_PER_MS)
#define POLL_MS 1000
#define LAST_LINE_BYTES 300

/* ---- argv and environment -------------------------------------------------------------------- */

static il_status
expand(const struct pipeline_text *text, const char *name, const struct pipeline_values *v,
       void **mem, char **ret, il_error *reterr)
{
    AUTO_BUF struct il__buf out = { 0 };

    il__buf_init(&out, VALUE_BYTES_MAX);
    if (name != NULL)
        il__buf_addf(&out, "%s=", name);
    il_status st = il__pipeline_expand(text, v, PIPELINE_PLAIN, &out, reterr);
    if (st == IL_OK && !out.failed)
        *ret = il__arena_strdup(mem, il__buf_str(&out));
    if (st == IL_OK && (out.failed || *ret == NULL))
        st = il__error_set(reterr, IL_NOMEM, "'%.60s' is too long after parameter substitution",
                           text->text);
    return st;
}

static il_status
build_argv(const struct pipeline_command *c, const struct pipeline_values *v, void **mem,
           char ***ret, il_error *reterr)
{
    char **argv = il__arena_alloc(mem, (c->n_argv + 4) * sizeof *argv);

    if (argv == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for the command");
    *ret = argv;
    /* parameters come through the environment: nothing is pasted into a script */
    if (c->script != NULL) {
        argv[0] = il__arena_strdup(mem, "/bin/sh");
        argv[1] = il__arena_strdup(mem, "-c");
        argv[2] = il__arena_strdup(mem, c->script);
        argv[3] = NULL;
        return argv[0] != NULL && argv[1] != NULL && argv[2] != NULL
                   ? IL_OK
                   : il__error_set(reterr, IL_NOMEM, "out of memory for the command");
    }
    for (size_t i = 0; i < c->n_argv; i++) {
        il_status st = expand(&c->argv[i], NULL, v, mem, &argv[i], reterr);
        if (st != IL_OK)
            return st;
    }
    argv[c->n_argv] = NULL;
    return IL_OK;
}

/* Set NAME=VALUE, replacing an existing one. */
static void
put_env(char **env, size_t *n, char *text)
{
    size_t n_name = (size_t)(strchr(text, '=') - text) + 1;

    for (size_t i = 0; i < *n; i++) {
        if (strncmp(env[i], text, n_name) == 0) {
            env[i] = text;
            return;
        }
    }
    env[(*n)++] = text;
}

static char *
pair(void **mem, const char *prefix, const char *name, const char *value)
{
    size_t n_bytes = strlen(prefix) + strlen(name) + strlen(value) + 2;
    char  *text    = il__arena_alloc(mem, n_bytes);

    if (text != NULL)
        (void)snprintf(text, n_bytes, "%s%s=%s", prefix, name, value);
    return text;
}

/*
 * The environment of a command: the variables passed on by the server; INTERLOCK_… from `own`
 * (name, value, name, …, NULL); INTERLOCK_PARAM_… from v's first n_params values; env: of the file.
 * *mem owns it.
 */
static il_status
env_build(struct runner *r, const char *const *own, const struct pipeline_values *v,
          size_t n_params, const struct pipeline_command *c, void **mem, char ***ret,
          il_error *reterr)
{
    size_t n_own = 0, n = 0;
    bool   ok = true;

    while (own[n_own] != NULL)
        n_own += 2;
    char **env =
        il__arena_alloc(mem, (r->n_env + n_own / 2 + n_params + c->n_env + 1) * sizeof *env);
    if (env == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for the environment of the command");
    for (size_t i = 0; i < r->n_env; i++)
        env[n++] = r->env[i];
    for (size_t i = 0; ok && i < n_own; i += 2) {
        char *text = pair(mem, "", own[i], own[i + 1]);
        ok         = text != NULL;
        if (ok)
            put_env(env, &n, text);
    }
    for (size_t i = 0; ok && i < n_params; i++) {
        char *text = pair(mem, "INTERLOCK_PARAM_", v->items[i].name, v->items[i].value);
        ok         = text != NULL;
        if (ok)
            put_env(env, &n, text);
    }
    if (!ok)
        return il__error_set(reterr, IL_NOMEM, "out of memory for the environment of the command");
    for (size_t i = 0; i < c->n_env; i++) {
        char     *text = NULL;
        il_status st   = expand(&c->env[i].value, c->env[i].name, v, mem, &text, reterr);
        if (st != IL_OK)
            return st;
        put_env(env, &n, text);
    }
    env[n] = NULL;
    *ret   = env;
    return IL_OK;
}

char **
runner_probe_env(struct runner *r, const struct pipeline *p, const struct pipeline_values *v,
                 il_error *reterr)
{
    AUTO(il__arena_free) void *mem = NULL;
    char                     **env = NULL;

    /* Pairs of a name and its value. */
    const char *const own[] = {
        "INTERLOCK_TENANT", p->tenant, "INTERLOCK_PIPELINE", p->id, "INTERLOCK_KEY", p->key, NULL
    };
    size_t n = 0;

    if (env_build(r, own, v, v->n, &p->probe_command, &mem, &env, reterr) != IL_OK)
        return NULL;
    while (env[n] != NULL)
        n++;
    char **copy = il__calloc(n + 1, sizeof *copy);
    for (size_t i = 0; copy != NULL && i < n; i++) {
        copy[i] = il__strdup(env[i]);
        if (copy[i] != NULL)
            continue;
        while (i-- > 0)
            il__free(copy[i]);
        il__free(copy);
        copy = NULL;
    }
    if (copy == NULL)
        (void)il__error_set(reterr, IL_NOMEM, "out of memory for the environment of the command");
    return copy;
}

static il_status
build_env(struct attempt *a, int64_t lease_ns, void **mem, char ***ret, il_error *reterr)
{
    const struct execution *e = a->e;
    char                    deadline[24];
    const char *const       own[] = {
              "INTERLOCK_RUN_ID",
              e->run->id,
              "INTERLOCK_FENCE",
              a->fence,
              "INTERLOCK_TENANT",
              e->run->tenant,
              "INTERLOCK_PIPELINE",
              e->pipeline->id,
              "INTERLOCK_STEP",
              a->pub.step->id,
              "INTERLOCK_ATTEMPT",
              a->number,
              "INTERLOCK_KEY",
              e->pipeline->key,
              "INTERLOCK_HOLDER",
              e->run->holder,
              "INTERLOCK_DEADLINE",
              deadline,
              NULL,
    };

    /* like `interlock run`: ms since 1970, of the lease as it is now */
    (void)snprintf(deadline, sizeof deadline, "%" PRId64,
                   il__clock_wall_ms() + (lease_ns - il__clock_boot_ns()) / IL__NS_PER_MS);
    return env_build(e->r, own, &a->values, e->values.n, &a->pub.step->command, mem, ret, reterr);
}

/* ---- while it runs --------------------------------------------------------------------------- */

/* Read what one pipe has. true: more may be available at once. */
static bool
take_output(struct attempt *a, int *fd, int stream)
{
    char    chunk[CHUNK_BYTES];
    ssize_t n = *fd >= 0 ? read(*fd, chunk, sizeof chunk) : 0;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return errno == EINTR;
    if (n <= 0) { /* proc owns the descriptor; we just stop watching it */
        *fd = -1;
        return false;
    }
    runner_attempt_output(&a->pub, stream, chunk, (size_t)n);
    return true;
}

/* Wait until the reaper reports the end. After a stop, no longer than stopping may take;
 * il__proc_finish() handles the rest. */
static struct proc_report
supervise(struct attempt *a, struct proc_child *child, int64_t grace_ms)
{
    struct proc_report report     = { .end = PROC_END_NONE, .wait_status = -1 };
    int                out        = child->out_fd;
    int                err        = child->err_fd;
    int64_t            give_up_ns = INT64_MAX;

    for (;;) {
        struct pollfd fds[] = { { child->ctl, POLLIN, 0 }, { out, POLLIN, 0 }, { err, POLLIN, 0 } };
        int64_t       now_ns = il__clock_boot_ns();
        if (give_up_ns == INT64_MAX && atomic_load(&a->stopping))
            give_up_ns = now_ns + grace_ms * IL__NS_PER_MS + PATIENCE_NS;
        if (now_ns >= give_up_ns)
            break;
        int64_t left_ms =
            give_up_ns != INT64_MAX ? (give_up_ns - now_ns) / IL__NS_PER_MS + 1 : POLL_MS;
        if (poll(fds, ARRAY_LEN(fds), (int)MIN(left_ms, POLL_MS)) < 0)
            continue;
        if (fds[1].revents != 0)
            (void)take_output(a, &out, 1);
        if (fds[2].revents != 0)
            (void)take_output(a, &err, 2);
        if (fds[0].revents != 0)
            il__proc_report(child, &report);
        if (report.end != PROC_END_NONE)
            break;
    }
    /* All processes have ended: the pipes hold the rest of the output. */
    while (take_output(a, &out, 1) || take_output(a, &err, 2))
        continue;
    return report;
}

/* ---- how it ended ---------------------------------------------------------------------------- */

/* The last line written to stderr, for the error: it usually says what is wrong. */
static void
add_last_line(struct attempt *a, struct runner_result *ret)
{
    const struct il__buf *b   = &a->err.data;
    size_t                end = b->n_bytes;
    size_t                n   = strlen(ret->error);
    char                  line[LAST_LINE_BYTES + 1];

    while (end > 0 &&
           (b->data[end - 1] == '\n' || b->data[end - 1] == ' ' || b->data[end - 1] == '\r'))
        end--;
    size_t from = end;
    while (from > 0 && b->data[from - 1] != '\n' && end - from < LAST_LINE_BYTES)
        from--;
    if (from == end)
        return;
    memcpy(line, b->data + from, end - from);
    line[end - from] = '\0';
    il__utf8_clean(line, end - from);
    (void)snprintf(ret->error + n, sizeof ret->error - n, ": %s", line);
}

static void
judge_exit(struct attempt *a, int wait_status, struct runner_result *ret)
{
    if (wait_status >= 0 && WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0) {
        ret->outcome   = RUNNER_STEP_COMPLETED;
        ret->exit_code = 0;
        return;
    }
    if (wait_status < 0) {
        (void)snprintf(ret->error, sizeof ret->error, "exit status unknown");
    } else if (WIFSIGNALED(wait_status)) {
        ret->exit_code = 128 + WTERMSIG(wait_status);
        (void)snprintf(ret->error, sizeof ret->error, "killed by signal %d", WTERMSIG(wait_status));
    } else {
        ret->exit_code = WEXITSTATUS(wait_status);
        (void)snprintf(ret->error, sizeof ret->error, "exit status %d", WEXITSTATUS(wait_status));
    }
    add_last_line(a, ret);
}

static void
judge(struct attempt *a, const char *command, const struct proc_report *report,
      struct runner_result *ret)
{
    switch (report->end) {
    case PROC_END_EXITED:
        judge_exit(a, report->wait_status, ret);
        break;
    case PROC_END_TIMEOUT:
        ret->timed_out = true;
        break;
    case PROC_END_FAILED:
        (void)snprintf(ret->error, sizeof ret->error, "cannot execute '%.200s': %s", command,
                       strerror(report->error));
        ret->final = report->error == ENOENT || report->error == EACCES || report->error == ENOEXEC;
        break;
    case PROC_END_REAPER:
        (void)snprintf(ret->error, sizeof ret->error, "its supervisor process was killed");
        break;
    /* the reaper noticed first, for example because this process was stopped; start nothing more */
    case PROC_END_DEADLINE:
        work_run_lost(a->e->run);
        ret->outcome = RUNNER_STEP_STOPPED;
        break;
    case PROC_END_STOPPED:
    case PROC_END_NONE:
        ret->outcome = RUNNER_STEP_STOPPED;
        (void)snprintf(ret->error, sizeof ret->error, "stopped");
        break;
    }
}

void
runner_step_command(struct runner_attempt *pub, struct runner_result *ret)
{
    AUTO(il__arena_free) void     *mem   = NULL;
    struct attempt                *a     = pub->own;
    struct execution              *e     = a->e;
    const struct pipeline_command *c     = &pub->step->command;
    struct proc_child              child = PROC_CHILD_NONE;
    struct proc_spec               spec  = {
                       .cwd        = e->cwd,
                       .grace_ms   = e->run->stop_ms,
                       .timeout_ms = pub->timeout_ms,
                       .limits     = c->limits,
    };
    char   **argv  = NULL;
    char   **env   = NULL;
    il_error error = { .message = "" };

    il__mutex_lock(&e->mutex);
    spec.deadline_ns = e->lease_ns;
    il__mutex_unlock(&e->mutex);
    il_status st = build_argv(c, pub->values, &mem, &argv, &error);
    if (st == IL_OK)
        st = build_env(a, spec.deadline_ns, &mem, &env, &error);
    spec.argv = argv;
    spec.env  = env;
    if (st == IL_OK)
        st = il__proc_start(e->r->spawner, &spec, &child, &error);
    if (st != IL_OK) {
        (void)snprintf(ret->error, sizeof ret->error, "%s", error.message);
        ret->final = st == IL_INVAL;
        return;
    }
    runner_attempt_child(a, &child);
    struct proc_report report = supervise(a, &child, e->run->stop_ms);
    runner_attempt_child(a, NULL);
    il__proc_finish(&child);
    CHECK(argv != NULL); /* build_argv() was IL_OK */
    judge(a, argv[0], &report, ret);
}
