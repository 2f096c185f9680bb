/*
 * loop.c: the event loop: libmicrohttpd's descriptors, the inbox, signals, connections of waiting
 * requests, deadlines.
 *
 * libmicrohttpd never waits by itself: when the number of ready sockets is a multiple of 128, its
 * own epoll thread waits again before serving them. Instead its epoll descriptor is part of our
 * set, and MHD_run() is called until it has nothing left to do.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "http/audit.h"
#include "http/granted_leases.h"
#include "http/limits.h"
#include "http/log.h"
#include "http/metrics.h"
#include "http/mhd.h"
#include "http/pool.h"
#include "http/refusal_report.h"
#include "http/route.h"
#include "http/samples.h"
#include "http/server.h"

#define EVENTS_MAX 64
#define RUNS_MAX 32 /* runs of libmicrohttpd per turn, so that the inbox gets its turn */
#define TICK_NS (250 * INT64_C(1000000))

/* ---- the inbox ------------------------------------------------------------------------------- */

bool
http_on_loop(const struct http_server *s)
{
    return pthread_equal(pthread_self(), s->thread) != 0;
}

void
http_inbox_put(struct http_server *s, struct http_item *item)
{
    struct http_item *newest = atomic_load_explicit(&s->inbox.newest, memory_order_relaxed);
    uint64_t          one    = 1;

    CHECK(item->fn != NULL);
    do
        item->next = newest;
    while (!atomic_compare_exchange_weak_explicit(&s->inbox.newest, &newest, item,
                                                  memory_order_release, memory_order_relaxed));
    /* Only the first item has to wake the loop. A full counter (EAGAIN) has woken it already. */
    if (newest == NULL)
        IGNORE(write(s->inbox.fd, &one, sizeof one) < 0);
}

void
http_inbox_drain(struct http_server *s)
{
    struct http_item *newest =
        atomic_exchange_explicit(&s->inbox.newest, NULL, memory_order_acquire);
    struct http_item *oldest = NULL;

    while (newest != NULL) {
        struct http_item *item = newest;
        newest                 = item->next;
        item->next             = oldest;
        oldest                 = item;
    }
    while (oldest != NULL) {
        struct http_item *item = oldest;
        oldest                 = item->next; /* before fn: it may free the item */
        item->fn(item);
    }
}

struct post {
    struct http_item    item; /* first */
    struct http_server *server;
    void (*fn)(struct http_server *s, void *cookie);
    void *cookie;
};

static void
run_post(struct http_item *item)
{
    AUTO_FREE struct post *post = container_of(item, struct post, item);

    post->fn(post->server, post->cookie);
}

bool
http_post(struct http_server *s, void (*fn)(struct http_server *s, void *cookie), void *cookie)
{
    struct post *post = il__calloc(1, sizeof *post);

    if (post == NULL)
        return false;
    *post = (struct post){ .item = { .fn = run_post }, .server = s, .fn = fn, .cookie = cookie };
    http_inbox_put(s, &post->item);
    return true;
}

/* ---- signals --------------------------------------------------------------------------------- */

static void
take_signals(struct http_server *s)
{
    struct signalfd_siginfo info;

    while (read(s->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGHUP)
            http_reload(s);
        else
            http_shutdown_start(s);
    }
}

/* ---- a turn ---------------------------------------------------------------------------------- */

static void
take_event(struct http_server *s, const struct epoll_event *event)
{
    struct http_source *source = event->data.ptr;
    uint64_t            n;

    switch (source->kind) {
    case HTTP_SOURCE_DAEMON:
        s->run_mhd = true;
        break;
    case HTTP_SOURCE_INBOX:
        IGNORE(read(s->inbox.fd, &n, sizeof n) < 0); /* the inbox is drained in any case */
        break;
    case HTTP_SOURCE_SIGNAL:
        take_signals(s);
        break;
    case HTTP_SOURCE_CONN:
        http_conn_peer_closed(s, container_of(source, struct http_conn, source));
        break;
    }
}

/* Does libmicrohttpd have work pending? */
static bool
is_pending(struct http_server *s)
{
    for (size_t i = 0; i < s->n_listeners; i++) {
        MHD_UNSIGNED_LONG_LONG ms;
        if (il__mhd->MHD_get_timeout(s->listeners[i].daemon, &ms) == MHD_YES && ms == 0)
            return true;
    }
    return false;
}

static void
run_mhd(struct http_server *s)
{
    for (unsigned n = 0; n < RUNS_MAX && (s->run_mhd || is_pending(s)); n++) {
        s->run_mhd = false;
        for (size_t i = 0; i < s->n_listeners; i++)
            /* MHD_NO: it is stopped, which we would know */
            (void)il__mhd->MHD_run(s->listeners[i].daemon);
        http_calls_flush(s);
    }
}

static int64_t
tick(struct http_server *s)
{
    int64_t stream_ms  = http_stream_tick(s);
    int64_t delayed_ns = http_delayed_tick(s);

    if (s->now_ns >= s->tick_ns) {
        s->tick_ns = s->now_ns + TICK_NS;
        http_limits_tick(s, s->now_ns);
        http_pool_tick(s);
        http_leases_tick(s, s->now_ns);
        http_refusals_tick(s, s->now_ns);
        http_metrics_tick(s, s->now_ns);
        http_samples_tick(s, s->now_ns);
        http_audit_tick(s, s->now_ns);
        http_apps_tick(s, s->now_ns);
    }
    http_calls_flush(s); /* background work */
    int64_t by_ns = MIN(s->tick_ns, delayed_ns);
    return stream_ms < 0 ? by_ns : MIN(by_ns, s->now_ns + stream_ms * IL__NS_PER_MS);
}

/* How long the loop may sleep, ms. */
static int
sleep_ms(struct http_server *s)
{
    int64_t by_ns = MIN(http_conns_expire(s), tick(s));

    if (s->stopping)
        by_ns = MIN(by_ns, s->stop_by_ns);
    http_log_flush(s);
    if (s->run_mhd || is_pending(s) ||
        atomic_load_explicit(&s->inbox.newest, memory_order_relaxed) != NULL)
        return 0;
    if (by_ns <= s->now_ns)
        return 0;
    return (int)MIN((by_ns - s->now_ns + IL__NS_PER_MS - 1) / IL__NS_PER_MS, 60 * 1000);
}

void
http_loop_run(struct http_server *s)
{
    struct epoll_event events[EVENTS_MAX];

    while (!http_shutdown_is_over(s)) {
        int n = epoll_wait(s->epoll_fd, events, EVENTS_MAX, sleep_ms(s));
        CHECK(n >= 0 || errno == EINTR);
        s->now_ns = il__clock_boot_ns();
        for (int i = 0; i < n; i++)
            take_event(s, &events[i]);
        http_inbox_drain(s);
        run_mhd(s);
        http_calls_flush(s);
    }
}

/* ---- creating the loop ----------------------------------------------------------------------- */

static bool
add(struct http_server *s, int fd, struct http_source *source, enum http_source_kind kind)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = source };

    source->kind = kind;
    return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

il_status
http_loop_open(struct http_server *s, il_error *reterr)
{
    sigset_t signals;

    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGHUP); /* (none of the four can fail) */
    s->thread    = pthread_self();
    s->now_ns    = il__clock_boot_ns();
    s->epoll_fd  = epoll_create1(EPOLL_CLOEXEC);
    s->inbox.fd  = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    s->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->epoll_fd < 0 || s->inbox.fd < 0 || s->signal_fd < 0 ||
        !add(s, s->inbox.fd, &s->inbox_source, HTTP_SOURCE_INBOX) ||
        !add(s, s->signal_fd, &s->signal_source, HTTP_SOURCE_SIGNAL))
        return il__error_set(reterr, IL_NOMEM, "cannot create the event loop: %s", strerror(errno));
    return IL_OK;
}

il_status
http_loop_add(struct http_server *s, struct http_listener *l, il_error *reterr)
{
    const union MHD_DaemonInfo *info =
        il__mhd->MHD_get_daemon_info(l->daemon, MHD_DAEMON_INFO_EPOLL_FD);

    if (info == NULL || !add(s, info->epoll_fd, &l->source, HTTP_SOURCE_DAEMON))
        return il__error_set(reterr, IL_NOMEM, "libmicrohttpd has no epoll descriptor: %s",
                             strerror(errno));
    return IL_OK;
}

static void
close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd); /* nothing is written to any of them that could be lost */
    *fd = -1;
}

void
http_loop_close(struct http_server *s)
{
    close_fd(&s->signal_fd);
    close_fd(&s->inbox.fd);
    close_fd(&s->epoll_fd);
}
