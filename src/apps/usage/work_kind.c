/*
 * work_kind.c: rebuilds as a kind of work (apps/work/work.h). Each tenant has one subject, so at
 * most one rebuild runs at a time. Now and then the executor also deletes days beyond their
 * retention.
 */
#include <stdio.h>

#include "apps/usage/serve.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "http/server.h"

#define PURGE_NS (INT64_C(3600) * 1000 * IL__NS_PER_MS)
#define PURGE_ROWS 1000
#define KEEP_MS (INT64_C(7) * 86400000) /* of a run in the store */
#define WINDOW 8                        /* days that a rebuild has under way at the same time */

/* ---- what exists ----------------------------------------------------------------------------- */

struct subject {
    atomic_uint n_refs;
    char        tenant[IL_TENANT_BYTES_MAX + 1];
};

static void *
find(void *cookie UNUSED, const char *tenant, const char *name)
{
    struct subject *s = strcmp(name, USAGE_REBUILD) == 0 ? il__calloc(1, sizeof *s) : NULL;

    if (s == NULL)
        return NULL;
    atomic_init(&s->n_refs, 1);
    (void)snprintf(s->tenant, sizeof s->tenant, "%s", tenant);
    return s;
}

static void *
ref(void *subject)
{
    atomic_fetch_add(&((struct subject *)subject)->n_refs, 1);
    return subject;
}

static void
drop(void *subject)
{
    if (atomic_fetch_sub(&((struct subject *)subject)->n_refs, 1) == 1)
        il__free(subject);
}

static void
plan(void *cookie UNUSED, const void *subject, struct work_plan *ret)
{
    *ret = (struct work_plan){ .tenant  = ((const struct subject *)subject)->tenant,
                               .name    = USAGE_REBUILD,
                               .version = "" };
}

static void
tenants(void *cookie, bool (*each)(void *each_cookie, const char *tenant), void *each_cookie)
{
    struct usage_app *app  = cookie;
    bool              more = true;

    il__mutex_lock(&app->mutex);
    for (size_t i = 0; i < app->n_tenants && more; i++)
        more = each(each_cookie, app->tenants[i]);
    il__mutex_unlock(&app->mutex);
}

/* ---- the tenants ----------------------------------------------------------------------------- */

il_status
usage_tenants_read(struct usage_app *app, il_error *reterr)
{
    void        *mem     = NULL;
    const char **tenants = NULL;
    size_t       n       = 0;
    il_status    st = il__data_tenant_ids(app->server->data, SIZE_MAX, &mem, &tenants, &n, reterr);

    if (st == IL_OK) {
        il__mutex_lock(&app->mutex);
        void *before     = app->tenants_mem;
        app->tenants_mem = mem;
        app->tenants     = tenants;
        app->n_tenants   = n;
        il__mutex_unlock(&app->mutex);
        mem = before;
    }
    il__arena_free(&mem);
    return st;
}

/* ---- starting -------------------------------------------------------------------------------- */

il_status
usage_rebuild_op(const char *tenant, const char *id, const char *by,
                 const struct usage_rebuild *what, void **mem, il_op *op, il_error *reterr)
{
    char    from[IL__DATE_TEXT_BYTES], to[IL__DATE_TEXT_BYTES];
    json_t *parameters = json_pack("{s:s, s:s, s:b}", "startDate", il__date_text(what->from, from),
                                   "endDate", il__date_text(what->to, to), "force", what->force);
    const struct work_start s = { .tenant     = tenant,
                                  .class      = USAGE_CLASS,
                                  .name       = USAGE_REBUILD,
                                  .id         = id,
                                  .by         = by,
                                  .type       = "api",
                                  .parameters = parameters,
                                  .policy     = IL_POLICY_REJECT,
                                  .keep_ms    = KEEP_MS };

    if (parameters == NULL)
        return il__error_nomem(reterr);
    il_status st = work_start_op(&s, mem, op, reterr);
    json_decref(parameters);
    return st;
}

/* ---- executing ------------------------------------------------------------------------------- */

struct rebuilding {
    struct work_run *run;
    usage_date       dates[USAGE_DAYS_MAX];
    size_t           n, n_failed;
    char             text[WORK_TEXT_BYTES];
};

static bool
should_stop(void *cookie)
{
    return work_run_should_stop(((const struct rebuilding *)cookie)->run);
}

static void
did_day(void *cookie, size_t i, const struct usage_result *result, size_t n_done)
{
    struct rebuilding *r = cookie;
    char               date[IL__DATE_TEXT_BYTES], stage[64];

    il__date_text(r->dates[i], date);
    if (result->status != IL_OK) {
        work_run_say(r->run, "%s: %s", date, result->text);
        if (r->n_failed++ == 0)
            (void)snprintf(r->text, sizeof r->text, "%s: %s", date, result->text);
    }
    (void)snprintf(stage, sizeof stage, "%zu of %zu days", n_done, r->n);
    work_run_stage(r->run, stage, (int32_t)(n_done * 100 / r->n));
}

static bool
read_parameters(const json_t *from, struct usage_rebuild *ret)
{
    const char *start = json_string_value(json_object_get(from, "startDate"));
    const char *end   = json_string_value(json_object_get(from, "endDate"));

    ret->force = json_is_true(json_object_get(from, "force"));
    return start != NULL && end != NULL && usage_date_parse(start, &ret->from) &&
           usage_date_parse(end, &ret->to) && ret->from <= ret->to &&
           ret->to - ret->from < USAGE_DAYS_MAX;
}

/* Days that are fresh are left alone, unless it is forced. */
static bool
execute(struct work_run *run)
{
    const struct usage_app *app = run->cookie;
    struct rebuilding       r   = { .run = run };
    struct usage_rebuild    what;

    if (!read_parameters(run->parameters, &what)) {
        work_run_fail(run, false, "invalid parameters");
        return false;
    }
    for (usage_date d = what.from; d <= what.to; d++)
        r.dates[r.n++] = d;
    size_t n = usage_join_many(app->usage,
                               &(struct usage_many){ .tenant = run->tenant,
                                                     .dates  = r.dates,
                                                     .n      = r.n,
                                                     .way = what.force ? USAGE_FORCE : USAGE_TAKE,
                                                     .silent      = true,
                                                     .patient     = true,
                                                     .window      = WINDOW,
                                                     .until_ns    = INT64_MAX,
                                                     .should_stop = should_stop,
                                                     .each        = did_day,
                                                     .cookie      = &r });
    if (n < r.n && !work_run_should_stop(run))
        work_run_fail(run, false, "out of memory");
    else if (r.n_failed > 0)
        work_run_fail(run, false, r.text);
    return n == r.n && r.n_failed == 0;
}

/* ---- now and then ---------------------------------------------------------------------------- */

/* The marker goes with the row, or a copy of the row would live on. */
static void
forget_marker(void *cookie, const char *tenant, const char *date)
{
    const struct usage_app *app = cookie;
    char                    key[USAGE_KEY_BYTES];
    il_op                   op = { .type = IL_OP_CACHE_DROP, .tenant = tenant, .key = key };

    (void)snprintf(key, sizeof key, USAGE_KEY "%s", date);
    IGNORE(il_apply(app->server->h, &op, 1, NULL)); /* then the copies age */
    il_op_release(&op);
}

static void
purge(struct usage_app *app)
{
    int64_t  now_ns = il__clock_boot_ns(), n = PURGE_ROWS;
    il_error err = { 0 };

    if (app->setup.keep_days == 0 || now_ns < app->purge_ns)
        return;
    app->purge_ns     = now_ns + PURGE_NS;
    usage_date before = usage_date_of(usage_now_ms(app->usage)) - (usage_date)app->setup.keep_days;
    while (n == PURGE_ROWS && before > 0 && !work_is_stopping(app->work)) {
        if (usage_row_purge(app->setup.tables, before, PURGE_ROWS, forget_marker, app, &n, &err) !=
            IL_OK) {
            usage_app_trouble(app, "cannot delete old days", err.message);
            return;
        }
    }
}

static void
tidy(void *cookie)
{
    il_error err = { 0 };

    if (usage_tenants_read(cookie, &err) != IL_OK)
        usage_app_trouble(cookie, "cannot list the tenants", err.message);
    purge(cookie);
}

static void
note(void *cookie, const struct work_note *n)
{
    if (n->event == WORK_EVENT_trouble)
        usage_app_trouble(cookie, "rebuilds", n->text);
}

const struct work_kind usage_kind = {
    .class    = USAGE_CLASS,
    .presence = "interlock.usage",
    .find     = find,
    .ref      = ref,
    .drop     = drop,
    .plan     = plan,
    .tenants  = tenants,
    .execute  = execute,
    .tidy     = tidy,
    .note     = note,
};
