/*
 * child.c: runs the command of one job under a reaper; the contract is in child.h.
 */
#include "proc/child.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "proc/sys.h"
#include "proc/walk.h"

#define SELF "/proc/self/exe"
#define HIGH_FD 16      /* above the fixed numbers, so that none is overwritten before the copy */
#define LOOK_AGAIN_MS 5 /* for orphans that were killed but are not dead yet */

/* The descriptors the reaper gets, each with a high number; -1 = none. */
struct ends {
    int ctl;
    int shared;
    int in;
    int out;
    int err;
};

static void
close_ends(struct ends *e)
{
    il__proc_fd_close(&e->ctl);
    il__proc_fd_close(&e->shared);
    il__proc_fd_close(&e->in);
    il__proc_fd_close(&e->out);
    il__proc_fd_close(&e->err);
}

static bool
make_pipe(int *ret_read, int *ret_write, bool we_read)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) != 0)
        return false;
    *ret_read  = fds[0];
    *ret_write = fds[1];
    int ours   = we_read ? fds[0] : fds[1];
    return fcntl(ours, F_SETFL, O_NONBLOCK) == 0 &&
           il__proc_fd_above(we_read ? ret_write : ret_read, HIGH_FD);
}

static bool
make_ends(struct il__child *c, struct ends *e)
{
    int ctl[2];

    e->shared = memfd_create("il-reaper", MFD_CLOEXEC);
    if (e->shared < 0 || ftruncate(e->shared, sizeof(struct il__reaper_shared)) != 0)
        return false;
    void *page = mmap(NULL, sizeof(struct il__reaper_shared), PROT_READ | PROT_WRITE, MAP_SHARED,
                      e->shared, 0);
    if (page == MAP_FAILED)
        return false;
    c->reaper.shared = page;
    atomic_init(&c->reaper.shared->wait_status, -1);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ctl) != 0)
        return false;
    c->reaper.ctl = ctl[0];
    e->ctl        = ctl[1];
    return il__proc_fd_above(&e->shared, HIGH_FD) && il__proc_fd_above(&e->ctl, HIGH_FD) &&
           make_pipe(&e->in, &c->in_fd, false) && make_pipe(&c->out_fd, &e->out, true) &&
           make_pipe(&c->err_fd, &e->err, true);
}

/* ---- the reaper's arguments and environment -------------------------------------------------- */

#define ENV_MAX 4
#define ARGS_BEFORE 9 /* interlock reaper KEY HOLDER GRACE TIMEOUT PID QUIET -- */

struct texts {
    char env[ENV_MAX][IL_QUEUE_BYTES_MAX + IL_ID_BYTES_MAX + 64];
    char holder[IL_ID_BYTES_MAX + 32];
    char grace[24];
    char timeout[24];
    char pid[16];
};

static void
write_texts(const struct il__child_opts *o, struct texts *t)
{
    (void)snprintf(t->env[0], sizeof t->env[0], "INTERLOCK_QUEUE=%s", o->queue);
    (void)snprintf(t->env[1], sizeof t->env[1], "INTERLOCK_JOB_ID=%s", o->job);
    (void)snprintf(t->env[2], sizeof t->env[2], "INTERLOCK_JOB_TOKEN=%" PRIu64, o->token);
    (void)snprintf(t->env[3], sizeof t->env[3], "INTERLOCK_JOB_ATTEMPT=%" PRIu32, o->attempt);
    /* One unit of work per attempt: remains of an earlier attempt count as another holder. */
    (void)snprintf(t->holder, sizeof t->holder, "%s.%" PRIu64, o->job, o->token);
    (void)snprintf(t->grace, sizeof t->grace, "%" PRId64, o->grace_ms);
    (void)snprintf(t->timeout, sizeof t->timeout, "%" PRId64, o->timeout_ms);
    (void)snprintf(t->pid, sizeof t->pid, "%d", (int)getpid());
}

/* Is it one of the variables set for each job? */
static bool
is_ours(const char *entry)
{
    static const char *const names[] = { "INTERLOCK_QUEUE=", "INTERLOCK_JOB_ID=",
                                         "INTERLOCK_JOB_TOKEN=", "INTERLOCK_JOB_ATTEMPT=" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strncmp(entry, names[i], strlen(names[i])) == 0)
            return true;
    }
    return false;
}

static char **
make_env(struct texts *t)
{
    size_t n = 0;
    size_t k = 0;

    while (environ[n] != NULL)
        n++;
    char **env = il__calloc(n + ENV_MAX + 1, sizeof *env);
    if (env == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        if (!is_ours(environ[i]))
            env[k++] = environ[i];
    }
    for (size_t i = 0; i < ENV_MAX; i++)
        env[k++] = t->env[i];
    return env;
}

static char *
word(const char *text)
{
    return (char *)(uintptr_t)text; /* argv is not const, but is never written */
}

static char **
make_argv(const struct il__child_opts *o, struct texts *t)
{
    size_t n = 0;

    while (o->argv[n] != NULL)
        n++;
    char **argv = il__calloc(ARGS_BEFORE + 1 + n + 1, sizeof *argv);
    if (argv == NULL)
        return NULL;
    char *const before[ARGS_BEFORE] = {
        word("interlock"), word("reaper"), word(o->queue), t->holder,
        t->grace,          t->timeout,     t->pid,         word(o->quiet ? "quiet" : "talk"),
        word("--")
    };
    memcpy(argv, before, sizeof before);
    argv[ARGS_BEFORE] = word(o->path);
    memcpy(argv + ARGS_BEFORE + 1, o->argv, n * sizeof *argv);
    return argv;
}

/* 0, or the errno. */
static int
spawn(const struct il__child_opts *o, const struct ends *e, pid_t *ret)
{
    posix_spawn_file_actions_t actions;
    struct texts               texts = { 0 };

    write_texts(o, &texts);
    AUTO_FREE char **env  = make_env(&texts);
    AUTO_FREE char **argv = make_argv(o, &texts);
    if (env == NULL || argv == NULL || posix_spawn_file_actions_init(&actions) != 0)
        return ENOMEM;
    int error = posix_spawn_file_actions_adddup2(&actions, e->in, STDIN_FILENO);
    if (error == 0)
        error = posix_spawn_file_actions_adddup2(&actions, e->ctl, IL__CHILD_CTL_FD);
    if (error == 0)
        error = posix_spawn_file_actions_adddup2(&actions, e->shared, IL__CHILD_SHARED_FD);
    if (error == 0)
        error = posix_spawn_file_actions_adddup2(&actions, e->out, IL__CHILD_OUT_FD);
    if (error == 0)
        error = posix_spawn_file_actions_adddup2(&actions, e->err, IL__CHILD_ERR_FD);
    if (error == 0)
        error = posix_spawn(ret, SELF, &actions, NULL, argv, env);
    CHECK(posix_spawn_file_actions_destroy(&actions) == 0);
    return error;
}

il_status
il__child_start(const struct il__child_opts *opts, struct il__child *ret, il_error *reterr)
{
    struct ends e     = { -1, -1, -1, -1, -1 };
    int         error = 0;

    *ret = IL__CHILD_NONE;
    if (!make_ends(ret, &e))
        error = errno;
    if (error == 0) {
        il__child_publish(ret, opts->deadline_ns);
        atomic_store(&ret->reaper.shared->fence, opts->token);
        error = spawn(opts, &e, &ret->reaper.pid);
    }
    close_ends(&e);
    if (error == 0) {
        il__reaper_order(&ret->reaper, IL__ORDER_START, 0);
        return IL_OK;
    }
    il__child_finish(ret);
    return il__error_set(reterr, IL_NOMEM, "cannot start the supervisor process: %s",
                         strerror(error));
}

void
il__child_publish(struct il__child *c, int64_t deadline_ns)
{
    int64_t known_ns = atomic_load(&c->reaper.shared->deadline_ns);

    while (known_ns < deadline_ns &&
           !atomic_compare_exchange_weak(&c->reaper.shared->deadline_ns, &known_ns, deadline_ns))
        continue;
}

void
il__child_finish(struct il__child *c)
{
    il__reaper_finish(&c->reaper);
    if (c->reaper.shared != NULL)
        CHECK(munmap(c->reaper.shared, sizeof *c->reaper.shared) == 0);
    c->reaper.shared = NULL;
    il__proc_fd_close(&c->in_fd);
    il__proc_fd_close(&c->out_fd);
    il__proc_fd_close(&c->err_fd);
}

/* ---- orphans --------------------------------------------------------------------------------- */

struct orphans {
    bool (*is_reaper)(const void *cookie, pid_t pid);
    const void *cookie;
    unsigned    n_found;
};

/* Leave the reapers of other jobs and their descendants alone; everything else below us was left by
 * a dead reaper. */
static bool
end_one(void *cookie, const struct proc_process *p)
{
    struct orphans *o = cookie;

    if (p->parent == getpid() && o->is_reaper(o->cookie, p->pid))
        return false;
    o->n_found++;
    (void)il__proc_process_kill(p, SIGKILL);
    if (p->parent == getpid())
        /* one that is dead already; the others on the next pass */
        (void)waitpid(p->pid, NULL, WNOHANG);
    return true;
}

void
il__child_end_orphans(bool (*is_reaper)(const void *cookie, pid_t pid), const void *cookie)
{
    struct orphans o = { .is_reaper = is_reaper, .cookie = cookie };

    for (;;) {
        o.n_found = 0;
        if (il__proc_walk(end_one, &o) && o.n_found == 0)
            return;
        (void)poll(NULL, 0, LOOK_AGAIN_MS);
    }
}
