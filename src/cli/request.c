/* request.c: HTTP requests to a server other than ops. See request.h. */
#include <inttypes.h>

#include "base/error.h"
#include "cli/request.h"
#include "runtime/handle.h"

/* Map the status of a response to a status of the command. */
static il_status
status_of(long http)
{
    switch (http) {
    case 404:
        return IL_NOT_FOUND;
    case 409:
        return IL_HELD;
    case 429:
        return IL_LIMIT;
    case 400:
    case 403:
    case 405:
    case 413:
    case 422:
        return IL_INVAL;
    default:
        return IL_STORE;
    }
}

bool
il__cli_is_remote(const struct cli *cli)
{
    return il__cli_store_is_server(CLI_SETTING(cli, store)->text);
}

void
il__cli_path_add(struct il__buf *b, const char *text)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";

    for (; *text != '\0'; text++) {
        if (strchr(plain, *text) != NULL)
            il__buf_addc(b, *text);
        else
            il__buf_addf(b, "%%%02X", (unsigned)(unsigned char)*text);
    }
}

il_status
il__cli_request(const struct cli *cli, const char *method, const char *path, const json_t *body,
                int64_t wait_ms, json_t **ret, il_error *reterr)
{
    char              *text = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL;
    struct il__request r    = { .method = method, .path = path, .body = text, .wait_ms = wait_ms };

    if (body != NULL && text == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory");
    il_status st = il__handle_request(cli->store, &r, reterr);
    free(text); /* jansson's */
    if (st != IL_OK)
        return st;
    if (r.status >= 200 && r.status < 300) {
        *ret = r.answer;
        return IL_OK;
    }
    const char *message =
        json_string_value(json_object_get(json_object_get(r.answer, "error"), "message"));
    st = il__error_set(reterr, status_of(r.status), "%s: %s%s", cli->command->name,
                       message != NULL ? message : "the server gave no reason",
                       r.status == 401 ? "; check that $INTERLOCK_API_KEY is a key of this server"
                                       : "");
    json_decref(r.answer);
    return st;
}
