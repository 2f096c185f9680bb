/*
 * toy.h: an app that only tests have and that uses every part of struct http_app. Its commands,
 * options, keys and exit statuses are in the .def files, as those of any app.
 *
 * Files: app.c (the routes and the table), settings.c (open, close, reload and the other
 * callbacks), rows.c (guarded transactions), runs.c (runs), tables.c (tables and invariants),
 * cmd_toy.c.
 */
#ifndef IL_TESTS_APP_TOY_H
#define IL_TESTS_APP_TOY_H

#include "http/app.h"
#include "interlock-guard.h"

extern const struct http_app toy_http_app;

struct tables_place;
struct work;

#define TOY_CLASS "toy"    /* of its runs */
#define TOY_SUBJECT "play" /* their name */

struct toy {
    struct http_server  *server;
    const char          *start_gate; /* $TOY_GATE: a fifo that lets start() pass, or NULL */
    int                  gate_fd;    /* eventfd: readable while /toy/hold need not wait */
    struct tables_place *place;
    il_guard            *tables;
    struct work         *work;
    uint64_t             n_reloads; /* on the loop */
    /* Settings; on the loop. */
    char    greeting[128];
    int64_t retries, permille;
};

struct toy *toy_of(const struct http_request *r);

enum {
    TOY_METRIC_PLAYS,
    TOY_METRIC_HOLDING,
    TOY_METRIC_PLAY_SECONDS,
    TOY_METRIC_HOLDS,
    TOY_METRIC_STOPPED,
    TOY_METRIC_LAST,
    TOY_METRIC_TICKS,
    TOY_METRIC_QUERYING,
    TOY_METRIC_QUERIES,
    TOY_METRIC_RUNS,
};
enum {
    TOY_EVENT_PLAYED,
    TOY_EVENT_FLOOD,
    TOY_EVENT_STOPPING,
};

/* ---- inputs and answers (app.c) -------------------------------------------------------------- */

#define TOY_REFUND (1U << 0)
#define TOY_STUBBORN (1U << 1)
#define TOY_SLOW (1U << 2)
#define TOY_BREAK (1U << 3)
#define TOY_IDLE (1U << 4)

struct toy_in {
    uint32_t flags, n, fail_at;
    /* of /toy/hold: how it ended, and the time that was left then */
    const char *outcome;
    int64_t     left_ms;
};
/* The inputs, which also stay in r->state; NULL: it has answered. */
struct toy_in *toy_take(struct http_request *r);
void           toy_say(struct http_request *r, const char *text, uint64_t n);

/* ---- settings.c ------------------------------------------------------------------------------ */

extern const struct wire_object toy_greeting_out;
void                            toy_greet(struct http_request *r);

il_status toy_open(struct http_server *s, const struct http_app_config *config, void **ret,
                   il_error *reterr);
il_status toy_in_use(void *state, bool *ret, il_error *reterr);
il_status toy_start(void *state, il_error *reterr);
void      toy_stop(void *state);
void      toy_close(void *state);
il_status toy_reload(void *state, const struct http_app_config *config, il_error *reterr);
void      toy_print_metrics(void *state, struct il__buf *out);
void      toy_tick(void *state, int64_t now_ns);

/* ---- rows.c ---------------------------------------------------------------------------------- */

#define TOY_ROWS_MAX 250 /* of one transaction */

/* POST /toy/rows, /toy/lock and /toy/query: create the first n courses; lock them; a query without
 * end. */
void toy_rows(struct http_request *r);
void toy_lock(struct http_request *r);
void toy_query(struct http_request *r);

/* ---- runs.c ---------------------------------------------------------------------------------- */

void      toy_run(struct http_request *r); /* POST /toy/runs */
il_status toy_start_work(struct toy *toy, il_error *reterr);

#endif
