/*
 * list.c: lists, page by page. The first column of their statements is the cursor: the next page
 * begins after the row that has it.
 */
#include "apps/campus/campus_tx.h"
#include "base/arena.h"

#include "apps/campus/campus_entity_sql.inc"

#define PIPELINE "campus"
#define LIMIT 100 /* unless given */

typedef void take_fn(const struct campus_rows *r, size_t i, void *item);

/* Read one row more than a page has; `bytes`: of an item. */
static il_status
read_page(struct campus_op *op, il_guard_tx *tx, const struct app_statement *list, take_fn *take,
          size_t bytes, il_error *reterr)
{
    const struct campus_in *in    = op->in;
    struct campus_page     *out   = op->out;
    uint32_t                limit = in->limit > 0 ? in->limit : LIMIT;
    const il_guard_value    of[]  = { il_guard_text(op->c->tenant),
                                      il_guard_text(in->cursor != NULL ? in->cursor : ""),
                                      il_guard_int((int64_t)limit + 1), il_guard_text(in->user) };
    struct campus_rows      r;

    il_status st = campus_read(op->c, tx, list, of, in->user != NULL ? 4 : 3, &r, reterr);
    if (st != IL_OK)
        return st;
    *out = (struct campus_page){ .items = il__arena_alloc(&op->c->mem, (r.n + 1) * bytes),
                                 .n     = MIN(r.n, (size_t)limit),
                                 .bytes = bytes };
    if (out->items == NULL)
        return campus_no_memory(reterr);
    for (size_t i = 0; i < out->n; i++)
        take(&r, i, (char *)out->items + i * bytes);
    if (r.n > out->n)
        out->next = campus_text(&r, out->n - 1, 0);
    return IL_OK;
}

/* ---- of a user, who must exist --------------------------------------------------------------- */

static void
take_badge(const struct campus_rows *r, size_t i, void *item)
{
    *(struct campus_badge_row *)item =
        (struct campus_badge_row){ .id         = campus_text(r, i, 0),
                                   .tournament = campus_text(r, i, 1),
                                   .type       = campus_text(r, i, 2),
                                   .created_ms = campus_int(r, i, 3) };
}

static il_status
list_badges(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    static const struct app_statement list = APP_STATEMENT(badge_list);
    struct campus_op                 *op   = cookie;
    struct campus_user                user;
    il_status                         st = campus_user_read(op->c, tx, op->in->user, &user, reterr);

    return st == IL_OK
               ? read_page(op, tx, &list, take_badge, sizeof(struct campus_badge_row), reterr)
               : st;
}

il_status
campus_badge_list(struct campus_call *c, const struct campus_in *in, void *out, il_error *reterr)
{
    return campus_transact_read_only(&(struct campus_op){ c, in, out, NULL }, PIPELINE, NULL,
                                     list_badges, reterr);
}

static void
take_license(const struct campus_rows *r, size_t i, void *item)
{
    *(struct campus_license *)item = campus_license_of(r, i);
}

static il_status
list_licenses(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    static const struct app_statement list = APP_STATEMENT(license_list);
    struct campus_op                 *op   = cookie;
    struct campus_user                user;
    il_status                         st = campus_user_read(op->c, tx, op->in->user, &user, reterr);

    return st == IL_OK
               ? read_page(op, tx, &list, take_license, sizeof(struct campus_license), reterr)
               : st;
}

il_status
campus_license_list(struct campus_call *c, const struct campus_in *in, void *out, il_error *reterr)
{
    return campus_transact_read_only(&(struct campus_op){ c, in, out, NULL }, PIPELINE, NULL,
                                     list_licenses, reterr);
}

/* ---- tournaments ----------------------------------------------------------------------------- */

static void
take_tournament(const struct campus_rows *r, size_t i, void *item)
{
    *(struct campus_tournament *)item = campus_tournament_of(r, i);
}

static il_status
list_tournaments(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    static const struct app_statement list = APP_STATEMENT(tournament_list);
    struct campus_op                 *op   = cookie;

    return read_page(op, tx, &list, take_tournament, sizeof(struct campus_tournament), reterr);
}

il_status
campus_tournament_list(struct campus_call *c, const struct campus_in *in, void *out,
                       il_error *reterr)
{
    return campus_transact_read_only(&(struct campus_op){ c, in, out, NULL }, PIPELINE, NULL,
                                     list_tournaments, reterr);
}
