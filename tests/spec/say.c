/*
 * say.c: an order told as one line; README.md says how to read it.
 */
#include <stdarg.h>
#include <stdio.h>

#include "spec/play_internal.h"

void
play_say(struct play *p, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(p->out + p->n_out, p->n_out_max - p->n_out, fmt, ap);
    va_end(ap);
    CHECK(n >= 0);
    p->n_out = MIN(p->n_out + (size_t)n, p->n_out_max - 1);
}

void
play_say_where(struct play *p, const struct player *pl, char mark)
{
    if (mark == ',' && p->speaker == pl)
        play_say(p, ",");
    else
        play_say(p, "%s%s%c", p->n_out > 0 ? " " : "", pl->session->steps[pl->i_step].name,
                 mark == ',' ? '+' : mark);
    p->speaker = pl;
}

static unsigned
rank_of(struct play *p, uint64_t fence)
{
    for (size_t i = 0; i < p->n_fences; i++) {
        if (p->fences[i] == fence)
            return (unsigned)i + 1;
    }
    CHECK(p->n_fences < FENCES_MAX);
    p->fences[p->n_fences++] = fence;
    return (unsigned)p->n_fences;
}

void
play_say_lease(struct play *p, const il_lease_info *it)
{
    static const char marks[IL_LEASE_STATE_COUNT] = { [IL_LEASE_OFFERED] = '?', [IL_LEASE_CLOSING] = 'x' };

    play_say(p, "%s#%u", it->holder, rank_of(p, it->fence));
    if (marks[it->state] != '\0')
        play_say(p, "%c", marks[it->state]);
}

void
play_say_result(struct play *p, const il_op *op)
{
    bool lists = op->type == IL_OP_GET || op->type == IL_OP_LIST;

    if (op->status != IL_OK || !lists)
        play_say(p, "%s", op->status == IL_QUEUED ? "<waiting>" : il_status_name(op->status));
    if (op->status == IL_QUEUED)
        play_say(p, "@%u", op->out.position);
    if (op->status == IL_OK && op->type == IL_OP_ACQUIRE)
        play_say(p, "#%u", rank_of(p, op->out.fence));
    if ((op->out.flags & IL_OUT_RENEWED) != 0)
        play_say(p, "~");
    if ((op->out.flags & IL_OUT_ORDER_WARNING) != 0)
        play_say(p, "!");
    if (op->status == IL_HELD)
        play_say(p, ":%s", op->out.items[0].holder);
    for (size_t i = 0; lists && op->status == IL_OK && i < op->out.n_items; i++) {
        play_say(p, "%s", i > 0 ? "+" : "");
        if (op->type == IL_OP_LIST)
            play_say(p, "%s:", op->out.items[i].key);
        play_say_lease(p, &op->out.items[i]);
    }
    if (op->type == IL_OP_LIST && op->out.n_items == 0)
        play_say(p, "none");
}
