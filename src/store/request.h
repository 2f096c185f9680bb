/*
 * request.h: a call of the HTTP API of the server that a store is behind: what is no op (pipelines).
 */
#ifndef IL_STORE_REQUEST_H
#define IL_STORE_REQUEST_H

#include <jansson.h>

#include "base/base.h"

struct il__request {
    const char *method;
    const char *path;    /* below /api/v1, with its query, encoded: "/pipelines?limit=20" */
    const char *body;    /* JSON; NULL = none */
    int64_t     wait_ms; /* it may take this much longer than the store's timeout: ?wait */
    long        status;  /* the answer's: 200, … */
    json_t     *answer;  /* the caller decrefs it */
};

#endif
