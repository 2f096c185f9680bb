/*
 * decode_run.c: decodes the runs in a reply. A run whose lease or waiter is overdue is shown in the
 * state in which it will end.
 */
#include "core/op.h"
#include "core/run.h"
#include "store/remote/remote.h"

static struct il__run_hold
hold_of(const json_t *row)
{
    return (struct il__run_hold){
        .state       = (il_lease_state)il__remote_number(row, "hold_state"),
        .ttl_ms      = il__remote_number(row, "hold_ttl_ms"),
        .due_ms      = il__remote_number(row, "hold_due_ms"),
        .deadline_ms = json_object_get(row, "hold_deadline_ms") != NULL
                           ? il__remote_number(row, "hold_deadline_ms")
                           : INT64_MAX,
        .reason      = il__remote_text(row, "hold_reason"),
    };
}

static il_run_info
info_of(const il_op *op, const json_t *row)
{
    const char *key = il__remote_text_or_null(row, "key");

    return (il_run_info){
        .tenant        = op->tenant,
        .id            = il__remote_text(row, "id"),
        .key           = key != NULL ? key : op->key,
        .holder        = il__remote_text(row, "holder"),
        .trigger       = il__remote_text(row, "trigger"),
        .by            = il__remote_text(row, "by"),
        .meta          = il__remote_text(row, "meta"),
        .stage         = il__remote_text(row, "stage"),
        .state         = (il_run_state)il__remote_number(row, "state"),
        .cancelled     = (uint32_t)il__remote_number(row, "cancelled"),
        .n_joined      = (uint32_t)il__remote_number(row, "n_joined"),
        .progress      = (int32_t)il__remote_number(row, "progress"),
        .position      = (uint32_t)il__remote_number(row, "position"),
        .fence         = (uint64_t)il__remote_number(row, "fence"),
        .seq           = (uint64_t)il__remote_number(row, "seq"),
        .log_bytes     = (uint64_t)il__remote_number(row, "log_bytes"),
        .ttl_ms        = il__remote_number(row, "ttl_ms"),
        .created_at_ms = il__remote_number(row, "created_at_ms"),
        .started_at_ms = il__remote_number(row, "started_at_ms"),
        .ended_at_ms   = il__remote_number(row, "ended_at_ms"),
        .updated_at_ms = il__remote_number(row, "updated_at_ms"),
    };
}

bool
il__remote_decode_runs(il_op *op, const json_t *head)
{
    const json_t *runs    = json_object_get(head, "runs");
    int64_t       now_ms  = il__remote_number(head, "now_ms");
    int64_t       wall_ms = il__remote_number(head, "wall_ms");

    for (size_t i = 0; i < json_array_size(runs); i++) {
        const json_t        *row   = json_array_get(runs, i);
        struct il__run_hold  hold  = hold_of(row);
        il_run_info          info  = info_of(op, row);
        struct il__run_error error = { "", il__remote_text(row, "error"), "" };
        if (!il__remote_is_state(il__remote_number(row, "hold_state")) || info.key == NULL ||
            (unsigned)info.state >= IL_RUN_STATE_COUNT || info.state == IL_RUN_NONE)
            return false;
        const il_run_info *shown = il__run_show(op, info, error, &hold, now_ms, wall_ms);
        if (shown == NULL)
            return false;
        /* The fence of an op that shows a run is the run's, unless the verb has returned
         * another. */
        if (op->out.fence == 0 && op->type != IL_OP_RUN_LIST)
            op->out.fence = shown->fence;
    }
    return true;
}
