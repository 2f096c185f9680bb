/*
 * trace.c: a decorator that writes one line per batch: each op's name, key, id, holder and status,
 * and the time the batch took. It writes names only, never contents: no meta, reason, place,
 * payload, value, answer, output or error.
 */
#include <inttypes.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "core/op.h"
#include "store/decorators/decorator.h"

struct trace_store {
    struct decorator_store over;
    il_trace_fn           *trace;
    void                  *cookie;
};

#define LINE_BYTES_MAX 65536

static struct trace_store *
trace_from(struct il__store *s)
{
    return container_of(il__decorator_from(s), struct trace_store, over);
}

static void
tell(struct trace_store *t, const char *verb, il_op *const *ops, size_t n, il_status st,
     int64_t took_ns)
{
    struct il__buf AUTO_BUF line = { .n_bytes_max = LINE_BYTES_MAX };

    il__buf_addf(&line, "%s.%s n=%zu us=%" PRId64 " status=%s", t->over.inner->ops->name, verb, n,
                 took_ns / 1000, il_status_name(st));
    for (size_t i = 0; i < n; i++) {
        const il_op *op = ops[i];
        bool named      = !il__op_refused(op); /* otherwise the names may contain newlines etc. */
        il__buf_addf(&line, " [%s", il_op_name(op->type));
        if (op->key != NULL && named)
            il__buf_addf(&line, " key='%s'", op->key);
        if (named && il__op_id(op) != NULL)
            il__buf_addf(&line, " id='%s'", il__op_id(op));
        if (op->holder != NULL && named)
            il__buf_addf(&line, " holder='%s'", op->holder);
        if (op->fence != 0)
            il__buf_addf(&line, " asked=%" PRIu64, op->fence);
        if (st == IL_OK)
            il__buf_addf(&line, " -> %s fence=%" PRIu64, il_status_name(op->status), op->out.fence);
        il__buf_addc(&line, ']');
    }
    t->trace(t->cookie, il__buf_str(&line)); /* a line that is too long is truncated */
}

static il_status
trace_apply(struct il__store *s, il_op *const *ops, size_t n, size_t *ret_done, il_error *reterr)
{
    struct trace_store *t     = trace_from(s);
    int64_t             began = il__clock_boot_ns();
    il_status           st    = il__store_apply(t->over.inner, ops, n, ret_done, reterr);

    tell(t, "apply", ops, st == IL_OK ? *ret_done : n, st, il__clock_boot_ns() - began);
    return st;
}

static il_status
trace_read(struct il__store *s, il_op *const *ops, size_t n, size_t *ret_done, il_error *reterr)
{
    struct trace_store *t     = trace_from(s);
    int64_t             began = il__clock_boot_ns();
    il_status           st    = il__store_read(t->over.inner, ops, n, ret_done, reterr);

    tell(t, "read", ops, st == IL_OK ? *ret_done : n, st, il__clock_boot_ns() - began);
    return st;
}

static void
trace_free(struct il__store *s)
{
    struct trace_store *t = trace_from(s);

    il__store_free(t->over.inner);
    il__free(t);
}

il_status
il__store_trace_wrap(struct il__store *inner, il_trace_fn *trace, void *cookie,
                     struct il__store **ret, il_error *reterr)
{
    struct trace_store *t = il__calloc(1, sizeof *t);

    if (t == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a trace");
    il__decorator_init(&t->over, "trace", inner, trace_free);
    t->over.ops.apply = trace_apply;
    t->over.ops.read  = trace_read;
    t->trace          = trace;
    t->cookie         = cookie;
    *ret              = &t->over.base;
    return IL_OK;
}
