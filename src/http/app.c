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

il_status
http_apps_open(struct http_server *s, il_error *reterr)
{
    CHECK(s->o->n_apps <= HTTP_APPS_MAX);
    for (size_t i = 0; i < s->o->n_apps; i++) {
        il_status st = s->o->apps[i]->open(s, s->o->app_config, &s->app_states[i], reterr);
        if (st != IL_OK)
            return st;
        s->n_open_apps++;
    }
    return IL_OK;
}

void
http_apps_stop(struct http_server *s)
{
    for (size_t i = 0; i < s->n_open_apps; i++) {
        if (s->o->apps[i]->stop != NULL)
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
        if (s->o->apps[i]->tick != NULL)
            s->o->apps[i]->tick(s->app_states[i], now_ns);
    }
}

void
http_apps_print(struct http_server *s, struct il__buf *out)
{
    for (size_t i = 0; i < s->n_open_apps; i++) {
        if (s->o->apps[i]->print_metrics != NULL)
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
 * them while this one keeps serving the inbox. */
void
http_apps_close(struct http_server *s, void (*meanwhile)(struct http_server *s))
{
    struct closing c = { .server = s };
    pthread_t      thread;

    if (s->n_open_apps == 0)
        return;
    if (s->metrics != NULL)
        http_metrics_pipelines(s, NULL, NULL); /* the app's state is going away */
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
    meanwhile(s);
}
