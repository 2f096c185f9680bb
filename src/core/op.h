/*
 * op.h: internals of ops: checking their inputs, and the memory of their results.
 */
#ifndef IL_CORE_OP_H
#define IL_CORE_OP_H

#include "base/base.h"

/* Which part of the core an op belongs to. */
enum il__family {
    IL__FAMILY_LOCK,
    IL__FAMILY_RUN,
    IL__FAMILY_ONCE,
    IL__FAMILY_QUEUE,
    IL__FAMILY_CACHE,
};
enum il__family il__op_family(il_op_type type);

/* Size of the value that an op stores: a payload, a result, a response, output. 0 if refused. */
size_t il__op_data_bytes(const il_op *op);

/* The id or name that an op has besides its key: of a run, a job, a claim, a schedule; or NULL.
 * Unchecked if the op was refused. */
const char *il__op_id(const il_op *op);

/* Does this type change the store? */
bool il__op_writes(il_op_type type);

/* Does this type list or count? Such ops read between two commits, never inside one. */
bool il__op_looks(il_op_type type);
/* Does it only keep a lease, a run or a claim alive? Such ops go first in the next commit. */
bool il__op_is_keepalive(il_op_type type);

/*
 * Maximum size of its results in bytes, apart from a few names and texts. Claims and GET stop
 * before op->bytes_left; a page of unusually long texts may be larger.
 */
size_t il__op_result_bytes_max(const il_op *op);
/* The memory that its results occupy. */
size_t il__op_result_bytes(const il_op *op);
/* The memory that they may occupy. */
static inline uint64_t
il__op_bytes_left(const il_op *op)
{
    return op->bytes_left != 0 ? op->bytes_left : IL_RESULT_BYTES_MAX;
}
/* May the op return one more item of this many bytes? The first one is always returned. */
bool il__op_has_room(const il_op *op, size_t n_bytes);

/*
 * Check an op, record the lengths of its names, and fill in its defaults (tenant, TTL, page size).
 * False: op->status is IL_INVAL and op->out.detail says why; the engine never sees it.
 */
bool il__op_prepare(il_op *op, const char *default_tenant, size_t tenant_bytes);

/* Check a name (1..n_max bytes, no control characters) and record its length. For the checks of the
 * op families. */
il_status il__op_name(const char *what, const char *text, size_t n_max, uint16_t *ret_bytes,
                      il_error *reterr) MUST_USE;
/* The same for op->key and op->holder; and a token or fence. */
il_status il__op_check_key(il_op *op, il_error *reterr) MUST_USE;
il_status il__op_check_holder(il_op *op, il_error *reterr) MUST_USE;
il_status il__op_check_fence(const il_op *op, il_error *reterr) MUST_USE;
/* Fill in the default of in.list.limit and check it. */
il_status il__op_check_limit(il_op *op, uint32_t n_default, il_error *reterr) MUST_USE;
/* Check a page of a listing: limit, prefix and cursor. */
il_status il__op_check_page(il_op *op, size_t prefix_max, il_error *reterr) MUST_USE;
/* Check the times of a lease; a settle time. */
il_status il__op_check_ttl(int64_t ttl_ms, il_error *reterr) MUST_USE;
il_status il__op_check_waits(int64_t wait_ms, int64_t settle_ms, il_error *reterr) MUST_USE;
/* Check a caller's bytes: NULL only if the length is 0. */
il_status il__op_check_blob(const char *what, const void *data, size_t n_bytes, size_t n_max,
                            il_error *reterr) MUST_USE;

/* Has il__op_prepare() refused it? Then engines skip it. */
static inline bool
il__op_refused(const il_op *op)
{
    return op->status == IL_INVAL;
}

/* Memory that lives until il_op_release(); NULL when out of memory. */
void       *il__op_alloc(il_op *op, size_t n_bytes);
const char *il__op_strdup(il_op *op, const char *s);

/* Copy bytes and append a NUL. */
const void *il__op_blob(il_op *op, const void *data, size_t n_bytes);

/* Discard results, so that the op can be applied again after a failed attempt. */
void il__op_reset(il_op *op);

/* Set status and detail; the detail is omitted when out of memory. Returns the status. */
il_status il__op_end(il_op *op, il_status status, const char *detail);

/*
 * Append one item to out.items; strings are copied. False when out of memory: then the engine fails
 * the op with IL_NOMEM.
 */
bool il__op_add_item(il_op *op, const il_lease_info *item) MUST_USE;

#endif
