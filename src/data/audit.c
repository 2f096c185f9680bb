/*
 * audit.c: the audit log: who did what to which object, and why. Every action must be recorded,
 * whatever its texts: long texts are truncated and invalid UTF-8 is replaced, so that only a broken
 * data store can refuse an entry.
 */
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/parse.h"
#include "data/data_internal.h"

#define SHORT_BYTES_MAX 256 /* tenant, who, action, outcome */
#define ADD_PARAMS 8

/* ---- administrative ops ---------------------------------------------------------------------- */

const char *
il__data_action_name(const il_op *op)
{
    switch (op->type) {
    case IL_OP_BREAK:
        return "lock.break";
    case IL_OP_RUN_CANCEL:
        return "run.cancel";
    case IL_OP_JOB_CANCEL:
        return "job.cancel";
    case IL_OP_JOB_RETRY:
        return "job.retry";
    case IL_OP_JOB_PURGE:
        return "queue.purge";
    case IL_OP_QUEUE_SET:
        return "queue.set";
    case IL_OP_QUEUE_PAUSE:
        return (op->flags & IL_RESUME) != 0 ? "queue.resume" : "queue.pause";
    case IL_OP_CRON_SET:
        return "cron.set";
    case IL_OP_CRON_REMOVE:
        return "cron.remove";
    default:
        return NULL;
    }
}

/* What it was done to. */
static const char *
what_of(const il_op *op)
{
    if (op->type == IL_OP_RUN_CANCEL)
        return op->in.run.id;
    if (op->type == IL_OP_JOB_CANCEL || op->type == IL_OP_JOB_RETRY)
        return op->in.job.id;
    if (op->type == IL_OP_CRON_SET || op->type == IL_OP_CRON_REMOVE)
        return op->in.cron.name;
    return op->key;
}

static const char *
reason_of(const il_op *op)
{
    if (op->type == IL_OP_BREAK)
        return op->in.lock.reason;
    if (op->type == IL_OP_RUN_CANCEL)
        return op->in.run.error;
    if (op->type == IL_OP_JOB_CANCEL || op->type == IL_OP_QUEUE_PAUSE)
        return op->in.job.text;
    return NULL;
}

struct il__data_action
il__data_action_of(const il_op *op, il_status status, const char *tenant, const char *who)
{
    return (struct il__data_action){
        .at_ms   = il__clock_wall_ms(),
        .tenant  = op->tenant != NULL ? op->tenant : tenant,
        .who     = who,
        .action  = il__data_action_name(op),
        .what    = what_of(op),
        .reason  = reason_of(op),
        .outcome = il_status_name(status),
    };
}

/* ---- adding ---------------------------------------------------------------------------------- */

struct addition {
    const struct il__data_action *actions;
    size_t                        n;
    void                         *arena;
};

static il_status
add_one(struct il__data *d, struct addition *a, const struct il__data_action *action,
        il_error *reterr)
{
    struct data_param params[ADD_PARAMS] = {
        DATA_NUMBER(action->at_ms != 0 ? action->at_ms : il__clock_wall_ms()),
        DATA_TEXT(il__data_fit(&a->arena, action->tenant, SHORT_BYTES_MAX)),
        DATA_TEXT(il__data_fit(&a->arena, action->who, SHORT_BYTES_MAX)),
        DATA_TEXT(il__data_fit(&a->arena, action->action, SHORT_BYTES_MAX)),
        DATA_TEXT(il__data_fit(&a->arena, action->what, DATA_ACTION_TEXT_BYTES_MAX)),
        DATA_TEXT(il__data_fit(&a->arena, action->reason, DATA_ACTION_TEXT_BYTES_MAX)),
        DATA_TEXT(il__data_fit(&a->arena, action->outcome, SHORT_BYTES_MAX)),
        DATA_TEXT(il__data_fit(&a->arena, action->details, DATA_ACTION_TEXT_BYTES_MAX)),
    };

    for (size_t i = 1; i < ADD_PARAMS; i++) {
        if (params[i].text == NULL)
            return il__error_set(reterr, IL_NOMEM, "out of memory for an audit");
    }
    return il__data_run(d, DATA_audit_add, params, ADD_PARAMS, NULL, NULL, reterr);
}

static il_status
add_all(struct il__data *d, void *cookie, il_error *reterr)
{
    struct addition *a  = cookie;
    il_status        st = IL_OK;

    for (size_t i = 0; st == IL_OK && i < a->n; i++)
        st = add_one(d, a, &a->actions[i], reterr);
    return st;
}

il_status
il__data_audit_add(struct il__data *d, const struct il__data_action *actions, size_t n,
                   il_error *reterr)
{
    struct addition a = { actions, n, NULL };

    il_status st = n > 0 ? il__data_transaction(d, add_all, &a, reterr) : IL_OK;
    il__arena_free(&a.arena);
    return st;
}

/* ---- listing --------------------------------------------------------------------------------- */

struct listing {
    il__data_action_fn *each;
    void               *cookie;
};

static void
take_action(void *cookie, const struct data_row *row)
{
    struct listing        *l      = cookie;
    struct il__data_action action = {
        .seq     = (uint64_t)row->columns[0].number,
        .at_ms   = row->columns[1].number,
        .tenant  = row->columns[2].text,
        .who     = row->columns[3].text,
        .action  = row->columns[4].text,
        .what    = row->columns[5].text,
        .reason  = row->columns[6].text,
        .outcome = row->columns[7].text,
        .details = row->columns[8].text,
    };

    l->each(l->cookie, &action);
}

il_status
il__data_audit_list(struct il__data *d, const char *tenant, const char *action, uint64_t before,
                    uint32_t limit, il__data_action_fn *each, void *cookie, il_error *reterr)
{
    struct listing    l   = { each, cookie };
    int64_t           end = before != 0 ? (int64_t)MIN(before, (uint64_t)INT64_MAX) : INT64_MAX;
    struct data_param params[4] = { DATA_NUMBER(end), DATA_NUMBER(il__data_page(limit)) };
    size_t            n         = 2;
    enum data_stmt    stmt      = DATA_audit_list;

    /* Any text is accepted as an action here, but texts that the table cannot hold must not reach
     * an engine. */
    if ((tenant != NULL && !il__utf8_valid(tenant, strlen(tenant))) ||
        (action != NULL && !il__utf8_valid(action, strlen(action))))
        return il__error_set(reterr, IL_INVAL, "the tenant or action filter is not UTF-8");
    if (tenant != NULL)
        params[n++] = DATA_TEXT(tenant);
    if (action != NULL)
        params[n++] = DATA_TEXT(action);
    if (tenant != NULL && action != NULL)
        stmt = DATA_audit_list_both;
    else if (tenant != NULL)
        stmt = DATA_audit_list_tenant;
    else if (action != NULL)
        stmt = DATA_audit_list_action;
    return il__data_read(d, stmt, params, n, take_action, &l, reterr);
}

il_status
il__data_audit_purge(struct il__data *d, int64_t older_than_ms, uint64_t *ret_n, il_error *reterr)
{
    const struct data_param params[] = { DATA_NUMBER(older_than_ms) };

    *ret_n = 0;
    return il__data_write(d, DATA_audit_purge, params, ARRAY_LEN(params), il__data_count_row, ret_n,
                          reterr);
}
