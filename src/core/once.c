/*
 * once.c: idempotency keys: input checks, states and decisions. No I/O, no clock.
 */
#include "core/once.h"

#include <inttypes.h>

#include "base/error.h"
#include "core/key.h"
#include "core/limits.h"
#include "core/op.h"

/* ---- inputs ---------------------------------------------------------------------------------- */

static il_status
check_begin(il_op *op, il_error *reterr)
{
    il_once_in *in = &op->in.once;

    if (in->lease_ms == 0)
        in->lease_ms = IL__ONCE_TTL_MS;
    if (in->keep_ms == 0)
        in->keep_ms = IL__ONCE_KEEP_MS;
    if (il__op_check_ttl(in->lease_ms, reterr) != IL_OK)
        return IL_INVAL;
    if (in->keep_ms < 1 || in->keep_ms > IL_DELAY_MS_MAX)
        return il__error_set(reterr, IL_INVAL, "a keep time of %" PRId64 " ms is outside 1ms..366d",
                             in->keep_ms);
    if (il__op_check_blob("fingerprint", in->fingerprint, in->fingerprint_bytes,
                          IL_FINGERPRINT_BYTES_MAX, reterr) != IL_OK)
        return IL_INVAL;
    return il__check_optional("meta", in->meta, IL_META_BYTES_MAX, true, reterr);
}

il_status
il__once_check(il_op *op, il_error *reterr)
{
    if (il__op_name("key", op->key, IL_ONCE_KEY_BYTES_MAX, &op->n_bytes.key, reterr) != IL_OK)
        return IL_INVAL;
    if (op->type == IL_OP_ONCE_GET)
        return IL_OK;
    if (il__op_check_holder(op, reterr) != IL_OK)
        return IL_INVAL;
    if (op->type == IL_OP_ONCE_BEGIN)
        return check_begin(op, reterr);
    if (il__op_check_fence(op, reterr) != IL_OK)
        return IL_INVAL;
    return op->type == IL_OP_ONCE_FINISH
               ? il__op_check_blob("response", op->in.once.response, op->in.once.response_bytes,
                                   IL_BLOB_BYTES_MAX, reterr)
               : IL_OK;
}

/* ---- decisions ------------------------------------------------------------------------------- */

/* Does the entry count as missing? */
static bool
is_gone(const struct il__once *e, int64_t now_ms, int64_t wall_ms)
{
    return (e->done ? wall_ms : now_ms) >= e->purge_ms;
}

static bool
same_bytes(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    return a_bytes == b_bytes && (a_bytes == 0 || memcmp(a, b, a_bytes) == 0);
}

static bool
is_alive(const struct il__once *e, int64_t now_ms)
{
    return !e->done && now_ms < e->expires_ms;
}

/* Whether the op's attempt has this claim, with this token. */
static bool
is_claim_of(const struct il__once *e, const il_op *op)
{
    return !e->done && e->token == op->fence && strcmp(e->attempt, op->holder) == 0;
}

/* Show an entry to a caller that does not get the claim. */
static enum il__once_step
answer(il_op *op, il_status status, const struct il__once *e, int64_t now_ms, int64_t wall_ms)
{
    op->out.fence = e->token;
    op->out.meta  = il__op_strdup(op, e->meta);
    if (status == IL_BUSY)
        op->out.remaining_ms = MAX(e->expires_ms - now_ms, 0);
    if (status == IL_REPLAY) {
        op->out.remaining_ms = e->purge_ms - wall_ms;
        op->out.code         = e->code;
    }
    il__op_end(op, op->out.meta != NULL ? status : IL_NOMEM,
               status == IL_MISMATCH ? IL__SAY_OTHER_REQUEST : NULL);
    return IL__ONCE_ANSWERED;
}

/* The op gets the claim; `before` is what it learns about the previous attempt, or NULL. */
static enum il__once_step
grant(il_op *op, enum il__once_step step, const char *before)
{
    op->out.remaining_ms = op->in.once.lease_ms;
    op->out.meta         = before != NULL ? il__op_strdup(op, before) : "";
    if (before != NULL)
        op->out.flags |= IL_OUT_TAKEOVER;
    op->status = op->out.meta != NULL ? IL_OK : IL_NOMEM;
    return op->status == IL_OK ? step : IL__ONCE_ANSWERED;
}

enum il__once_step
il__once_begin(il_op *op, const struct il__once *e, int64_t now_ms, int64_t wall_ms)
{
    const il_once_in *in   = &op->in.once;
    bool              gone = e == NULL || is_gone(e, now_ms, wall_ms);

    if (!gone)
        op->out.age_ms = MAX(wall_ms - e->created_at, 0);
    if (op->type == IL_OP_ONCE_GET) {
        if (!gone)
            return answer(op, e->done ? IL_REPLAY : IL_BUSY, e, now_ms, wall_ms);
        op->status = IL_NOT_FOUND;
        return IL__ONCE_ANSWERED;
    }
    if (gone)
        return grant(op, IL__ONCE_CLAIM, NULL);
    if (!same_bytes(e->fingerprint, e->fingerprint_bytes, in->fingerprint, in->fingerprint_bytes))
        return answer(op, IL_MISMATCH, e, now_ms, wall_ms);
    if (e->done)
        return answer(op, IL_REPLAY, e, now_ms, wall_ms);
#ifdef IL_MUTANT_live_claim_taken_over
    return grant(op, IL__ONCE_TAKE, e->meta);
#endif
    if (!is_alive(e, now_ms))
        return grant(op, IL__ONCE_TAKE, e->meta);
    if (strcmp(e->attempt, op->holder) != 0)
        return answer(op, IL_BUSY, e, now_ms, wall_ms);
    op->out.flags |= IL_OUT_RENEWED;
    op->out.fence = e->token;
    return grant(op, IL__ONCE_RENEW, e->before);
}

int64_t
il__once_claim_purge_ms(const il_op *op, int64_t now_ms)
{
    return now_ms + op->in.once.lease_ms + op->in.once.keep_ms;
}

const char *
il__once_meta(const il_op *op, const struct il__once *taken)
{
    if (op->in.once.meta != NULL)
        return op->in.once.meta;
    return taken != NULL ? taken->meta : "";
}

bool
il__once_finish(il_op *op, const struct il__once *e, int64_t now_ms, int64_t wall_ms)
{
    const il_once_in *in = &op->in.once;

    if (e == NULL || is_gone(e, now_ms, wall_ms)) {
        il__op_end(op, IL_STALE, IL__SAY_NOT_THE_CLAIM);
        return false;
    }
    op->out.fence = e->token;
    if (is_claim_of(e, op) && is_alive(e, now_ms)) {
        op->status           = IL_OK;
        op->out.remaining_ms = e->keep_ms;
        return true;
    }
    if (!e->done || e->token != op->fence) {
        il__op_end(op, IL_STALE, IL__SAY_NOT_THE_CLAIM);
        return false;
    }
    if (e->code != in->code ||
        !same_bytes(e->response, e->response_bytes, in->response, in->response_bytes)) {
        il__op_end(op, IL_MISMATCH, IL__SAY_OTHER_ANSWER);
        return false;
    }
    op->status           = IL_OK;
    op->out.remaining_ms = e->purge_ms - wall_ms;
    return false;
}

bool
il__once_abandon(il_op *op, const struct il__once *e, int64_t now_ms, int64_t wall_ms)
{
    op->status = IL_OK;
    if (e == NULL || is_gone(e, now_ms, wall_ms))
        return false;
    if (is_claim_of(e, op))
        return true;
    op->out.fence = e->token;
    il__op_end(op, IL_STALE, IL__SAY_NOT_THE_CLAIM);
    return false;
}
