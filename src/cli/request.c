/* request.c: HTTP requests to a server other than ops. See request.h. */
#include <stdio.h>

#include "apps/app.h"
#include "base/error.h"
#include "cli/request.h"
#include "runtime/handle.h"
#include "wire/error.h"

/* Codes of apps, which the library does not know. */
static void
read_app_code(struct wire_error *e)
{
    for (unsigned i = 0; !e->known && e->code != NULL && i < IL_APP_COUNT; i++) {
        const struct http_app *app = il__apps[i];
        for (size_t k = 0; k < app->n_errors; k++) {
            if (strcmp(app->errors[k].code, e->code) == 0) {
                e->status = app->errors[k].status;
                e->known  = true;
            }
        }
    }
}

bool
il__cli_is_remote(const struct cli *cli)
{
    return il__config_is_server(CLI_SETTING(cli, store)->text);
}

/* Also name the run or holder that is in the way, as `trigger` does on a store. */
static il_status
refused(const struct cli *cli, const struct il__request *r, il_error *reterr)
{
    char              hint[IL_HOLDER_BYTES_MAX + 3] = "";
    struct wire_error e;

    il__wire_error_read(r->status, r->answer, &e);
    read_app_code(&e);
    const char *run = json_string_value(json_object_get(e.details, "pipeline_logging_id"));
    if (run == NULL && e.status == IL_HELD)
        run = json_string_value(json_object_get(e.details, "holder"));
    if (run != NULL)
        (void)snprintf(hint, sizeof hint, ": %s", run);
    return il__wire_error_set(
        &e, cli->command->name,
        r->status == 401 ? "; check that $INTERLOCK_API_KEY is a key of this server" : hint,
        reterr);
}

il_status
il__cli_request(const struct cli *cli, const char *method, const char *path, const json_t *body,
                int64_t wait_ms, json_t **ret, il_error *reterr)
{
    char              *text = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL;
    struct il__request r    = { .method = method, .path = path, .body = text, .wait_ms = wait_ms };

    if (body != NULL && text == NULL)
        return il__error_nomem(reterr);
    il_status st = il__handle_request(cli->store, &r, reterr);
    free(text); /* jansson's */
    if (st != IL_OK)
        return st;
    if (r.status >= 200 && r.status < 300) {
        *ret = r.answer;
        return IL_OK;
    }
    st = refused(cli, &r, reterr);
    json_decref(r.answer);
    return st;
}
