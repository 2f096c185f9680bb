/*
 * run_check.c: input checks of the ops on runs, and their defaults.
 */
#include <inttypes.h>

#include "base/error.h"
#include "core/key.h"
#include "core/limits.h"
#include "core/op.h"
#include "core/run.h"

static il_status
check_id(const il_op *op, il_error *reterr)
{
    uint16_t n_bytes;

    return il__op_name("id", op->in.run.id, IL_ID_BYTES_MAX, &n_bytes, reterr);
}

static il_status
check_times(il_op *op, il_error *reterr)
{
    il_run_in *in = &op->in.run;

    if (in->ttl_ms == 0)
        in->ttl_ms = IL_TTL_MS_DEFAULT;
    if (in->wait_ms == 0)
        in->wait_ms = IL_FOREVER;
    if (in->keep_ms == 0)
        in->keep_ms = IL__RUN_KEEP_MS;
    if (il__op_check_ttl(in->ttl_ms, reterr) != IL_OK ||
        il__op_check_waits(in->wait_ms, in->settle_ms, reterr) != IL_OK)
        return IL_INVAL;
    if (in->keep_ms < 0 || in->keep_ms > IL_DELAY_MS_MAX)
        return il__error_set(reterr, IL_INVAL, "a keep time of %" PRId64 " ms is outside 1ms..366d",
                             in->keep_ms);
    return IL_OK;
}

/* The creator of a slot does not execute it: then there is no holder. */
static il_status
check_start(il_op *op, il_error *reterr)
{
    il_run_in *in = &op->in.run;

    if (il__op_check_key(op, reterr) != IL_OK)
        return IL_INVAL;
    if ((op->flags & IL_RUN_SLOT) == 0 && il__op_check_holder(op, reterr) != IL_OK)
        return IL_INVAL;
    if ((unsigned)in->policy >= IL_POLICY_COUNT)
        return il__error_set(reterr, IL_INVAL, "unknown policy %u", (unsigned)in->policy);
    if (in->queue_max == 0)
        in->queue_max = IL__RUN_QUEUE_MAX;
    if (check_times(op, reterr) != IL_OK ||
        il__check_optional("trigger", in->trigger, IL_PLACE_BYTES_MAX, false, reterr) != IL_OK ||
        il__check_optional("name of the initiator", in->by, IL_PLACE_BYTES_MAX, false, reterr) !=
            IL_OK ||
        il__check_optional("meta", in->meta, IL_META_BYTES_MAX, true, reterr) != IL_OK)
        return IL_INVAL;
    return il__check_optional("place", in->place, IL_PLACE_BYTES_MAX, false, reterr);
}

static il_status
check_current(il_op *op, il_error *reterr)
{
    if (il__op_check_holder(op, reterr) != IL_OK || il__op_check_fence(op, reterr) != IL_OK)
        return IL_INVAL;
    return il__op_check_blob("log", op->in.run.log, op->in.run.log_bytes, IL_LOG_BYTES_MAX, reterr);
}

static il_status
check_stage(il_op *op, il_error *reterr)
{
    const il_run_in *in = &op->in.run;

    if (in->progress < -1 || in->progress > 100)
        return il__error_set(reterr, IL_INVAL, "a progress of %d is outside -1..100", in->progress);
    if (il__check_optional("stage", in->stage, IL_TEXT_BYTES_MAX, false, reterr) != IL_OK)
        return IL_INVAL;
    return check_current(op, reterr);
}

static il_status
check_finish(il_op *op, il_error *reterr)
{
    const il_run_in *in = &op->in.run;

    if ((unsigned)in->state >= IL_RUN_STATE_COUNT || !il__run_ended(in->state))
        return il__error_set(reterr, IL_INVAL, "state %s is not a final state of a run",
                             il_run_state_name(in->state));
    if (il__check_optional("error", in->error, IL_TEXT_BYTES_MAX, true, reterr) != IL_OK)
        return IL_INVAL;
    return check_current(op, reterr);
}

static il_status
check_list(il_op *op, il_error *reterr)
{
    const uint32_t known   = (1U << IL_RUN_STATE_COUNT) - (1U << IL_RUN_PENDING);
    uint32_t       unknown = op->in.list.states & ~known;

    if (op->key != NULL && il__op_check_key(op, reterr) != IL_OK)
        return IL_INVAL;
    if (unknown != 0)
        return il__error_set(reterr, IL_INVAL, "unknown run states 0x%x", unknown);
    return il__op_check_page(op, IL_KEY_BYTES_MAX, reterr);
}

il_status
il__run_check(il_op *op, il_error *reterr)
{
    if (op->type == IL_OP_RUN_LIST)
        return check_list(op, reterr);
    if (check_id(op, reterr) != IL_OK)
        return IL_INVAL;
    if (op->type == IL_OP_RUN_START)
        return check_start(op, reterr);
    if (op->type == IL_OP_RUN_STAGE)
        return check_stage(op, reterr);
    if (op->type == IL_OP_RUN_FINISH)
        return check_finish(op, reterr);
    if (op->type == IL_OP_RUN_CANCEL)
        return il__check_text("reason", op->in.run.error, 1, IL_TEXT_BYTES_MAX, false, reterr);
    return IL_OK; /* RUN_GET, RUN_LOG: any offset is valid */
}
