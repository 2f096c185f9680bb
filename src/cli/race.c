/*
 * race.c: the barrier. Each racer reports through one pipe that it is ready, and then reads its
 * start signal from another. All start signals are sent in one atomic write, so no racer starts
 * early. If the parent dies before the write, the racers read end of file and exit.
 */
#include "cli/race.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli/defs.h"

_Static_assert(CLI_RACE_MAX <= PIPE_BUF, "the start signals must be one atomic write");

static volatile sig_atomic_t n_interrupts;
static volatile sig_atomic_t stopped_by; /* the first of them */

static void
on_interrupt(int signo)
{
    if (n_interrupts == 0)
        stopped_by = signo;
    if (n_interrupts < 2)
        n_interrupts++;
}

struct barrier {
    int ready[2];
    int start[2];
};

static void
close_pair(int pair[2])
{
    for (int i = 0; i < 2; i++) {
        if (pair[i] >= 0)
            (void)close(pair[i]); /* a pipe: nothing to lose */
        pair[i] = -1;
    }
}

static void
barrier_release(struct barrier *b)
{
    close_pair(b->ready);
    close_pair(b->start);
}

static void
redirect(int fd, int flags)
{
    int null = open("/dev/null", flags | O_CLOEXEC);

    if (null < 0 || dup2(null, fd) < 0)
        _exit(CLI_EXIT_NOT_EXECUTABLE);
}

/* In the child: never returns. */
static _Noreturn void
be_racer(const struct barrier *b, const char *path, char *const *argv, bool verbose)
{
    char    byte = 'r';
    ssize_t n;

    (void)signal(SIGINT, SIG_DFL); /* these cannot fail */
    (void)signal(SIGTERM, SIG_DFL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGXFSZ, SIG_DFL);
    (void)close(b->ready[0]);
    (void)close(b->start[1]); /* otherwise end of file would never be seen */
    redirect(STDIN_FILENO, O_RDONLY);
    if (!verbose) {
        redirect(STDOUT_FILENO, O_WRONLY);
        redirect(STDERR_FILENO, O_WRONLY);
    }
    if (write(b->ready[1], &byte, 1) != 1)
        _exit(CLI_EXIT_NOT_EXECUTABLE);
    (void)close(b->ready[1]);
    do
        n = read(b->start[0], &byte, 1);
    while (n < 0 && errno == EINTR);
    if (n != 1)
        _exit(CLI_EXIT_NOT_EXECUTABLE);
    (void)execvp(path, argv);
    int status = errno == ENOENT || errno == ENOTDIR ? CLI_EXIT_NOT_FOUND : CLI_EXIT_NOT_EXECUTABLE;
    (void)fprintf(stderr, "interlock: %s: %s\n", path, strerror(errno)); /* seen with --verbose */
    _exit(status);
}

/* Fork the racers and wait until all of them are at the barrier. */
static il_status
line_up(struct cli_race *race, size_t n, struct barrier *b, const char *path, char *const *argv,
        bool verbose, il_error *reterr)
{
    char byte;

    for (race->n = 0; race->n < n; race->n++) {
        pid_t pid = fork();
        if (pid < 0)
            return il__error_set(reterr, IL_STORE, "race: cannot start process %zu of %zu: %s",
                                 race->n + 1, n, strerror(errno));
        if (pid == 0)
            be_racer(b, path, argv, verbose);
        race->racers[race->n].pid = pid;
    }
    /* From here on only racers that are not ready yet hold the write end, so a dead one is
     * noticed. */
    (void)close(b->ready[1]);
    b->ready[1] = -1;
    for (size_t i = 0; i < n;) {
        ssize_t got = read(b->ready[0], &byte, 1);
        if (got == 1)
            i++;
        else if (n_interrupts > 0)
            return il__error_set(reterr, IL_CANCELLED, "race: stopped before the start");
        else if (got == 0 || errno != EINTR)
            return il__error_set(reterr, IL_STORE, "race: process %zu of %zu died before the start",
                                 i + 1, n);
    }
    return IL_OK;
}

static void
record(struct cli_race *race, pid_t pid, int status, int64_t took_ns)
{
    for (size_t i = 0; i < race->n; i++) {
        struct cli_racer *racer = &race->racers[i];
        if (racer->pid != pid)
            continue;
        racer->pid         = 0; /* gone: must not be killed any more */
        racer->exit_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        racer->took_ns     = took_ns;
    }
}

static void
signal_all(const struct cli_race *race, int signo)
{
    for (size_t i = 0; i < race->n; i++) {
        if (race->racers[i].pid > 0)
            (void)kill(race->racers[i].pid, signo); /* it may have just exited */
    }
}

/* Reap racers that have exited; false when none is left. */
static bool
reap(struct cli_race *race, int64_t start_ns)
{
    int   status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        record(race, pid, status, il__clock_boot_ns() - start_ns);
    return pid == 0;
}

/*
 * Wait for all racers. The signals of `set` are blocked and waited for. INT comes from the
 * terminal, which sends it to the racers as well; TERM is sent to us alone, so it is passed on. The
 * second signal of either kind kills the racers.
 */
static void
wait_all(struct cli_race *race, const sigset_t *set, int64_t start_ns)
{
    while (reap(race, start_ns)) {
        int signo = sigwaitinfo(set, NULL);
        if (signo == SIGINT || signo == SIGTERM)
            on_interrupt(signo);
        if (n_interrupts >= 2)
            signal_all(race, SIGKILL);
        else if (signo == SIGTERM)
            signal_all(race, SIGTERM);
    }
}

static il_status
run(struct cli_race *race, size_t n, struct barrier *b, const char *path, char *const *argv,
    bool verbose, il_error *reterr)
{
    char      bytes[CLI_RACE_MAX];
    il_status st = line_up(race, n, b, path, argv, verbose, reterr);
    sigset_t  set;
    sigset_t  before;

    /* Blocked before the start: a later signal that did not reach wait_all() would not be passed
     * on. */
    CHECK(sigemptyset(&set) == 0);
    CHECK(sigaddset(&set, SIGINT) == 0);
    CHECK(sigaddset(&set, SIGTERM) == 0);
    CHECK(sigaddset(&set, SIGCHLD) == 0);
    CHECK(sigprocmask(SIG_BLOCK, &set, &before) == 0);
    if (st == IL_OK && n_interrupts > 0)
        st = il__error_set(reterr, IL_CANCELLED, "race: stopped before the start");
    memset(bytes, 'g', sizeof bytes);
    (void)close(b->start[0]);
    b->start[0]      = -1;
    int64_t start_ns = il__clock_boot_ns();
    if (st == IL_OK && write(b->start[1], bytes, n) != (ssize_t)n)
        st = il__error_set(reterr, IL_STORE, "race: cannot give the start signal: %s",
                           strerror(errno));
    (void)close(b->start[1]); /* without a start signal this makes the racers exit */
    b->start[1] = -1;
    wait_all(race, &set, start_ns);
    CHECK(sigprocmask(SIG_SETMASK, &before, NULL) == 0);
    return st;
}

il_status
il__cli_race_run(struct cli_race *race, size_t n, const char *path, char *const *argv, bool verbose,
                 il_error *reterr)
{
    AUTO(barrier_release) struct barrier b      = { { -1, -1 }, { -1, -1 } };
    struct sigaction                     action = { .sa_handler = on_interrupt };
    struct sigaction                     old_int;
    struct sigaction                     old_term;

    CHECK(n > 0 && n <= CLI_RACE_MAX);
    race->racers = il__calloc(n, sizeof *race->racers);
    if (race->racers == NULL)
        return il__error_set(reterr, IL_NOMEM, "race: out of memory");
    if (pipe2(b.ready, O_CLOEXEC) != 0 || pipe2(b.start, O_CLOEXEC) != 0)
        return il__error_set(reterr, IL_STORE, "race: cannot create a pipe: %s", strerror(errno));
    (void)signal(SIGCHLD, SIG_DFL); /* if it were ignored, the exit of a racer would not be seen */
    (void)fflush(stdout);           /* otherwise every child would inherit a copy of the buffer */
    CHECK(sigaction(SIGINT, &action, &old_int) == 0);
    CHECK(sigaction(SIGTERM, &action, &old_term) == 0);
    il_status st = run(race, n, &b, path, argv, verbose, reterr);
    CHECK(sigaction(SIGINT, &old_int, NULL) == 0);
    CHECK(sigaction(SIGTERM, &old_term, NULL) == 0);
    race->stopped_by = (int)stopped_by;
    return st;
}
