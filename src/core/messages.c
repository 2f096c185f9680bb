/*
 * messages.c: failure messages that contain values of the op.
 */
#include "core/messages.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/buf.h"
#include "core/op.h"

void
il__answer_lost(il_op *op, const struct il__ended *ended, int64_t now_ms)
{
    char text[160];

    (void)snprintf(text, sizeof text,
                   "this holder's lease ended %" PRId64
                   " ms ago (%s); use a new holder for a new attempt",
                   now_ms - ended->ended_ms, il_lease_state_name((il_lease_state)ended->how));
    if (ended->how == IL_LEASE_BROKEN)
        op->out.flags |= IL_OUT_BROKEN;
    il__op_end(op, IL_LOST, text);
}

void
il__answer_closing(il_op *op, const char *reason)
{
    struct il__buf AUTO_BUF text = { .n_bytes_max = 1024 };

    bool broken = reason != NULL && reason[0] != '\0';
    if (broken)
        op->out.flags |= IL_OUT_BROKEN;
    if (broken)
        il__buf_addf(&text, "lease broken by an operator: %s", reason);
    else
        il__buf_adds(&text, "the lease has expired; the key is closed for its settle time");
    il__op_end(op, IL_LOST, il__buf_str(&text));
}
