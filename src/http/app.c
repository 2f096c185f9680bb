/*
 * app.c: the apps of a server: opens them in order, passes signals and ticks to them, and closes
 * them in reverse order. See app.h.
 */
#include "http/app.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/error.h"
#include "http/log.h"
#include "http/metrics.h"
#include "http/pool.h"
#include "http/server.h"

#define MEANWHILE_MS 50

void *
http_app_state(const struct http_server *s, const struct http_app *app)
{
    for (size_t i = 0; i < s->n_open_apps; i++) {
        if (s->o->apps[i] == app)
            return s->app_states[i];
    }
    return NULL;
}

bool
http_app_is_started(const struct http_server *s, const struct http_app *app)
{
    for (size_t i = 0; i < s->n_open_apps; i++) {
        if (s->o->apps[i] == app)
            return s->app_runs[i];
    }
    return false;
}

bool
http_app_owns(const struct http_server *s, const char *key)
{
    for (size_t i = 0; key != NULL && i < s->n_open_apps; i++) {
        const char *class = s->o->apps[i]->run_class;
        size_t n          = class != NULL ? strlen(class) : 0;
        if (n > 0 && strncmp(key, class, n) == 0 && key[n] == ':')
            return true;
    }
    return false;
}

bool
http_app_keeps(const struct http_server *s, const char *key)
{
    for (size_t i = 0; key != NULL && i < s->n_open_apps; i++) {
        const char *const *at = s->o->apps[i]->keys;
        for (; at != NULL && *at != NULL; at++) {
            if (strncmp(key, *at, strlen(*at)) == 0)
                return true;
        }
    }
    return false;
}

/* ---- transactions of a request --------------------------------------------------------------- */

static void
stop_it(void *cookie)
{
    il_guard_stop_set(cookie);
}

/* First nobody may set it any more. */
void
http_unbind_deadline(struct http_request *r)
{
    http_on_disconnect(r, NULL, NULL);
    il_guard_stop_free(r->stop);
    r->stop = NULL;
}

/* Without memory or descriptors for a switch, the deadline remains. */
void
http_bind_deadline(struct http_request *r, il_guard *g, il_guard_tx_opts *opts)
{
    http_unbind_deadline(r);
    opts->timeout_ms = http_request_left_ms(r);
    if (il_guard_stop_new(g, &r->stop, NULL) == IL_OK)
        http_on_disconnect(r, stop_it, r->stop);
    opts->stop = r->stop;
}

/* ---- starting -------------------------------------------------------------------------------- */

/* Start an app if it is in use, or, `must`, in any case. app_mutex is held. */
static il_status
start_one(struct http_server *s, size_t i, bool must, il_error *reterr)
{
    const struct http_app *app    = s->o->apps[i];
    bool                   in_use = must || app->start == NULL;
    il_status              st     = IL_OK;

    if (atomic_load(&s->app_ready[i]))
        return IL_OK;
    if (!in_use)
        st = app->in_use(s->app_states[i], &in_use, reterr);
    if (st == IL_OK && in_use && app->start != NULL)
        st = app->start(s->app_states[i], reterr);
    atomic_store(&s->app_ready[i], st == IL_OK && in_use);
    return st;
}

/* Start all that are in use. What one has created may be what another one looks for: so until
 * nothing changes. app_mutex is held. */
static il_status
start_used(struct http_server *s, il_error *reterr)
{
    il_status st    = IL_OK;
    bool      again = true;

    while (again && st == IL_OK) {
        again = false;
        for (size_t i = 0; i < s->n_open_apps && st == IL_OK; i++) {
            if (atomic_load(&s->app_ready[i]))
                continue;
            st = start_one(s, i, false, reterr);
            again |= atomic_load(&s->app_ready[i]);
        }
    }
    return st;
}

/* On the loop. An app that has become ready is told what it has missed. */
static void
look_at_apps(struct http_server *s)
{
    for (size_t i = 0; i < s->n_open_apps; i++) {
        if (s->app_runs[i] || !atomic_load(&s->app_ready[i]))
            continue;
        s->app_runs[i] = true;
        if (s->stopping && s->o->apps[i]->stop != NULL)
            s->o->apps[i]->stop(s->app_states[i]);
    }
}

struct app_starting {
    size_t    i;
    http_fn  *then;
    il_status status;
    il_error  error;
};

/* On a thread of the pool. */
static void
do_start(struct http_request *r)
{
    struct http_server  *s = r->server;
    struct app_starting *w = r->state;
    il_error             ignored;

    il__mutex_lock(&s->app_mutex);
    w->status = start_one(s, w->i, !s->o->apps[w->i]->passive, &w->error);
    if (w->status == IL_OK) /* an app that this request does not need may fail: it is asked again */
        IGNORE(start_used(s, &ignored) != IL_OK);
    il__mutex_unlock(&s->app_mutex);
}

/* Why is for the log only. Whatever it is, it is not the caller's fault. */
static void
say_not_started(struct http_request *r, const struct app_starting *w)
{
    const char *name = http_route_app(r->route)->name;
    il_status   st   = il_status_http(w->status) >= 500 ? w->status : IL_STORE;

    http_log(r->server, HTTP_EVENT_app_failed, "%s: %s", name, w->error.message);
    http_fail(r, il_status_http(st), il_status_name(st), name, NULL, "%s", il_status_text(st));
}

static void
did_start(struct http_request *r)
{
    const struct app_starting *w = r->state;

    look_at_apps(r->server);
    r->state = NULL;
    if (w->status == IL_OK)
        w->then(r);
    else
        say_not_started(r, w);
}

void
http_app_ensure(struct http_request *r, http_fn *then)
{
    const struct http_server *s = r->server;
    size_t                    i = 0;

    while (i < s->n_open_apps && s->o->apps[i] != http_route_app(r->route))
        i++;
    if (i == s->n_open_apps || s->app_runs[i]) {
        then(r);
        return;
    }
    struct app_starting *w = http_calloc(r, sizeof *w);
    if (w == NULL)
        return;
    *w       = (struct app_starting){ .i = i, .then = then };
    r->state = w;
    http_pool(r, do_start, did_start);
}

/* ---- life ------------------------------------------------------------------------------------ */

il_status
http_apps_open(struct http_server *s, il_error *reterr)
{
    CHECK(s->o->n_apps <= HTTP_APPS_MAX);
    il__mutex_init(&s->app_mutex, IL__MUTEX_apps);
    for (size_t i = 0; i < s->o->n_apps; i++) {
        il_status st = s->o->apps[i]->open(s, s->o->app_config, &s->app_states[i], reterr);
        if (st != IL_OK)
            return st;
        s->n_open_apps++;
    }
    il__mutex_lock(&s->app_mutex);
    il_status st = start_used(s, reterr);
    il__mutex_unlock(&s->app_mutex);
    look_at_apps(s);
    return st;
}

void
http_apps_stop(struct http_server *s)
{
    for (size_t i = 0; i < s->n_open_apps; i++) {
        if (s->app_runs[i] && s->o->apps[i]->stop != NULL)
            s->o->apps[i]->stop(s->app_states[i]);
    }
}

void
http_apps_reload(struct http_server *s)
{
    for (size_t i = 0; i < s->n_open_apps; i++) {
        const struct http_app *app = s->o->apps[i];
        il_error               err = { 0 };
        if (app->reload != NULL && app->reload(s->app_states[i], s->o->app_config, &err) != IL_OK)
            http_log(s, HTTP_EVENT_reload_refused, "%s: %s", app->name, err.message);
    }
}

void
http_apps_tick(struct http_server *s, int64_t now_ns)
{
    for (size_t i = 0; i < s->n_open_apps; i++) {
        if (s->app_runs[i] && s->o->apps[i]->tick != NULL)
            s->o->apps[i]->tick(s->app_states[i], now_ns);
    }
}

void
http_apps_print(struct http_server *s, struct il__buf *out)
{
    for (size_t i = 0; i < s->n_open_apps; i++) {
        if (s->app_runs[i] && s->o->apps[i]->print_metrics != NULL)
            s->o->apps[i]->print_metrics(s->app_states[i], out);
    }
}

/* ---- the end --------------------------------------------------------------------------------- */

struct closing {
    struct http_server *server;
    atomic_bool         done;
};

static void *
close_all(void *cookie)
{
    struct closing     *c = cookie;
    struct http_server *s = c->server;

    for (size_t i = s->n_open_apps; i-- > 0;)
        s->o->apps[i]->close(s->app_states[i]);
    atomic_store(&c->done, true);
    return NULL;
}

/* Closing may take a while, and apps may send messages until the end. A separate thread closes
 * them while this one keeps serving the inbox. Messages that need an app were sent before, for
 * requests; they are served first. */
void
http_apps_close(struct http_server *s, void (*meanwhile)(struct http_server *s))
{
    struct closing c = { .server = s };
    pthread_t      thread;

    if (s->n_open_apps == 0)
        return;
    if (s->metrics != NULL)
        http_metrics_pipelines(s, NULL, NULL); /* the app's state is going away */
    meanwhile(s);
    if (pthread_create(&thread, NULL, close_all, &c) != 0) {
        (void)close_all(&c);
    } else {
        while (!atomic_load(&c.done)) {
            IGNORE(poll(NULL, 0, MEANWHILE_MS) < 0); /* interrupted by a signal: check sooner */
            meanwhile(s);
        }
        CHECK(pthread_join(thread, NULL) == 0);
    }
    s->n_open_apps = 0;
    il__mutex_destroy(&s->app_mutex);
    meanwhile(s);
}
