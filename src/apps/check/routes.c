/*
 * routes.c: the routes of invariants, and those that read. Queries run on the server's pool.
 */
#include "apps/check/serve.h"

#include <stdio.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/parse.h"
#include "http/admin.h"
#include "http/auth.h"
#include "http/list_stream.h"
#include "http/scope.h"
#include "http/server.h"

#define RESULTS_DEFAULT 20
#define CURSOR_BYTES 64

/* ---- views ----------------------------------------------------------------------------------- */

/* The texts are copied into *mem. */
static bool
show_record(void **mem, const char *tenant, const struct check_record *from, bool strict,
            struct check_result_out *ret)
{
    struct {
        const char  *from;
        const char **to;
    } texts[] = {
        { from->id, &ret->id },
        { from->name, &ret->name },
        { from->severity, &ret->severity },
        { from->outcome, &ret->outcome },
        { from->offenders, &ret->offenders },
        { from->not_needed, &ret->not_needed },
        { from->runs, &ret->runs },
        { from->error, &ret->error },
    };
    bool ok = true;
    bool counts =
        strcmp(from->severity, il__invariant_severity_name(INVARIANT_ERROR)) == 0 ||
        (strict && strcmp(from->severity, il__invariant_severity_name(INVARIANT_WARNING)) == 0);
    bool broken = strcmp(from->outcome, il__check_outcome_name(CHECK_BROKEN)) == 0;

    *ret = (struct check_result_out){ .tenant     = tenant,
                                      .flags      = counts && broken ? CHECK_FAILED : 0,
                                      .n_new      = from->n_new,
                                      .n_known    = from->n_known,
                                      .started_ms = from->started_ms,
                                      .took_ms    = from->took_ms };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        *texts[i].to = il__arena_strdup(mem, texts[i].from);
        ok           = ok && *texts[i].to != NULL;
    }
    return ok;
}

bool
il__check_result_show(struct http_request *r, const struct check_record *from, bool strict,
                      struct check_result_out *ret)
{
    return show_record(&r->mem, r->caller->tenant, from, strict, ret);
}

/* Its texts are those of the invariant. */
static struct check_out
show_check(const struct check *c)
{
    return (struct check_out){
        .tenant      = c->tenant,
        .name        = c->name,
        .severity    = il__invariant_severity_name(c->severity),
        .description = c->description,
        .connection  = c->connection,
        .schedule    = c->schedule_text,
        .zone        = c->zone->name,
        .path        = c->path,
        .error       = c->fault,
        .next_ms     = il__check_next_tick(c, il__clock_wall_ms()),
        .timeout_ms  = c->timeout_ms,
        .n_baseline  = (int64_t)c->n_baseline,
    };
}

/* Does the key cover this invariant? */
static bool
may_see(const struct http_request *r, const char *name)
{
    char key[IL_KEY_BYTES_MAX + 1];

    (void)snprintf(key, sizeof key, CHECK_CLASS ":%s", name);
#ifdef IL_MUTANT_check_prefix_ignored
    return true;
#endif
    return http_scope_has(r->caller, key);
}

/* The prefix of the names that the caller may see; NULL: none of them. */
static const char *
visible_prefix(const struct http_request *r)
{
    const char *keys = http_scope_narrow(r->caller, CHECK_CLASS ":");

    return keys != NULL ? keys + strlen(CHECK_CLASS ":") : NULL;
}

/* ---- results --------------------------------------------------------------------------------- */

/* Results of a page; one more is read, to know whether another page follows. */
struct results {
    struct http_request     *r;
    struct check_page_in     in;
    struct check_result_out *items;
    size_t                   n, n_max;
    bool                     no_memory, more;
    il_status                status;
    il_error                 error;
};

static void
take_result(void *cookie, const struct check_record *from)
{
    struct results *w = cookie;

    if (w->n == w->n_max) {
        w->more = true;
        return;
    }
    if (il__check_result_show(w->r, from, (w->in.flags & CHECK_STRICT) != 0, &w->items[w->n]))
        w->n++;
    else
        w->no_memory = true;
}

/* STARTED_MS:ID */
static bool
read_cursor(const char *text, struct check_cursor *ret)
{
    const char *colon = strchr(text, ':');
    char        digits[24];

    if (colon == NULL || (size_t)(colon - text) >= sizeof digits)
        return false;
    (void)snprintf(digits, sizeof digits, "%.*s", (int)(colon - text), text);
    uint64_t started_ms = 0;
    if (!il__parse_u64(digits, INT64_MAX, &started_ms))
        return false;
    *ret = (struct check_cursor){ (int64_t)started_ms, colon + 1 };
    return true;
}

static void
read_results(struct http_request *r)
{
    struct results     *w      = r->state;
    il_guard           *tables = il__check_app_of(r)->tables;
    struct check_cursor after  = { 0 };
    il_guard_tx_opts    opts   = IL_GUARD_TX_OPTS_INIT;
    struct check_wanted wanted = { .tenant = r->caller->tenant,
                                   .name   = w->in.name,
                                   .prefix = visible_prefix(r),
                                   .limit  = (int64_t)w->n_max + 1,
                                   .opts   = &opts };

    if (w->in.cursor != NULL && !read_cursor(w->in.cursor, &after)) {
        w->status = il__error_set(&w->error, IL_INVAL, "field 'cursor': invalid");
        return;
    }
    if (wanted.prefix == NULL)
        return; /* nothing that the caller may see */
    if (w->in.cursor != NULL)
        wanted.after = &after;
    http_bind_deadline(r, tables, &opts);
    w->status = il__check_history_list(tables, &wanted, take_result, w, &w->error);
    if (w->status == IL_OK && w->no_memory)
        w->status = il__error_nomem(&w->error);
}

/* False: answered. */
static bool
results_read(struct http_request *r)
{
    const struct results *w = r->state;

    if (w->status == IL_OK)
        return true;
    if (w->status == IL_INVAL)
        http_fail(r, 400, il_status_name(IL_INVAL), check_http_app.name, NULL, "%s",
                  w->error.message);
    else
        http_fail_data(r, &w->error);
    return false;
}

static void
say_results(struct http_request *r)
{
    const struct results *w = r->state;
    char                  next[CURSOR_BYTES];

    if (!results_read(r))
        return;
    if (w->more && w->n > 0)
        (void)snprintf(next, sizeof next, "%lld:%s", (long long)w->items[w->n - 1].started_ms,
                       w->items[w->n - 1].id);
    http_say_page(r, &il__check_result_out, w->items, sizeof *w->items, w->n,
                  w->more && w->n > 0 ? next : NULL);
}

/* NULL: answered. */
static struct results *
new_results(struct http_request *r)
{
    struct results *w = http_calloc(r, sizeof *w);

    if (w == NULL)
        return NULL;
    w->r     = r;
    r->state = w;
    return w;
}

static void
begin_results(struct http_request *r, http_fn *then)
{
    struct results *w = r->state;

    w->n_max = w->in.limit != 0 ? w->in.limit : RESULTS_DEFAULT;
    w->items = http_calloc(r, w->n_max * sizeof *w->items);
    if (w->items == NULL)
        return;
    if (il__check_app_of(r)->tables == NULL)
        then(r); /* nothing is checked here */
    else
        http_pool(r, read_results, then);
}

static void
results(struct http_request *r)
{
    struct results *w = new_results(r);

    if (w != NULL && http_take_query(r, &w->in))
        begin_results(r, say_results);
}

/* ---- one invariant --------------------------------------------------------------------------- */

static void
say_check(struct http_request *r)
{
    const struct results *w = r->state;

    if (!results_read(r))
        return;
    struct check_current       *c = il__check_app_current(il__check_app_of(r));
    const struct check_subject *s = il__check_subject_get(c, r->caller->tenant, r->args[0]);
    if (s != NULL && http_may_see(r, r->args[0])) {
        struct check_out out = show_check(s->check);
        out.results          = w->items;
        out.n_results        = w->n;
        out.has              = w->n > 0 ? CHECK_HAS_LAST : 0;
        if (w->n > 0)
            out.last = w->items[0];
        http_say(r, 200, &il__check_full_out, &out);
    } else {
        http_fail(r, 404, "CHECK_NOT_FOUND", check_http_app.name, NULL,
                  "invariant %.128s not found", r->args[0]);
    }
    il__check_current_unref(c);
}

static void
get(struct http_request *r)
{
    struct results *w = new_results(r);

    if (w == NULL)
        return;
    w->in.name = r->args[0];
    begin_results(r, say_check);
}

/* ---- all of a tenant ------------------------------------------------------------------------- */

struct last {
    void                   **mem;
    const char              *tenant;
    struct check_result_out *out;
    bool                     found, ok;
};

static void
take_last(void *cookie, const struct check_record *from)
{
    struct last *l = cookie;

    l->found = true;
    l->ok    = show_record(l->mem, l->tenant, from, false, l->out);
}

static il_status
add_check(struct http_request *r, const struct check *c, struct http_list *to)
{
    AUTO(il__arena_free) void *mem    = NULL;
    struct check_out           out    = show_check(c);
    struct last                l      = { &mem, r->caller->tenant, &out.last, .ok = true };
    il_guard_tx_opts           o      = IL_GUARD_TX_OPTS_INIT;
    il_guard                  *tables = il__check_app_of(r)->tables;
    const struct check_wanted  w = { .tenant = l.tenant, .name = c->name, .limit = 1, .opts = &o };
    il_error                   err;

    http_bind_deadline(r, tables, &o);
    il_status st = il__check_history_list(tables, &w, take_last, &l, &err);

    if (st != IL_OK || !l.ok)
        return st != IL_OK ? st : IL_NOMEM;
    out.has = l.found ? CHECK_HAS_LAST : 0;
    return http_list_add(to, &out) ? IL_OK : IL_CANCELLED;
}

static il_status
produce(struct http_request *r, struct http_list *to)
{
    const struct check_page_in *in     = r->state;
    const char                 *tenant = r->caller->tenant;
    struct check_current       *c      = il__check_app_current(il__check_app_of(r));
    const struct check_subject *end    = c->subjects + c->n;
    const struct check_subject *s =
        il__check_subject_from(c, tenant, in->cursor != NULL ? in->cursor : "", in->cursor != NULL);
    uint32_t    left = in->limit != 0 ? in->limit : CHECK_PAGE_MAX;
    const char *last = NULL;
    il_status   st   = IL_OK;

    for (; st == IL_OK && s < end && strcmp(s->check->tenant, tenant) == 0; s++) {
        if (!http_may_see(r, s->check->name))
            continue;
        if (left-- == 0) {
            http_list_next(to, last);
            break;
        }
        last = s->check->name;
        st   = add_check(r, s->check, to);
    }
    il__check_current_unref(c);
    return st;
}

static void
not_produced(struct http_request *r)
{
    il_error err = { .status = IL_STORE, .message = "cannot read the history of checks" };

    http_fail_data(r, &err);
}

static void
list(struct http_request *r)
{
    struct check_page_in *in = http_calloc(r, sizeof *in);

    if (in == NULL)
        return;
    r->state = in;
    if (!http_take_query(r, in))
        return;
    if (il__check_app_of(r)->tables != NULL)
        http_say_list(r, &il__check_out, produce, not_produced);
    else
        http_say_page(r, &il__check_out, NULL, sizeof(struct check_out), 0, NULL);
}

/* ---- the table ------------------------------------------------------------------------------- */

/* The last arguments are members of the route. */
#define ROUTE(method_, path_, role_, id_, fn_, answer_, flags_, ...)                       \
    {                                                                                      \
        .method = method_, .path = "/checks" path_,                                        \
        .permission = HTTP_ACCESS(role_, JUDGED(may_see)), .id = "check_" #id_, .fn = fn_, \
        .answer = answer_, .flags = flags_, __VA_ARGS__                                    \
    }

/* Literal paths come first, so GET /checks/results is never about an invariant of that name. */
const struct http_route il__check_routes[] = {
    ROUTE("POST", "/run", operator, run, il__check_http_run, &il__check_started_out, HTTP_ACCEPTS,
          .body = &il__check_in_run, .example = "{\"names\":[\"negative_balance\",\"stuck_jobs\"]}",
          .summary = "Check invariants now, in the background; running ones are not started again"),
    ROUTE("GET", "/results", read, results, results, &il__check_result_out, HTTP_PAGE,
          .query = &il__check_in_results, .summary = "List results of invariants, newest first"),
    ROUTE("GET", "/results/{id}", read, result, il__check_http_result, &il__check_result_out,
          HTTP_WAITS, .query = &il__check_in_result,
          .summary = "Show the result of a run; with ?wait, once the run changes"),
    ROUTE("GET", "", read, list, list, &il__check_out, HTTP_PAGE, .query = &il__check_in_page,
          .summary = "List the tenant's invariants, each with its last result"),
    ROUTE("GET", "/{name}", read, get, get, &il__check_full_out, 0,
          .summary = "Show an invariant with its newest results"),
};
