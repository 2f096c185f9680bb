/* server.c: http_serve(): opens everything in order, runs, and closes it in reverse order. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "http/audit.h"
#include "http/auth.h"
#include "http/errands.h"
#include "http/granted_leases.h"
#include "http/limits.h"
#include "http/log.h"
#include "http/metrics.h"
#include "http/mhd.h"
#include "http/pool.h"
#include "http/refusal_report.h"
#include "http/route.h"
#include "http/row_locks.h"
#include "http/samples.h"
#include "http/server.h"

#define FILES_BESIDE 256 /* descriptors other than connections */
#define REQUEST_MS 30000 /* http_options.request_ms */
#define EXTEND_EVERY_NS (5000 * (int64_t)IL__NS_PER_MS)

void
http_prepare(void)
{
    sigset_t signals;

    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGHUP); /* (none of the four can fail) */
    CHECK(pthread_sigmask(SIG_BLOCK, &signals, NULL) == 0);
    (void)signal(SIGPIPE, SIG_IGN); /* cannot fail */
    (void)umask(077);
    /* API keys are in our memory: no core dumps, no debugger of the same user. */
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* cannot fail with 0 */
}

/* ---- checks ---------------------------------------------------------------------------------- */

static il_status
check_address(const struct http_options *o, const char *text, il_error *reterr)
{
    bool      loopback = false;
    il_status st       = http_address_check(text, &loopback, reterr);

    if (st == IL_OK && !loopback && !o->tls_proxy)
        return il__error_set(reterr, IL_INVAL,
                             "%.80s is reachable from other machines without TLS; put a TLS proxy "
                             "in front and pass --tls-proxy, or listen on 127.0.0.1",
                             text);
    return st;
}

/* Raise the descriptor limit to the number of connections; if that fails, allow fewer
 * connections. */
static void
raise_files(struct http_options *o)
{
    struct rlimit limit;
    rlim_t        wanted = (rlim_t)o->connections_max + FILES_BESIDE;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    if (limit.rlim_cur < wanted) {
        limit.rlim_cur = limit.rlim_max == RLIM_INFINITY ? wanted : MIN(wanted, limit.rlim_max);
        (void)setrlimit(RLIMIT_NOFILE, &limit); /* checked below */
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < wanted) {
        rlim_t room =
            limit.rlim_cur > 2 * FILES_BESIDE ? limit.rlim_cur - FILES_BESIDE : limit.rlim_cur / 2;
        o->connections_max = (unsigned)MIN(room, o->connections_max);
    }
}

/* ---- the first key --------------------------------------------------------------------------- */

static il_status
first_key(struct http_server *s, il_error *reterr)
{
    struct il__data_key key = { .tenant      = "default",
                                .name        = "first admin key",
                                .role        = DATA_ROLE_ADMIN,
                                .permissions = "",
                                .prefix      = "" };
    char                id[DATA_ID_BYTES], secret[DATA_KEY_BYTES_MAX];
    uint64_t            n  = 0;
    il_status           st = il__data_key_count(s->data, &n, reterr);

    if (st != IL_OK || n > 0)
        return st;
    bool to_log = s->o->no_first_key || http_is_in_journal();
#ifdef IL_MUTANT_first_key_logged
    to_log = false;
#endif
    if (to_log) {
        http_log(s, HTTP_EVENT_no_key, "create one with: interlock key create --admin");
        return IL_OK;
    }
    st = il__data_key_create(s->data, &key, true, id, secret, reterr);
    if (st != IL_OK)
        return st;
    (void)printf(
        "No API key existed. This admin key was created and is shown only once:\n\n    %s\n\n",
        secret);
    (void)fflush(stdout); /* what cannot be printed can be made again */
    explicit_bzero(secret, sizeof secret);
    http_log(s, HTTP_EVENT_first_key, "key %s", id);
    return IL_OK;
}

/* ---- start ----------------------------------------------------------------------------------- */

static il_status
start_listener(struct http_server *s, const char *text, bool metrics, il_error *reterr)
{
    struct http_listener *l = &s->listeners[metrics ? 1 : 0];
    il_status st = l->fd < 0 ? http_listen(l, text, reterr) : IL_OK; /* (open_stores.c) */

    l->metrics = metrics;
    if (st == IL_OK)
        st = http_daemon_start(s, l, reterr);
    if (st != IL_OK) {
        http_listen_end(l);
        return st;
    }
    s->n_listeners = MAX(s->n_listeners, metrics ? 2 : 1);
    return http_loop_add(s, l, reterr);
}

static il_status
start_listeners(struct http_server *s, il_error *reterr)
{
    const char *metrics = s->o->metrics_listen;
    il_status   st      = start_listener(s, s->o->listen, false, reterr);

    if (st == IL_OK && metrics != NULL)
        st = start_listener(s, metrics, true, reterr);
    return st;
}

static void
make_id_base(struct http_server *s)
{
    char uuid[37] = "00000000-0000-0000-0000-000000000000";

    /* without random bytes, request ids still differ from each other */
    IGNORE(il_uuid(uuid) != IL_OK);
    (void)snprintf(s->id_base, sizeof s->id_base, "%.12s-", uuid + 24);
}

static il_status
open_all(struct http_server *s, il_error *reterr)
{
    static il_status (*const parts[])(struct http_server * s, il_error * reterr) = {
        http_log_open,    http_metrics_open,  http_row_locks_open, http_samples_open,
        http_leases_open, http_refusals_open, http_limits_open,    http_loop_open,
        http_stores_open, http_errands_open,  http_pool_open,      http_auth_open,
        http_audit_open,  http_ui_open,
    };
    il_status st = IL_OK;

    for (size_t i = 0; st == IL_OK && !s->stopping && i < ARRAY_LEN(parts); i++)
        st = parts[i](s, reterr);
    if (s->stopping)
        return st;
    if (st == IL_OK)
        st = il__async_open(s->h, &s->async, reterr);
    if (st == IL_OK)
        st = http_streams_open(s, reterr);
    if (st == IL_OK)
        st = http_apps_open(s, reterr);
    if (st == IL_OK)
        st = start_listeners(s, reterr);
    if (st == IL_OK)
        st = first_key(s, reterr);
    return st;
}

void
http_say_listening(struct http_server *s)
{
    char line[160];

    if (s->announced)
        return;
    s->announced = true;
    for (size_t i = 0; i < s->n_listeners; i++) {
        const struct http_listener *l = &s->listeners[i];
        (void)snprintf(line, sizeof line, "listening on %s%s%s",
                       l->path[0] == '\0' ? "http://" : "", l->address,
                       l->metrics ? " (metrics)" : "");
        /* Printed at any log level: whoever starts the server needs the address. */
        if (http_log_on(s, HTTP_EVENT_listening))
            http_log(s, HTTP_EVENT_listening, "%s", line);
        else
            (void)fprintf(stderr, "interlock: %s\n", line);
    }
    http_log_flush(s);
}

static void
say_ready(struct http_server *s)
{
    char line[160];

    http_say_listening(s);
    http_notify("READY=1\nSTATUS=ready");
    if (s->o->ready_fd < 0)
        return;
    int n = snprintf(line, sizeof line, "%s\n", s->listeners[0].address);
    /* the reader will notice that no line comes */
    IGNORE(write(s->o->ready_fd, line, (size_t)n) < 0);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Apps are closing. Their messages are logged at once, and systemd is told that the shutdown is
 * still in progress (TimeoutStopSec may be shorter). */
static void
while_closing(struct http_server *s)
{
    int64_t now_ns = il__clock_boot_ns();

    http_inbox_drain(s);
    http_log_flush(s);
    if (now_ns - s->now_ns < EXTEND_EVERY_NS)
        return;
    s->now_ns = now_ns;
    http_notify("EXTEND_TIMEOUT_USEC=15000000");
}

static void
close_all(struct http_server *s, bool was_up)
{
    if (s->async != NULL)
        http_shutdown_cut_off(s);
    for (size_t i = 0; i < s->n_listeners; i++) {
        struct http_listener *l = &s->listeners[i];
        if (!s->stopping && l->daemon != NULL)
            (void)il__mhd->MHD_quiesce_daemon(l->daemon); /* our socket, closed here */
        if (l->daemon != NULL)
            il__mhd->MHD_stop_daemon(l->daemon);
        http_listen_end(l);
    }
    http_streams_close(s);
    http_requests_release(s);
    http_apps_close(s, while_closing);
    il__free(s->openapi);
    http_pool_close(s);
    http_errands_close(s);
    http_audit_close(s);
    http_auth_close(s);
    il__data_close(s->data);
    http_conns_release(s);
    http_loop_close(s);
    http_limits_close(s);
    http_refusals_close(s);
    http_leases_close(s);
    http_samples_close(s);
    http_row_locks_close(s);
    http_metrics_close(s);
    if (was_up)
        http_log(s, HTTP_EVENT_stopped, NULL);
    http_log_close(s);
}

static void
init(struct http_server *s, const struct http_options *o)
{
    s->options  = *o;
    s->o        = &s->options;
    s->direct   = strncmp(o->store_url, "memory:", strlen("memory:")) == 0;
    s->began_ns = il__clock_boot_ns();
    s->epoll_fd = s->signal_fd = s->inbox.fd = -1;
    for (size_t i = 0; i < HTTP_LISTENERS_MAX; i++)
        s->listeners[i].fd = -1;
    http_conns_init(s);
    if (s->o->request_ms == 0)
        s->o->request_ms = REQUEST_MS;
    raise_files(s->o);
    make_id_base(s);
    http_routes_init();
    for (size_t i = 0; i < o->n_apps; i++)
        http_routes_add(o->apps[i], o->apps[i]->routes, o->apps[i]->n_routes);
}

static il_status
check(const struct http_options *o, il_error *reterr)
{
    il_status st = http_mhd_load(reterr);

    if (st == IL_OK)
        st = check_address(o, o->listen, reterr);
    if (st == IL_OK && o->metrics_listen != NULL)
        st = check_address(o, o->metrics_listen, reterr);
    return st;
}

il_status
http_serve(const struct http_options *o, il_error *reterr)
{
    il_status st = check(o, reterr);

    if (st != IL_OK)
        return st;
    AUTO_FREE struct http_server *s = il__calloc(1, sizeof *s);
    if (s == NULL)
        return il__error_nomem(reterr);
    init(s, o);
    st = open_all(s, reterr);
    if (st == IL_OK && !s->stopping) {
        say_ready(s);
        http_loop_run(s);
    }
    if (st == IL_OK)
        http_notify("STOPPING=1");
    close_all(s, st == IL_OK);
    return st;
}
