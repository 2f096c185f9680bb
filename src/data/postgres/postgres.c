/*
 * postgres.c: a data store in a separate schema beside that of a PostgreSQL store: SCHEMA_admin, by
 * default `interlock_admin`. Applications get rights to the store's schema (docs/SQL.md); only the
 * server's role has rights to this one.
 *
 * One connection. Statements are unnamed and leave no session state, so it works through a pooler
 * in transaction mode. The next call reopens a lost connection; reads and the beginning of a
 * transaction are retried at once.
 */
#include <endian.h>
#include <inttypes.h>

#include "base/error.h"
#include "data/data_internal.h"
#include "store/postgres/conn.h"

#include "data_postgres_sql.inc"

#define UPGRADE_MS 60000

_Static_assert(DATA_PARAMS_MAX <= PG_PARAMS_MAX, "a statement's parameters fit a query");

enum stmt {
#define X(name) STMT_##name,
#include "data_statements.inc"
#include "data_postgres_statements.inc"
#undef X
    STMT_COUNT
};
_Static_assert((int)STMT_audit_purge == (int)DATA_audit_purge, "the common statements come first");

struct postgres_data {
    struct data_engine base;
    struct pg_url      url;
    struct pg_conn     conn;
    char              *sql[STMT_COUNT];
    int64_t            timeout_ms;
    int64_t            until_ns; /* of the transaction that is open */
    bool               in_tx;
    char               schema[PG_SCHEMA_BYTES_MAX + sizeof PG_ADMIN];
    char               where[PG_SHOWN_BYTES + PG_SCHEMA_BYTES_MAX + 32];
};

static struct postgres_data *
from(struct data_engine *e)
{
    return container_of(e, struct postgres_data, base);
}

/* ---- statements ------------------------------------------------------------------------------ */

#define NUMBER_BYTES 24

/* Numbers are sent as text, which the server parses by the declared type. */
static void
set_params(struct pg_query *q, char numbers[][NUMBER_BYTES], const struct data_param *params,
           size_t n)
{
    CHECK(n <= DATA_PARAMS_MAX);
    q->n_params = (int)n;
    for (size_t i = 0; i < n; i++) {
        q->types[i]  = params[i].text != NULL ? PG_TEXT : PG_INT8;
        q->values[i] = params[i].text;
        if (params[i].text != NULL)
            continue;
        (void)snprintf(numbers[i], NUMBER_BYTES, "%" PRId64, params[i].number);
        q->values[i] = numbers[i];
    }
}

static void
take_row(const PGresult *r, int i_row, struct data_row *row)
{
    int n = il__pq->PQnfields(r);

    CHECK(n <= DATA_COLUMNS_MAX);
    *row = (struct data_row){ 0 };
    for (int i = 0; i < n; i++) {
        uint64_t be;
        row->columns[i].text = "";
        if (il__pq->PQftype(r, i) == PG_INT8) {
            CHECK(il__pq->PQgetlength(r, i_row, i) == sizeof be);
            memcpy(&be, il__pq->PQgetvalue(r, i_row, i), sizeof be);
            row->columns[i].number = (int64_t)be64toh(be);
        } else {
            row->columns[i].text = il__pq->PQgetvalue(r, i_row, i); /* NUL-terminated */
        }
    }
}

/* Was the connection lost, so that a retry may succeed? */
static bool
is_lost(const struct postgres_data *s)
{
    return s->conn.pq == NULL;
}

static int64_t
until(const struct postgres_data *s)
{
    return s->in_tx ? s->until_ns : il__pg_in_ms(s->timeout_ms);
}

static il_status
postgres_run(struct data_engine *e, enum data_stmt stmt, const struct data_param *params, size_t n,
             data_row_fn *each, void *cookie, il_error *reterr)
{
    struct postgres_data *s = from(e);
    char                  numbers[DATA_PARAMS_MAX][NUMBER_BYTES];
    struct pg_query       q        = { .sql = s->sql[stmt] };
    int64_t               until_ns = until(s);
    struct data_row       row;

    if (s->in_tx && is_lost(s))
        return il__pg_error(&s->conn, reterr); /* a new connection has no transaction */
    set_params(&q, numbers, params, n);
    PGresult *r = il__pg_query(&s->conn, &q, until_ns);
    if (r == NULL && !s->in_tx && is_lost(s))
        r = il__pg_query(&s->conn, &q, until_ns);
    if (r == NULL)
        return il__pg_error(&s->conn, reterr);
    for (int i = 0; each != NULL && i < il__pq->PQntuples(r); i++) {
        take_row(r, i, &row);
        each(cookie, &row);
    }
    il__pq->PQclear(r);
    return IL_OK;
}

/* ---- transactions ---------------------------------------------------------------------------- */

static void
postgres_rollback(struct data_engine *e)
{
    struct postgres_data *s = from(e);

    s->in_tx = false;
    /* A transaction that cannot be rolled back explicitly ends with its connection. */
    if (!is_lost(s) && !il__pg_exec(&s->conn, s->sql[STMT_rollback], il__pg_in_ms(s->timeout_ms)))
        il__pg_conn_close(&s->conn);
}

static il_status
begin(struct postgres_data *s, enum stmt stmt, int64_t ms, il_error *reterr)
{
    int64_t until_ns = il__pg_in_ms(ms);
    bool    begun    = il__pg_exec(&s->conn, s->sql[stmt], until_ns);

    if (!begun && is_lost(s))
        begun = il__pg_exec(&s->conn, s->sql[stmt], until_ns);
    if (!begun) {
        il_status st = il__pg_error(&s->conn, reterr);
        il__pg_conn_close(&s->conn); /* it may have begun */
        return st;
    }
    s->in_tx    = true;
    s->until_ns = until_ns;
    return IL_OK;
}

static il_status
postgres_begin(struct data_engine *e, il_error *reterr)
{
    struct postgres_data *s = from(e);

    return begin(s, STMT_begin, s->timeout_ms, reterr);
}

static il_status
postgres_commit(struct data_engine *e, il_error *reterr)
{
    struct postgres_data *s = from(e);

    s->in_tx = false;
    if (!is_lost(s) && il__pg_exec(&s->conn, s->sql[STMT_commit], s->until_ns))
        return IL_OK;
    il_status st = il__pg_error(&s->conn, reterr);
    il__pg_conn_close(&s->conn);
    return st;
}

/* ---- versions -------------------------------------------------------------------------------- */

static PGresult *
ask(struct postgres_data *s, enum stmt stmt)
{
    return il__pg_query(&s->conn, &(struct pg_query){ .sql = s->sql[stmt] }, until(s));
}

static il_status
postgres_look(struct data_engine *e, int64_t *ret_version, int64_t *ret_min_version,
              il_error *reterr)
{
    struct postgres_data *s   = from(e);
    struct data_row       row = { 0 };
    il_status             st  = il__pg_owners_check(&s->conn, s->schema, true, until(s), reterr);

    *ret_version = *ret_min_version = 0;
    if (st != IL_OK)
        return st;
    PGresult *r = ask(s, STMT_there);
    if (r == NULL)
        return il__pg_error(&s->conn, reterr);
    bool there = il__pg_bool(r, 0, 0);
    il__pq->PQclear(r);
    if (!there)
        return IL_OK;
    r = ask(s, STMT_meta);
    if (r == NULL)
        return il__pg_error(&s->conn, reterr);
    if (il__pq->PQntuples(r) == 1) {
        take_row(r, 0, &row);
        *ret_version     = row.columns[0].number;
        *ret_min_version = row.columns[1].number;
    }
    il__pq->PQclear(r);
    return IL_OK;
}

static il_status
refuse(const struct postgres_data *s, il_error *reterr)
{
    if (strcmp(s->conn.sqlstate, "42501") == 0) /* insufficient_privilege */
        return il__error_set(reterr, IL_STORE,
                             "%s: cannot create the server's tables as this user; run `interlock "
                             "migrate` as their owner (%.100s)",
                             s->where, s->conn.why);
    return il__pg_error(&s->conn, reterr);
}

/* Make sure that the schema exists. */
static il_status
make_schema(struct postgres_data *s, il_error *reterr)
{
    PGresult *r = ask(s, STMT_upgrade_look);

    if (r == NULL)
        return refuse(s, reterr);
    bool there = il__pg_bool(r, 0, 0);
    bool utf8  = strcmp(il__pq->PQgetvalue(r, 0, 1), "UTF8") == 0;
    il__pq->PQclear(r);
    if (!utf8)
        return il__error_set(reterr, IL_STORE, "%s: the database encoding must be UTF8", s->where);
    if (!there && !il__pg_exec(&s->conn, s->sql[STMT_upgrade_schema], s->until_ns))
        return refuse(s, reterr);
    /* Race-free: as in the store's migrate(). */
    return il__pg_owners_check(&s->conn, s->schema, true, s->until_ns, reterr);
}

static il_status
postgres_begin_upgrade(struct data_engine *e, il_error *reterr)
{
    struct postgres_data *s = from(e);

    return begin(s, STMT_upgrade_begin, MAX(UPGRADE_MS, s->timeout_ms), reterr);
}

static il_status
postgres_upgrade(struct data_engine *e, int64_t version, il_error *reterr)
{
    struct postgres_data *s  = from(e);
    il_status             st = make_schema(s, reterr);

    if (st != IL_OK)
        return st;
    return il__pg_exec(&s->conn, s->sql[STMT_upgrade_path], s->until_ns) &&
                   il__pg_exec(&s->conn, il__data_postgres_schema.steps[version], s->until_ns)
               ? IL_OK
               : refuse(s, reterr);
}

/* ---- opening --------------------------------------------------------------------------------- */

static void
postgres_free(struct data_engine *e)
{
    struct postgres_data *s = from(e);

    il__pg_conn_close(&s->conn);
    il__pg_url_release(&s->url);
    for (size_t i = 0; i < STMT_COUNT; i++)
        il__free(s->sql[i]);
    il__free(s);
}

static const struct data_engine_ops postgres_ops = {
    .schema        = &il__data_postgres_schema,
    .free          = postgres_free,
    .begin         = postgres_begin,
    .commit        = postgres_commit,
    .rollback      = postgres_rollback,
    .run           = postgres_run,
    .look          = postgres_look,
    .begin_upgrade = postgres_begin_upgrade,
    .upgrade       = postgres_upgrade,
};

/* A statement with the name of the schema, which needs no escaping (il__pg_url_parse() has checked
 * it). */
static char *
fill_in(const char *schema, const char *text)
{
    struct il__buf AUTO_BUF b = { 0 };

    il__buf_init(&b, strlen(text) + 512);
    for (const char *at = strchr(text, '@'); at != NULL; at = strchr(text, '@')) {
        bool quoted = strncmp(at, "@schema", 7) == 0;
        CHECK(quoted || strncmp(at, "@name", 5) == 0);
        il__buf_add(&b, text, (size_t)(at - text));
        il__buf_addf(&b, quoted ? "\"%s\"" : "%s", schema);
        text = at + (quoted ? 7 : 5);
    }
    il__buf_adds(&b, text);
    return il__buf_take(&b);
}

static bool
fill_in_all(struct postgres_data *s)
{
    static const char *const texts[] = {
#define X(name) [STMT_##name] = sql_##name,
#include "data_statements.inc"
#include "data_postgres_statements.inc"
#undef X
    };

    for (size_t i = 0; i < STMT_COUNT; i++) {
        s->sql[i] = fill_in(s->schema, texts[i]);
        if (s->sql[i] == NULL)
            return false;
    }
    return true;
}

il_status
il__data_postgres_open(const struct data_engine_open *o, struct data_engine **ret, il_error *reterr)
{
    il_status st = il__pg_libpq_load(reterr);

    if (st != IL_OK)
        return st;
    struct postgres_data *s = il__calloc(1, sizeof *s);
    if (s == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a data store");
    s->base       = (struct data_engine){ .ops = &postgres_ops, .where = s->where };
    s->timeout_ms = o->timeout_ms;
    st            = il__pg_url_parse(&s->url, o->url, reterr);
    (void)snprintf(s->schema, sizeof s->schema, "%s" PG_ADMIN, s->url.schema);
    if (st == IL_OK && !fill_in_all(s))
        st = il__error_set(reterr, IL_NOMEM, "out of memory for a data store");
    if (st != IL_OK) {
        postgres_free(&s->base);
        return st;
    }
    (void)snprintf(s->where, sizeof s->where, "%s, schema %s", s->url.shown, s->schema);
    il__pg_conn_init(&s->conn, s->url.server, s->url.shown);
    s->conn.primary = true;
    *ret            = &s->base;
    return IL_OK;
}
