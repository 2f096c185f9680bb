/*
 * proc.c: the server's side of running commands; the contract is in proc.h.
 */
#include "proc/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/mutex.h"
#include "proc/spawner.h"
#include "proc/sys.h"

#define FINISH_LOOK_MS 1000
#define FINISH_PATIENCE_MS 5000 /* beyond the grace, for a spawner that accepts no requests */
#define TRIES 2                 /* the spawner may have died since the last start */

struct proc_spawner {
    struct il__mutex mutex;
    /* under the mutex; NULL = its spawner has exited, the next start creates one */
    struct proc_link *link;
    unsigned          n_children;
    uint64_t          n_serials;
};

/* Private state of a child. Constant after the start, except the report, which belongs to the
 * owner. */
struct own {
    struct proc_spawner *s;
    struct proc_link    *link; /* a reference */
    unsigned             slot; /* owned until the child is finished */
    uint64_t             serial;
    int64_t              grace_ms;
    struct proc_report   report;
};

/* ---- spawners -------------------------------------------------------------------------------- */

il_status
il__proc_spawner_open(struct proc_spawner **ret, il_error *reterr)
{
    struct proc_link *link;
    il_status         st = il__proc_link_open(&link, reterr);

    if (st != IL_OK)
        return st;
    struct proc_spawner *s = il__calloc(1, sizeof *s);
    if (s == NULL) {
        il__proc_link_close(link);
        return il__error_nomem(reterr);
    }
    il__mutex_init(&s->mutex, IL__MUTEX_proc);
    s->link = link;
    *ret    = s;
    return IL_OK;
}

void
il__proc_spawner_close(struct proc_spawner *s)
{
    if (s == NULL)
        return;
    CHECK(s->n_children == 0);
    il__proc_link_close(s->link);
    il__mutex_destroy(&s->mutex);
    il__free(s);
}

/* Release a reference, and the slot that came with it. */
static void
release_link(struct proc_spawner *s, struct proc_link *l, int slot)
{
    il__mutex_lock(&s->mutex);
    if (slot >= 0) {
        l->free_slots[l->n_free++] = (uint16_t)slot;
        s->n_children--;
    }
    bool last = --l->n_refs == 0;
    il__mutex_unlock(&s->mutex);
    if (last)
        il__proc_link_close(l); /* has died: s->link would be a reference */
}

/* It has exited, or is about to. Its children see end of file on their sockets; the next start
 * executes another spawner. */
static void
drop_link(struct proc_spawner *s, struct proc_link *l)
{
    (void)kill(l->pid, SIGKILL); /* our child and not yet reaped: the pid is valid */
    il__mutex_lock(&s->mutex);
    bool ours = s->link == l;
    if (ours)
        s->link = NULL;
    il__mutex_unlock(&s->mutex);
    if (ours)
        release_link(s, l, -1);
}

/* A reference to a live spawner and a slot; executes one if necessary. */
static il_status
take_link(struct proc_spawner *s, struct own *own, il_error *reterr)
{
    il_status st = IL_OK;

    il__mutex_lock(&s->mutex);
    if (s->link == NULL)
        st = il__proc_link_open(&s->link, reterr);
    if (st == IL_OK && s->link->n_free == 0)
        st = il__error_set(reterr, IL_NOMEM, "too many concurrent commands: the limit is %d",
                           PROC_CHILDREN_MAX);
    if (st == IL_OK) {
        own->link   = s->link;
        own->slot   = s->link->free_slots[--s->link->n_free];
        own->serial = ++s->n_serials;
        s->link->n_refs++;
        s->n_children++;
    }
    il__mutex_unlock(&s->mutex);
    return st;
}

/* ---- start ----------------------------------------------------------------------------------- */

static uint32_t
add_strings(struct il__buf *b, char *const *strings)
{
    uint32_t n = 0;

    for (; strings[n] != NULL && !b->failed; n++)
        il__buf_add(b, strings[n], strlen(strings[n]) + 1);
    return n;
}

static il_status
encode(const struct proc_spec *spec, struct il__buf *strings, struct proc_request *ret,
       il_error *reterr)
{
    if (spec->argv == NULL || spec->argv[0] == NULL || spec->argv[0][0] == '\0')
        return il__error_set(reterr, IL_INVAL, "no command given");
    if (spec->env == NULL || spec->cwd == NULL || spec->grace_ms < 0 || spec->timeout_ms < 0)
        return il__error_set(reterr, IL_INVAL,
                             "cannot start %.80s: missing environment, folder or time limit",
                             spec->argv[0]);
    *ret = (struct proc_request){ .type       = PROC_REQUEST_START,
                                  .grace_ms   = spec->grace_ms,
                                  .timeout_ms = spec->timeout_ms,
                                  .limits     = spec->limits };
    il__buf_add(strings, spec->cwd, strlen(spec->cwd) + 1);
    ret->n_args  = add_strings(strings, spec->argv);
    ret->n_env   = add_strings(strings, spec->env);
    ret->n_input = spec->input_bytes;
    if (spec->input_bytes > 0)
        il__buf_add(strings, spec->input, spec->input_bytes);
    ret->n_bytes = strings->n_bytes;
    if (strings->failed)
        return il__error_set(reterr, IL_INVAL,
                             "%.80s: arguments, environment and input exceed %d bytes",
                             spec->argv[0], PROC_SPEC_BYTES_MAX);
    return IL_OK;
}

/* The descriptors of a child that the spawner gets, in the order of enum proc_request_fd; -1 =
 * none. */
struct ends {
    int fds[PROC_REQUEST_FD_END];
};
#define ENDS_NONE          \
    {                      \
        {                  \
            -1, -1, -1, -1 \
        }                  \
    }

static void
close_ends(struct ends *e)
{
    for (size_t i = 0; i < ARRAY_LEN(e->fds); i++)
        il__proc_fd_close(&e->fds[i]);
}

static bool
make_pipe(int *ret_read, int *ret_write)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) != 0)
        return false;
    *ret_read  = fds[0];
    *ret_write = fds[1];
    return fcntl(fds[0], F_SETFL, O_NONBLOCK) == 0; /* only our end: the command's end blocks */
}

static bool
make_memfd(const struct il__buf *strings, int *ret)
{
    *ret = memfd_create("il-spec", MFD_CLOEXEC);
    return *ret >= 0 && il__proc_write_all(*ret, strings->data, strings->n_bytes);
}

static bool
make_ends(const struct il__buf *strings, struct proc_child *c, struct ends *e)
{
    int ctl[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ctl) != 0)
        return false;
    c->ctl                   = ctl[0];
    e->fds[PROC_REQUEST_CTL] = ctl[1];
    return make_pipe(&c->out_fd, &e->fds[PROC_REQUEST_OUT]) &&
           make_pipe(&c->err_fd, &e->fds[PROC_REQUEST_ERR]) &&
           (strings->n_bytes <= PROC_INLINE_BYTES_MAX ||
            make_memfd(strings, &e->fds[PROC_REQUEST_STRINGS]));
}

/* No other process uses this slot now: its previous reaper has reported, which is its last
 * action. */
static void
reset_slot(struct il__reaper_shared *shared, int64_t deadline_ns)
{
    atomic_store(&shared->deadline_ns, deadline_ns);
    atomic_store(&shared->fence, 0);
    atomic_store(&shared->leader_pid, 0);
    atomic_store(&shared->wait_status, -1);
    atomic_store(&shared->end, IL__END_NONE);
    atomic_store(&shared->tty_lent, false);
}

/* Hand it to the current spawner or, if that turns out to be dead, to a new one. */
static il_status
hand_over(struct proc_spawner *s, const struct proc_spec *spec, struct own *own,
          struct proc_request *request, const struct il__buf *strings, const struct ends *e,
          il_error *reterr)
{
    bool   is_inline = strings->n_bytes <= PROC_INLINE_BYTES_MAX;
    size_t n_fds     = is_inline ? PROC_REQUEST_STRINGS : PROC_REQUEST_FD_END;
    int    error     = 0;

    for (int i = 0; i < TRIES; i++) {
        il_status st = take_link(s, own, reterr);
        if (st != IL_OK)
            return st;
        reset_slot(&own->link->page->slots[own->slot], spec->deadline_ns);
        request->slot       = own->slot;
        request->serial     = own->serial;
        const char *inlined = is_inline ? strings->data : NULL;
        error               = EPIPE;
        if (!il__proc_link_gone(own->link))
            error = il__proc_link_send(own->link, request, inlined, e->fds, n_fds, true);
        if (error == 0)
            return IL_OK;
        if (error == EPIPE || error == EAGAIN)
            drop_link(s, own->link);
        release_link(s, own->link, (int)own->slot);
        own->link = NULL;
        if (error != EPIPE)
            break;
    }
    return il__error_set(reterr, IL_NOMEM, "cannot start %.80s: the spawner is unavailable: %s",
                         spec->argv[0], strerror(error));
}

il_status
il__proc_start(struct proc_spawner *s, const struct proc_spec *spec, struct proc_child *ret,
               il_error *reterr)
{
    AUTO_BUF struct il__buf strings;
    struct proc_request     request;
    struct proc_child       c   = PROC_CHILD_NONE;
    struct ends             e   = ENDS_NONE;
    struct own             *own = NULL;

    il__buf_init(&strings, PROC_SPEC_BYTES_MAX);
    il_status st = encode(spec, &strings, &request, reterr);
    if (st != IL_OK)
        return st;
    own = il__calloc(1, sizeof *own);
    if (own == NULL || !make_ends(&strings, &c, &e)) {
        st = il__error_set(reterr, IL_NOMEM, "cannot start %.80s: %s", spec->argv[0],
                           strerror(own == NULL ? ENOMEM : errno));
    } else {
        own->s        = s;
        own->grace_ms = spec->grace_ms;
        st            = hand_over(s, spec, own, &request, &strings, &e, reterr);
    }
    close_ends(&e);
    if (st == IL_OK) {
        c.own = own;
        *ret  = c;
        return IL_OK;
    }
    il__free(own);
    il__proc_finish(&c);
    return st;
}

/* ---- while it runs --------------------------------------------------------------------------- */

static void
give_order(const struct proc_child *c, enum il__reaper_order_type type)
{
    struct il__reaper r = { .ctl = c->ctl };

    il__reaper_order(&r, type, 0);
}

void
il__proc_extend(struct proc_child *c, int64_t deadline_ns)
{
    const struct own         *own      = c->own;
    struct il__reaper_shared *shared   = &own->link->page->slots[own->slot];
    int64_t                   known_ns = atomic_load(&shared->deadline_ns);

    while (known_ns < deadline_ns &&
           !atomic_compare_exchange_weak(&shared->deadline_ns, &known_ns, deadline_ns))
        continue;
    if (known_ns == 0)
        give_order(c, IL__ORDER_LOOK); /* there was no need for a timer before */
}

void
il__proc_stop(struct proc_child *c)
{
    const struct own   *own     = c->own;
    struct proc_request request = { .type = PROC_REQUEST_STOP, .serial = own->serial };

    give_order(c, IL__ORDER_STOP);
    /* In case the reaper hangs. A request lost for lack of room is repeated by
     * il__proc_finish(). */
    (void)il__proc_link_send(own->link, &request, NULL, NULL, 0, false);
}

static enum proc_end
end_of(int32_t end)
{
    switch ((enum il__reaper_end)end) {
    case IL__END_EXITED:
        return PROC_END_EXITED;
    case IL__END_LOST:
        return PROC_END_STOPPED;
    case IL__END_TIMEOUT:
        return PROC_END_TIMEOUT;
    case IL__END_DEADLINE:
        return PROC_END_DEADLINE;
    case IL__END_FAILED:
        return PROC_END_FAILED;
    case IL__END_NONE:
    case IL__END_ORPHANED:
    case IL__END_REAPER:
        break;
    }
    return PROC_END_REAPER;
}

/* Like recv(). An unread stop order at the time the other end was closed is reported first, as an
 * error; the report follows it. */
static ssize_t
receive_report(int ctl, struct il__reaper_report *ret)
{
    ssize_t n = recv(ctl, ret, sizeof *ret, MSG_DONTWAIT);

    return n < 0 && errno == ECONNRESET ? recv(ctl, ret, sizeof *ret, MSG_DONTWAIT) : n;
}

void
il__proc_report(struct proc_child *c, struct proc_report *ret)
{
    struct own              *own = c->own;
    struct il__reaper_report got;

    if (own->report.end == PROC_END_NONE) {
        ssize_t n = receive_report(c->ctl, &got);
        if (n == (ssize_t)sizeof got) {
            own->report.end         = end_of(got.end);
            own->report.wait_status = got.wait_status;
            own->report.error       = got.error;
        } else if (n >= 0 || (errno != EAGAIN && errno != EINTR)) {
            own->report.end = PROC_END_REAPER;
        }
        if (own->report.end != PROC_END_EXITED && own->report.end != PROC_END_STOPPED &&
            own->report.end != PROC_END_TIMEOUT && own->report.end != PROC_END_DEADLINE)
            own->report.wait_status = -1;
    }
    *ret = own->report;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Wait for the report. A spawner that accepts no request for this long is killed, with its
 * children, and replaced. */
static void
wait_for_end(struct proc_child *c)
{
    struct own        *own      = c->own;
    int64_t            since_ns = il__clock_boot_ns();
    uint64_t           n_taken  = atomic_load(&own->link->page->n_taken);
    struct proc_report report   = { .end = PROC_END_NONE };
    int64_t            limit_ns = (own->grace_ms + FINISH_PATIENCE_MS) * IL__NS_PER_MS;

    for (;;) {
        struct pollfd fd = { c->ctl, POLLIN, 0 };
        il__proc_report(c, &report);
        if (report.end != PROC_END_NONE)
            return;
        il__proc_stop(c);
        (void)poll(&fd, 1, FINISH_LOOK_MS); /* interrupted: check anyway */
        uint64_t now_taken = atomic_load(&own->link->page->n_taken);
        if (now_taken != n_taken || now_taken == atomic_load(&own->link->n_sent)) {
            n_taken  = now_taken;
            since_ns = il__clock_boot_ns();
        } else if (il__clock_boot_ns() - since_ns > limit_ns) {
            drop_link(own->s, own->link);
        }
    }
}

void
il__proc_finish(struct proc_child *c)
{
    struct own *own = c->own;

    if (own != NULL) {
        wait_for_end(c);
        release_link(own->s, own->link, (int)own->slot);
        il__free(own);
    }
    il__proc_fd_close(&c->ctl);
    il__proc_fd_close(&c->out_fd);
    il__proc_fd_close(&c->err_fd);
    c->own = NULL;
}
