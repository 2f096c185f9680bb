/*
 * error.h: error codes, and error answers as a client reads them.
 */
#ifndef IL_WIRE_ERROR_H
#define IL_WIRE_ERROR_H

#include "wire/wire.h"

/* The status that an error code stands for: by the status table, then errors.def. False: unknown,
 * the code of an app or of a newer server. */
bool il__wire_code_status(const char *code, il_status *ret) MUST_USE;

/* An error answer; the texts and details are borrowed from its body. */
struct wire_error {
    long          http;
    il_status     status; /* of the code; if that is unknown or missing: of the HTTP status */
    bool          known;  /* `status` is that of the code */
    const char   *code, *message; /* NULL: missing */
    const json_t *details;        /* may be NULL */
};

/* Read an answer with an HTTP status other than 2xx; `body` may be any JSON value, or NULL. */
void il__wire_error_read(long http, const json_t *body, struct wire_error *ret);

/*
 * Fill in *reterr (may be NULL) and return e->status. The message is "PREFIX: MESSAGE", or "PREFIX:
 * CODE: MESSAGE" if the code is unknown; `hint` is appended ("" = none). Holder, fence and
 * constraint come from the details; native is the HTTP status.
 */
il_status il__wire_error_set(const struct wire_error *e, const char *prefix, const char *hint,
                             il_error *reterr);

#endif
