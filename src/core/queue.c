/*
 * queue.c: input checks of the ops on jobs, queues and schedules, and the settings of a queue. No
 * I/O, no clock.
 */
#include "core/queue.h"

#include <inttypes.h>

#include "base/error.h"
#include "core/cron.h"
#include "core/key.h"
#include "core/limits.h"
#include "core/names.h"
#include "core/op.h"

#define LIVE_BITS (1U << IL_JOB_SCHEDULED | 1U << IL_JOB_READY | 1U << IL_JOB_RUNNING)
#define STATE_BITS \
    (LIVE_BITS | 1U << IL_JOB_COMPLETED | 1U << IL_JOB_FAILED | 1U << IL_JOB_CANCELLED)

/* ---- parts of inputs ------------------------------------------------------------------------- */

static il_status
check_queue_name(il_op *op, il_error *reterr)
{
    return il__op_name("queue", op->key, IL_QUEUE_BYTES_MAX, &op->n_bytes.key, reterr);
}

static il_status
check_name(const char *what, const char *text, size_t n_max, il_error *reterr)
{
    uint16_t n_bytes;

    return il__op_name(what, text, n_max, &n_bytes, reterr);
}

/* An optional name. "" also means none, since that is how a missing name is shown. */
static il_status
check_optional(const char *what, const char **text, size_t n_max, il_error *reterr)
{
    if (*text != NULL && (*text)[0] == '\0')
        *text = NULL;
    return *text != NULL ? check_name(what, *text, n_max, reterr) : IL_OK;
}

static il_status
check_id(const il_op *op, il_error *reterr)
{
    return check_name("id", op->in.job.id, IL_ID_BYTES_MAX, reterr);
}

static il_status
check_number(const char *what, int64_t value, int64_t min, int64_t max, il_error *reterr)
{
    if (value < min || value > max)
        return il__error_set(reterr, IL_INVAL,
                             "%s must be between %" PRId64 " and %" PRId64 ", not %" PRId64, what,
                             min, max, value);
    return IL_OK;
}

static il_status
check_data(const char *what, const void *data, size_t n_bytes, il_error *reterr)
{
    return il__op_check_blob(what, data, n_bytes, IL_BLOB_BYTES_MAX, reterr);
}

static il_status
check_reason(const il_op *op, il_error *reterr)
{
    return il__check_optional("reason", op->in.job.text, IL_PLACE_BYTES_MAX, false, reterr);
}

/* 0 is the default. */
static il_status
check_lease(const il_op *op, il_error *reterr)
{
    int64_t lease_ms = op->in.job.lease_ms;

    if (lease_ms == 0)
        return IL_OK;
    return check_number("lease_ms", lease_ms, IL_TTL_MS_MIN, IL_TTL_MS_MAX, reterr);
}

static il_status
check_delay(const il_op *op, il_error *reterr)
{
    return check_number("delay_ms", op->in.job.delay_ms, 0, IL_DELAY_MS_MAX, reterr);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static il_status
check_push_names(il_op *op, il_error *reterr)
{
    il_job_in *in = &op->in.job;

    if (check_queue_name(op, reterr) != IL_OK || check_id(op, reterr) != IL_OK ||
        check_data("payload", in->data, in->data_bytes, reterr) != IL_OK ||
        check_optional("group", &in->group, IL_KEY_BYTES_MAX, reterr) != IL_OK ||
        check_optional("unique key", &in->unique_key, IL_KEY_BYTES_MAX, reterr) != IL_OK ||
        check_optional("parent", &in->parent, IL_ID_BYTES_MAX, reterr) != IL_OK)
        return IL_INVAL;
    return IL_OK;
}

/* A parent is not claimed, and parents are not nested. */
static il_status
check_push_parent(const il_op *op, il_error *reterr)
{
    const il_job_in *in = &op->in.job;

    if ((op->flags & IL_PUSH_PARENT) == 0) {
        if (in->n_children > 0)
            return il__error_set(reterr, IL_INVAL, "only a parent has children");
        return IL_OK;
    }
    if (in->parent != NULL)
        return il__error_set(reterr, IL_INVAL, "a parent cannot have a parent");
    if (in->group != NULL)
        return il__error_set(reterr, IL_INVAL,
                             "a parent is never claimed, so it cannot have a group");
    if (in->delay_ms != 0 || in->run_at_ms != 0)
        return il__error_set(reterr, IL_INVAL,
                             "a parent is never claimed, so it cannot be delayed");
    return IL_OK;
}

static il_status
check_push(il_op *op, il_error *reterr)
{
    il_job_in *in = &op->in.job;

    if (check_push_names(op, reterr) != IL_OK || check_delay(op, reterr) != IL_OK ||
        check_number("unique_for_ms", in->unique_for_ms, 0, IL_DELAY_MS_MAX, reterr) != IL_OK ||
        check_number("priority", in->priority, -IL_PRIORITY_MAX, IL_PRIORITY_MAX, reterr) !=
            IL_OK ||
        check_number("run_at_ms", in->run_at_ms, 0, IL__TIME_MS_MAX, reterr) != IL_OK ||
        check_number("max_attempts", in->max_attempts, 0, IL_ATTEMPTS_MAX, reterr) != IL_OK)
        return IL_INVAL;
    if (in->delay_ms != 0 && in->run_at_ms != 0)
        return il__error_set(reterr, IL_INVAL, "delay_ms and run_at_ms cannot be combined");
    if (in->unique_for_ms != 0 && in->unique_key == NULL)
        return il__error_set(reterr, IL_INVAL, "unique_for_ms needs a unique key");
    return check_push_parent(op, reterr);
}

static il_status
check_claim(il_op *op, il_error *reterr)
{
    il_job_in *in = &op->in.job;

    if (in->limit == 0)
        in->limit = 1;
    if (check_queue_name(op, reterr) != IL_OK ||
        il__op_name("worker", op->holder, IL_HOLDER_BYTES_MAX, &op->n_bytes.holder, reterr) !=
            IL_OK ||
        check_name("id of the claim", in->id, IL_ID_BYTES_MAX, reterr) != IL_OK ||
        check_number("limit", in->limit, 1, IL_CLAIM_JOBS_MAX, reterr) != IL_OK)
        return IL_INVAL;
    return check_lease(op, reterr);
}

/* Ops of a worker that has claimed a job. */
static il_status
check_claimed(il_op *op, il_error *reterr)
{
    const il_job_in *in = &op->in.job;

    if (check_id(op, reterr) != IL_OK || il__op_check_fence(op, reterr) != IL_OK)
        return IL_INVAL;
    if (op->type == IL_OP_JOB_FINISH)
        return check_data("result", in->data, in->data_bytes, reterr);
    if (op->type == IL_OP_JOB_HEARTBEAT) {
        if (check_lease(op, reterr) != IL_OK ||
            check_number("progress", in->progress, -1, 100, reterr) != IL_OK)
            return IL_INVAL;
        return il__check_optional("message", in->text, IL_TEXT_BYTES_MAX, true, reterr);
    }
    if (check_delay(op, reterr) != IL_OK)
        return IL_INVAL;
    return op->type == IL_OP_JOB_FAIL
               ? il__check_optional("error", in->text, IL_TEXT_BYTES_MAX, true, reterr)
               : IL_OK;
}

/* ---- listings -------------------------------------------------------------------------------- */

static il_status
check_page(il_op *op, il_error *reterr)
{
    const il_list_in *in = &op->in.list;

    if (op->key != NULL && check_queue_name(op, reterr) != IL_OK)
        return IL_INVAL;
    if (il__op_check_page(op, IL_QUEUE_BYTES_MAX, reterr) != IL_OK)
        return IL_INVAL;
    if ((in->states & ~STATE_BITS) != 0)
        return il__error_set(reterr, IL_INVAL, "states %#x contains unknown job states",
                             in->states);
    return IL_OK;
}

static il_status
check_purge(il_op *op, il_error *reterr)
{
    const il_list_in *in = &op->in.list;

    if (check_queue_name(op, reterr) != IL_OK ||
        il__op_check_limit(op, IL__SWEEP_ITEMS, reterr) != IL_OK ||
        check_number("older_ms", in->older_ms, 0, IL_DELAY_MS_MAX, reterr) != IL_OK)
        return IL_INVAL;
    if (in->states == 0)
        return il__error_set(reterr, IL_INVAL, "no state to purge given");
    if ((in->states & ~STATE_BITS) != 0)
        return il__error_set(reterr, IL_INVAL, "states %#x contains unknown job states",
                             in->states);
    if ((in->states & 1U << IL_JOB_RUNNING) != 0)
        return il__error_set(reterr, IL_INVAL, "running jobs cannot be purged; cancel them first");
    return IL_OK;
}

/* ---- settings -------------------------------------------------------------------------------- */

/* The valid range of a setting, and its default. */
static const struct setting {
    const char *name;
    size_t      offset;
    bool        wide; /* int64_t, else int32_t */
    bool        none; /* may be -1: no limit, forever */
    int64_t     min, max, dflt;
} settings[] = {
#define X(name, field, none, min, max, dflt)  \
    { #field,                                 \
      offsetof(il_queue_opts, field),         \
      sizeof((il_queue_opts *)0)->field == 8, \
      none,                                   \
      min,                                    \
      max,                                    \
      dflt },
#include "core/queue_settings.def"
#undef X
};

static int64_t
setting_get(const il_queue_opts *opts, const struct setting *row)
{
    const char *at = (const char *)opts + row->offset;
    int64_t     wide;
    int32_t     narrow;

    if (row->wide) {
        memcpy(&wide, at, sizeof wide);
        return wide;
    }
    memcpy(&narrow, at, sizeof narrow);
    return narrow;
}

static void
setting_put(il_queue_opts *opts, const struct setting *row, int64_t value)
{
    char   *at     = (char *)opts + row->offset;
    int32_t narrow = (int32_t)value;

    if (row->wide)
        memcpy(at, &value, sizeof value);
    else
        memcpy(at, &narrow, sizeof narrow);
}

static bool
setting_ok(const struct setting *row, int64_t value)
{
    return (row->none && value == IL_FOREVER) || (value >= row->min && value <= row->max);
}

static il_status
check_settings(il_op *op, il_error *reterr)
{
    if (check_queue_name(op, reterr) != IL_OK)
        return IL_INVAL;
    for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
        const struct setting *row   = &settings[i];
        int64_t               value = setting_get(&op->in.queue, row);
        if (value != 0 && !setting_ok(row, value))
            return il__error_set(reterr, IL_INVAL,
                                 "%s must be between %" PRId64 " and %" PRId64 "%s, not %" PRId64,
                                 row->name, row->min, row->max, row->none ? " (or -1)" : "", value);
    }
    return IL_OK;
}

il_queue_opts
il__queue_defaults(void)
{
    il_queue_opts opts = { 0 };

    il__queue_heal(&opts);
    return opts;
}

void
il__queue_heal(il_queue_opts *opts)
{
    for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
        if (!setting_ok(&settings[i], setting_get(opts, &settings[i])))
            setting_put(opts, &settings[i], settings[i].dflt);
    }
}

void
il__queue_merge(il_queue_opts *opts, const il_queue_opts *set)
{
    for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
        int64_t value = setting_get(set, &settings[i]);
        if (value != 0)
            setting_put(opts, &settings[i], value);
    }
}

bool
il__queue_optimistic(const il_queue_opts *opts)
{
    return opts->strategy == 1 + IL_STRATEGY_OPTIMISTIC;
}

bool
il__claim_fits(const il_op *op, size_t payload_bytes, uint64_t *n_bytes)
{
    uint64_t n = *n_bytes + payload_bytes + IL__JOB_BYTES;

#ifndef IL_MUTANT_claim_without_budget
    if (*n_bytes > 0 && n > il__op_bytes_left(op))
        return false;
#endif
    *n_bytes = n;
    return true;
}

uint32_t
il__queue_rate_left(const il_queue_opts *opts, uint64_t n_starts, uint32_t limit)
{
    if (opts->rate_n == IL_FOREVER)
        return limit;
    uint64_t rate = (uint64_t)opts->rate_n;
    return n_starts >= rate ? 0 : (uint32_t)MIN(rate - n_starts, limit);
}

bool
il__queue_group_free(const il_queue_opts *opts, uint64_t n_running)
{
#ifdef IL_MUTANT_group_limit_off_by_one
    n_running = n_running > 0 ? n_running - 1 : 0;
#endif
    return opts->group_limit == IL_FOREVER || n_running < (uint64_t)opts->group_limit;
}

int64_t
il__wait_min(int64_t a_ms, int64_t b_ms)
{
    if (a_ms == IL_FOREVER || b_ms == IL_FOREVER)
        return MAX(a_ms, b_ms);
    return MIN(a_ms, b_ms);
}

int64_t
il__wait_until(int64_t at_ms, int64_t wall_ms)
{
    return at_ms == IL__NEVER ? IL_FOREVER : MAX(at_ms - wall_ms, 0);
}

/* ---- schedules ------------------------------------------------------------------------------- */

static il_status
check_cron_set(il_op *op, il_error *reterr)
{
    const il_cron_in *in = &op->in.cron;
    struct il__cron   cron;

    if (check_queue_name(op, reterr) != IL_OK ||
        check_name("name of the schedule", in->name, IL_QUEUE_BYTES_MAX, reterr) != IL_OK ||
        il__check_text("schedule", in->schedule, 1, IL_PLACE_BYTES_MAX, false, reterr) != IL_OK ||
        check_data("payload", in->data, in->data_bytes, reterr) != IL_OK ||
        check_number("missed", in->missed, 0, IL_MISSED_COUNT - 1, reterr) != IL_OK ||
        check_number("priority", in->priority, -IL_PRIORITY_MAX, IL_PRIORITY_MAX, reterr) !=
            IL_OK ||
        check_number("max_attempts", in->max_attempts, 0, IL_ATTEMPTS_MAX, reterr) != IL_OK)
        return IL_INVAL;
    return il__cron_parse_entry(in->schedule, &cron, reterr);
}

const char *const il__strategy_names[IL_STRATEGY_COUNT + 1] = {
    [IL_STRATEGY_PESSIMISTIC] = "pessimistic",
    [IL_STRATEGY_OPTIMISTIC]  = "optimistic",
};

const char *
il_strategy_name(il_strategy strategy)
{
    return (unsigned)strategy < IL_STRATEGY_COUNT ? il__strategy_names[strategy] : "unknown";
}

const char *const il__missed_names[IL_MISSED_COUNT + 1] = {
    [IL_MISSED_SKIP] = "skip",
    [IL_MISSED_ONE]  = "one",
    [IL_MISSED_ALL]  = "all",
};

const char *
il_missed_name(il_missed missed)
{
    return (unsigned)missed < IL_MISSED_COUNT ? il__missed_names[missed] : "unknown";
}

/* ---- all of them ----------------------------------------------------------------------------- */

il_status
il__queue_check(il_op *op, il_error *reterr)
{
    switch (op->type) {
    case IL_OP_JOB_PUSH:
        return check_push(op, reterr);
    case IL_OP_JOB_CLAIM:
        return check_claim(op, reterr);
    case IL_OP_JOB_HEARTBEAT:
    case IL_OP_JOB_FINISH:
    case IL_OP_JOB_FAIL:
    case IL_OP_JOB_SNOOZE:
        return check_claimed(op, reterr);
    case IL_OP_JOB_CANCEL:
        return check_id(op, reterr) == IL_OK ? check_reason(op, reterr) : IL_INVAL;
    case IL_OP_JOB_RETRY:
    case IL_OP_JOB_SEAL:
    case IL_OP_JOB_GET:
        return check_id(op, reterr);
    case IL_OP_JOB_PURGE:
        return check_purge(op, reterr);
    case IL_OP_QUEUE_SET:
        return check_settings(op, reterr);
    case IL_OP_QUEUE_PAUSE:
        return check_queue_name(op, reterr) == IL_OK ? check_reason(op, reterr) : IL_INVAL;
    case IL_OP_CRON_SET:
        return check_cron_set(op, reterr);
    case IL_OP_CRON_REMOVE:
        return check_name("name of the schedule", op->in.cron.name, IL_QUEUE_BYTES_MAX, reterr);
    default:
        return check_page(op, reterr); /* JOB_LIST, QUEUE_LIST, CRON_LIST */
    }
}
