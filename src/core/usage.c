/*
 * usage.c: adds up a tenant's storage; see usage.h.
 */
#include "core/usage.h"

#include "base/error.h"
#include "core/cursor.h"
#include "core/op.h"

#define KIND_BITS_AT 56 /* of a cursor's number; the engine's is below it */

static bool
parse(const char *cursor, struct il__usage_place *ret)
{
    uint64_t number = 0;

    *ret = (struct il__usage_place){ .name = "" };
    if (cursor == NULL)
        return true;
    if (!il__cursor_parse(cursor, &ret->name, &number))
        return false;
    ret->kind   = (enum il__usage_kind)(number >> KIND_BITS_AT);
    ret->number = number & ((UINT64_C(1) << KIND_BITS_AT) - 1);
    return ret->kind < IL__USAGE_KINDS;
}

il_status
il__usage_check(il_op *op, il_error *reterr)
{
    struct il__usage_place place;

    if (il__op_check_page(op, 0, reterr) != IL_OK)
        return IL_INVAL;
    if (!parse(op->in.list.cursor, &place))
        return il__error_set(reterr, IL_INVAL, "invalid cursor");
    return IL_OK;
}

struct il__usage_place
il__usage_place(const il_op *op)
{
    struct il__usage_place place;

    CHECK(parse(op->in.list.cursor, &place));
    return place;
}

bool
il__usage_next(il_op *op, const struct il__usage_place *last)
{
    CHECK(last->number >> KIND_BITS_AT == 0);
    op->out.next =
        il__op_cursor(op, last->name, (uint64_t)last->kind << KIND_BITS_AT | last->number);
    return op->out.next != NULL;
}
