/*
 * routes.c: the routes of the campus. All operations have the same handler: it fills the inputs
 * from path and body, runs the operation on a thread of the pool, and prints its answer or why it
 * was refused.
 *
 * The id that the server generates for an Idempotency-Key is the id of the call, and with it the
 * key of the ledger: a request that is repeated after a crash finds the effect of the first.
 */
#include "apps/campus/serve.h"

#include "base/clock.h"
#include "http/admin.h"
#include "http/server.h"

/* A request on its way through the pool. */
struct work {
    const struct campus_operation *op;
    struct campus_in               in;
    struct campus_call             call;
    union campus_out               out;
    il_status                      status;
    il_error                       error;
};

static struct campus_app *
app_of(const struct http_request *r)
{
    return http_app_state(r->server, &campus_http_app);
}

/* ---- on a thread of the pool ----------------------------------------------------------------- */

static void
count(struct http_request *r, const struct work *w)
{
    int64_t permille = 0;

    for (size_t i = 0; i < CAMPUS_RACE_COUNT; i++) {
        if (w->call.n_races[i] > 0)
            http_app_count(r->server, &campus_http_app, CAMPUS_METRIC_RACES, i, w->call.n_races[i]);
    }
    if (w->op->fn == campus_finalize && w->status == IL_OK &&
        campus_null_deltas(w->call.db, &permille, NULL) == IL_OK)
        http_app_gauge(r->server, &campus_http_app, CAMPUS_METRIC_NULLS, 0, permille);
}

static void
do_work(struct http_request *r)
{
    struct work *w = r->state;

    w->call.mem         = r->mem;
    w->call.store       = r->server->h;
    w->call.tenant      = r->caller->tenant;
    w->call.now_ms      = il__clock_wall_ms();
    w->call.deadline_ms = campus_deadline(http_request_left_ms(r));
    w->call.db          = app_of(r)->db;
    w->status           = w->op->fn(&w->call, &w->in, &w->out, &w->error);
    count(r, w);
    r->mem = w->call.mem;
}

/* ---- on the loop ----------------------------------------------------------------------------- */

/* False: answered. */
static bool
worked(struct http_request *r)
{
    const struct work *w = r->state;

    if (w->status == IL_OK)
        return true;
    if (w->call.code != CAMPUS_OK)
        http_fail(r, campus_code_http(w->call.code), campus_code_name(w->call.code),
                  campus_http_app.name, NULL, "%s", w->error.message);
    else if (w->status == IL_INVAL)
        http_fail(r, 400, il_status_name(IL_INVAL), campus_http_app.name, NULL, "%s",
                  w->error.message);
    else
        http_fail_data(r, &w->error);
    return false;
}

static void
say(struct http_request *r)
{
    const struct work        *w    = r->state;
    const struct campus_page *page = &w->out.page;

    if (!worked(r))
        return;
    if (w->op->is_page)
        http_say_page(r, w->op->out, page->items, page->bytes, page->n, page->next);
    else
        http_say(r, (r->route->flags & HTTP_CREATES) != 0 ? 201 : 200, w->op->out, &w->out);
}

static const struct campus_operation *
operation_of(const struct http_request *r)
{
    size_t i = 0;

    while (i < CAMPUS_OP_COUNT && strcmp(campus_operations[i].id, r->route->id) != 0)
        i++;
    CHECK(i < CAMPUS_OP_COUNT); /* they are of the same table */
    return &campus_operations[i];
}

/* Fill the inputs; false: answered. */
static bool
take_inputs(struct http_request *r, struct work *w)
{
    const char *name;
    size_t      n = 0;

    for (size_t i = 0; (name = http_route_arg(r->route->path, i, &n)) != NULL; i++)
        *campus_in_member(&w->in, name, n) = r->args[i];
    w->call.id = http_new_id(r, 0);
    return w->call.id != NULL && (r->route->query == NULL || http_take_query(r, &w->in)) &&
           (r->route->body == NULL || http_take_body(r, &w->in));
}

static void
handle(struct http_request *r)
{
    struct work *w = http_calloc(r, sizeof *w);

    if (w == NULL)
        return;
    w->op    = operation_of(r);
    r->state = w;
    if (take_inputs(r, w))
        http_pool(r, do_work, say);
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Users, tournaments and bookings are rows of tables: no prefix says which a key may use. */
const struct http_route campus_routes[CAMPUS_OP_COUNT] = {
#define OP(id_, method_, path_, permission_, flags_, in_, out_, fn_, example_, summary_) \
    { .method     = method_,                                                             \
      .path       = path_,                                                               \
      .permission = { HTTP_MAY_##permission_, HTTP_NAMES_ALL },                          \
      .id         = "campus_" #id_,                                                      \
      .fn         = handle,                                                              \
      .query      = ((flags_)&HTTP_PAGE) != 0 ? &campus_in_page : NULL,                  \
      .body       = CAMPUS_IN_##in_,                                                     \
      .answer     = &campus_out_##out_,                                                  \
      .flags      = flags_,                                                              \
      .example    = example_,                                                            \
      .summary    = summary_ },
#include "apps/campus/operations.def"
#undef OP
};
