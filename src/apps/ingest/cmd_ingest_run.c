/*
 * cmd_ingest_run.c: `interlock ingest event`, `source`, `tracks`, `events` and `recent`. On a store
 * they execute the ingestion in this process; through a server they start it there and follow it.
 */
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "apps/ingest/cmd_ingest.h"
#include "apps/ingest/options.h"
#include "base/clock.h"
#include "base/error.h"
#include "cli/app_config.h"
#include "cli/apply.h"
#include "cli/data_store.h"
#include "cli/print_item.h"
#include "cli/request.h"
#include "cli/wrap/meta.h"

#define LOOK_MS 1000  /* how long a lookup of a run waits for news */
#define SIGNAL_MS 100 /* how soon a signal is noticed meanwhile */

struct session {
    struct cli           *cli;
    bool                  remote;
    bool                  detach;
    int                   signal_fd; /* -1: signals have their usual effect */
    int                   signal;    /* that asked us to stop; 0 = none */
    sigset_t              mask;      /* before */
    char                  by[64];    /* the user, as start.by */
    struct ingest_start   start;
    struct il__data      *data;
    struct tables_place  *place;
    il_guard             *tables;
    struct ingest        *ingest;
    void                 *mem;
    struct cli_app_config config;
};

/* ---- signals --------------------------------------------------------------------------------- */

/* An ingestion of this process holds leases: a signal cancels it, and we exit when it has given
 * them back. The threads block all signals. Ignored ones stay ignored (HUP under nohup). */
static void
signals_open(struct session *s)
{
    static const int ending[] = { SIGINT, SIGTERM, SIGHUP };
    sigset_t         taken;

    CHECK(sigemptyset(&taken) == 0);
    for (size_t i = 0; i < ARRAY_LEN(ending); i++) {
        struct sigaction action;
        CHECK(sigaction(ending[i], NULL, &action) == 0);
        if (action.sa_handler != SIG_IGN)
            CHECK(sigaddset(&taken, ending[i]) == 0);
    }
    s->signal_fd = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->signal_fd >= 0) /* else they end us, and the leases expire */
        CHECK(pthread_sigmask(SIG_BLOCK, &taken, &s->mask) == 0);
}

static void
signals_close(struct session *s)
{
    if (s->signal_fd < 0)
        return;
    (void)close(s->signal_fd);
    s->signal_fd = -1;
    CHECK(pthread_sigmask(SIG_SETMASK, &s->mask, NULL) == 0);
}

/* Has a signal arrived? The next one has its usual effect, for users who will not wait. */
static bool
was_signalled(struct session *s)
{
    struct signalfd_siginfo info;

    if (s->signal_fd >= 0 && read(s->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        s->signal = (int)info.ssi_signo;
        signals_close(s);
    }
    return s->signal != 0;
}

static void
session_release(struct session *s)
{
    if (s->ingest != NULL)
        il__ingest_stop(s->ingest);
    il__ingest_close(s->ingest);
    il_guard_close(s->tables);
    il__tables_place_close(s->place);
    il__data_close(s->data);
    il__cli_app_config_release(&s->config);
    il__arena_free(&s->mem);
    signals_close(s);
}

/* ---- on a store ------------------------------------------------------------------------------ */

static void
print_note(void *cookie, const struct ingest_note *n)
{
    const struct session *s = cookie;

    if (n->type == INGEST_NOTE_SLOW)
        il__cli_note(s->cli, "ingestion of %s is taking longer than expected", n->name);
    else if (n->type == INGEST_NOTE_UNRELEASED)
        il__cli_note(s->cli, "cannot release the lease of event %s; it will expire",
                     n->event_id != NULL ? n->event_id : "?");
}

static il_status
open_here(struct session *s, il_error *reterr)
{
    struct cli           *cli  = s->cli;
    const char           *data = CLI_SETTING(cli, data)->text;
    struct ingest_options o    = { .mode = WORK_HERE };

    il_status st = il__cli_app_config_init(&s->config, &cli->config, reterr);
    if (st == IL_OK)
        st = il__ingest_options_read(&s->config.config, &o, reterr);
    if (st == IL_OK)
        st = il__cli_data_open(cli, CLI_DATA_MAKE, &s->data, reterr);
    if (st == IL_OK)
        st = il__tables_place_open(CLI_SETTING(cli, store)->text,
                                   data != NULL && data[0] != '\0' ? data : NULL, false, &s->place,
                                   reterr);
    if (st == IL_OK)
        st = il__tables_open(&il__ingest_tables, s->place, NULL, &s->tables, reterr);
    o.h           = cli->store;
    o.data        = s->data;
    o.place       = s->place;
    o.mode        = WORK_HERE;
    o.schedule    = NULL;
    o.shutdown_ms = 0; /* what we leave behind is stopped: all else was waited for */
    o.note        = print_note;
    o.cookie      = s;
    if (s->start.kind == INGEST_RUN_RECENT && s->start.tracks == NULL && o.tracks != NULL &&
        o.tracks[0] != '\0')
        s->start.tracks = o.tracks;
    return st == IL_OK ? il__ingest_open(&o, &s->ingest, reterr) : st;
}

/* By the event's own id: look up the site's. */
static il_status
look_up(struct session *s, const char *event_id, il_error *reterr)
{
    struct ingest_known k;
    il_status st = il__ingest_known(s->tables, s->start.tenant, event_id, &s->mem, &k, reterr);

    if (st == IL_NOT_FOUND)
        return il__error_set(reterr, st, "ingest: event '%.64s' does not exist", event_id);
    if (st == IL_OK) {
        s->start.event_id        = k.event_id;
        s->start.source_event_id = k.source_event_id;
        s->start.track_slug      = k.track_slug;
    }
    return st;
}

static il_status
fail_held(const il_op *op, il_error *reterr)
{
    AUTO_BUF struct il__buf text = { 0 };

    il__buf_init(&text, 480);
    il__ingest_conflict_text(op->key, op->out.n_runs > 0 ? &op->out.runs[0] : NULL,
                             op->out.n_items > 0 ? &op->out.items[0] : NULL, &text);
    return il__error_set(reterr, IL_HELD, "%s", il__buf_str(&text));
}

/* *ret_ours: we have created the run; else another process has, and left it. */
static il_status
start_here(struct session *s, char id[IL_ID_BYTES_MAX + 1], bool *ret_ours, il_error *reterr)
{
    il_op               op = { .type = IL_OP_NONE };
    char                uuid[37];
    struct ingest_start start = s->start;
    il_status           st    = il_uuid(uuid);

    start.id = uuid;
    if (st == IL_OK)
        st = il__ingest_start_op(&start, &s->mem, &op, reterr);
    if (st == IL_OK)
        st = il_apply(s->cli->store, &op, 1, reterr);
    if (st != IL_OK)
        return st;
    const il_run_info *run;
    enum ingest_answer answer = il__ingest_answer(il__ingest_work(s->ingest), &op, &run);
    *ret_ours                 = answer == INGEST_TRIGGER_STARTED;
    if (*ret_ours ||
        (answer == INGEST_TRIGGER_HELD && run != NULL && il__ingest_adopt(s->ingest, run))) {
        (void)snprintf(id, IL_ID_BYTES_MAX + 1, "%s", run->id);
    } else if (answer == INGEST_TRIGGER_HELD) {
        st = fail_held(&op, reterr);
    } else {
        st = il__error_set(reterr, op.status, "ingest: %s",
                           op.out.detail != NULL ? op.out.detail : il_status_text(op.status));
    }
    il_op_release(&op);
    return st;
}

/* ---- through a server ------------------------------------------------------------------------ */

static il_status
start_there(struct session *s, const char *event_id, char id[IL_ID_BYTES_MAX + 1], il_error *reterr)
{
    static const char *const   paths[] = { [INGEST_RUN_EVENT]  = "/events/ingest",
                                           [INGEST_RUN_TRACKS] = "/tracks/sync",
                                           [INGEST_RUN_EVENTS] = "/events/sync",
                                           [INGEST_RUN_RECENT] = "/events/recent" };
    const struct ingest_start *a       = &s->start;
    AUTO_BUF struct il__buf    path    = { 0 };
    json_t                    *answer  = NULL;

    il__buf_init(&path, 1024);
    if (event_id != NULL) {
        il__buf_adds(&path, "/events/");
        il__buf_add_url(&path, event_id);
        il__buf_adds(&path, "/ingest");
    } else {
        il__buf_adds(&path, paths[a->kind]);
    }
    json_t *body =
        json_pack("{s:s*, s:s*, s:s*, s:s*, s:b, s:s}", "source_event_id", a->source_event_id,
                  "track_slug", a->track_slug, "event_id", a->event_id, "tracks", a->tracks,
                  "force", a->force ? 1 : 0, "on_conflict", a->wait ? "queue" : "reject");
    if (body != NULL && a->kind == INGEST_RUN_RECENT)
        (void)json_object_set_new(body, "days", json_integer(a->days)); /* 7 without memory */
    il_status st =
        body != NULL && !path.failed
            ? il__cli_request(s->cli, "POST", il__buf_str(&path), body, 0, &answer, reterr)
            : il__error_nomem(reterr);
    json_decref(body);
    if (st == IL_OK)
        (void)snprintf(id, IL_ID_BYTES_MAX + 1, "%s", il__cli_ingest_text(answer, "job_id"));
    if (st == IL_OK && s->detach && s->cli->json)
        IGNORE(il__cli_json_print(json_incref(answer))); /* a write error is reported at the end */
    json_decref(answer);
    return st;
}

/* ---- following ------------------------------------------------------------------------------- */

static void
show_progress(const struct session *s, const il_run_info *run)
{
    struct ingest_run_out out;
    void                 *mem = NULL;

    if (il__ingest_run_show(run, &mem, &out) && out.stage_label != NULL)
        il__cli_progress(s->cli, (uint64_t)MAX(out.progress.done, 0),
                         (uint64_t)MAX(out.progress.total, 0), out.stage_label);
    il__arena_free(&mem);
}

/* If the store cannot be reached, the lookup that follows says so. */
static void
cancel(struct session *s, const char *id)
{
    il_op op = { .type = IL_OP_RUN_CANCEL, .in.run = { .id = id } };
    char  why[80];

    (void)snprintf(why, sizeof why, "stopped by signal %d", s->signal);
    op.in.run.error = why;
    if (il_apply(s->cli->store, &op, 1, NULL) == IL_OK && op.status == IL_OK && op.out.n_runs > 0)
        work_cancelled(il__ingest_work(s->ingest), &op.out.runs[0]);
    il_op_release(&op);
}

/* Until something has changed, or a signal has come. */
static il_status
await_news(struct session *s, const il_op *op, il_error *reterr)
{
    int64_t   piece_ms = s->signal_fd >= 0 ? SIGNAL_MS : LOOK_MS;
    il_status woken    = IL_TIMEOUT;

    for (int64_t ms = 0; ms < LOOK_MS && woken == IL_TIMEOUT; ms += piece_ms) {
        if (s->signal == 0 && was_signalled(s))
            return IL_OK;
        woken = il_wait(s->cli->store, op, piece_ms);
    }
    if (woken != IL_OK && woken != IL_TIMEOUT)
        return il__error_set(reterr, woken, "ingest: %s", il_status_text(woken));
    return IL_OK;
}

/* A signal cancels only the runs that this command created or executes. */
static il_status
stop_run(struct session *s, const il_run_info *run, bool ours, il_error *reterr)
{
    if (!ours && !work_executes(il__ingest_work(s->ingest), run))
        return il__error_set(reterr, IL_CANCELLED,
                             "ingest: interrupted; did not cancel run %s of another process",
                             run->id);
    cancel(s, run->id);
    return IL_OK;
}

/* Wait until the run has ended, and get what it shows. */
static il_status
follow(struct session *s, const char *id, bool ours, json_t **ret, il_error *reterr)
{
    il_op     op    = { .type = IL_OP_RUN_GET, .in.run = { .id = id } };
    il_status st    = IL_OK;
    bool      ended = false, stopped = false;

    while (st == IL_OK && !ended) {
        il_op_release(&op);
        st    = il__cli_apply_to(s->cli, &op, "run", id, reterr);
        ended = st == IL_OK && op.out.runs[0].state > IL_RUN_RUNNING;
        if (st == IL_OK && !ended && !stopped && was_signalled(s)) {
            st      = stop_run(s, &op.out.runs[0], ours, reterr);
            stopped = true;
        }
        if (st == IL_OK && !ended) {
            show_progress(s, &op.out.runs[0]);
            st = await_news(s, &op, reterr);
        }
    }
    il__cli_progress_end();
    if (st == IL_OK && !s->remote)
        st = il__cli_ingest_view(s->data, &op.out.runs[0], ret, reterr);
    il_op_release(&op);
    if (st == IL_OK && s->remote) {
        AUTO_BUF struct il__buf path = { 0 };
        il__buf_init(&path, 1024);
        il__buf_adds(&path, "/ingestion/status/");
        il__buf_add_url(&path, id);
        st = il__cli_request(s->cli, "GET", il__buf_str(&path), NULL, 0, ret, reterr);
    }
    return st;
}

/* ---- results --------------------------------------------------------------------------------- */

static int
exit_of(const json_t *run)
{
    const char *code = il__cli_ingest_text(json_object_get(run, "error"), "code");

    if (strcmp(il__cli_ingest_text(run, "status"), "COMPLETED") == 0)
        return 0;
    if (strcmp(code, "INGESTION_IN_PROGRESS") == 0)
        return CLI_EXIT_INGEST_HELD;
    return strcmp(code, "INGESTION_TIMEOUT") == 0 ? CLI_EXIT_INGEST_LATE : CLI_EXIT_INGEST;
}

static long long
number_of(const json_t *object, const char *name)
{
    return (long long)json_integer_value(json_object_get(object, name));
}

/* "who holds it, since when, at which stage" of a conflict that the run met. */
static void
print_conflict(const json_t *details)
{
    const json_t *age = json_object_get(details, "age_ms");
    char          text[CLI_AGE_BYTES];

    if (il__cli_ingest_text(details, "hint")[0] == '\0')
        return;
    il__cli_error("held by %s%s%s%s%s (%s)",
                  il__cli_ingest_text(details, "holder")[0] != '\0'
                      ? il__cli_ingest_text(details, "holder")
                      : "another program",
                  json_is_integer(age) ? " for " : "",
                  json_is_integer(age) ? il__cli_age(json_integer_value(age), text) : "",
                  json_object_get(details, "run_id") != NULL &&
                          json_is_string(json_object_get(details, "stage"))
                      ? ", at "
                      : "",
                  json_object_get(details, "run_id") != NULL &&
                          json_is_string(json_object_get(details, "stage"))
                      ? il__cli_ingest_text(details, "stage")
                      : "",
                  il__cli_ingest_text(details, "hint"));
}

/* One line for people. */
static void
print_end(const struct session *s, const json_t *run)
{
    const json_t *result = json_object_get(run, "result");
    const json_t *error  = json_object_get(run, "error");
    const char   *what   = il__cli_ingest_text(run, "source_event_id")[0] != '\0'
                               ? il__cli_ingest_text(run, "source_event_id")
                               : il__cli_ingest_text(run, "kind");
    char          age[CLI_AGE_BYTES];

    if (json_is_object(error)) {
        il__cli_error("ingestion of %s: %s: %s", what, il__cli_ingest_text(error, "code"),
                      il__cli_ingest_text(error, "message"));
        print_conflict(json_object_get(error, "details"));
        return;
    }
    il__cli_puts(what);
    (void)printf(" %s", il__cli_ingest_text(result, "status")); /* errors: at the flush */
    if (json_object_get(result, "races_ingested") != NULL)
        (void)printf(": event %s, %lld races, %lld results, %lld laps",
                     il__cli_ingest_text(result, "event_id"), number_of(result, "races_ingested"),
                     number_of(result, "results_ingested"), number_of(result, "laps_ingested"));
    else if (json_object_get(result, "items") != NULL)
        (void)printf(": %zu events since %s", json_array_size(json_object_get(result, "items")),
                     il__cli_ingest_text(result, "since"));
    (void)printf("\n");
    il__cli_note(s->cli, "run %s took %s", il__cli_ingest_text(run, "job_id"),
                 il__cli_age(number_of(run, "duration_ms"), age));
}

/* The ingestions that a refresh has started or joined: the worst exit status counts. */
static int
follow_items(struct session *s, const json_t *items, json_t *ended)
{
    size_t        i;
    const json_t *item;
    int           status = 0;

    json_array_foreach(items, i, item)
    {
        json_t  *run  = NULL;
        il_error err  = { .message = "" };
        bool     ours = json_is_true(json_object_get(item, "started"));
        if (follow(s, il__cli_ingest_text(item, "job_id"), ours, &run, &err) != IL_OK) {
            status = il__cli_fail(&err);
            continue;
        }
        int own = exit_of(run);
        if (status == 0 || own == CLI_EXIT_INGEST)
            status = own != 0 ? own : status;
        if (!s->cli->json)
            print_end(s, run);
        (void)json_array_append(ended, run);
        json_decref(run);
    }
    return status;
}

/* A refresh that could not read all tracks has started the ingestions of the others. */
static const json_t *
items_of(const json_t *run)
{
    const json_t *items = json_object_get(json_object_get(run, "result"), "items");
    const json_t *error = json_object_get(run, "error");

    return items != NULL ? items : json_object_get(json_object_get(error, "details"), "items");
}

static int
conclude(struct session *s, json_t *run)
{
    const json_t *items  = items_of(run);
    json_t       *ended  = json_array();
    int           status = exit_of(run);

    if (!s->cli->json)
        print_end(s, run);
    if (items != NULL && ended != NULL) {
        int of_items = follow_items(s, items, ended);
        status       = status != 0 ? status : of_items;
    }
    if (s->cli->json && items != NULL)
        (void)json_object_set(run, "ingestions", ended);
    json_decref(ended);
    if (!s->cli->json) {
        json_decref(run);
        return fflush(stdout) == 0 ? status : CLI_EXIT_IO;
    }
    int printed = il__cli_json_print(run);
    return printed != 0 ? printed : status;
}

/* ---- the commands ---------------------------------------------------------------------------- */

static int
run(struct session *s, const char *event_id)
{
    char     id[IL_ID_BYTES_MAX + 1] = "";
    bool     ours                    = true;
    json_t  *view                    = NULL;
    il_error err                     = { .message = "" };

    wrap_user(s->by, sizeof s->by);
    s->remote       = il__cli_is_remote(s->cli);
    s->start.tenant = CLI_SETTING(s->cli, tenant)->text;
    s->start.by     = s->by;
    s->start.type   = "cli";
    s->start.policy = s->start.wait ? IL_POLICY_QUEUE : IL_POLICY_REJECT;
    if (s->detach && !s->remote)
        return il__cli_usage("ingest: --detach needs --server");
    if (!s->remote)
        signals_open(s);
    il_status st = s->remote ? IL_OK : open_here(s, &err);
    if (st == IL_OK && !s->remote && event_id != NULL)
        st = look_up(s, event_id, &err);
    if (st == IL_OK)
        st = s->remote ? start_there(s, event_id, id, &err) : start_here(s, id, &ours, &err);
    if (st == IL_OK && s->detach) {
        if (!s->cli->json)
            (void)printf("%s\n", id); /* errors: at the flush */
        return fflush(stdout) == 0 ? 0 : CLI_EXIT_IO;
    }
    if (st == IL_OK)
        st = follow(s, id, ours, &view, &err);
    int status = st == IL_OK ? conclude(s, view) : il__cli_data_fail(s->cli, &err);
    return s->signal != 0 ? CLI_EXIT_INGEST_SIGNAL + s->signal : status;
}

#define COMMON(cli_, command)                                                                  \
    {                                                                                          \
        .cli = (cli_), .signal_fd = -1, .detach = CLI_GIVEN(cli_, command, detach), .start = { \
            .force = CLI_GIVEN(cli_, command, force),                                          \
            .wait  = CLI_GIVEN(cli_, command, wait),                                           \
        }                                                                                      \
    }

int
il__cli_cmd_ingest_event(struct cli *cli)
{
    AUTO(session_release) struct session s = COMMON(cli, ingest_event);

    s.start.kind = INGEST_RUN_EVENT;
    return run(&s, cli->args.operands[0]);
}

int
il__cli_cmd_ingest_source(struct cli *cli)
{
    AUTO(session_release) struct session s = COMMON(cli, ingest_source);

    s.start.kind            = INGEST_RUN_EVENT;
    s.start.source_event_id = cli->args.operands[0];
    s.start.track_slug      = CLI_OPTION(cli, ingest_source, track)->text;
    s.start.event_id        = CLI_OPTION(cli, ingest_source, event_id)->text;
    if (s.start.track_slug == NULL)
        return il__cli_usage("ingest source: --track is required");
    return run(&s, NULL);
}

int
il__cli_cmd_ingest_tracks(struct cli *cli)
{
    AUTO(session_release) struct session s = COMMON(cli, ingest_tracks);

    s.start.kind = INGEST_RUN_TRACKS;
    return run(&s, NULL);
}

int
il__cli_cmd_ingest_events(struct cli *cli)
{
    AUTO(session_release) struct session s = COMMON(cli, ingest_events);

    s.start.kind       = INGEST_RUN_EVENTS;
    s.start.track_slug = CLI_OPTION(cli, ingest_events, track)->text;
    if (s.start.track_slug == NULL)
        return il__cli_usage("ingest events: --track is required");
    return run(&s, NULL);
}

int
il__cli_cmd_ingest_recent(struct cli *cli)
{
    AUTO(session_release) struct session s      = COMMON(cli, ingest_recent);
    const char                          *tracks = CLI_OPTION(cli, ingest_recent, track)->text;

    s.start.kind   = INGEST_RUN_RECENT;
    s.start.days   = (uint32_t)CLI_OPTION(cli, ingest_recent, days)->number;
    s.start.tracks = tracks != NULL && tracks[0] != '\0' ? tracks : NULL;
    return run(&s, NULL);
}
