/*
 * log.c: turns notes of the runner's threads into log lines, metrics and stream events of the
 * server (events.def, SSE). Runs on the event loop.
 */
#include <stdio.h>

#include "apps/runner/serve.h"
#include "base/clock.h"
#include "http/log.h"

/* A note on its way to the loop; its texts follow the struct. */
struct note {
    struct runner_note note;
};

static const struct {
    enum http_log_level level;
    const char         *name;
} events[] = {
#define X(id, level, name, text) { HTTP_LOG_##level, name },
#include "apps/runner/events.def"
#undef X
};

static const char *
key_of(const struct runner_note *n, char out[IL_KEY_BYTES_MAX + 1])
{
    if (n->pipeline == NULL || n->tenant == NULL)
        return NULL;
    /* ids are short */
    (void)snprintf(out, IL_KEY_BYTES_MAX + 1, PIPELINE_KEY_PREFIX "%s", n->pipeline);
    return out;
}

static void
count(struct http_server *s, const struct runner_note *n, const char *key)
{
    static const struct {
        enum runner_event   event;
        enum http_lock_seen seen;
    } rows[] = {
        { RUNNER_EVENT_acquired, HTTP_LOCK_ACQUIRED },
        { RUNNER_EVENT_conflict, HTTP_LOCK_CONFLICT },
        { RUNNER_EVENT_released, HTTP_LOCK_RELEASED },
        { RUNNER_EVENT_expired, HTTP_LOCK_EXPIRED },
        { RUNNER_EVENT_broken, HTTP_LOCK_BROKEN },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].event == n->event)
            http_metrics_lock(s, rows[i].seen, n->tenant, key, n->wait_ms, n->hold_ms);
    }
}

static void
hint(struct http_server *s, const struct runner_note *n, const char *key)
{
    static const struct {
        enum runner_event event;
        const char       *what;
    } rows[] = {
        { RUNNER_EVENT_run_started, "started" },     { RUNNER_EVENT_run_ended, "finished" },
        { RUNNER_EVENT_step_failed, "step_failed" }, { RUNNER_EVENT_step_alert, "step_alert" },
        { RUNNER_EVENT_expiring, "expiring" },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].event == n->event)
            http_stream_run_event(s, n->tenant, key, rows[i].what, n->run);
    }
}

static void
line(struct http_server *s, const struct runner_note *n)
{
    if (!http_log_begin_app(s, events[n->event].level, events[n->event].name))
        return;
    http_log_text(s, "tenant_id", n->tenant);
    http_log_text(s, "pipeline_id", n->pipeline);
    http_log_text(s, "run_id", n->run);
    http_log_text(s, "step_id", n->step);
    if (n->fence != 0)
        http_log_int(s, "fence", (int64_t)n->fence);
    if (n->wait_ms >= 0)
        http_log_ms(s, "lock_wait_ms", n->wait_ms * IL__NS_PER_MS);
    if (n->hold_ms >= 0)
        http_log_ms(s, "lock_hold_ms", n->hold_ms * IL__NS_PER_MS);
    http_log_text(s, "message", n->text);
    http_log_end(s);
}

/* On the loop. The app may be closed by now; the server is not. */
static void
arrived(struct http_server *s, void *cookie)
{
    AUTO_FREE struct note    *message = cookie;
    const struct runner_note *n       = &message->note;
    char                      room[IL_KEY_BYTES_MAX + 1];
    const char               *key = key_of(n, room);

    line(s, n);
    if (key == NULL)
        return;
    count(s, n, key);
    hint(s, n, key);
}

void
runner_app_note(void *cookie, const struct runner_note *n)
{
    struct runner_app *app    = cookie;
    const char *const  in[]   = { n->tenant, n->pipeline, n->run, n->step, n->text };
    size_t             n_text = 0;

    if (n->event == RUNNER_EVENT_loaded && !app->has_pipelines)
        return; /* none requested */
    if (n->event == RUNNER_EVENT_file_refused)
        runner_app_refused(app, n->tenant, n->text);
    for (size_t i = 0; i < ARRAY_LEN(in); i++)
        n_text += in[i] != NULL ? strlen(in[i]) + 1 : 0;
    struct note *message = il__alloc(sizeof *message + n_text);
    if (message == NULL)
        return; /* a line less */
    message->note      = *n;
    char        *at    = (char *)(message + 1);
    const char **out[] = { &message->note.tenant, &message->note.pipeline, &message->note.run,
                           &message->note.step, &message->note.text };
    for (size_t i = 0; i < ARRAY_LEN(in); i++)
        *out[i] = in[i] != NULL ? il__put(&at, in[i], strlen(in[i]) + 1) : NULL;
    if (!http_post(app->server, arrived, message))
        il__free(message);
}
