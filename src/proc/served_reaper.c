/*
 * served_reaper.c: the reaper of a server's command, from the fork in the spawner to
 * il__reaper_main().
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "proc/spawner.h"
#include "proc/sys.h"

void
il__proc_refuse(int ctl, enum il__reaper_end end, int error)
{
    struct il__reaper_report report = { .end = (int32_t)end, .wait_status = -1, .error = error };

    /* a dead server needs no report */
    (void)send(ctl, &report, sizeof report, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void
add_limit(struct proc_rlimits *limits, __rlimit_resource_t resource, struct rlimit now,
          int64_t wanted)
{
    /* Never above the hard limit; 0 keeps the current one. */
    if (wanted > 0)
        now.rlim_cur = now.rlim_max = MIN((rlim_t)wanted, now.rlim_max);
    limits->row[limits->n].resource = resource;
    limits->row[limits->n++].value  = now;
}

static void
make_limits(const struct proc_served *v, const struct proc_limits *wanted, struct proc_rlimits *ret)
{
    const struct {
        __rlimit_resource_t resource;
        int64_t             value;
    } rows[] = {
        { RLIMIT_CPU, wanted->cpu_s },
        { RLIMIT_AS, wanted->memory_bytes },
        { RLIMIT_NPROC, wanted->processes },
    };

    ret->n = 0;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct rlimit now;
        if (rows[i].value > 0 && getrlimit(rows[i].resource, &now) == 0)
            add_limit(ret, rows[i].resource, now, rows[i].value);
    }
    add_limit(ret, RLIMIT_NOFILE, v->files, wanted->open_files);
}

/* The next `n` strings, followed by NULL. */
static char **
cut(char **at, char **place, uint32_t n)
{
    char **first = place;

    for (uint32_t i = 0; i < n; i++) {
        *place++ = *at;
        *at += strlen(*at) + 1;
    }
    *place = NULL;
    return first;
}

/* The command inherits our stdin: make it these bytes. */
static bool
take_input(const char *data, size_t n_bytes)
{
    int  fd = memfd_create("il-input", MFD_CLOEXEC);
    bool ok = fd >= 0 && il__proc_write_all(fd, data, n_bytes) && lseek(fd, 0, SEEK_SET) == 0 &&
              dup2(fd, STDIN_FILENO) == STDIN_FILENO;

    il__proc_fd_close(&fd);
    return ok;
}

_Noreturn static void
serve(const struct proc_served *v, const struct il__reaper_ready *ready, union proc_packet *p,
      const int fds[PROC_REQUEST_FD_END])
{
    const struct proc_request *q       = &p->request;
    char                      *strings = p->bytes + sizeof *q;
    char **words = il__calloc((size_t)q->n_args + 1 + q->n_env + 1, sizeof *words);

    if (q->n_bytes > PROC_INLINE_BYTES_MAX)
        strings =
            mmap(NULL, (size_t)q->n_bytes, PROT_READ, MAP_PRIVATE, fds[PROC_REQUEST_STRINGS], 0);
    if (words == NULL || strings == MAP_FAILED) {
        il__proc_refuse(fds[PROC_REQUEST_CTL], IL__END_FAILED, ENOMEM);
        _exit(0);
    }
    const char         *cwd = strings;
    struct proc_rlimits limits;
    struct proc_tty     no_tty = { .fd = -1 };
    strings += strlen(strings) + 1;
    struct il__reaper_opts opts = {
        .argv        = cut(&strings, words, q->n_args),
        .key         = "",
        .holder      = "",
        .grace_ns    = q->grace_ms * IL__NS_PER_MS,
        .timeout_ns  = q->timeout_ms * IL__NS_PER_MS,
        .out_fd      = fds[PROC_REQUEST_OUT],
        .err_fd      = fds[PROC_REQUEST_ERR],
        .wrapper_fds = { -1, -1 },
        .quiet       = true,
        .tty         = &no_tty,
    };
    struct il__reaper_served served = { .env    = cut(&strings, words + q->n_args + 1, q->n_env),
                                        .cwd    = cwd,
                                        .limits = &limits,
                                        .spawner_fd = v->self_fd,
                                        .ready      = ready };
    if (q->n_input > 0 && !take_input(strings, q->n_input)) {
        il__proc_refuse(fds[PROC_REQUEST_CTL], IL__END_FAILED, errno);
        _exit(0);
    }
    struct il__reaper_wrapper server = { .pidfd = v->server_fd, .ctl = fds[PROC_REQUEST_CTL] };
    make_limits(v, &q->limits, &limits);
    opts.served = &served;
    il__reaper_main(&opts, &v->page->slots[q->slot], &server);
}

_Noreturn void
il__proc_served_main(const struct proc_served *v, union proc_packet *p,
                     const int fds[PROC_REQUEST_FD_END])
{
    struct il__reaper_ready ready;

    il__reaper_prepare(&ready);
    serve(v, &ready, p, fds);
}

_Noreturn void
il__proc_spare_main(const struct proc_served *v, int fd)
{
    static union proc_packet p;
    struct il__reaper_ready  ready;
    int                      fds[PROC_REQUEST_FD_END];
    size_t                   n_fds = 0;

    il__reaper_prepare(&ready);
    /* All signals are blocked: it returns with a request or when the spawner dies. */
    if (il__proc_receive(fd, &p, fds, &n_fds, 0) != 0)
        _exit(0);
    il__proc_fd_close(&fd);
    if (n_fds <= PROC_REQUEST_ERR)
        _exit(1); /* no room for descriptors */
    serve(v, &ready, &p, fds);
}
