/*
 * crowd.c: processes that act at the same moment; see crowd.h.
 */
#include "race/crowd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct start {
    struct crowd_member *member;
    crowd_fn            *fn;
};

static int
run_member(void *arg)
{
    const struct start *s = arg;

    return s->fn(s->member->crowd, s->member->i);
}

static struct crowd_shared *
share(unsigned n)
{
    pthread_barrierattr_t attr;
    struct crowd_shared  *s =
        mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CHECK(s != MAP_FAILED);
    CHECK(pthread_barrierattr_init(&attr) == 0);
    CHECK(pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED) == 0);
    CHECK(pthread_barrier_init(&s->barrier, &attr, n + 1) == 0);
    CHECK(sem_init(&s->ready, 1, 0) == 0 && sem_init(&s->begun, 1, 0) == 0);
    CHECK(sem_init(&s->go, 1, 0) == 0);
    t_clock_init(&s->clock);
    return s;
}

struct crowd *
crowd_new(unsigned n, crowd_fn *fn)
{
    struct crowd *c = calloc(1, sizeof *c);

    CHECK(c != NULL && n <= CROWD_MAX);
    race_init(&c->race);
    c->shared = share(n);
    c->n      = n;
    for (unsigned i = 0; i < n; i++) {
        struct start start = { &c->members[i], fn };
        c->members[i]      = (struct crowd_member){ .crowd = c, .i = i };
        t_proc_fork(&c->members[i].proc, run_member, &start);
    }
    return c;
}

void
crowd_end(struct crowd *c, pid_t kill_pid)
{
    for (unsigned i = 0; i < c->n; i++) {
        struct t_proc *p        = &c->members[i].proc;
        int            expected = p->pid == kill_pid ? 128 + SIGKILL : 0;
        int            status   = t_proc_exit(p, CROWD_LIMIT_MS);
        if (status != expected)
            T_FAIL("process %u ended with %d: %s", i, status, p->text);
    }
}

void
crowd_free(struct crowd *c)
{
    for (unsigned i = 0; i < c->n; i++)
        t_proc_release(&c->members[i].proc);
    CHECK(munmap(c->shared, sizeof *c->shared) == 0);
    race_release(&c->race);
    free(c);
}

void
crowd_meet(struct crowd *c)
{
    int rc = pthread_barrier_wait(&c->shared->barrier);

    CHECK(rc == 0 || rc == PTHREAD_BARRIER_SERIAL_THREAD);
}

bool
crowd_take(sem_t *sem)
{
    struct timespec until;

    CHECK(clock_gettime(CLOCK_REALTIME, &until) == 0);
    until.tv_sec += CROWD_LIMIT_MS / 1000;
    while (sem_timedwait(sem, &until) != 0) {
        if (errno != EINTR)
            return false;
    }
    return true;
}

il *
crowd_open(struct crowd *c, bool test_clock)
{
    il_open_opts opts = IL_OPEN_OPTS_INIT;
    const char  *url  = test_clock ? c->race.test_url : c->race.url;
    il          *h    = NULL;
    il_error     err  = { 0 };

    if (test_clock) {
        opts.clock = &c->shared->clock.il;
        opts.flags = IL_OPEN_NO_SWEEP;
    }
    if (il_open(url, &opts, &h, &err) != IL_OK) {
        (void)fprintf(stderr, "il_open: %s\n", err.message);
        _exit(98);
    }
    return h;
}

void
crowd_log(const struct crowd *c, const char *line)
{
    int    fd = open(c->race.log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    size_t n  = strlen(line);

    CHECK(fd >= 0 && write(fd, line, n) == (ssize_t)n);
    (void)close(fd);
}

unsigned
crowd_count(const struct crowd *c, const char *line)
{
    unsigned n    = 0;
    char    *text = t_file_read(c->race.log, NULL);

    for (const char *at = text; (at = strstr(at, line)) != NULL; at += strlen(line))
        n++;
    free(text);
    return n;
}

int
crowd_call(struct crowd *c, unsigned n, void *(*fn)(void *caller))
{
    struct crowd_caller caller  = { c, crowd_open(c, false) };
    pthread_t          *threads = calloc(n, sizeof *threads);

    CHECK(threads != NULL);
    for (unsigned i = 0; i < n; i++)
        CHECK(pthread_create(&threads[i], NULL, fn, &caller) == 0);
    for (unsigned i = 0; i < n; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    free(threads);
    il_close(caller.h);
    return 0;
}

struct crowd *
crowd_begun(unsigned n_processes, unsigned n_ready, crowd_fn *fn)
{
    struct crowd *c = crowd_new(n_processes, fn);

    for (unsigned i = 0; i < n_ready; i++)
        CROWD_AWAIT(&c->shared->ready, "all have called");
    CROWD_AWAIT(&c->shared->begun, "one has begun");
    return c;
}
