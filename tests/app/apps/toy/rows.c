/*
 * rows.c: guarded transactions of the toy app, whose row locks the server reports
 * (http_row_lock()).
 */
#include <poll.h>
#include <stdio.h>

#include "base/error.h"
#include "http/handler.h"
#include "tables.h"
#include "toy.h"

#define SLOW_MS 5 /* a lock is held for at least this long if the request is slow */

/* A request on its way through the pool. */
struct work {
    struct http_server *server;
    struct toy_in       in;
    const char         *tenant;
    il_status           status;
    il_error            error;
    char                codes[TOY_ROWS_MAX][16];
};

/* ---- on a thread of the pool ----------------------------------------------------------------- */

static il_status
create(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    struct work *w  = cookie;
    il_status    st = IL_OK;

    for (uint32_t i = 0; i < w->in.n && st == IL_OK; i++)
        st = il__tables_run(
            tx, &t_toy_course_add,
            APP_VALUES(il_guard_text(w->tenant), il_guard_text(w->codes[i]), il_guard_int(1)), NULL,
            NULL, NULL, reterr);
    return st;
}

static il_status
lock(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    struct work          *w   = cookie;
    const il_guard_column key = { "tenant", il_guard_text(w->tenant) };
    const il_guard_target row = { "course", "course", &key, 1, IL_GUARD_PLACE };
    il_guard_value        codes[TOY_ROWS_MAX];
    size_t                n = 0;

    for (uint32_t i = 0; i < w->in.n; i++)
        codes[i] = il_guard_text(w->codes[i]);
    il_status st = il_guard_lock_many(tx, &row, "code", codes, w->in.n, &n, reterr);
    if (st == IL_OK && n != w->in.n)
        st = il__error_set(reterr, IL_NOT_FOUND, "%zu of %u courses exist", n, w->in.n);
    if (st == IL_OK && (w->in.flags & TOY_SLOW) != 0)
        (void)poll(NULL, 0, SLOW_MS);
    if (st == IL_OK && (w->in.flags & TOY_BREAK) != 0) {
        /* fewer seats than none: a constraint refuses it */
        const il_guard_column one[] = { key, { "code", codes[0] } };
        const il_guard_target first = { "course", "course", one, ARRAY_LEN(one), IL_GUARD_PLACE };
        st                          = il_guard_add(tx, &first, "seats", -2, NULL, NULL, reterr);
    }
    return st;
}

/* A query that does not end by itself. */
static il_status
query(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    struct work *w = cookie;

    http_app_count(w->server, &toy_http_app, TOY_METRIC_QUERYING, 0, 1);
    il_status st = il__tables_run(tx, &t_toy_endless, APP_NO_VALUES, NULL, NULL, NULL, reterr);
    http_app_count(w->server, &toy_http_app, TOY_METRIC_QUERYING, 0, -1);
    http_app_count(w->server, &toy_http_app, TOY_METRIC_QUERIES, st == IL_CANCELLED ? 0 : 1, 1);
    return st;
}

static void
transact(struct http_request *r, const char *caller, il_guard_fn *fn)
{
    il_guard_tx_opts opts = IL_GUARD_TX_OPTS_INIT;
    struct work     *w    = r->state;

    opts.pipeline = "toy";
    opts.caller   = caller;
    http_bind_deadline(r, toy_of(r)->tables, &opts);
    w->status = il_guard_transact(toy_of(r)->tables, &opts, fn, w, NULL, &w->error);
}

static void
do_create(struct http_request *r)
{
    transact(r, "rows", create);
}

static void
do_lock(struct http_request *r)
{
    transact(r, "lock", lock);
}

static void
do_query(struct http_request *r)
{
    transact(r, "query", query);
}

/* ---- on the loop ----------------------------------------------------------------------------- */

static void
done(struct http_request *r)
{
    const struct work *w = r->state;

    if (w->status == IL_OK)
        toy_say(r, "ok", w->in.n);
    else
        http_fail(r, 409, "TOY_REFUSED", toy_http_app.name, NULL, "%s", w->error.message);
}

static void
begin(struct http_request *r, http_fn *fn)
{
    const struct toy_in *in = toy_take(r);

    if (in == NULL)
        return;
    if (in->n < 1 || in->n > TOY_ROWS_MAX) {
        http_fail(r, 400, il_status_name(IL_INVAL), "request", NULL, "n: expected 1 to %d",
                  TOY_ROWS_MAX);
        return;
    }
    struct work *w = http_calloc(r, sizeof *w);
    if (w == NULL)
        return;
    *w = (struct work){ .server = r->server, .in = *in, .tenant = r->caller->tenant };
    for (uint32_t i = 0; i < in->n; i++)
        (void)snprintf(w->codes[i], sizeof w->codes[i], "c%05u", i);
    r->state = w;
    http_pool(r, fn, done);
}

void
toy_rows(struct http_request *r)
{
    begin(r, do_create);
}

void
toy_lock(struct http_request *r)
{
    begin(r, do_lock);
}

void
toy_query(struct http_request *r)
{
    begin(r, do_query);
}
