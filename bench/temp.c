/*
 * temp.c: temporary files, which are removed however the program exits (except by SIGKILL), and
 * die().
 */
#include <errno.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "process.h"

#define PREFIX "interlock-bench-"

/* One folder per process, global because signal and failure handling must find it. */
static char temp_dir[BENCH_PATH_BYTES];

static int
remove_one(const char *path, const struct stat *st UNUSED, int type UNUSED, struct FTW *ftw UNUSED)
{
    (void)remove(path); /* then the folder stays, and temp_remove() reports it */
    return 0;
}

void
temp_remove(void)
{
    if (temp_dir[0] == '\0')
        return;
    CHECK(strstr(temp_dir, PREFIX) != NULL);
    processes_end();
    (void)nftw(temp_dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    if (access(temp_dir, F_OK) == 0)
        (void)fprintf(stderr, "interlock-bench: %s could not be removed\n", temp_dir);
}

void
die(const char *fmt, ...)
{
    va_list args;

    (void)fflush(stdout);
    (void)fputs("interlock-bench: ", stderr);
    va_start(args, fmt);
    (void)vfprintf(stderr, fmt, args);
    va_end(args);
    (void)fputc('\n', stderr);
    temp_remove();
    _exit(1); /* other threads may still run: do not wait for them */
}

static void *
wait_for_signal(void *cookie)
{
    const sigset_t *signals = cookie;
    int             signo;

    if (sigwait(signals, &signo) == 0) {
        temp_remove();
        _exit(128 + signo);
    }
    return NULL;
}

/* A thread receives the signals that terminate the program, so that it can clean up; all other
 * threads block them. */
static void
catch_signals(void)
{
    static sigset_t signals;
    pthread_t       thread;

    CHECK(sigemptyset(&signals) == 0);
    CHECK(sigaddset(&signals, SIGINT) == 0 && sigaddset(&signals, SIGTERM) == 0 &&
          sigaddset(&signals, SIGHUP) == 0);
    CHECK(pthread_sigmask(SIG_BLOCK, &signals, NULL) == 0);
    /* a child or server that has exited is an ordinary error */
    CHECK(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
    if (pthread_create(&thread, NULL, wait_for_signal, &signals) != 0)
        die("cannot start a thread");
    CHECK(pthread_detach(thread) == 0);
}

bool
temp_is_open(const char *path)
{
    char       *real = realpath(path, NULL);
    struct stat st;
    bool        ok = real != NULL;

    /* Each folder on the path, from last to first. */
    while (ok && real[0] != '\0') {
        ok                  = stat(real, &st) == 0 && (st.st_mode & S_IXOTH) != 0;
        *strrchr(real, '/') = '\0';
    }
    free(real);
    return ok;
}

/* Requirements for the temporary folder; the next best place is used if none meets them. */
enum place {
    PLACE_GOOD,
    PLACE_CLOSED, /* other users have no access, and PostgreSQL does not run as root */
    PLACE_MEMORY,
    PLACES
};

static enum place
judge(const char *parent)
{
    char filesystem[64];

    machine_filesystem(parent, filesystem, sizeof filesystem);
    if (strcmp(filesystem, "tmpfs") == 0 || strcmp(filesystem, "ramfs") == 0)
        return PLACE_MEMORY;
    return geteuid() == 0 && !temp_is_open(parent) ? PLACE_CLOSED : PLACE_GOOD;
}

static bool
make_below(const char *parent, enum place worst)
{
    if (parent == NULL || parent[0] == '\0' || judge(parent) > worst)
        return false;
    int n = snprintf(temp_dir, sizeof temp_dir, "%s/" PREFIX "XXXXXX", parent);
    if (n > 0 && (size_t)n < sizeof temp_dir - 64 && mkdtemp(temp_dir) != NULL &&
        chmod(temp_dir, 0711) == 0)
        return true;
    temp_dir[0] = '\0';
    return false;
}

/* $TMPDIR, else this program's folder (the build folder), else the usual places. */
const char *
temp_make(void)
{
    char        self[BENCH_PATH_BYTES] = "";
    const char *parents[]              = { getenv("TMPDIR"), self, "/var/tmp", "/tmp" };

    ssize_t n       = readlink("/proc/self/exe", self, sizeof self - 1);
    self[MAX(n, 0)] = '\0';
    char *slash     = strrchr(self, '/');
    if (slash != NULL)
        *slash = '\0';
    bool made = false;
    for (int worst = PLACE_GOOD; worst < PLACES; worst++) {
        for (size_t i = 0; !made && i < ARRAY_LEN(parents); i++)
            made = make_below(parents[i], (enum place)worst);
    }
    if (!made)
        die("no place for temporary files: %s", strerror(errno));
    catch_signals();
    return temp_dir;
}

const char *
temp_path(const struct bench *b, const char *name, char out[BENCH_PATH_BYTES])
{
    int n = snprintf(out, BENCH_PATH_BYTES, "%s/%s", b->dir, name);

    CHECK(n > 0 && n < BENCH_PATH_BYTES); /* make_below() has left room */
    return out;
}

void
temp_remove_database(const char *path)
{
    static const char *const suffixes[] = { "", "-wal", "-shm", "-lock", "-wake" };
    char                     name[BENCH_PATH_BYTES + 16];

    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        (void)snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        (void)unlink(name); /* some were never created */
    }
}

void *
must_calloc(size_t n, size_t size)
{
    void *p = calloc(n, size);

    if (p == NULL)
        die("no memory");
    return p;
}
