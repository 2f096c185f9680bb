/*
 * cmd_demo.c: `interlock demo`: runs a complete sample setup in a temporary folder: a server with
 * sample data, a worker, holders of a key, and a little load.
 *
 * Two processes watch each other, so that nothing is left behind even if one of them is killed. The
 * guard, which the user started, has only one child, the demo itself. If the guard dies, the demo
 * gets SIGTERM and ends as it does on Ctrl-C. If the demo dies, the reapers stop its processes; the
 * guard inherits them, waits for them, and removes the folder.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/demo/cmd_demo.h"
#include "base/clock.h"
#include "base/error.h"

#define LOOK_MS 250
#define AGAIN_NS (INT64_C(1000) * IL__NS_PER_MS) /* between two starts of a process, at least */

extern char **environ;

/* ---- the ground ------------------------------------------------------------------------------ */

/* A free port of this machine: the wanted one, or any. 0: none. */
static unsigned
free_port(unsigned wanted)
{
    struct sockaddr_in a   = { .sin_family      = AF_INET,
                               .sin_port        = htons((uint16_t)wanted),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t          n   = sizeof a;
    int                one = 1;
    int                fd  = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    unsigned           got = 0;

    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
        bind(fd, (const void *)&a, sizeof a) == 0 && listen(fd, 1) == 0 &&
        getsockname(fd, (void *)&a, &n) == 0)
        got = ntohs(a.sin_port);
    if (fd >= 0)
        (void)close(fd); /* nothing was sent */
    return got != 0 || wanted == 0 ? got : free_port(0);
}

/* Forget what the user has configured for other stores. False: out of memory. */
static bool
clean_environment(const struct demo *d)
{
    static const char *const ours[] = { "INTERLOCK_", "ADMIN_ANALYTICS_" };
    char                     name[256];

    for (char **at = environ; *at != NULL;) {
        bool gone = false;
        for (size_t i = 0; i < ARRAY_LEN(ours) && !gone; i++) {
            size_t n = strcspn(*at, "=");
            if (strncmp(*at, ours[i], strlen(ours[i])) != 0 || n >= sizeof name)
                continue;
            (void)snprintf(name, sizeof name, "%.*s", (int)n, *at);
            gone = unsetenv(name) == 0; /* the next one is in its place */
        }
        at += !gone;
    }
    return setenv("XDG_CONFIG_HOME", d->dir, 1) == 0;
}

/* The first server, which takes the link: sessions survive a restart. */
static il_status
start_server(struct demo *d, il_error *reterr)
{
    char link[DATA_ID_BYTES + DATA_TOKEN_BYTES];

    (void)snprintf(link, sizeof link, "%s %s", d->key_id, d->link);
    if (setenv("INTERLOCK_API_KEY", d->secret, 1) != 0 || setenv("INTERLOCK_LINK", link, 1) != 0)
        return il__error_nomem(reterr);
    il_status st = demo_server_start(d, reterr);
    (void)unsetenv("INTERLOCK_LINK");
    return st;
}

static il_status
set_up(struct demo *d, il_error *reterr)
{
    ssize_t n = readlink("/proc/self/exe", d->self, sizeof d->self - 1);

    d->port      = free_port(DEMO_PORT);
    d->site_port = free_port(0);
    if (d->port == 0 || d->site_port == 0 || n <= 0)
        return il__error_set(reterr, IL_NOMEM,
                             "cannot find a free port or this program's own path: %s",
                             strerror(errno));
    il_status st = demo_folder_fill(d, reterr);
    if (st == IL_OK)
        st = demo_key_make(d, reterr);
    if (st == IL_OK)
        st = il__proc_spawner_open(&d->spawner, reterr);
    return st == IL_OK ? start_server(d, reterr) : st;
}

/* ---- messages -------------------------------------------------------------------------------- */

static void
print_welcome(const struct demo *d)
{
    const char *bold  = il__cli_style(stdout, CLI_BOLD);
    const char *plain = il__cli_style(stdout, CLI_PLAIN);

    if (d->port != DEMO_PORT)
        (void)printf("Port %d is in use; this demo uses another one.\n", DEMO_PORT);
    (void)printf("Interlock is running: %shttp://127.0.0.1:%u/ui/#link=%s%s\n"
                 "(The link signs in once, within ten minutes.)\n\n",
                 bold, d->port, d->link, plain);
    (void)printf("    export KEY=%s URL=http://127.0.0.1:%u\n\n", d->secret, d->port);
    (void)printf(
        "Things to try, on the page or here; each reports what to watch:\n\n"
        "    demo() { curl -s -XPOST -H \"X-API-Key: $KEY\" $URL/api/v1/demo/$1; echo; }\n"
        "    demo trigger-ten     # ten triggers at once: one run, nine join it\n"
        "    demo kill-worker     # its job is claimed again after " DEMO_LEASE ", as attempt 2\n"
        "    demo pause-holder    # its lease expires, the next holder gets a higher fence\n"
        "    kill -9 %-12d # the server: a new one continues with what was committed\n"
        "    INTERLOCK_API_KEY=$KEY %s top --server $URL\n\n",
        demo_server_pid(d), program_invocation_name);
    (void)printf("Everything is in %s; Ctrl-C ends the demo and removes it.\n", d->dir);
    (void)fflush(stdout); /* a missing reader is not an error */
}

/* ---- running it ------------------------------------------------------------------------------ */

static il_status
server_ended(struct demo *d, const struct proc_report *report, il_error *reterr)
{
    if (report->end == PROC_END_EXITED && !WIFSIGNALED(report->wait_status))
        return il__error_set(reterr, IL_STORE, "the server exited unexpectedly; see %s/server.log",
                             d->dir);
    (void)printf("\nThe server was killed.");
    il_status st = demo_server_start(d, reterr);
    if (st == IL_OK)
        (void)printf(" Started a new one (pid %d): committed data is intact; an interrupted run "
                     "becomes FAILED after " DEMO_LEASE ".\n",
                     demo_server_pid(d));
    (void)fflush(stdout);
    return st;
}

/* Start again what has ended, after a while. */
static il_status
look_after(struct demo *d, enum demo_part_id id, il_error *reterr)
{
    struct demo_part  *part = &d->parts[id];
    struct proc_report report;

    if (demo_part_ended(d, id, &report) && id == DEMO_SERVER)
        return server_ended(d, &report, reterr);
    if (!part->runs && id != DEMO_SEED && il__clock_boot_ns() - part->start_ns >= AGAIN_NS)
        return demo_part_start(d, id, reterr);
    return IL_OK;
}

static void
say_ready(const struct demo *d, bool *said)
{
    if (*said || d->parts[DEMO_SEED].runs || !atomic_load(&d->load.ready))
        return;
    *said = true;
    (void)printf("\nThe sample data is loaded: pipelines, invariants, race results, a campus, "
                 "usage.\n");
    (void)fflush(stdout);
}

/* Has a signal arrived that ends the demo? SIGCHLD of the spawner does not: src/proc handles it. */
static bool
told_to_end(const struct demo *d)
{
    struct signalfd_siginfo info;

    return read(d->signal_fd, &info, sizeof info) == (ssize_t)sizeof info &&
           info.ssi_signo != SIGCHLD;
}

/* Until a signal comes. */
static il_status
watch(struct demo *d, il_error *reterr)
{
    bool      said = false;
    il_status st   = IL_OK;

    while (st == IL_OK) {
        struct pollfd fds[1 + DEMO_PARTS] = { { d->signal_fd, POLLIN, 0 } };
        for (size_t i = 0; i < DEMO_PARTS; i++)
            fds[1 + i] =
                (struct pollfd){ d->parts[i].runs ? d->parts[i].child.ctl : -1, POLLIN, 0 };
        if (poll(fds, ARRAY_LEN(fds), LOOK_MS) > 0 && fds[0].revents != 0 && told_to_end(d))
            return IL_OK;
        for (enum demo_part_id i = 0; i < DEMO_PARTS && st == IL_OK; i++)
            st = look_after(d, i, reterr);
        say_ready(d, &said);
    }
    return st;
}

static int
run_demo(struct demo *d)
{
    il_error  err;
    il_status st = set_up(d, &err);

    if (st == IL_OK)
        print_welcome(d);
    for (enum demo_part_id i = DEMO_SERVER + 1; i < DEMO_PARTS && st == IL_OK; i++)
        st = demo_part_start(d, i, &err);
    if (st == IL_OK)
        st = demo_load_start(d, &err);
    if (st == IL_OK)
        st = watch(d, &err);
    demo_load_end(d);
    demo_parts_end(d);
    demo_folder_remove(d);
    explicit_bzero(d->secret, sizeof d->secret);
    explicit_bzero(d->link, sizeof d->link);
    return st == IL_OK ? 0 : il__cli_fail(&err);
}

/* ---- the two processes ----------------------------------------------------------------------- */

/* Wait for the demo; pass on signals. */
static int
guard(const struct demo *d, pid_t demo)
{
    struct signalfd_siginfo info;
    int                     status = 0;
    pid_t                   pid    = 0;

    while (pid != demo) {
        if (read(d->signal_fd, &info, sizeof info) != (ssize_t)sizeof info)
            continue;
        if (info.ssi_signo != SIGCHLD)
            (void)kill(demo, SIGTERM);
        while (pid != demo && (pid = waitpid(-1, &status, WNOHANG)) > 0)
            continue;
    }
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) /* its processes, which end by themselves */
        continue;
    demo_folder_remove(d);
    return 128 + WTERMSIG(status);
}

static il_status
open_signals(struct demo *d, il_error *reterr)
{
    sigset_t signals;

    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGHUP);
    (void)sigaddset(&signals, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &signals, NULL);
    (void)signal(SIGCHLD, SIG_DFL); /* if ignored, we could not wait for anybody */
    d->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
    return d->signal_fd >= 0 ? IL_OK
                             : il__error_set(reterr, IL_NOMEM, "signalfd: %s", strerror(errno));
}

int
il__cli_cmd_demo(struct cli *cli UNUSED)
{
    struct demo d      = { .signal_fd = -1 };
    pid_t       parent = getpid(), demo = -1;
    il_error    err;
    il_status   st = open_signals(&d, &err);

    for (size_t i = 0; i < DEMO_PARTS; i++)
        d.parts[i].child = PROC_CHILD_NONE;
    if (st == IL_OK)
        st = demo_folder_make(&d, &err);
    if (st == IL_OK &&
        (!clean_environment(&d) || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 || (demo = fork()) < 0)) {
        st = il__error_set(&err, IL_NOMEM, "cannot start a process: %s", strerror(errno));
        demo_folder_remove(&d);
    }
    if (st != IL_OK)
        return il__cli_fail(&err);
    if (demo > 0)
        return guard(&d, demo);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        (void)raise(SIGTERM); /* the guard died before; blocked until it is read */
    return run_demo(&d);
}
