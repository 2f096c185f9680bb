/*
 * request.h: a call to the HTTP API of the server behind a store, for requests that are not ops
 * (pipelines).
 */
#ifndef IL_STORE_REQUEST_H
#define IL_STORE_REQUEST_H

#include <jansson.h>

#include "base/base.h"

struct il__request {
    const char *method;
    const char *path;    /* below /api/v1, with its query, encoded: "/pipelines?limit=20" */
    const char *body;    /* JSON; NULL = none */
    int64_t     wait_ms; /* extra time on top of the store's timeout: ?wait */
    long        status;  /* the answer's: 200, … */
    json_t     *answer;  /* the caller decrefs it */
};

#endif
