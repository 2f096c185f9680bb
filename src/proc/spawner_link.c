/*
 * spawner_link.c: the server's side of one spawner process: starts it, sends requests to it,
 * dismisses it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "proc/spawner.h"
#include "proc/sys.h"

#define SELF "/proc/self/exe"
#define HIGH_FD 16 /* above the fixed numbers, so that none is overwritten before the copy */
#define SEND_S 5   /* how long a request may wait for room before the spawner counts as hung */

/* The descriptors the spawner gets; -1 = none. */
struct ends {
    int request;
    int server;
    int page;
};

static void
close_ends(struct ends *e)
{
    il__proc_fd_close(&e->request);
    il__proc_fd_close(&e->server);
    il__proc_fd_close(&e->page);
}

static bool
make_page(struct proc_link *l, int *ret_fd)
{
    *ret_fd = memfd_create("il-spawner", MFD_CLOEXEC);
    if (*ret_fd < 0 || ftruncate(*ret_fd, sizeof *l->page) != 0)
        return false;
    void *page = mmap(NULL, sizeof *l->page, PROT_READ | PROT_WRITE, MAP_SHARED, *ret_fd, 0);
    if (page == MAP_FAILED)
        return false;
    l->page = page;
    return il__proc_fd_above(ret_fd, HIGH_FD);
}

static bool
make_ends(struct proc_link *l, struct ends *e)
{
    struct timeval patience = { .tv_sec = SEND_S };
    int            fds[2];

    if (!make_page(l, &e->page) || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
        return false;
    l->fd      = fds[0];
    e->request = fds[1];
    /* Our own pidfd: if the spawner opened it, our pid might already belong to another process. */
    e->server = il__proc_pidfd_open(getpid());
    return setsockopt(l->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0 &&
           il__proc_fd_above(&e->request, HIGH_FD) &&
           (e->server < 0 || il__proc_fd_above(&e->server, HIGH_FD));
}

/* Give it its own session, so that no signal to the server's group or terminal reaches it or a
 * command. 0, or the errno. */
static int
set_attributes(posix_spawnattr_t *attr)
{
    sigset_t all;
    sigset_t none;

    CHECK(sigfillset(&all) == 0);
    CHECK(sigemptyset(&none) == 0);
    int error = posix_spawnattr_setflags(
        attr, (short)(POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK));
    if (error == 0)
        error = posix_spawnattr_setsigdefault(attr, &all);
    return error != 0 ? error : posix_spawnattr_setsigmask(attr, &none);
}

static int
add_actions(posix_spawn_file_actions_t *actions, const struct ends *e)
{
    int error = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);

    if (error == 0)
        error = posix_spawn_file_actions_addopen(actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (error == 0)
        error = posix_spawn_file_actions_adddup2(actions, e->request, PROC_FD_REQUEST);
    if (error == 0)
        error = e->server >= 0
                    ? posix_spawn_file_actions_adddup2(actions, e->server, PROC_FD_SERVER)
                    : posix_spawn_file_actions_addclose(actions, PROC_FD_SERVER);
    return error != 0 ? error : posix_spawn_file_actions_adddup2(actions, e->page, PROC_FD_PAGE);
}

/*
 * The variables that the spawner and its reapers need: the library path and sanitizer options.
 * Commands get theirs with the request. Nothing else is passed on: its parent's environment is the
 * first place where a command would look for passwords.
 */
#define SPAWNER_ENV_MAX 16

static void
make_env(char *env[SPAWNER_ENV_MAX + 1])
{
    size_t n = 0;

    for (char **e = environ; *e != NULL && n < SPAWNER_ENV_MAX; e++) {
        size_t n_name = strcspn(*e, "=");
        bool   san    = n_name > 11 && strncmp(*e + n_name - 11, "SAN_OPTIONS", 11) == 0;
        if (san || strncmp(*e, "LD_", 3) == 0)
            env[n++] = *e;
    }
    env[n] = NULL;
}

/* 0, or the errno. */
static int
execute(const struct ends *e, pid_t *ret)
{
    static char                name[] = "interlock";
    static char                word[] = "spawner";
    char *const                argv[] = { name, word, NULL };
    char                      *env[SPAWNER_ENV_MAX + 1];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t          attr;

    if (posix_spawn_file_actions_init(&actions) != 0)
        return ENOMEM;
    if (posix_spawnattr_init(&attr) != 0) {
        CHECK(posix_spawn_file_actions_destroy(&actions) == 0);
        return ENOMEM;
    }
    int error = add_actions(&actions, e);
    make_env(env);
    if (error == 0)
        error = set_attributes(&attr);
#ifdef IL_MUTANT_spawner_inherits
    error = error != 0 ? error : posix_spawn(ret, SELF, &actions, &attr, argv, environ);
#else
    if (error == 0)
        error = posix_spawn(ret, SELF, &actions, &attr, argv, env);
#endif
    CHECK(posix_spawnattr_destroy(&attr) == 0);
    CHECK(posix_spawn_file_actions_destroy(&actions) == 0);
    return error;
}

il_status
il__proc_link_open(struct proc_link **ret, il_error *reterr)
{
    struct ends       e     = { -1, -1, -1 };
    int               error = ENOMEM;
    struct proc_link *l     = il__calloc(1, sizeof *l);

    if (l != NULL) {
        l->fd     = -1;
        l->n_refs = 1;
        for (unsigned i = 0; i < PROC_CHILDREN_MAX; i++)
            l->free_slots[i] = (uint16_t)(PROC_CHILDREN_MAX - 1 - i);
        l->n_free = PROC_CHILDREN_MAX;
        error     = make_ends(l, &e) ? execute(&e, &l->pid) : errno;
    }
    close_ends(&e);
    if (error == 0) {
        *ret = l;
        return IL_OK;
    }
    il__proc_link_close(l);
    return il__error_set(reterr, IL_NOMEM, "cannot start the spawner process: %s", strerror(error));
}

void
il__proc_link_close(struct proc_link *l)
{
    if (l == NULL)
        return;
    il__proc_fd_close(&l->fd); /* it exits as soon as it has no children any more */
    while (l->pid > 0 && waitpid(l->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    if (l->page != NULL)
        CHECK(munmap(l->page, sizeof *l->page) == 0);
    il__free(l);
}

bool
il__proc_link_gone(const struct proc_link *l)
{
    siginfo_t info = { 0 };

    return waitid(P_PID, (id_t)l->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == l->pid;
}

int
il__proc_link_send(struct proc_link *l, const struct proc_request *request, const char *strings,
                   const int *fds, size_t n_fds, bool wait)
{
    for (;;) {
        /* Counted first: the spawner must never seem to have received more than was sent. */
        atomic_fetch_add(&l->n_sent, 1);
        int error = il__proc_send(l->fd, request, strings, fds, n_fds, wait ? 0 : MSG_DONTWAIT);
        if (error == 0)
            return 0;
        atomic_fetch_sub(&l->n_sent, 1);
        if (error != EINTR)
            return error;
    }
}
