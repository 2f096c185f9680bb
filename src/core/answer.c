/*
 * answer.c: sentences with something of the op in them.
 */
#include "core/answer.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/buf.h"
#include "core/op.h"

void
il__answer_lost(il_op *op, const struct il__ended *ended, int64_t now_ms)
{
    char text[160];

    (void)snprintf(text, sizeof text,
                   "the lease of this holder ended %" PRId64
                   " ms ago (%s); a new attempt needs a new holder",
                   now_ms - ended->ended_ms, il_lease_state_name((il_lease_state)ended->how));
    il__op_end(op, IL_LOST, text);
}

void
il__answer_closing(il_op *op, const char *reason)
{
    struct il__buf AUTO_BUF text = { .n_bytes_max = 1024 };

    if (reason != NULL && reason[0] != '\0')
        il__buf_addf(&text, "the lease was broken: %s", reason);
    else
        il__buf_adds(&text, "the lease has expired, and its key is settling");
    il__op_end(op, IL_LOST, il__buf_str(&text));
}
