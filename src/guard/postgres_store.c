/*
 * postgres_store.c: for leases and data in the same database: the store's own function checks the
 * fence, in the user's transaction.
 *
 * Comparing URLs would not tell whether they share one, since a URL can be spelled in many ways.
 * Instead the database is searched: a store in the handle's schema that has issued this fence. So
 * every server comes to the same answer, and all transactions of a key are guarded in the same way.
 */
#include "base/error.h"
#include "guard/postgres_internal.h"
#include "runtime/handle.h"
#include "store/decorators/decorator.h"
#include "store/postgres/postgres_internal.h"

#include "guard_postgres_store_sql.inc"

#define TEXT_BYTES 512

/* The schema of the handle's store; NULL: not PostgreSQL. */
static const char *
schema_of(il *h)
{
    struct il__store *s = h->store;

    while (strcmp(s->ops->name, "trace") == 0 || strcmp(s->ops->name, "fault") == 0)
        s = il__decorator_from(s)->inner;
    if (strcmp(s->ops->name, "postgres") != 0)
        return NULL;
    return il__pg_from(container_of(s, struct remote_store, base))->url.schema;
}

/* A statement with the name of the schema, which needs no escaping (il__pg_url_parse() has checked
 * it). */
static void
fill_in(char out[TEXT_BYTES], const char *text, const char *schema)
{
    const char *at = strstr(text, "@schema");

    CHECK(at != NULL);
    int n = snprintf(out, TEXT_BYTES, "%.*s\"%s\"%s", (int)(at - text), text, schema, at + 7);
    CHECK(n > 0 && n < TEXT_BYTES);
}

static int
take_answer(void *cookie, const il_guard_row *row)
{
    *(int *)cookie = row->values[0].integer != 0;
    return 0;
}

/* -1: no store; 0: a store that this user may not use; 1: a usable store. */
static il_status
look_for_store(struct postgres_guard *g, const char *schema, int *ret, il_error *reterr)
{
    il_guard_value         value = il_guard_text(schema);
    struct guard_statement s     = { .sql      = sql_postgres_store_there,
                                     .values   = &value,
                                     .n_values = 1,
                                     .each     = take_answer,
                                     .cookie   = ret };
    struct postgres_run    how   = { .until_ns = il__guard_postgres_soon(g) };

    *ret = -1;
    return il__guard_postgres_run(g, &s, &how, reterr);
}

static il_status
with_fence(struct postgres_guard *g, const char *text, const char *schema,
           const struct guard_shown *f, il_guard_row_fn *each, void *cookie, il_error *reterr)
{
    il_guard_value         values[] = { il_guard_text(f->tenant), il_guard_text(f->key),
                                        il_guard_text(f->text) };
    char                   sql[TEXT_BYTES];
    struct guard_statement s = {
        .sql = sql, .values = values, .n_values = 3, .each = each, .cookie = cookie
    };
    struct postgres_run how = { .until_ns = il__guard_postgres_soon(g) };

    fill_in(sql, text, schema);
    return il__guard_postgres_run(g, &s, &how, reterr);
}

il_status
il__guard_postgres_shares(struct guard_conn *c, il *h, struct guard_shown *f, bool *ret,
                          il_error *reterr)
{
    struct postgres_guard *g      = il__guard_postgres_from(c);
    const char            *schema = schema_of(h);
    struct guard_number    knows  = { 0 };
    int                    there;

    *ret = false;
    if (schema == NULL)
        return IL_OK;
    il_status st = look_for_store(g, schema, &there, reterr);
    if (st != IL_OK || there < 0)
        return st;
    /* Do not fall back to the table: another connection to this database may have the rights, and
     * the two would not see each other. */
    if (there == 0)
        return il__error_set(reterr, IL_INVAL,
                             "%s: not permitted to call check_fence() of the store in schema %s; "
                             "see docs/SQL.md for the GRANTs",
                             g->url.shown, schema);
    st = with_fence(g, sql_postgres_store_knows, schema, f, il__guard_take_number, &knows, reterr);
    if (st == IL_OK && knows.there) {
        f->schema = schema; /* the handle outlives the transaction */
        *ret      = true;
    }
    return st;
}

il_status
il__guard_postgres_shared_show(struct guard_conn *c, const struct guard_shown *f, il_error *reterr)
{
    struct postgres_guard *g = il__guard_postgres_from(c);

    return with_fence(g, sql_postgres_store_show, f->schema, f, NULL, NULL, reterr);
}

il_status
il__guard_postgres_shared_check(struct guard_conn *c, const struct guard_shown *f, il_error *reterr)
{
    struct postgres_guard *g = il__guard_postgres_from(c);

    il_status st = with_fence(g, sql_postgres_store_check, f->schema, f, NULL, NULL, reterr);
    return st == IL_STALE ? il__guard_stale(f, 0, reterr) : st;
}
