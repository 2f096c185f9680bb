/*
 * table_guard.c: `interlock guard` on PostgreSQL. functions/guard.sql does the work.
 */
#include "base/error.h"
#include "store/postgres/postgres_internal.h"

static il_status
ask(struct remote_store *s, struct remote_request *r, bool reads, struct remote_answer *a,
    il_error *reterr)
{
    if (!il__remote_end(r))
        return il__error_set(reterr, IL_NOMEM, "out of memory for a guard");
    il_status st = il__remote_send_alone(s, r, reads, a, reterr);
    if (st != IL_OK)
        return st;
    st = il__remote_status(a->reply.head);
    if (st != IL_OK)
        return il__error_set(reterr, st, "%s", il__remote_text(a->reply.head, "detail"));
    return IL_OK;
}

static il_status
list(struct remote_store *s, il__table_guard_fn *each, void *cookie, il_error *reterr)
{
    struct remote_request AUTO_REQUEST r = { 0 };
    struct remote_answer AUTO_ANSWER   a = { 0 };

    il__remote_begin(&r, "x_guards");
    il_status st = ask(s, &r, true, &a, reterr);
    if (st != IL_OK)
        return st;
    const json_t *guards = json_object_get(a.reply.head, "guards");
    for (size_t i = 0; i < json_array_size(guards); i++) {
        const json_t          *row = json_array_get(guards, i); /* [table, key, tenant, refused] */
        struct il__table_guard g   = { il__remote_text_at(row, 0), il__remote_text_at(row, 1),
                                       il__remote_text_at(row, 2),
                                       (uint64_t)il__remote_number_of(json_array_get(row, 3)) };
        each(cookie, &g);
    }
    return IL_OK;
}

il_status
il__pg_guard_table(struct remote_store *s, const struct il__table_guard *change,
                   il__table_guard_fn *each, void *cookie, il_error *reterr)
{
    struct remote_request AUTO_REQUEST r = { 0 };
    struct remote_answer AUTO_ANSWER   a = { 0 };

    if (change == NULL)
        return list(s, each, cookie, reterr);
    il__remote_begin(&r, "x_guard");
    il__remote_put_text(&r, "table", change->table);
    il__remote_put_text(&r, "tenant", change->tenant);
    if (change->key != NULL)
        il__remote_put_text(&r, "key", change->key);
    else
        il__remote_put_number(&r, "remove", 1);
    return ask(s, &r, false, &a, reterr);
}
