/*
 * op.h: operations from the inside: which are acceptable, and the memory of their results.
 */
#ifndef IL_CORE_OP_H
#define IL_CORE_OP_H

#include "base/base.h"

/* Does this type change the store? */
bool il__op_writes(il_op_type type);

/*
 * Check an op, note the lengths of its names, and fill in its defaults (tenant, TTL, page size). False: op->status is IL_INVAL and
 * op->out.detail says why; the engine never sees it.
 */
bool il__op_prepare(il_op *op, const char *default_tenant, size_t tenant_bytes);

/* Has il__op_prepare() refused it? Then engines pass over it. */
static inline bool
il__op_refused(const il_op *op)
{
    return op->status == IL_INVAL;
}

/* Memory that lives until il_op_release(); NULL when there is none. */
void       *il__op_alloc(il_op *op, size_t n_bytes);
const char *il__op_strdup(il_op *op, const char *s);

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
