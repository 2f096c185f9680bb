/*
 * hook.c: runs a hook; the contract is in hook.h.
 */
#include "proc/hook.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/parse.h"
#include "proc/proc.h"
#include "proc/sys.h"

#define OURS "INTERLOCK_"
#define INPUT_BYTES_MAX (64 << 10)
/* beyond its limit, for a reaper to report that everything has ended */
#define PATIENCE_MS 2000
#define CHUNK_BYTES 4096

/* ---- facts ----------------------------------------------------------------------------------- */

static void
add_fact(struct il__hook_facts *f, const char *name, const char *text, int64_t number)
{
    CHECK(f->n < IL__HOOK_FACTS_MAX);
    f->row[f->n].name   = name;
    f->row[f->n].text   = text;
    f->row[f->n].number = number;
    f->n++;
}

void
il__hook_text(struct il__hook_facts *f, const char *name, const char *text)
{
    add_fact(f, name, text != NULL ? text : "", 0);
}

void
il__hook_number(struct il__hook_facts *f, const char *name, int64_t number)
{
    add_fact(f, name, NULL, number);
}

/* As a JSON string; bytes that are not UTF-8 become question marks. */
static void
add_string(struct il__buf *b, const char *text)
{
    size_t n     = strlen(text);
    bool   valid = il__utf8_valid(text, n);

    il__buf_addc(b, '"');
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\')
            il__buf_addf(b, "\\%c", c);
        else if (c < 0x20)
            il__buf_addf(b, "\\u%04x", c);
        else
            il__buf_addc(b, !valid && c >= 0x80 ? '?' : (char)c);
    }
    il__buf_addc(b, '"');
}

static void
write_json(const struct il__hook_facts *f, struct il__buf *b)
{
    il__buf_addc(b, '{');
    for (size_t i = 0; i < f->n; i++) {
        il__buf_addf(b, "%s\"%s\":", i > 0 ? "," : "", f->row[i].name);
        if (f->row[i].text == NULL)
            il__buf_addf(b, "%" PRId64, f->row[i].number);
        else if (f->row[i].text[0] == '\0')
            il__buf_adds(b, "null");
        else
            add_string(b, f->row[i].text);
    }
    il__buf_adds(b, "}\n");
}

/* Is a variable of ours passed on? */
static bool
is_passed_on(const char *entry, bool served)
{
    static const char *const plain[] = { "PATH=", "HOME=",   "USER=", "LOGNAME=", "SHELL=",
                                         "LANG=", "LC_ALL=", "TZ=",   "TMPDIR=" };

#ifdef IL_MUTANT_hook_gets_secrets
    return true;
#endif
    for (size_t i = 0; served && i < ARRAY_LEN(plain); i++) {
        if (strncmp(entry, plain[i], strlen(plain[i])) == 0)
            return true;
    }
    return !served && strncmp(entry, OURS, strlen(OURS)) != 0;
}

/* What is passed on, and the facts. NULL: out of memory. */
static char **
make_env(const struct il__hook *h, void **mem)
{
    const struct il__hook_facts *f = h->facts;

    size_t n = 0;
    size_t k = 0;

    while (environ[n] != NULL)
        n++;
    char **env = il__arena_alloc(mem, (n + f->n + 1) * sizeof *env);
    for (size_t i = 0; env != NULL && i < n; i++) {
        if (is_passed_on(environ[i], h->served))
            env[k++] = environ[i];
    }
    for (size_t i = 0; env != NULL && i < f->n; i++) {
        const char *text    = f->row[i].text;
        size_t      n_bytes = strlen(f->row[i].name) + (text != NULL ? strlen(text) : 0) + 40;
        char       *pair    = il__arena_alloc(mem, n_bytes);
        if (pair == NULL)
            return NULL;
        if (text != NULL)
            (void)snprintf(pair, n_bytes, OURS "%s=%s", f->row[i].name, text);
        else
            (void)snprintf(pair, n_bytes, OURS "%s=%" PRId64, f->row[i].name, f->row[i].number);
        for (char *c = pair + strlen(OURS); *c != '='; c++)
            *c = (char)toupper((unsigned char)*c);
        env[k++] = pair;
    }
    if (env != NULL)
        env[k] = NULL;
    return env;
}

/* ---- running it ------------------------------------------------------------------------------ */

/* Pass on what a pipe has. False: it has no more at present, and *fd is -1 if it is closed. */
static bool
pass_on(const struct il__hook *h, int *fd)
{
    char    chunk[CHUNK_BYTES];
    ssize_t n = *fd >= 0 ? read(*fd, chunk, sizeof chunk) : 0;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return errno == EINTR;
    if (n <= 0) {
        *fd = -1; /* proc owns the descriptor */
        return false;
    }
    if (!h->served)
        il__proc_write_stderr(chunk, (size_t)n);
    return true;
}

static struct proc_report
await_end(const struct il__hook *h, struct proc_child *child)
{
    struct proc_report report  = { .end = PROC_END_NONE, .wait_status = -1 };
    int                out     = child->out_fd;
    int                err     = child->err_fd;
    int                stop_fd = h->stop_fd;
    int64_t            until_ns =
        il__clock_boot_ns() + (IL__HOOK_LIMIT_MS + PATIENCE_MS) * (int64_t)IL__NS_PER_MS;

    while (report.end == PROC_END_NONE) {
        struct pollfd fds[]   = { { child->ctl, POLLIN, 0 },
                                  { out, POLLIN, 0 },
                                  { err, POLLIN, 0 },
                                  { stop_fd, POLLIN, 0 } };
        int64_t       left_ms = (until_ns - il__clock_boot_ns()) / IL__NS_PER_MS;
        if (left_ms <= 0)
            break; /* il__proc_finish() stops it */
        if (poll(fds, ARRAY_LEN(fds), (int)left_ms) < 0)
            continue;
        if (fds[1].revents != 0)
            (void)pass_on(h, &out);
        if (fds[2].revents != 0)
            (void)pass_on(h, &err);
        if (fds[3].revents != 0 && (h->should_stop == NULL || h->should_stop(h->cookie))) {
            il__proc_stop(child);
            stop_fd = -1;
        }
        if (fds[0].revents != 0)
            il__proc_report(child, &report);
    }
    /* Its processes have ended: the pipes hold the rest, and nobody adds to it. */
    while (report.end != PROC_END_NONE && (pass_on(h, &out) || pass_on(h, &err)))
        continue;
    return report;
}

static bool
judge(const struct proc_report *report, char why[IL__HOOK_WHY_BYTES])
{
    int status = report->wait_status;

    why[0] = '\0';
    switch (report->end) {
    case PROC_END_EXITED:
        if (status >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
            return true;
        if (status >= 0 && WIFSIGNALED(status))
            (void)snprintf(why, IL__HOOK_WHY_BYTES, "killed by signal %d", WTERMSIG(status));
        else
            (void)snprintf(why, IL__HOOK_WHY_BYTES, "exit status %d", WEXITSTATUS(status));
        return false;
    case PROC_END_FAILED:
        (void)snprintf(why, IL__HOOK_WHY_BYTES, "%s",
                       report->error == ENOENT ? "command not found" : strerror(report->error));
        return false;
    case PROC_END_STOPPED:
        (void)snprintf(why, IL__HOOK_WHY_BYTES, "stopped by a signal");
        return false;
    case PROC_END_REAPER:
        (void)snprintf(why, IL__HOOK_WHY_BYTES, "its supervisor process was killed");
        return false;
    case PROC_END_TIMEOUT:
    case PROC_END_DEADLINE:
    case PROC_END_NONE:
        break;
    }
    (void)snprintf(why, IL__HOOK_WHY_BYTES, "killed after %d s", IL__HOOK_LIMIT_MS / 1000);
    return false;
}

bool
il__hook_run(const struct il__hook *h, char why[IL__HOOK_WHY_BYTES])
{
    AUTO(il__arena_free) void *mem     = NULL;
    AUTO_BUF struct il__buf    json    = { 0 };
    struct proc_spawner       *spawner = NULL;
    struct proc_child          child   = PROC_CHILD_NONE;
    struct proc_report         report  = { .end = PROC_END_NONE };
    il_error                   error   = { .message = "out of memory" };

    il__buf_init(&json, INPUT_BYTES_MAX);
    write_json(h->facts, &json);
    struct proc_spec spec = { .argv        = h->argv,
                              .env         = make_env(h, &mem),
                              .cwd         = ".",
                              .timeout_ms  = IL__HOOK_LIMIT_MS,
                              .input       = il__buf_str(&json),
                              .input_bytes = json.n_bytes };
    il_status        st   = IL_NOMEM;
    if (!json.failed && spec.env != NULL)
        st = il__proc_spawner_open(&spawner, &error);
    if (st == IL_OK)
        st = il__proc_start(spawner, &spec, &child, &error);
    if (st == IL_OK)
        report = await_end(h, &child);
    il__proc_finish(&child);
    il__proc_spawner_close(spawner);
    if (st == IL_OK)
        return judge(&report, why);
    (void)snprintf(why, IL__HOOK_WHY_BYTES, "%.*s", IL__HOOK_WHY_BYTES - 1, error.message);
    return false;
}
