/*
 * settings.c: the life of the toy app: open, start, reload, tick, stop and close; and a route that
 * shows its settings.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "apps/work/work.h"
#include "base/buf.h"
#include "base/error.h"
#include "http/handler.h"
#include "http/server.h"
#include "tables.h"
#include "toy.h"

struct toy *
toy_of(const struct http_request *r)
{
    return http_app_state(r->server, &toy_http_app);
}

/* ---- GET /toy/greetings/{name} --------------------------------------------------------------- */

struct greeting {
    const char *greeting, *name;
    int64_t     retries, permille;
};

#define F(text, member, kind_, help_)                                                    \
    {                                                                                    \
        .name = text, .kind = WIRE_##kind_, .offset = offsetof(struct greeting, member), \
        .help = help_                                                                    \
    }
static const struct wire_field fields[] = {
    F("greeting", greeting, TEXT, "the greeting"),
    F("name", name, TEXT, "whom it greets"),
    F("retries", retries, INT64, "toy.source.retries"),
    F("permille", permille, INT64, "toy.source.share"),
};
const struct wire_object toy_greeting_out = { .name     = "ToyGreeting",
                                              .fields   = fields,
                                              .n_fields = ARRAY_LEN(fields),
                                              .help     = "A greeting",
                                              .bytes    = sizeof(struct greeting) };

void
toy_greet(struct http_request *r)
{
    const struct toy *toy = toy_of(r);

    if (strcmp(r->args[0], "nobody") == 0) {
        http_fail(r, 404, "TOY_NOT_FOUND", toy_http_app.name, NULL, "Nobody to greet");
        return;
    }
    struct greeting out = { .greeting = toy->greeting,
                            .name     = r->args[0],
                            .retries  = toy->retries,
                            .permille = toy->permille };
    http_say(r, 200, &toy_greeting_out, &out);
}

/* ---- callbacks ------------------------------------------------------------------------------- */

il_status
toy_reload(void *state, const struct http_app_config *config, il_error *reterr)
{
    struct toy *toy      = state;
    const char *greeting = http_setting_text(config, "toy_greeting");

    if (greeting != NULL && strcmp(greeting, "rude") == 0)
        return il__error_set(reterr, IL_INVAL, "toy_greeting: must not be rude");
    (void)snprintf(toy->greeting, sizeof toy->greeting, "%s", greeting != NULL ? greeting : "");
    toy->retries  = http_setting_number(config, "toy.source.retries");
    toy->permille = http_setting_number(config, "toy.source.share");
    toy->n_reloads++;
    return IL_OK;
}

static il_status
open_tables(struct toy *toy, il_error *reterr)
{
    const struct http_options *o    = toy->server->o;
    struct tables_opts         opts = { .observe = http_row_lock, .cookie = toy->server };
    il_status st = il__tables_place_share(o->store_url, o->data_url, false, &toy->place, reterr);

    return st == IL_OK
               ? il__tables_open(toy_http_app.tables, toy->place, &opts, &toy->tables, reterr)
               : st;
}

il_status
toy_open(struct http_server *s, const struct http_app_config *config, void **ret, il_error *reterr)
{
    struct toy *toy = il__calloc(1, sizeof *toy);

    if (toy == NULL)
        return il__error_nomem(reterr);
    toy->server     = s;
    toy->start_gate = getenv("TOY_GATE");
    toy->gate_fd    = eventfd(0, EFD_CLOEXEC);
    CHECK(toy->gate_fd >= 0);
    il_status st = toy_reload(toy, config, reterr);
    if (st == IL_OK)
        *ret = toy;
    else
        toy_close(toy);
    return st;
}

/* With a gate, the first request starts it. */
il_status
toy_in_use(void *state, bool *ret, il_error *reterr UNUSED)
{
    *ret = ((const struct toy *)state)->start_gate == NULL;
    return IL_OK;
}

/* Wait until the test has written a word to the fifo and closed it. */
static il_status
pass_gate(const char *path, il_error *reterr)
{
    char  word[16] = "";
    FILE *file     = fopen(path, "re");

    CHECK(file != NULL);
    CHECK(fgets(word, sizeof word, file) != NULL);
    CHECK(fgetc(file) == EOF);
    (void)fclose(file); /* was only read */
    return strcmp(word, "open") == 0
               ? IL_OK
               : il__error_set(reterr, IL_STORE, "toy: the gate %s is shut", path);
}

il_status
toy_start(void *state, il_error *reterr)
{
    struct toy *toy = state;
    il_status   st  = toy->start_gate != NULL ? pass_gate(toy->start_gate, reterr) : IL_OK;

    if (st == IL_OK)
        st = open_tables(toy, reterr);
    return st == IL_OK ? toy_start_work(toy, reterr) : st;
}

void
toy_stop(void *state)
{
    struct toy *toy = state;

    work_stop(toy->work);
    http_app_log(toy->server, &toy_http_app, TOY_EVENT_STOPPING,
                 HTTP_LOG_INT("reloads", (int64_t)toy->n_reloads - 1));
}

void
toy_close(void *state)
{
    struct toy *toy = state;

    work_close(toy->work);
    il_guard_close(toy->tables);
    il__tables_place_unshare(toy->place);
    (void)close(toy->gate_fd);
    il__free(toy);
}

void
toy_print_metrics(void *state, struct il__buf *out)
{
    const struct toy *toy = state;

    il__buf_addf(out, "# TYPE toy_retries gauge\ntoy_retries %lld\n", (long long)toy->retries);
}

void
toy_tick(void *state, int64_t now_ns UNUSED)
{
    struct toy *toy = state;

    http_app_count(toy->server, &toy_http_app, TOY_METRIC_TICKS, 0, 1);
}
