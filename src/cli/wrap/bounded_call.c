/*
 * bounded_call.c: calls to the store after the command has ended.
 *
 * The command is over, so these calls must not keep its caller waiting for a store that does not
 * answer. Where they could block, they run on a separate thread and are abandoned when their time
 * is up. From then on (r->stuck) nothing of the store may be touched, not even closed: the thread
 * uses it until the process exits.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli/wrap/wrap_internal.h"
#include "cli/store.h"
#include "proc/sys.h"

/* The time for a store that was silent before, and the least time for one that was not. */
#define AFTER_SILENCE_NS (INT64_C(1000) * IL__NS_PER_MS)
#define AT_LEAST_NS (INT64_C(2000) * IL__NS_PER_MS)
/* A signal means hurry, but a responsive store may still take the lease back. */
#define AFTER_SIGNAL_NS (INT64_C(200) * IL__NS_PER_MS)

struct call {
    struct wrap  *r;
    wrap_take_fn *fn;
    void         *cookie;
    int           done_fd;
    il_status     status;
    il_error      error;
};

void
wrap_bound_calls(struct wrap *r, bool silent)
{
    int64_t now_ns = il__clock_boot_ns();

    /* What is not given back before the lease ends expires with it. */
    r->leave_by_ns = silent ? now_ns + AFTER_SILENCE_NS
                            : MAX(now_ns + AT_LEAST_NS, il_lease_deadline_ns(r->lease));
    /* SQLite gives up by itself after --store-timeout; a thread would cost more than the call. */
    r->bounded = silent || !il__cli_store_is_local(r->opts->store_url);
#ifdef IL_MUTANT_last_call_waits
    r->bounded = false;
#endif
}

static void *
call_main(void *arg)
{
    struct call *c = arg;

    c->status = c->fn(c->r, c->cookie, &c->error);
    CHECK(eventfd_write(c->done_fd, 1) == 0);
    return NULL;
}

/* Wait for the end of the call. False: its time is up; a signal shortens it. */
static bool
await(struct wrap *r, const struct call *c)
{
    for (;;) {
        struct pollfd fds[]   = { { c->done_fd, POLLIN, 0 }, { r->sig_fd, POLLIN, 0 } };
        int64_t       left_ns = r->leave_by_ns - il__clock_boot_ns();
        int           left_ms = (int)MIN(MAX(left_ns / IL__NS_PER_MS, 0), INT32_MAX);
        int           n       = poll(fds, ARRAY_LEN(fds), left_ms);
        if (n > 0 && fds[0].revents != 0)
            return true;
        if (n == 0)
            return false;
        if (n > 0 && wrap_signals_ending(r) != 0)
            r->leave_by_ns = MIN(r->leave_by_ns, il__clock_boot_ns() + AFTER_SIGNAL_NS);
    }
}

il_status
wrap_bounded_call(struct wrap *r, wrap_take_fn *fn, void *cookie, il_error *reterr)
{
    /* static: an abandoned call outlives this function, and no further call follows */
    static struct call c;
    pthread_t          thread;

    if (r->stuck)
        return il__error_set(reterr, IL_STORE, "the store does not respond");
    if (!r->bounded)
        return fn(r, cookie, reterr);
    c = (struct call){ .r = r, .fn = fn, .cookie = cookie, .done_fd = eventfd(0, EFD_CLOEXEC) };
    if (c.done_fd < 0 || pthread_create(&thread, NULL, call_main, &c) != 0) {
        il__proc_fd_close(&c.done_fd);
        return fn(r, cookie, reterr);
    }
    if (!await(r, &c)) {
        r->stuck = true;
        (void)pthread_detach(thread); /* the process exits first */
        return il__error_set(reterr, IL_STORE, "the store does not respond");
    }
    CHECK(pthread_join(thread, NULL) == 0);
    il__proc_fd_close(&c.done_fd);
    *reterr = c.error;
    return c.status;
}
