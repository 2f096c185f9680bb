/*
 * serve.h: the server of the generated site, `interlock demo-site`.
 */
#ifndef IL_APPS_INGEST_SITE_SERVE_H
#define IL_APPS_INGEST_SITE_SERVE_H

#include <stdio.h>

#include "apps/ingest/site/site.h"

#define SITE_EVERY_MAX 1000000
#define SITE_DELAY_MS_MAX 600000

/* How a request fails. */
#define SITE_FAILURES(X)                                                       \
    X(503, "503")           /* an answer with that status */                   \
    X(429, "429")           /* the same, with Retry-After */                   \
    X(CUT, "cut")           /* the connection is closed without an answer */   \
    X(TRUNCATE, "truncate") /* the connection is closed in the middle of it */ \
    X(TYPE, "type")         /* the content type is that of an image */         \
    X(SLOW, "slow")         /* the body comes in small pieces */               \
    X(HUGE, "huge")         /* the body does not end for SITE_HUGE_BYTES */    \
    X(REDIRECT, "redirect") /* to the same page under another name of the host */
#define SITE_HUGE_BYTES (64 << 20)

enum site_failure {
#define X(id, name) SITE_FAIL_##id,
    SITE_FAILURES(X)
#undef X
    SITE_FAIL_COUNT,
    SITE_FAIL_NOT = SITE_FAIL_COUNT
};

struct site_serve {
    struct site_options site;
    const char         *listen;   /* ADDRESS:PORT of the loopback interface; port 0 = any */
    int64_t             delay_ms; /* before each answer */
    /* Every so many requests one fails, or the revision grows; 0 = never. Requests below /truth
     * do not count and never fail. */
    uint64_t          fail_every, change_every;
    enum site_failure fail_how;
    FILE             *out;  /* the first line is the site's URL */
    bool              json; /* {"url": …} instead, and a line of JSON for each request */
};

/* Serve until SIGINT or SIGTERM. Blocks these signals in the calling thread; they stay blocked.
 * IL_OK, IL_INVAL (not an address of the loopback interface, no libmicrohttpd), IL_STORE (cannot
 * listen there), IL_NOMEM. */
il_status il__site_serve(const struct site_serve *o, il_error *reterr) MUST_USE;

#endif
