/*
 * history_print.c: prints a step in readable form: the op's inputs other than zero.
 */
#include <inttypes.h>

#include "diff/history.h"

static void
text(FILE *out, const char *name, const char *value)
{
    if (value != NULL)
        (void)fprintf(out, " %s='%s'", name, value);
}

static void
number(FILE *out, const char *name, int64_t value)
{
    if (value != 0)
        (void)fprintf(out, " %s=%" PRId64, name, value);
}

#define TEXT(field) text(out, #field, in->field)
#define NUMBER(field) number(out, #field, (int64_t)in->field)

static void
print_lock(FILE *out, const il_lock_in *in)
{
    NUMBER(ttl_ms), NUMBER(wait_ms), NUMBER(settle_ms), NUMBER(permits);
    text(out, "mode", il_mode_name(in->mode));
}

static void
print_list(FILE *out, const il_list_in *in)
{
    TEXT(prefix), NUMBER(limit), NUMBER(states), NUMBER(older_ms);
}

static void
print_run(FILE *out, const il_run_in *in)
{
    TEXT(id), NUMBER(queue_max), NUMBER(ttl_ms), NUMBER(wait_ms), NUMBER(settle_ms),
        NUMBER(keep_ms);
    TEXT(stage), NUMBER(progress), TEXT(error), NUMBER(log_bytes), NUMBER(offset);
    NUMBER(live_max), NUMBER(day_max), NUMBER(minute_max), NUMBER(hour_max);
    text(out, "policy", il_policy_name(in->policy));
    text(out, "state", il_run_state_name(in->state));
}

static void
print_once(FILE *out, const il_once_in *in)
{
    NUMBER(fingerprint_bytes), NUMBER(lease_ms), NUMBER(keep_ms), TEXT(meta),
        NUMBER(response_bytes);
    NUMBER(code);
    if (in->fingerprint_bytes > 0)
        text(out, "fingerprint", in->fingerprint);
}

static void
print_job(FILE *out, const il_job_in *in)
{
    TEXT(id), NUMBER(data_bytes), TEXT(group), TEXT(unique_key), NUMBER(unique_for_ms),
        TEXT(parent);
    NUMBER(n_children), NUMBER(priority), NUMBER(delay_ms), NUMBER(run_at_ms), NUMBER(max_attempts);
    NUMBER(limit), NUMBER(lease_ms), NUMBER(progress), TEXT(text);
}

static void
print_queue(FILE *out, const il_queue_opts *in)
{
    NUMBER(strategy), NUMBER(max_attempts), NUMBER(lease_ms), NUMBER(backoff_ms);
    NUMBER(backoff_max_ms), NUMBER(group_limit), NUMBER(rate_n), NUMBER(rate_ms), NUMBER(keep_ms);
    NUMBER(keep_failed_ms), NUMBER(processing_timeout_ms), NUMBER(executing_timeout_ms);
}

static void
print_cron(FILE *out, const il_cron_in *in)
{
    TEXT(name), TEXT(schedule), NUMBER(missed), NUMBER(priority), NUMBER(max_attempts);
}

static void
print_cache(FILE *out, const il_cache_in *in)
{
    NUMBER(value_bytes), NUMBER(ttl_ms), NUMBER(grace_ms), NUMBER(lease_ms), NUMBER(chance);
    NUMBER(code);
}

static void
print_refused(FILE *out, const il_refused_in *in)
{
    text(out, "meta", in->meta);
    text(out, "other", in->other);
    text(out, "reason", in->reason);
    NUMBER(count), NUMBER(span_ms), NUMBER(held_ms);
}

static bool
takes_list(il_op_type type)
{
    return type == IL_OP_LIST || type == IL_OP_SWEEP || type == IL_OP_RUN_LIST ||
           type == IL_OP_JOB_LIST || type == IL_OP_JOB_PURGE || type == IL_OP_QUEUE_LIST ||
           type == IL_OP_CRON_LIST || type == IL_OP_CACHE_STATS || type == IL_OP_USAGE ||
           type == IL_OP_ORDER_LIST || type == IL_OP_HISTORY;
}

void
step_print_in(FILE *out, const il_op *op)
{
    (void)fprintf(out, "%s", il_op_name(op->type));
    text(out, "tenant", op->tenant);
    text(out, "key", op->key);
    text(out, "holder", op->holder);
    number(out, "flags", op->flags);
    if (takes_list(op->type))
        print_list(out, &op->in.list);
    else if (op->type == IL_OP_REFUSED)
        print_refused(out, &op->in.refused);
    else if (op->type == IL_OP_QUEUE_SET)
        print_queue(out, &op->in.queue);
    else if (op->type == IL_OP_CRON_SET || op->type == IL_OP_CRON_REMOVE)
        print_cron(out, &op->in.cron);
    else if (il__op_family(op->type) == IL__FAMILY_RUN)
        print_run(out, &op->in.run);
    else if (il__op_family(op->type) == IL__FAMILY_ONCE)
        print_once(out, &op->in.once);
    else if (il__op_family(op->type) == IL__FAMILY_QUEUE)
        print_job(out, &op->in.job);
    else if (il__op_family(op->type) == IL__FAMILY_CACHE)
        print_cache(out, &op->in.cache);
    else
        print_lock(out, &op->in.lock);
}
