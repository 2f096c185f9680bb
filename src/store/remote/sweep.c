/*
 * sweep.c: one bounded recovery pass, composed of several parts. Each part is a separate,
 * idempotent request, so the parts that an interrupted sweep has completed stay done.
 */
#include <limits.h>

#include "base/error.h"
#include "core/limits.h"
#include "core/op.h"
#include "store/remote/remote.h"

#define STEPS_MAX 10 /* of one part of a sweep */

static il_status
no_memory(il_error *reterr)
{
    return il__error_set(reterr, IL_NOMEM, "out of memory for a sweep");
}

static void
add_counts(il_op *op, const json_t *head)
{
    const json_t *n = json_object_get(head, "sweep");
    il_sweep_out *t = &op->out.sweep;

    t->n_expired += (uint32_t)il__remote_number(n, "n_expired");
    t->n_offered += (uint32_t)il__remote_number(n, "n_offered");
    t->n_dropped += (uint32_t)il__remote_number(n, "n_dropped");
    t->n_runs += (uint32_t)il__remote_number(n, "n_runs");
    t->n_jobs += (uint32_t)il__remote_number(n, "n_jobs");
    t->n_purged += (uint32_t)il__remote_number(n, "n_purged");
    op->out.flags |= (uint32_t)il__remote_number(head, "flags") & IL_OUT_MORE;
}

static il_status
ask_part(struct remote_store *s, il_op *op, const char *verb, bool *again, il_error *reterr)
{
    struct remote_request AUTO_REQUEST r = { 0 };
    struct remote_answer AUTO_ANSWER   a = { 0 };

    il__remote_begin(&r, verb);
    il__remote_put_number(&r, "limit", op->in.list.limit);
    if (*again)
        il__remote_put_number(&r, "again", 1);
    if (!il__remote_end(&r))
        return no_memory(reterr);
    il_status st = il__remote_ask_sure(s, &r, false, &a, reterr);
    if (st == IL_OK || st == IL_CORRUPT)
        add_counts(op, a.reply.head);
    *again = st == IL_OK && il__remote_number(a.reply.head, "again") != 0;
    return st;
}

/* A part with much work does it in steps, so that others get their turn in between. */
static il_status
sweep_part(struct remote_store *s, il_op *op, const char *verb, il_error *reterr)
{
    bool      again = false;
    il_status st    = ask_part(s, op, verb, &again, reterr);

    for (unsigned i = 1; again && i < STEPS_MAX; i++)
        st = ask_part(s, op, verb, &again, reterr);
    return st;
}

/* ---- deadlocks ------------------------------------------------------------------------------- */

/* Search all of a tenant's waiters that could be part of a cycle at once; after each cycle that was
 * broken, search all of them again. */
static il_status
sweep_tenant(struct remote_store *s, il_op *op, const char *tenant, const json_t *holders,
             il_error *reterr)
{
    size_t       n     = json_array_size(holders);
    const char **names = il__calloc(MAX(n, 1), sizeof *names);
    size_t       n_ok  = 0;
    bool         found = true;
    il_status    st    = IL_OK;

    if (names == NULL)
        return no_memory(reterr);
    for (size_t i = 0; i < n; i++) {
        const char *name = json_string_value(json_array_get(holders, i));
        if (name != NULL)
            names[n_ok++] = name;
    }
    while (st == IL_OK && n_ok > 0 && found) {
        struct il__buf AUTO_BUF why    = { .n_bytes_max = 4096 };
        struct remote_budget    all    = { .n_asks = UINT_MAX };
        uint64_t                victim = 0;
        st = il__remote_search(s, tenant, names, n_ok, &all, &victim, &why, &found, reterr);
        op->out.sweep.n_deadlocks += found;
    }
    il__free(names);
    return st;
}

static il_status
sweep_deadlocks(struct remote_store *s, il_op *op, il_error *reterr)
{
    char tenant[IL_TENANT_BYTES_MAX + 1] = "";

    for (;;) {
        struct remote_request AUTO_REQUEST r = { 0 };
        struct remote_answer AUTO_ANSWER   a = { 0 };
        il__remote_begin(&r, "x_entangled");
        il__remote_put_text(&r, "tenant", tenant);
        if (!il__remote_end(&r))
            return no_memory(reterr);
        il_status     st      = il__remote_ask_sure(s, &r, true, &a, reterr);
        const char   *found   = st == IL_OK ? il__remote_text(a.reply.head, "tenant") : "";
        const json_t *holders = st == IL_OK ? json_object_get(a.reply.head, "holders") : NULL;
        if (st != IL_OK || json_array_size(holders) == 0 || strlen(found) > IL_TENANT_BYTES_MAX)
            return st;
        st = sweep_tenant(s, op, found, holders, reterr);
        if (st != IL_OK)
            return st;
        memcpy(tenant, found, strlen(found) + 1);
    }
}

/* ---- schedules ------------------------------------------------------------------------------- */

static il_status
sweep_ticks(struct remote_store *s, il_op *op, il_error *reterr)
{
    struct remote_request AUTO_REQUEST r = { 0 };
    struct remote_answer AUTO_ANSWER   a = { 0 };
    uint32_t                           n_pushed;
    bool                               more;

    il__remote_begin(&r, "x_due");
    il__remote_put_number(&r, "limit", op->in.list.limit);
    if (!il__remote_end(&r))
        return no_memory(reterr);
    il_status st = il__remote_ask_sure(s, &r, true, &a, reterr);
    if (st == IL_OK)
        st = il__remote_tick(s, &a.reply, op->in.list.limit, &n_pushed, &more, reterr);
    if (st != IL_OK)
        return st;
    op->out.sweep.n_ticks += n_pushed;
    if (more)
        op->out.flags |= IL_OUT_MORE;
    op->out.flags |= (uint32_t)il__remote_number(a.reply.head, "flags") & IL_OUT_MORE;
    return IL_OK;
}

/* Damaged rows do not stop the other parts: the op reports the first of them at the end. */
static il_status
pass_over(il_op *op, il_status st, const il_error *why)
{
    if (st != IL_CORRUPT)
        return st;
    if (op->status == IL_OK)
        (void)il__op_end(op, st, why->message);
    return IL_OK;
}

/* All tenants: recovery is done for the store, not for a caller. */
il_status
il__remote_sweep(struct remote_store *s, il_op *op, il_error *reterr)
{
    static const struct {
        const char *verb; /* or NULL: what the core decides, by */
        il_status (*sweep)(struct remote_store *s, il_op *op, il_error *reterr);
    } parts[] = {
        { "x_sweep_locks", NULL }, { NULL, sweep_deadlocks }, { "x_sweep_runs", NULL },
        { "x_sweep_once", NULL },  { "x_sweep_jobs", NULL },  { NULL, sweep_ticks },
        { "x_sweep_done", NULL },  { "x_sweep_cache", NULL }, { "x_sweep_history", NULL },
    };
    il_status st = IL_OK;

    op->status = IL_OK;
    for (size_t i = 0; st == IL_OK && i < ARRAY_LEN(parts); i++) {
        il_error why = { 0 };
        st           = parts[i].verb != NULL ? sweep_part(s, op, parts[i].verb, &why)
                                             : parts[i].sweep(s, op, &why);
        st           = pass_over(op, st, &why);
        if (st != IL_OK && reterr != NULL)
            *reterr = why;
    }
    return st;
}
