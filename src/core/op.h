/*
 * op.h: operations from the inside: which are acceptable, and the memory of their results.
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

/* The id or name that an op gives besides its key: of a run, a job, a claim, a schedule; or NULL. Not checked if it was refused. */
const char *il__op_id(const il_op *op);

/* Does this type change the store? */
bool il__op_writes(il_op_type type);

/*
 * Check an op, note the lengths of its names, and fill in its defaults (tenant, TTL, page size). False: op->status is IL_INVAL and
 * op->out.detail says why; the engine never sees it.
 */
bool il__op_prepare(il_op *op, const char *default_tenant, size_t tenant_bytes);

/* Check a name (1..n_max bytes, no control characters) and note its length. For the checks of the families. */
il_status il__op_name(const char *what, const char *text, size_t n_max, uint16_t *ret_bytes,
                      il_error *reterr) MUST_USE;
/* The same for op->key and op->holder; and a token or fence. */
il_status il__op_check_key(il_op *op, il_error *reterr) MUST_USE;
il_status il__op_check_holder(il_op *op, il_error *reterr) MUST_USE;
il_status il__op_check_fence(const il_op *op, il_error *reterr) MUST_USE;
/* in.list.limit gets its default and is checked. */
il_status il__op_check_limit(il_op *op, uint32_t n_default, il_error *reterr) MUST_USE;
/* A page of a listing: limit, prefix and cursor. */
il_status il__op_check_page(il_op *op, size_t prefix_max, il_error *reterr) MUST_USE;
/* The times of a lease; a settle time. */
il_status il__op_check_ttl(int64_t ttl_ms, il_error *reterr) MUST_USE;
il_status il__op_check_waits(int64_t wait_ms, int64_t settle_ms, il_error *reterr) MUST_USE;
/* Bytes that a caller gives: NULL only if there are none. */
il_status il__op_check_blob(const char *what, const void *data, size_t n_bytes, size_t n_max,
                            il_error *reterr) MUST_USE;

/* Has il__op_prepare() refused it? Then engines pass over it. */
static inline bool
il__op_refused(const il_op *op)
{
    return op->status == IL_INVAL;
}

/* Memory that lives until il_op_release(); NULL when there is none. */
void       *il__op_alloc(il_op *op, size_t n_bytes);
const char *il__op_strdup(il_op *op, const char *s);

/* Bytes with a NUL behind them. */
const void *il__op_blob(il_op *op, const void *data, size_t n_bytes);
/*
 * Room for one more item in an array of the results, which grows: `items_field` is the address of out.items, out.runs, …, and
 * *n of its number, which is counted up. Not initialised; NULL when there is no memory.
 */
void *il__op_append(il_op *op, const void *items_field, size_t *n, size_t item_bytes);

/* Forget results, so that the op can be applied once more after a failed attempt. */
void il__op_reset(il_op *op);

/* Set status and detail; a detail that finds no memory is left out. Returns the status. */
il_status il__op_end(il_op *op, il_status status, const char *detail);

/*
 * Append one item to out.items, growing it; strings are copied. False when there is no memory: then the
 * engine fails the op with IL_NOMEM.
 */
bool il__op_add_item(il_op *op, const il_lease_info *item) MUST_USE;

/*
 * Cursors: (key, number) of the last item of a page. The text is opaque to users: the number in hex, a
 * colon, the key. Parsing gives the key as a pointer into the cursor.
 */
const char *il__op_cursor(il_op *op, const char *key, uint64_t number);
bool        il__cursor_parse(const char *cursor, const char **ret_key, uint64_t *ret_number);

#endif
