/*
 * error.c: error codes and their statuses; error answers. The server's side is src/http/op_error.c.
 */
#include "wire/error.h"

#include <stdio.h>

#include "base/error.h"

static const struct {
    const char *code;
    il_status   status;
} codes[] = {
#define X(name, num, wire, http, exit_status, retry, text) { wire, IL_##name },
    IL_STATUS_MAP(X)
#undef X
#define X(code, http, status, text) { #code, IL_##status },
#include "wire/errors.def"
#undef X
};

bool
il__wire_code_status(const char *code, il_status *ret)
{
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        if (strcmp(codes[i].code, code) == 0) {
            *ret = codes[i].status;
            return true;
        }
    }
    return false;
}

/* What is left when the code says nothing. */
static il_status
status_of_http(long http)
{
    switch (http) {
    case 401: /* not the caller's arguments, but the configuration */
        return IL_STORE;
    case 404:
        return IL_NOT_FOUND;
    case 409:
        return IL_STATE;
    case 429:
        return IL_LIMIT;
    default:
        return http >= 400 && http < 500 ? IL_INVAL : IL_STORE;
    }
}

void
il__wire_error_read(long http, const json_t *body, struct wire_error *ret)
{
    const json_t *error = json_object_get(body, "error");

    *ret = (struct wire_error){
        .http    = http,
        .status  = status_of_http(http),
        .code    = json_string_value(json_object_get(error, "code")),
        .message = json_string_value(json_object_get(error, "message")),
        .details = json_object_get(error, "details"),
    };
    il_status st = IL_OK;
    /* An error is never a success, whatever code it carries. */
    if (ret->code == NULL || !il__wire_code_status(ret->code, &st) || il_status_exit(st) == 0)
        return;
    ret->status = st;
    ret->known  = true;
}

static void
take_text(const json_t *details, const char *name, char *into, size_t n_bytes)
{
    const char *text = json_string_value(json_object_get(details, name));

    if (text != NULL && strlen(text) < n_bytes)
        (void)snprintf(into, n_bytes, "%s", text);
}

il_status
il__wire_error_set(const struct wire_error *e, const char *prefix, const char *hint,
                   il_error *reterr)
{
    const char *message = e->message != NULL ? e->message : "no reason given";
    bool        coded   = e->code != NULL && !e->known;

    if (reterr == NULL)
        return e->status;
    if (e->code == NULL && e->message == NULL)
        il__error_set(reterr, e->status, "%s: HTTP status %ld without an error code%s", prefix,
                      e->http, hint);
    else
        il__error_set(reterr, e->status, "%s: %.40s%s%s%s", prefix, coded ? e->code : "",
                      coded ? ": " : "", message, hint);
    (void)snprintf(reterr->native, sizeof reterr->native, "%ld", e->http);
    take_text(e->details, "holder", reterr->holder, sizeof reterr->holder);
    take_text(e->details, "constraint", reterr->constraint, sizeof reterr->constraint);
    json_int_t fence = json_integer_value(json_object_get(e->details, "fence"));
    reterr->fence    = fence > 0 ? (uint64_t)fence : 0;
    return e->status;
}
