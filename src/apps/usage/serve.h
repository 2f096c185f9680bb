/*
 * serve.h: the usage cache in the server: app.c opens it, waits with requests and logs; work_kind.c
 * executes rebuilds as runs (apps/work); routes*.c are the handlers.
 *
 * A hit never leaves the loop: the marker is an op of the store like any other, and the copy of the
 * day is in memory. A request for any other day is held while a flight is under way (usage.h), and
 * resumed on the loop. Ranges are loaded on a thread of the pool.
 */
#ifndef IL_APPS_USAGE_SERVE_H
#define IL_APPS_USAGE_SERVE_H

#include "apps/usage/setup.h"
#include "apps/work/work.h"
#include "base/mutex.h"
#include "http/handler.h"

#define USAGE_CLASS "usage"
#define USAGE_REBUILD "rebuild"                     /* the subject of its runs: one per tenant */
#define USAGE_RUN_KEY USAGE_CLASS ":" USAGE_REBUILD /* what such a run holds */
#define USAGE_LIMIT_KEY "usage_rebuild" /* routes_rebuild.c: the value that limits them */
#define USAGE_REBUILDS_MAX 4            /* that one server executes at the same time */
#define USAGE_REBUILD_MS 300000         /* a tenant may start one in this time */

extern const struct http_app usage_http_app;

struct usage_held; /* routes.c: a request that waits for a day */

struct usage_app {
    struct http_server *server;
    struct usage_setup  setup;
    struct usage       *usage; /* setup.usage; NULL: no source is configured */
    struct work        *work;
    struct usage_held  *held;    /* requests; on the loop */
    struct usage_held  *reading; /* those that read a row for all who ask for it; on the loop */

    int64_t            purge_ns; /* work_kind.c: when to purge again */
    struct il__mutex   mutex;    /* protects the rest */
    struct usage_held *landed;   /* of `held`: their days are there */
    pthread_cond_t     landing;  /* one was added */
    const char       **tenants;  /* sorted */
    size_t             n_tenants;
    void              *tenants_mem;
};
struct usage_app *usage_app_of(const struct http_request *r);
/* False: usage is not served; answered. */
bool usage_require_served(struct http_request *r) MUST_USE;

/* ---- log lines: app.c ------------------------------------------------------------------------ */

void usage_app_trouble(struct usage_app *app, const char *what, const char *text);

/* ---- requests that are held: routes.c -------------------------------------------------------- */

/* About four times a second: answer those that have waited for long enough. */
void usage_held_tick(struct usage_app *app, int64_t now_ns);

/* ---- runs: work_kind.c ----------------------------------------------------------------------- */

extern const struct work_kind usage_kind;
/* Read the tenants, whose slots are looked for. */
il_status usage_tenants_read(struct usage_app *app, il_error *reterr) MUST_USE;

/* What a rebuild is to do. */
struct usage_rebuild {
    usage_date from, to;
    bool       force;
};
/* The op that starts one. */
il_status usage_rebuild_op(const char *tenant, const char *id, const char *by,
                           const struct usage_rebuild *what, void **mem, il_op *op,
                           il_error *reterr) MUST_USE;

/* ---- routes: routes.c, routes_range.c, routes_rebuild.c, routes_tables.c ----------------------
 * */

enum usage_build {
    USAGE_BUILD_YES,
    USAGE_BUILD_NO,
};
struct usage_day_in {
    enum usage_build build;
};
/* GET /cache/metrics */
struct usage_rates {
    struct usage_counts counts;
    int64_t             hit_rate, contention_rate; /* with USAGE_RATE_DIGITS */
};
struct usage_range_body {
    const char *start, *end;
    const char *cursor;
    uint32_t    limit; /* 0 = not given */
    uint32_t    force; /* of a rebuild */
    enum usage_format {
        USAGE_JSON,
        USAGE_CSV
    } format; /* of an export */
    int by;   /* of an export: 0 = days, 1 + enum usage_by */
};
struct usage_run_out {
    const char *id, *status;
};

extern const struct wire_object usage_out_metrics, usage_out_run;

extern const struct http_route usage_routes[9];
http_fn usage_http_day, usage_http_refresh, usage_http_metrics, usage_http_analytics,
    usage_http_by_user, usage_http_by_model, usage_http_by_provider, usage_http_export,
    usage_http_rebuild;

/* Parse two dates. False: answered with 400, which names what is wrong. */
bool usage_take_range(struct http_request *r, const char *start, const char *end, usage_date *from,
                      usage_date *to) MUST_USE;

#endif
