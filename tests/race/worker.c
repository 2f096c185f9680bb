/*
 * worker.c: race-worker: the command that runs under the lease in the race tests, and holders that
 * use the library.
 *
 *   count FILE LOG       add one to the number in FILE, not atomically; the fence to LOG on entry
 *   tree LOG             a command with a child and a grandchild of another session, all writing to
 *                        LOG
 *   zombie URL KEY FILE  take KEY, read FILE, wait for a line on stdin, write FILE: `fenced` or
 *                        `unfenced`
 *   hold URL KEY         take KEY, say so, give it back when a line comes on stdin
 *   handover URL KEY N   take KEY and give it back N times, telling the times
 *   jobs URL QUEUE LOG NAME   do the jobs of QUEUE; see worker_jobs.c
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "race/worker.h"

void
worker_die(const char *what)
{
    (void)fprintf(stderr, "race-worker: %s: %s\n", what, strerror(errno));
    exit(99);
}

void
worker_append(const char *path, const char *line)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    if (fd < 0 || write(fd, line, strlen(line)) != (ssize_t)strlen(line))
        worker_die(path);
    (void)close(fd);
}

static long
read_number(const char *path)
{
    char text[32] = "";
    int  fd       = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        worker_die(path);
    if (read(fd, text, sizeof text - 1) < 0)
        worker_die(path);
    (void)close(fd);
    return strtol(text, NULL, 10);
}

/* As a careless program does it: the file is empty for a moment. */
static void
write_number(const char *path, long number)
{
    char text[32];
    int  n  = snprintf(text, sizeof text, "%ld\n", number);
    int  fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

    if (fd < 0 || write(fd, text, (size_t)n) != n)
        worker_die(path);
    (void)close(fd);
}

static int64_t
now_ns(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* A little work, in which others get their chance to do harm. */
static void
work(void)
{
    for (unsigned i = 0; i < 20; i++)
        (void)sched_yield();
}

static const char *
fence_text(void)
{
    const char *fence = getenv("INTERLOCK_FENCE");

    return fence != NULL ? fence : "0";
}

static int
count(const char *file, const char *log)
{
    char line[64];

    (void)snprintf(line, sizeof line, "%s\n", fence_text());
    worker_append(log, line);
    long n = read_number(file);
    work();
    write_number(file, n + 1);
    return 0;
}

/* ---- tree ------------------------------------------------------------------------------------ */

/* A line every millisecond or so, for ever. Never sleeps long, so that it is soon seen when it
 * lives. */
static _Noreturn void
beat(const char *log, const char *role)
{
    char line[128];
    int  fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int  n  = snprintf(line, sizeof line, "%s %s %d\n", fence_text(), role, (int)getpid());

    if (fd < 0)
        worker_die(log);
    for (;;) {
        struct timespec pause = { .tv_nsec = 1000000 };
        if (write(fd, line, (size_t)n) != n)
            worker_die(log);
        (void)nanosleep(&pause, NULL);
    }
}

/* Another session, orphaned, and deaf to TERM: what a daemon does that was started by mistake. */
static void
start_daemon(const char *log)
{
    pid_t pid = fork();

    if (pid == 0) {
        (void)setsid();
        if (fork() != 0)
            _exit(0);
        (void)signal(SIGTERM, SIG_IGN);
        (void)signal(SIGHUP, SIG_IGN);
        beat(log, "daemon");
    }
    (void)waitpid(pid, NULL, 0);
}

static int
tree(const char *log)
{
    start_daemon(log);
    if (fork() == 0)
        beat(log, "child");
    (void)printf("tree %d %d\n", (int)getpid(), (int)getppid());
    (void)fflush(stdout);
    beat(log, "command");
}

/* ---- holders that use the library ------------------------------------------------------------ */

il *
worker_open(const char *url)
{
    il      *h = NULL;
    il_error err;

    if (il_open(url, NULL, &h, &err) != IL_OK) {
        (void)fprintf(stderr, "race-worker: %s\n", err.message);
        exit(98);
    }
    return h;
}

static il_lease *
take(il *h, const char *key, int64_t ttl_ms)
{
    il_acquire_opts opts  = IL_ACQUIRE_OPTS_INIT;
    il_lease       *lease = NULL;
    il_error        err;

    opts.ttl_ms  = ttl_ms;
    opts.wait_ms = 60000;
    if (il_acquire(h, key, &opts, &lease, &err) != IL_OK) {
        (void)fprintf(stderr, "race-worker: %s\n", err.message);
        exit(97);
    }
    (void)printf("held %" PRIu64 "\n", il_lease_fence(lease));
    (void)fflush(stdout);
    return lease;
}

static void
await_line(char line[64])
{
    if (fgets(line, 64, stdin) == NULL)
        exit(96); /* the test is gone */
    line[strcspn(line, "\n")] = '\0';
}

/* Read, be away for a while, write what was computed from what was read. */
static int
zombie(const char *url, const char *key, const char *file)
{
    il       *h     = worker_open(url);
    il_lease *lease = take(h, key, 1000);
    long      n     = read_number(file);
    il_error  err   = { 0 };
    char      order[64];

    (void)printf("read %ld\n", n);
    (void)fflush(stdout);
    await_line(order);
    il_status checked = il_check_fence(h, key, il_lease_fence(lease), &err);
    if (strcmp(order, "unfenced") == 0 || checked == IL_OK) {
        write_number(file, n + 1);
        (void)printf("written %ld\n", n + 1);
    } else {
        (void)printf("refused %s\n", il_status_name(checked));
    }
    (void)printf("renew %s\n", il_status_name(il_lease_renew(lease, &err)));
    (void)printf("release %s\n", il_status_name(il_lease_release(lease, &err)));
    il_lease_free(lease);
    il_close(h);
    return 0;
}

static int
hold(const char *url, const char *key)
{
    il       *h     = worker_open(url);
    il_lease *lease = take(h, key, 30000); /* a busy machine must not end it */
    char      line[64];

    await_line(line);
    (void)printf("release %s\n", il_status_name(il_lease_release(lease, NULL)));
    il_lease_free(lease);
    il_close(h);
    return 0;
}

static int
handover(const char *url, const char *key, unsigned n)
{
    il *h = worker_open(url);

    for (unsigned i = 0; i < n; i++) {
        il_acquire_opts opts  = IL_ACQUIRE_OPTS_INIT;
        il_lease       *lease = NULL;
        opts.wait_ms          = 60000;
        if (il_acquire(h, key, &opts, &lease, NULL) != IL_OK)
            return 97;
        int64_t  granted_ns = now_ns();
        uint64_t fence      = il_lease_fence(lease);
        work();
        int64_t release_ns = now_ns();
        if (il_lease_release(lease, NULL) != IL_OK)
            return 95;
        il_lease_free(lease);
        (void)printf("turn %" PRIu64 " %" PRId64 " %" PRId64 "\n", fence, granted_ns, release_ns);
    }
    il_close(h);
    return 0;
}

int
main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    if (strcmp(what, "count") == 0 && argc == 4)
        return count(argv[2], argv[3]);
    if (strcmp(what, "tree") == 0 && argc == 3)
        return tree(argv[2]);
    if (strcmp(what, "zombie") == 0 && argc == 5)
        return zombie(argv[2], argv[3], argv[4]);
    if (strcmp(what, "hold") == 0 && argc == 4)
        return hold(argv[2], argv[3]);
    if (strcmp(what, "handover") == 0 && argc == 5)
        return handover(argv[2], argv[3], (unsigned)strtoul(argv[4], NULL, 10));
    if (strcmp(what, "jobs") == 0 && argc >= 6)
        return worker_jobs(argv[2], argv[3], argv[4], argv[5], argc > 6 ? argv[6] : "");
    (void)fprintf(stderr, "usage: race-worker count|tree|zombie|hold|handover|jobs ARGUMENT...\n");
    return 64;
}
