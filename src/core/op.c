/*
 * op.c: the op table, checking of inputs, and the memory of results. No op is carried out here.
 */
#include "core/op.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/error.h"
#include "core/key.h"
#include "core/limits.h"

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

void
il__op_reset(il_op *op)
{
    if (op->mem != NULL)
        il__arena_free(&op->mem);
    op->status = IL_OK;
    op->out    = (il_op_out){ 0 };
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

/* Items grow by doubling; the old array stays in the arena until the op is released. */
static bool
grow_items(il_op *op)
{
    size_t n = op->out.n_items;

    if (n != 0 && (n & (n - 1)) != 0)
        return true; /* not a power of two: there is room */
    il_lease_info *items = il__op_alloc(op, (n == 0 ? 1 : n * 2) * sizeof *items);
    if (items == NULL)
        return false;
    if (n > 0)
        memcpy(items, op->out.items, n * sizeof *items);
    op->out.items = items;
    return true;
}

bool
il__op_add_item(il_op *op, const il_lease_info *item)
{
    il_lease_info copy = *item;

    copy.tenant = il__op_strdup(op, item->tenant);
    copy.key    = il__op_strdup(op, item->key);
    copy.holder = il__op_strdup(op, item->holder);
    copy.meta   = il__op_strdup(op, item->meta);
    copy.place  = il__op_strdup(op, item->place);
    copy.reason = il__op_strdup(op, item->reason);
    if (copy.tenant == NULL || copy.key == NULL || copy.holder == NULL || copy.meta == NULL ||
        copy.place == NULL || copy.reason == NULL || !grow_items(op))
        return false;
    il_lease_info *items;
    memcpy(&items, &op->out.items, sizeof items); /* ours to write, const for the caller */
    items[op->out.n_items++] = copy;
    return true;
}

/* ---- cursors --------------------------------------------------------------------------------- */

const char *
il__op_cursor(il_op *op, const char *key, uint64_t number)
{
    size_t n_bytes = strlen(key) + 18;
    char  *text    = il__op_alloc(op, n_bytes);

    if (text != NULL)
        (void)snprintf(text, n_bytes, "%" PRIx64 ":%s", number, key);
    return text;
}

bool
il__cursor_parse(const char *cursor, const char **ret_key, uint64_t *ret_number)
{
    size_t   n_digits = strspn(cursor, "0123456789abcdef");
    uint64_t number   = 0;

    if (n_digits == 0 || n_digits > 16 || cursor[n_digits] != ':')
        return false;
    for (size_t i = 0; i < n_digits; i++) {
        char c = cursor[i];
        number = number * 16 + (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    *ret_key    = cursor + n_digits + 1;
    *ret_number = number;
    return number <= INT64_MAX && il_check_key(*ret_key, NULL) == IL_OK;
}

/* ---- checking -------------------------------------------------------------------------------- */

static il_status
check_ttl(il_op *op, il_error *reterr)
{
    il_lock_in *in = &op->in.lock;

    if (in->ttl_ms == 0 && op->type == IL_OP_ACQUIRE)
        in->ttl_ms = IL_TTL_MS_DEFAULT;
    if (in->ttl_ms == 0 && op->type == IL_OP_RENEW)
        return IL_OK; /* as granted */
    if (in->ttl_ms < IL_TTL_MS_MIN || in->ttl_ms > IL_TTL_MS_MAX)
        return il__error_set(reterr, IL_INVAL, "a ttl of %" PRId64 " ms is outside 1s..24h",
                             in->ttl_ms);
    return IL_OK;
}

static il_status
check_acquire(il_op *op, il_error *reterr)
{
    il_lock_in *in = &op->in.lock;

    if (check_ttl(op, reterr) != IL_OK)
        return IL_INVAL;
    if ((unsigned)in->mode >= IL_MODE_COUNT)
        return il__error_set(reterr, IL_INVAL, "%u is not a mode", (unsigned)in->mode);
    if ((in->mode == IL_MODE_PERMIT) != (in->permits > 0) || in->permits > IL_PERMITS_MAX)
        return il__error_set(reterr, IL_INVAL,
                             "permits must be 1..%d for a semaphore and 0 otherwise, not %u",
                             IL_PERMITS_MAX, in->permits);
    if (in->wait_ms < 0 && in->wait_ms != IL_FOREVER)
        return il__error_set(reterr, IL_INVAL, "a wait of %" PRId64 " ms is negative", in->wait_ms);
    if (in->settle_ms < 0 || in->settle_ms > IL_TTL_MS_MAX)
        return il__error_set(reterr, IL_INVAL, "a settle time of %" PRId64 " ms is outside 0..24h",
                             in->settle_ms);
    if (in->meta != NULL && il__check_text("meta", in->meta, 0, IL_META_BYTES_MAX, true, reterr) != IL_OK)
        return IL_INVAL;
    if (in->place != NULL &&
        il__check_text("place", in->place, 0, IL_PLACE_BYTES_MAX, false, reterr) != IL_OK)
        return IL_INVAL;
    return IL_OK;
}

static il_status
check_list(il_op *op, il_error *reterr)
{
    il_list_in *in = &op->in.list;
    const char *key;
    uint64_t    number;

    if (in->limit == 0)
        in->limit = op->type == IL_OP_SWEEP ? IL__SWEEP_ITEMS : IL_PAGE_ITEMS_DEFAULT;
    if (in->limit > IL_PAGE_ITEMS_MAX)
        return il__error_set(reterr, IL_INVAL, "a limit of %u is over %d", in->limit,
                             IL_PAGE_ITEMS_MAX);
    if (op->type == IL_OP_SWEEP)
        return IL_OK;
    if (in->prefix != NULL &&
        il__check_text("prefix", in->prefix, 0, IL_KEY_BYTES_MAX, false, reterr) != IL_OK)
        return IL_INVAL;
    if (in->cursor != NULL && !il__cursor_parse(in->cursor, &key, &number))
        return il__error_set(reterr, IL_INVAL, "the cursor is not one that a listing gave");
    return IL_OK;
}

/* Fences are drawn from a counter that stays below 2^53, so that JSON can carry them. */
static il_status
check_fence(const il_op *op, il_error *reterr)
{
    if (op->fence == 0 || op->fence >= IL__FENCE_END)
        return il__error_set(reterr, IL_INVAL, "%" PRIu64 " is not a fence", op->fence);
    return IL_OK;
}

/* Check a name and note its length. */
static il_status
check_name(const char *what, const char *text, size_t n_max, uint16_t *ret_bytes, il_error *reterr)
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

static il_status
check_holder(il_op *op, il_error *reterr)
{
    if (check_name("holder", op->holder, IL_HOLDER_BYTES_MAX, &op->n_bytes.holder, reterr) != IL_OK)
        return IL_INVAL;
    const char *slash = memchr(op->holder, '/', op->n_bytes.holder);
    op->n_bytes.root  = slash != NULL ? (uint16_t)(slash - op->holder) : op->n_bytes.holder;
    return IL_OK;
}

static il_status
check_op(il_op *op, il_error *reterr)
{
    if (op->n_bytes.tenant == 0 &&
        check_name("tenant", op->tenant, IL_TENANT_BYTES_MAX, &op->n_bytes.tenant, reterr) != IL_OK)
        return IL_INVAL;
    if (op->type == IL_OP_LIST || op->type == IL_OP_SWEEP)
        return check_list(op, reterr);
    if (check_name("key", op->key, IL_KEY_BYTES_MAX, &op->n_bytes.key, reterr) != IL_OK)
        return IL_INVAL;
    if (op->type == IL_OP_GET)
        return IL_OK;
    if (op->type == IL_OP_CHECK_FENCE)
        return check_fence(op, reterr);
    if (op->type == IL_OP_BREAK) {
        if (il__check_text("reason", op->in.lock.reason, 1, IL_PLACE_BYTES_MAX, false, reterr) != IL_OK)
            return IL_INVAL;
        return check_fence(op, reterr);
    }
    if (check_holder(op, reterr) != IL_OK)
        return IL_INVAL;
    if (op->type == IL_OP_ACQUIRE)
        return check_acquire(op, reterr);
    if (check_fence(op, reterr) != IL_OK)
        return IL_INVAL;
    return op->type == IL_OP_RENEW ? check_ttl(op, reterr) : IL_OK;
}

/* Why the op is refused: checked once more, this time with a text. Apart, since an il_error is large. */
static __attribute__((noinline)) bool
refuse(il_op *op)
{
    il_error err = { .message = "not an operation" };

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
        op->n_bytes.tenant = (uint16_t)tenant_bytes; /* was checked when the handle was opened */
    }
    bool known = op->type != IL_OP_NONE && (unsigned)op->type < IL_OP_COUNT;
    return (known && check_op(op, NULL) == IL_OK) || refuse(op);
}
