/*
 * trigger_ten.c: ten triggers of one pipeline at the same time, each over a connection of its own.
 */
#include <pthread.h>
#include <stdio.h>

#include "apps/demo/demo.h"
#include "base/error.h"
#include "runtime/handle.h"

struct shot {
    il         *h;
    const char *path;
    pthread_t   thread;
    bool        runs;
    long        status; /* HTTP */
    bool        joined;
    char        run[IL_ID_BYTES_MAX + 1];
    il_status   st;
    il_error    error;
};

static void *
fire(void *cookie)
{
    struct shot       *s = cookie;
    struct il__request r = { .method = "POST", .path = s->path };

    s->st = il__handle_request(s->h, &r, &s->error);
    if (s->st != IL_OK)
        return NULL;
    const char *run    = json_string_value(json_object_get(r.answer, "pipeline_logging_id"));
    const char *status = json_string_value(json_object_get(r.answer, "status"));
    s->status          = r.status;
    s->joined          = status != NULL && strcmp(status, "RUNNING") == 0;
    (void)snprintf(s->run, sizeof s->run, "%s", run != NULL ? run : "");
    json_decref(r.answer);
    return NULL;
}

static void
add_up(const struct shot *s, struct demo_ten *sum, il_status *st, il_error *reterr)
{
    if (*st != IL_OK)
        return;
    if (s->st != IL_OK)
        *st = il__error_set(reterr, s->st, "%s", s->error.message);
    else if (s->run[0] == '\0')
        *st = il__error_set(reterr, IL_STORE, "a trigger was answered with HTTP status %ld",
                            s->status);
    if (*st != IL_OK)
        return;
    sum->n_started += !s->joined;
    sum->n_joined += s->joined;
    (void)snprintf(sum->run, sizeof sum->run, "%s", s->run);
}

il_status
demo_trigger_ten(const char *url, const char *pipeline, struct demo_ten *ret, il_error *reterr)
{
    struct shot     shots[DEMO_TRIGGERS] = { 0 };
    struct demo_ten sum                  = { .n_started = 0 };
    il_open_opts    opts                 = { .struct_size = sizeof opts };
    char            path[128];
    il             *h  = NULL;
    il_status       st = il_open(url, &opts, &h, reterr);

    (void)snprintf(path, sizeof path, "/pipelines/run/%s", pipeline);
    for (size_t i = 0; st == IL_OK && i < DEMO_TRIGGERS; i++) {
        shots[i] = (struct shot){ .h = h, .path = path };
        if (pthread_create(&shots[i].thread, NULL, fire, &shots[i]) != 0)
            st = il__error_set(reterr, IL_NOMEM, "cannot start a thread");
        shots[i].runs = st == IL_OK;
    }
    for (size_t i = 0; i < DEMO_TRIGGERS && shots[i].runs; i++) {
        CHECK(pthread_join(shots[i].thread, NULL) == 0);
        add_up(&shots[i], &sum, &st, reterr);
    }
    il_close(h);
    if (st == IL_OK)
        *ret = sum;
    return st;
}
