/*
 * admin.c: tenants, the audit log and forced releases over HTTP. For API keys see admin_keys.c.
 *
 * Each action takes three steps: an errand performs it, a second errand records it (audit.c), then
 * the request is answered.
 */
#include "http/admin.h"

#include <stdio.h>

#include "base/error.h"
#include "base/parse.h"
#include "http/audit.h"
#include "http/auth.h"
#include "http/handler.h"
#include "http/server.h"

/* The text of a failure of the data store goes to the log for the operator, not to the caller. */
void
http_fail_data(struct http_request *r, const il_error *err)
{
    int status = il_status_http(err->status);

    if (err->status == IL_DUPLICATE)
        http_fail(r, 409, "ALREADY_EXISTS", "auth", NULL, "%s", err->message);
    else if (err->status == IL_NOT_FOUND)
        http_fail(r, 404, il_status_name(IL_NOT_FOUND), "request", NULL, "%s", err->message);
    else
        http_fail(r, status, il_status_name(err->status), "auth", NULL, "%s",
                  status < 500 ? err->message : il_status_text(err->status));
}

/* ---- which tenants a caller covers ----------------------------------------------------------- */

bool
http_admin_narrow(struct http_request *r, const char **tenant)
{
    if (http_may_reach(r->caller, NULL))
        return true;
    if (*tenant == NULL)
        *tenant = r->caller->tenant;
    if (http_may_reach(r->caller, *tenant))
        return true;
    http_refuse(r, "{\"role\":\"admin\"}", "only keys with the role admin can see other tenants");
    return false;
}

/* ---- tenants --------------------------------------------------------------------------------- */

struct tenant_work {
    struct il__data_tenant  tenant;
    struct http_page_in     page;
    il_status               status;
    il_error                error;
    const char             *action;
    struct il__data_tenant *rows;
    size_t                  n;
    void                  **mem;
    bool                    nomem;
};

static struct tenant_work *
tenant_work(struct http_request *r)
{
    struct tenant_work *w = http_calloc(r, sizeof *w);

    if (w == NULL)
        return NULL;
    w->mem   = &r->mem;
    r->state = w;
    return w;
}

static void
copy_tenant(void *cookie, const struct il__data_tenant *t)
{
    struct tenant_work *w = cookie;

    w->tenant      = *t;
    w->tenant.id   = il__arena_strdup(w->mem, t->id);
    w->tenant.name = il__arena_strdup(w->mem, t->name);
    w->nomem       = w->tenant.id == NULL || w->tenant.name == NULL;
}

static void
answer_tenant(struct http_request *r, int status)
{
    struct tenant_work *w = r->state;

    if (w->status != IL_OK)
        http_fail_data(r, &w->error);
    else if (w->nomem)
        http_fail_nomem(r);
    else
        http_say(r, status, &http_out_tenant, &w->tenant);
}

static void
tenant_created(struct http_request *r)
{
    answer_tenant(r, 201);
}

static void
tenant_changed(struct http_request *r)
{
    answer_tenant(r, 200);
}

static void
audit_tenant(struct http_request *r, http_fn *then)
{
    struct tenant_work *w = r->state;

    http_audit(r,
               &(struct http_action){ .tenant  = w->tenant.id,
                                      .action  = w->action,
                                      .what    = w->tenant.id,
                                      .outcome = il_status_name(w->status) },
               then);
}

static void
do_create(struct http_request *r)
{
    struct tenant_work *w = r->state;

    w->status = il__data_tenant_create(r->server->data, &w->tenant, &w->error);
    if (w->status == IL_OK)
        w->status = il__data_tenant_get(r->server->data, w->tenant.id, copy_tenant, w, &w->error);
}

static void
did_create(struct http_request *r)
{
    const struct tenant_work *w = r->state;

    if (w->status == IL_INVAL)
        answer_tenant(r, 201); /* nothing was tried */
    else
        audit_tenant(r, tenant_created);
}

void
http_admin_tenant_create(struct http_request *r)
{
    struct tenant_work *w = tenant_work(r);

    if (w == NULL || !http_take_body(r, &w->tenant))
        return;
    if (!http_may_reach(r->caller, w->tenant.id)) {
        http_refuse(r, "{\"role\":\"admin\"}", "only keys with the role admin can create tenants");
        return;
    }
    if (w->tenant.name == NULL || w->tenant.name[0] == '\0')
        w->tenant.name = w->tenant.id;
    w->action = "tenant.create";
    http_errand(r, do_create, did_create);
}

static void
do_get(struct http_request *r)
{
    struct tenant_work *w = r->state;

    if (http_may_reach(r->caller, r->args[0]))
        w->status = il__data_tenant_get(r->server->data, r->args[0], copy_tenant, w, &w->error);
    else /* as if it did not exist */
        w->status = il__error_set(&w->error, IL_NOT_FOUND, "no such tenant: %s", r->args[0]);
}

void
http_admin_tenant_get(struct http_request *r)
{
    if (tenant_work(r) != NULL)
        http_errand(r, do_get, tenant_changed);
}

static void
do_set(struct http_request *r)
{
    struct tenant_work *w = r->state;

    if (http_may_reach(r->caller, r->args[0]))
        w->status = il__data_tenant_set(r->server->data, &w->tenant, copy_tenant, w, &w->error);
    else /* as if it did not exist */
        w->status = il__error_set(&w->error, IL_NOT_FOUND, "no such tenant: %s", r->args[0]);
}

static void
did_set(struct http_request *r)
{
    const struct tenant_work *w = r->state;

    if (w->status == IL_INVAL || w->status == IL_NOT_FOUND)
        answer_tenant(r, 200); /* nothing was tried */
    else
        audit_tenant(r, tenant_changed);
}

/* Only the fields of the body are written, so that concurrent changes of others stay. */
void
http_admin_tenant_set(struct http_request *r)
{
    struct tenant_work *w = tenant_work(r);

    if (w == NULL)
        return;
    w->tenant.limits = il__data_limits_keep;
    if (!http_take_body(r, &w->tenant))
        return;
    w->tenant.id = r->args[0];
    w->action    = "tenant.set";
    http_errand(r, do_set, did_set);
}

static void
add_tenant(void *cookie, const struct il__data_tenant *t)
{
    struct tenant_work *w = cookie;

    copy_tenant(w, t);
    if (!w->nomem)
        w->rows[w->n++] = w->tenant;
}

static void
do_list(struct http_request *r)
{
    struct tenant_work *w = r->state;

    if (http_may_reach(r->caller, NULL))
        w->status = il__data_tenant_list(r->server->data, w->page.cursor, w->page.limit + 1,
                                         add_tenant, w, &w->error);
    else
        w->status =
            il__data_tenant_get(r->server->data, r->caller->tenant, add_tenant, w, &w->error);
}

static void
did_list(struct http_request *r)
{
    struct tenant_work *w    = r->state;
    size_t              n    = MIN(w->n, w->page.limit);
    const char         *next = w->n > n ? w->rows[n - 1].id : NULL;

    if (w->status != IL_OK)
        http_fail_data(r, &w->error);
    else
        http_say_page(r, &http_out_tenant, w->rows, sizeof *w->rows, n, next);
}

void *
http_page_rows(struct http_request *r, struct http_page_in *page, size_t n_bytes)
{
    if (page->limit == 0)
        page->limit = HTTP_PAGE_DEFAULT;
    return http_calloc(r, (page->limit + 1) * n_bytes);
}

void
http_admin_tenant_list(struct http_request *r)
{
    struct tenant_work *w = tenant_work(r);

    if (w == NULL || !http_take_query(r, &w->page))
        return;
    w->rows = http_page_rows(r, &w->page, sizeof *w->rows);
    if (w->rows != NULL)
        http_errand(r, do_list, did_list);
}

/* ---- audit ----------------------------------------------------------------------------------- */

struct audit_work {
    struct http_page_in     page;
    uint64_t                before;
    il_status               status;
    il_error                error;
    struct http_action_out *rows;
    size_t                  n;
    void                  **mem;
};

static void
add_action(void *cookie, const struct il__data_action *a)
{
    struct audit_work *w     = cookie;
    const char        *in[7] = {
               a->tenant, a->who, a->action, a->what, a->reason, a->outcome, a->details
    };
    struct http_action_out row   = { .seq = a->seq, .at_ms = a->at_ms };
    const char           **out[] = { &row.tenant, &row.who,     &row.action, &row.what,
                                     &row.reason, &row.outcome, &row.details };

    for (size_t i = 0; i < ARRAY_LEN(in); i++) {
        *out[i] = il__arena_strdup(w->mem, in[i] != NULL ? in[i] : "");
        if (*out[i] == NULL)
            return;
    }
    w->rows[w->n++] = row;
}

static void
do_audit(struct http_request *r)
{
    struct audit_work *w = r->state;

    w->status = il__data_audit_list(r->server->data, w->page.tenant, w->page.action, w->before,
                                    w->page.limit + 1, add_action, w, &w->error);
}

/* Hide actions on names outside the caller's prefix. Returns how many of the n rows remain. */
static size_t
within(const struct http_request *r, struct http_action_out *rows, size_t n)
{
    size_t n_kept = 0;

    for (size_t i = 0; i < n; i++)
        if (http_may_see(r, rows[i].what))
            rows[n_kept++] = rows[i];
    return n_kept;
}

/* The cursor is the last row examined, shown or not, so a page may be short without being the
 * last. */
static void
did_audit(struct http_request *r)
{
    struct audit_work *w    = r->state;
    size_t             n    = MIN(w->n, w->page.limit);
    bool               more = w->n > n;
    char               next[24];

    if (w->status != IL_OK) {
        http_fail_data(r, &w->error);
        return;
    }
    if (more)
        /* it fits */
        (void)snprintf(next, sizeof next, "%llu", (unsigned long long)w->rows[n - 1].seq);
    n = within(r, w->rows, n);
    http_say_page(r, &http_out_action, w->rows, sizeof *w->rows, n, more ? next : NULL);
}

/* Admins see actions on all tenants, other callers only those on their own tenant. */
void
http_admin_audit(struct http_request *r)
{
    struct audit_work *w = http_calloc(r, sizeof *w);

    if (w == NULL)
        return;
    w->mem = &r->mem;
    if (!http_take_query(r, &w->page))
        return;
    r->state = w;
    if (!http_admin_narrow(r, &w->page.tenant))
        return;
    if (w->page.cursor != NULL && !il__parse_u64(w->page.cursor, INT64_MAX, &w->before)) {
        http_fail(r, 400, il_status_name(IL_INVAL), "request", NULL,
                  "field 'cursor': invalid cursor");
        return;
    }
    w->rows = http_page_rows(r, &w->page, sizeof *w->rows);
    if (w->rows != NULL)
        http_errand(r, do_audit, did_audit);
}

/* ---- forced release of a pipeline's lock ----------------------------------------------------- */

struct force_work {
    struct http_admin_break in;
    struct http_broken      out;
    const char             *key;
    il_op                   ops[2]; /* first lookup: the holder and its run; then the action */
};

static void
forced(struct http_request *r)
{
    struct force_work *w      = r->state;
    const il_op       *break_ = &r->ops[r->n_ops - 1];

    if (break_->status != IL_OK) {
        http_fail_op(r, break_, NULL);
        return;
    }
    w->out.broken  = 1;
    w->out.closing = w->in.now == 0 && break_->out.fence == break_->fence;
    http_say(r, 200, &http_out_broken, &w->out);
}

static void
found_for_force(struct http_request *r)
{
    struct force_work   *w     = r->state;
    const il_op         *get   = &r->ops[0];
    const il_op         *runs  = &r->ops[1];
    const il_lease_info *lease = get->out.n_items > 0 ? get->out.items : NULL;
    size_t               n     = 0;

    if (get->status != IL_OK || lease == NULL) {
        http_fail_op(r, get, NULL);
        return;
    }
    w->out.fence  = lease->fence;
    w->out.holder = il__arena_strdup(&r->mem, lease->holder);
    w->out.run    = runs->status == IL_OK && runs->out.n_runs > 0
                        ? il__arena_strdup(&r->mem, runs->out.runs->id)
                        : NULL;
    il_op_release(&r->ops[0]);
    il_op_release(&r->ops[1]);
    if (w->out.run != NULL)
        w->ops[n++] = (il_op){ .type   = IL_OP_RUN_CANCEL,
                               .tenant = w->out.tenant,
                               .in.run = { .id = w->out.run, .error = w->in.reason } };
    w->ops[n++] = (il_op){ .type    = IL_OP_BREAK,
                           .tenant  = w->out.tenant,
                           .key     = w->key,
                           .fence   = w->out.fence,
                           .holder  = w->out.holder, /* names a lock without a fence */
                           .flags   = w->in.now != 0 ? IL_BREAK_NOW : 0,
                           .in.lock = { .reason = w->in.reason } };
    http_do_ops(r, w->ops, n, 0, forced);
}

void
http_admin_lock_break(struct http_request *r)
{
    struct force_work *w   = http_calloc(r, sizeof *w);
    size_t             n   = strlen(r->args[1]) + sizeof "pipeline:";
    char              *key = w != NULL ? http_calloc(r, n) : NULL;

    if (key == NULL)
        return;
    w->key = key;
    (void)snprintf(key, n, "pipeline:%s", r->args[1]); /* there is room */
    if (!http_take_body(r, &w->in))
        return;
    if (!http_may_reach(r->caller, r->args[0]) || il_check_tenant(r->args[0], NULL) != IL_OK) {
        http_fail_op(r, &(il_op){ .type = IL_OP_GET, .key = key, .status = IL_NOT_HELD }, NULL);
        return;
    }
    w->out    = (struct http_broken){ .tenant = r->args[0], .pipeline = r->args[1], .key = key };
    r->state  = w;
    w->ops[0] = (il_op){ .type = IL_OP_GET, .tenant = r->args[0], .key = key };
    w->ops[1] = (il_op){ .type    = IL_OP_RUN_LIST,
                         .tenant  = r->args[0],
                         .key     = key,
                         .in.list = { .limit = 1, .states = 1U << IL_RUN_RUNNING } };
    http_do_ops(r, w->ops, 2, 0, found_for_force);
}
