/*
 * routes_lock.c: GET /pipelines/locks: pipeline locks with their age and the share of
 * lock_timeout_seconds used.
 */
#include <stdio.h>

#include "apps/runner/serve.h"

#define LOCKS_DEFAULT 100
#define SHARE_BYTES 24

struct locks_work {
    const il_lease_info    *leases;
    size_t                  n;
    il_op                  *ops; /* the running run of each */
    il_op                   list;
    struct runner_lock_out *out;
};

static void
end_locks(struct http_request *r)
{
    struct locks_work *w = r->ended_cookie;

    il_op_release(&w->list);
}

/* 0.333 */
static const char *
share_text(struct http_request *r, int64_t permille)
{
    char *text = http_alloc(r, SHARE_BYTES);

    if (text != NULL)
        (void)snprintf(text, SHARE_BYTES, "%lld.%03d", (long long)(permille / 1000),
                       (int)(permille % 1000)); /* the buffer fits */
    return text;
}

static bool
show(struct http_request *r, const il_lease_info *l, const il_run_info *run,
     struct runner_lock_out *ret)
{
    const struct runner_app *app  = runner_app_of(r);
    const char              *name = runner_pipeline_of_key(l->key);
    struct pipeline *p = name != NULL ? il__catalogue_get(app->catalogue, l->tenant, name) : NULL;
    int64_t          lock_ms = runner_lock_timeout_ms(app->runner, p);
    int64_t          used    = MAX(l->age_ms, 0) * 1000 / lock_ms;
    int64_t          alert   = app->setup.options.alert_permille;
    bool             own     = run != NULL && run->fence == l->fence;

    il__pipeline_unref(p);

    *ret = (struct runner_lock_out){
        .id            = own ? run->id : l->holder, /* a classic client's value is its run's id */
        .pipeline      = runner_pipeline_of_key(l->key),
        .tenant        = l->tenant,
        .by            = own ? run->by : NULL,
        .holder        = l->holder,
        .state         = il_lease_state_name(l->state),
        .timeout_used  = share_text(r, used),
        .timeout_ms    = lock_ms,
        .locked_at_ms  = l->acquired_at_ms,
        .expires_at_ms = l->expires_at_ms,
        .age_ms        = l->age_ms,
        .ttl_ms        = l->ttl_ms,
        .renewed_ms    = l->renewed_ms,
        .remaining_ms  = l->remaining_ms,
        .fence         = l->fence,
        .expiring      = alert > 0 && used > alert,
        .unrenewed = l->ttl_ms > 0 && l->renewed_ms > l->ttl_ms / 1000 * WORK_UNRENEWED_PERMILLE,
    };
    return ret->timeout_used != NULL && ret->pipeline != NULL;
}

/* Unrenewed leases first, then those held for longer than expected, then the others; each by
 * name. */
static int
by_urgency(const void *a, const void *b)
{
    const struct runner_lock_out *x = a, *y = b;

    if (x->unrenewed != y->unrenewed)
        return x->unrenewed != 0 ? -1 : 1;
    if (x->expiring != y->expiring)
        return x->expiring != 0 ? -1 : 1;
    return strcmp(x->pipeline, y->pipeline);
}

static void
answer(struct http_request *r)
{
    struct locks_work *w = r->ended_cookie;

    for (size_t i = 0; i < w->n; i++) {
        const il_op *op = &w->ops[i];
        if (op->status != IL_OK) {
            http_fail_op(r, op, runner_http_app.name);
            return;
        }
        if (!show(r, &w->leases[i], op->out.n_runs > 0 ? &op->out.runs[0] : NULL, &w->out[i])) {
            http_fail_nomem(r);
            return;
        }
    }
    if (w->n > 1)
        qsort(w->out, w->n, sizeof *w->out, by_urgency);
    http_say_page(r, &runner_out_lock, w->out, sizeof *w->out, w->n, w->list.out.next);
}

static void
listed(struct http_request *r)
{
    struct locks_work *w = r->ended_cookie;

    if (w->list.status != IL_OK) {
        http_fail_op(r, &w->list, runner_http_app.name);
        return;
    }
    w->leases = w->list.out.items;
    w->n      = w->list.out.n_items;
    w->out    = http_calloc(r, (w->n + 1) * sizeof *w->out);
    if (w->out == NULL)
        return;
    if (w->n == 0) {
        answer(r);
        return;
    }
    w->ops = http_calloc(r, w->n * sizeof *w->ops);
    if (w->ops == NULL)
        return;
    for (size_t i = 0; i < w->n; i++)
        w->ops[i] = (il_op){ .type    = IL_OP_RUN_LIST,
                             .key     = w->leases[i].key,
                             .in.list = { .limit = 1, .states = 1U << IL_RUN_RUNNING } };
    http_do_ops(r, w->ops, w->n, 0, answer);
}

void
runner_http_pipeline_locks(struct http_request *r)
{
    struct runner_page_in in = { .limit = 0 };
    struct locks_work    *w  = http_calloc(r, sizeof *w);

    if (w == NULL)
        return;
    if (!http_take_query(r, &in))
        return;
    w->list         = (il_op){ .type    = IL_OP_LIST,
                               .in.list = { .prefix = PIPELINE_KEY_PREFIX,
                                            .cursor = in.cursor,
                                            .limit  = in.limit != 0 ? in.limit : LOCKS_DEFAULT } };
    r->ended        = end_locks;
    r->ended_cookie = w;
    http_do_ops(r, &w->list, 1, 0, listed);
}
