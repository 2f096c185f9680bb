/*
 * op.c: the op table, input checks, and the memory of results. Executes no ops.
 */
#include "core/op.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/error.h"
#include "core/cache.h"
#include "core/cursor.h"
#include "core/history.h"
#include "core/key.h"
#include "core/limits.h"
#include "core/once.h"
#include "core/order.h"
#include "core/queue.h"
#include "core/run.h"
#include "core/usage.h"

static const struct op_row {
    const char *name;
    bool        writes;
} op_rows[] = { [IL_OP_NONE] = { "none", false },
#define X(name, num, wire, writes, text) [num] = { wire, writes },
                IL_OP_MAP(X)
#undef X
};

_Static_assert(ARRAY_LEN(op_rows) == IL_OP_COUNT, "IL_OP_COUNT counts the op table");

const char *
il_op_name(il_op_type type)
{
    return (unsigned)type < IL_OP_COUNT ? op_rows[type].name : "unknown";
}

bool
il__op_writes(il_op_type type)
{
    CHECK((unsigned)type < IL_OP_COUNT);
    return op_rows[type].writes;
}

bool
il__op_looks(il_op_type type)
{
    return type == IL_OP_LIST || type == IL_OP_RUN_LIST || type == IL_OP_JOB_LIST ||
           type == IL_OP_QUEUE_LIST || type == IL_OP_CRON_LIST || type == IL_OP_CACHE_STATS ||
           type == IL_OP_USAGE || type == IL_OP_ORDER_LIST;
}

bool
il__op_is_keepalive(il_op_type type)
{
    return type == IL_OP_RENEW || type == IL_OP_JOB_HEARTBEAT;
}

#define ITEM_BYTES_MAX 16384 /* usually of a listing */

size_t
il__op_result_bytes_max(const il_op *op)
{
    size_t n_items;

    switch (op->type) {
    case IL_OP_GET: /* a shared key may have many holders; it shows what fits */
    case IL_OP_RUN_LOG:
    case IL_OP_ONCE_BEGIN:
    case IL_OP_ONCE_GET:
    case IL_OP_JOB_GET:
    case IL_OP_CACHE_GET:
    case IL_OP_CACHE_LOOKUP:
        return IL_BLOB_BYTES_MAX;
    case IL_OP_JOB_CLAIM:
        return MIN((size_t)MAX(op->in.job.limit, 1) * IL_BLOB_BYTES_MAX, IL_RESULT_BYTES_MAX);
    case IL_OP_LIST:
    case IL_OP_RUN_LIST:
    case IL_OP_JOB_LIST:
    case IL_OP_QUEUE_LIST:
    case IL_OP_CRON_LIST:
    case IL_OP_ORDER_LIST:
    case IL_OP_HISTORY:
        n_items = op->in.list.limit != 0 ? op->in.list.limit : IL_PAGE_ITEMS_DEFAULT;
        return MIN(n_items * ITEM_BYTES_MAX, IL_RESULT_BYTES_MAX);
    default:
        return 0;
    }
}

size_t
il__op_result_bytes(const il_op *op)
{
    return il__arena_bytes(op->mem);
}

bool
il__op_has_room(const il_op *op, size_t n_bytes)
{
    return il__op_result_bytes(op) + n_bytes <= il__op_bytes_left(op);
}

enum il__family
il__op_family(il_op_type type)
{
    if (type >= IL_OP_RUN_START && type <= IL_OP_RUN_LOG)
        return IL__FAMILY_RUN;
    if (type >= IL_OP_ONCE_BEGIN && type <= IL_OP_ONCE_GET)
        return IL__FAMILY_ONCE;
    if (type >= IL_OP_JOB_PUSH && type <= IL_OP_CRON_LIST)
        return IL__FAMILY_QUEUE;
    if (type >= IL_OP_CACHE_GET && type <= IL_OP_CACHE_STATS)
        return IL__FAMILY_CACHE;
    return IL__FAMILY_LOCK;
}

const char *
il__op_id(const il_op *op)
{
    switch (op->type) {
    case IL_OP_RUN_START:
    case IL_OP_RUN_STAGE:
    case IL_OP_RUN_FINISH:
    case IL_OP_RUN_CANCEL:
    case IL_OP_RUN_GET:
    case IL_OP_RUN_LOG:
        return op->in.run.id;
    case IL_OP_JOB_PUSH:
    case IL_OP_JOB_CLAIM:
    case IL_OP_JOB_HEARTBEAT:
    case IL_OP_JOB_FINISH:
    case IL_OP_JOB_FAIL:
    case IL_OP_JOB_SNOOZE:
    case IL_OP_JOB_CANCEL:
    case IL_OP_JOB_RETRY:
    case IL_OP_JOB_SEAL:
    case IL_OP_JOB_GET:
        return op->in.job.id;
    case IL_OP_CRON_SET:
    case IL_OP_CRON_REMOVE:
        return op->in.cron.name;
    default: /* other ops have a key, a name or nothing */
        return NULL;
    }
}

size_t
il__op_data_bytes(const il_op *op)
{
    if (il__op_refused(op))
        return 0; /* its sizes were not checked */
    switch (op->type) {
    case IL_OP_RUN_STAGE:
    case IL_OP_RUN_FINISH:
        return op->in.run.log_bytes;
    case IL_OP_ONCE_FINISH:
        return op->in.once.response_bytes;
    case IL_OP_JOB_PUSH:
    case IL_OP_JOB_FINISH:
        return op->in.job.data_bytes;
    case IL_OP_CRON_SET:
        return op->in.cron.data_bytes;
    case IL_OP_CACHE_FILL:
        return op->in.cache.value_bytes;
    default:
        return 0;
    }
}

/* ---- memory of results ---------------------------------------------------------------------- */

void *
il__op_alloc(il_op *op, size_t n_bytes)
{
    return il__arena_alloc(&op->mem, n_bytes);
}

const char *
il__op_strdup(il_op *op, const char *s)
{
    return il__arena_strdup(&op->mem, s);
}

/*
 * Results used only by the newer op families come last in il_op_out and are cleared only if such an
 * op has used the struct: clearing them for every plain acquire and release took a tenth of its
 * time.
 */
void
il__op_reset(il_op *op)
{
    if (op->mem != NULL)
        il__arena_free(&op->mem);
    op->status = IL_OK;
    /* The mark stays: an engine may reset an op and execute it again. */
    if (op->is_wide == 0)
        memset(&op->out, 0, offsetof(il_op_out, runs));
    else
        op->out = (il_op_out){ 0 };
}

void
il_op_release(il_op *op)
{
    if (op != NULL)
        il__op_reset(op);
}

il_status
il__op_end(il_op *op, il_status status, const char *detail)
{
    op->status = status;
    if (detail != NULL)
        op->out.detail = il__op_strdup(op, detail);
    return status;
}

const void *
il__op_blob(il_op *op, const void *data, size_t n_bytes)
{
    char *copy = il__op_alloc(op, n_bytes + 1);

    if (copy == NULL)
        return NULL;
    if (n_bytes > 0)
        memcpy(copy, data, n_bytes);
    copy[n_bytes] = '\0';
    return copy;
}

bool
il__op_add_item(il_op *op, const il_lease_info *item)
{
    il_lease_info copy = *item;

    copy.n_waiters = MIN(item->n_waiters, IL_COUNT_MAX); /* every engine counts so far */
    copy.tenant    = il__op_strdup(op, item->tenant);
    copy.key       = il__op_strdup(op, item->key);
    copy.holder    = il__op_strdup(op, item->holder);
    copy.meta      = il__op_strdup(op, item->meta);
    copy.place     = il__op_strdup(op, item->place);
    copy.reason    = il__op_strdup(op, item->reason);
    if (copy.tenant == NULL || copy.key == NULL || copy.holder == NULL || copy.meta == NULL ||
        copy.place == NULL || copy.reason == NULL)
        return false;
    il_lease_info *slot =
        il__arena_append(&op->mem, &op->out.items, &op->out.n_items, sizeof *slot);
    if (slot != NULL)
        *slot = copy;
    return slot != NULL;
}

/* ---- checking -------------------------------------------------------------------------------- */

il_status
il__op_check_ttl(int64_t ttl_ms, il_error *reterr)
{
    if (ttl_ms < IL_TTL_MS_MIN || ttl_ms > IL_TTL_MS_MAX)
        return il__error_set(reterr, IL_INVAL, "a TTL of %" PRId64 " ms is outside 1s..24h",
                             ttl_ms);
    return IL_OK;
}

il_status
il__op_check_waits(int64_t wait_ms, int64_t settle_ms, il_error *reterr)
{
    if (wait_ms < 0 && wait_ms != IL_FOREVER)
        return il__error_set(reterr, IL_INVAL,
                             "invalid wait of %" PRId64 " ms: must not be negative", wait_ms);
    if (settle_ms < 0 || settle_ms > IL_TTL_MS_MAX)
        return il__error_set(reterr, IL_INVAL, "a settle time of %" PRId64 " ms is outside 0..24h",
                             settle_ms);
    return IL_OK;
}

il_status
il__op_check_blob(const char *what, const void *data, size_t n_bytes, size_t n_max,
                  il_error *reterr)
{
    if (n_bytes > n_max)
        return il__error_set(reterr, IL_INVAL, "the %s has %zu bytes, more than the limit of %zu",
                             what, n_bytes, n_max);
    if (n_bytes > 0 && data == NULL)
        return il__error_set(reterr, IL_INVAL, "the %s is NULL but its length is %zu bytes", what,
                             n_bytes);
    return IL_OK;
}

static il_status
check_acquire(il_op *op, il_error *reterr)
{
    il_lock_in *in = &op->in.lock;

    if (in->ttl_ms == 0)
        in->ttl_ms = IL_TTL_MS_DEFAULT;
    if (il__op_check_ttl(in->ttl_ms, reterr) != IL_OK)
        return IL_INVAL;
    if ((unsigned)in->mode >= IL_MODE_COUNT)
        return il__error_set(reterr, IL_INVAL, "unknown mode %u", (unsigned)in->mode);
    if ((in->mode == IL_MODE_PERMIT) != (in->permits > 0) || in->permits > IL_PERMITS_MAX)
        return il__error_set(reterr, IL_INVAL,
                             "permits must be 1..%d for a semaphore and 0 otherwise, not %u",
                             IL_PERMITS_MAX, in->permits);
    if (il__op_check_waits(in->wait_ms, in->settle_ms, reterr) != IL_OK ||
        il__check_optional("meta", in->meta, IL_META_BYTES_MAX, true, reterr) != IL_OK)
        return IL_INVAL;
    return il__check_optional("place", in->place, IL_PLACE_BYTES_MAX, false, reterr);
}

il_status
il__op_check_limit(il_op *op, uint32_t n_default, il_error *reterr)
{
    il_list_in *in = &op->in.list;

    if (in->limit == 0)
        in->limit = n_default;
    if (in->limit > IL_PAGE_ITEMS_MAX)
        return il__error_set(reterr, IL_INVAL, "limit %u exceeds the maximum of %d", in->limit,
                             IL_PAGE_ITEMS_MAX);
    return IL_OK;
}

il_status
il__op_check_page(il_op *op, size_t prefix_max, il_error *reterr)
{
    const il_list_in *in = &op->in.list;
    const char       *key;
    uint64_t          number;

    if (il__op_check_limit(op, IL_PAGE_ITEMS_DEFAULT, reterr) != IL_OK ||
        il__check_optional("prefix", in->prefix, prefix_max, false, reterr) != IL_OK)
        return IL_INVAL;
    if (in->cursor != NULL && !il__cursor_parse(in->cursor, &key, &number))
        return il__error_set(reterr, IL_INVAL, "invalid cursor");
    return IL_OK;
}

/* Fences are drawn from a counter that stays below 2^53, so that JSON can carry them. */
il_status
il__op_check_fence(const il_op *op, il_error *reterr)
{
    if (op->fence == 0 || op->fence >= IL__FENCE_END)
        return il__error_set(reterr, IL_INVAL, "invalid fence %" PRIu64, op->fence);
    return IL_OK;
}

/* Check a name and record its length. */
il_status
il__op_name(const char *what, const char *text, size_t n_max, uint16_t *ret_bytes, il_error *reterr)
{
    size_t n = il__plain_name_bytes(text, n_max);

    if (n == 0) {
        if (il__check_text(what, text, 1, n_max, false, reterr) != IL_OK)
            return IL_INVAL;
        n = strlen(text);
    }
    *ret_bytes = (uint16_t)n;
    return IL_OK;
}

il_status
il__op_check_holder(il_op *op, il_error *reterr)
{
    if (il__op_name("holder", op->holder, IL_HOLDER_BYTES_MAX, &op->n_bytes.holder, reterr) !=
        IL_OK)
        return IL_INVAL;
    const char *slash = memchr(op->holder, '/', op->n_bytes.holder);
    op->n_bytes.root  = slash != NULL ? (uint16_t)(slash - op->holder) : op->n_bytes.holder;
    return IL_OK;
}

il_status
il__op_check_key(il_op *op, il_error *reterr)
{
    return il__op_name("key", op->key, IL_KEY_BYTES_MAX, &op->n_bytes.key, reterr);
}

static il_status
check_lock(il_op *op, il_error *reterr)
{
    if (op->type == IL_OP_LIST)
        return il__op_check_page(op, IL_KEY_BYTES_MAX, reterr);
    if (op->type == IL_OP_SWEEP)
        return il__op_check_limit(op, IL__SWEEP_ITEMS, reterr);
    if (op->type == IL_OP_USAGE)
        return il__usage_check(op, reterr);
    if (op->type == IL_OP_ORDER_LIST)
        return il__order_list_check(op, reterr);
    if (op->type == IL_OP_REFUSED || op->type == IL_OP_HISTORY)
        return il__history_check(op, reterr);
    if (il__op_check_key(op, reterr) != IL_OK)
        return IL_INVAL;
    if (op->type == IL_OP_GET)
        return IL_OK;
    if (op->type == IL_OP_CHECK_FENCE)
        return il__op_check_fence(op, reterr);
    if (op->type == IL_OP_BREAK) {
        if (il__check_text("reason", op->in.lock.reason, 1, IL_PLACE_BYTES_MAX, false, reterr) !=
            IL_OK)
            return IL_INVAL;
        if (il__check_optional("meta", op->in.lock.meta, IL_META_BYTES_MAX, true, reterr) != IL_OK)
            return IL_INVAL;
        /* A lock without a fence, taken by a classic Redis client, is identified by its holder. */
        return op->fence == 0 && op->holder != NULL ? il__op_check_holder(op, reterr)
                                                    : il__op_check_fence(op, reterr);
    }
    if (il__op_check_holder(op, reterr) != IL_OK)
        return IL_INVAL;
    if (op->type == IL_OP_ACQUIRE)
        return check_acquire(op, reterr);
    if (il__op_check_fence(op, reterr) != IL_OK)
        return IL_INVAL;
    /* A renewal may reuse the TTL of the grant. */
    return op->type == IL_OP_RENEW && op->in.lock.ttl_ms != 0
               ? il__op_check_ttl(op->in.lock.ttl_ms, reterr)
               : IL_OK;
}

static il_status
check_op(il_op *op, il_error *reterr)
{
    if (op->n_bytes.tenant == 0 && il__op_name("tenant", op->tenant, IL_TENANT_BYTES_MAX,
                                               &op->n_bytes.tenant, reterr) != IL_OK)
        return IL_INVAL;
    switch (il__op_family(op->type)) {
    case IL__FAMILY_RUN:
        return il__run_check(op, reterr);
    case IL__FAMILY_ONCE:
        return il__once_check(op, reterr);
    case IL__FAMILY_QUEUE:
        return il__queue_check(op, reterr);
    case IL__FAMILY_CACHE:
        return il__cache_check(op, reterr);
    case IL__FAMILY_LOCK:
    default:
        return check_lock(op, reterr);
    }
}

/* Why the op is refused: checks once more, this time with a message. A separate function, since an
 * il_error is large. */
static __attribute__((noinline)) bool
refuse(il_op *op)
{
    il_error err = { .message = "unknown operation" };

    if (op->type == IL_OP_NONE || (unsigned)op->type >= IL_OP_COUNT)
        op->type = IL_OP_NONE;
    else
        CHECK(check_op(op, &err) != IL_OK);
    il__op_end(op, IL_INVAL, err.message);
    return false;
}

bool
il__op_prepare(il_op *op, const char *default_tenant, size_t tenant_bytes)
{
    il__op_reset(op);
    op->n_bytes.tenant = 0;
#ifdef IL_MUTANT_tenant_ignored
    op->tenant = NULL;
#endif
    if (op->tenant == NULL || op->tenant == default_tenant) {
        op->tenant         = default_tenant;
        op->n_bytes.tenant = (uint16_t)tenant_bytes; /* checked when the handle was opened */
    }
    bool known = op->type != IL_OP_NONE && (unsigned)op->type < IL_OP_COUNT;
    if (op->type >= IL_OP_RUN_START)
        op->is_wide = 1;
    return (known && check_op(op, NULL) == IL_OK) || refuse(op);
}
