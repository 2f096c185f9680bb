/*
 * shutdown.c: the graceful shutdown: no new connections, waits end, and requests in progress have
 * until http_options.shutdown_ms. server.c then closes everything else.
 */
#include "base/clock.h"
#include "base/error.h"
#include "http/errands.h"
#include "http/log.h"
#include "http/mhd.h"
#include "http/pool.h"
#include "http/route.h"
#include "http/server.h"

void
http_shutdown_start(struct http_server *s)
{
    if (s->stopping)
        return;
    s->stopping   = true;
    s->stop_by_ns = s->now_ns + s->o->shutdown_ms * IL__NS_PER_MS;
    http_log(s, HTTP_EVENT_stopping, NULL);
    for (size_t i = 0; i < s->n_listeners; i++) {
        (void)il__mhd->MHD_quiesce_daemon(s->listeners[i].daemon); /* our socket, closed here */
        http_listen_end(&s->listeners[i]);
    }
    il__async_hurry(s->async);
    http_pool_hurry(s, s->stop_by_ns);
    http_apps_stop(s);
    http_streams_end(s);
    s->run_mhd = true;
}

bool
http_shutdown_is_over(struct http_server *s)
{
    if (!s->stopping)
        return false;
    http_conns_end_idle(s);
    return (s->n_requests == 0 && s->conns.n_open == 0) || s->now_ns >= s->stop_by_ns;
}

void
http_shutdown_cut_off(struct http_server *s)
{
    il__async_close(s->async); /* its calls are all done and in the inbox */
    s->async = NULL;
    http_pool_stop(s);
    http_errands_stop(s);
    http_inbox_drain(s);
    http_requests_abandon(s);
    http_conns_cut(s);
}
