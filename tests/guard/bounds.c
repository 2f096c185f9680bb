/*
 * bounds.c: values of every type both ways, several fences, tags, every limit, bad arguments, and
 * read-only transactions.
 */
#include "guard/rows.h"

static il_guard_tx *
begin(il_guard *c)
{
    return t_begin(c, NULL, false);
}

/* ---- values ---------------------------------------------------------------------------------- */

#define VALUES_MAX 8

struct row {
    size_t         n;
    il_guard_value values[VALUES_MAX];
    char           bytes[VALUES_MAX][64];
};

static int
take_row(void *cookie, const il_guard_row *row)
{
    struct row *r = cookie;

    r->n = row->n;
    for (size_t i = 0; i < row->n && i < VALUES_MAX; i++) {
        r->values[i] = row->values[i];
        if (row->values[i].data != NULL) {
            CHECK(row->values[i].n_bytes < sizeof r->bytes[i]);
            memcpy(r->bytes[i], row->values[i].data, row->values[i].n_bytes);
            r->bytes[i][row->values[i].n_bytes] = '\0';
            r->values[i].data                   = r->bytes[i];
        }
    }
    return 1;
}

/* The last row, until the next call. */
static const struct row *
ask(il_guard_tx *tx, const char *sql, const il_guard_value *values, size_t n, uint32_t flags)
{
    static struct row    r;
    const il_guard_query q = {
        .sql = sql, .values = values, .n_values = n, .flags = flags, .each = take_row, .cookie = &r
    };

    r = (struct row){ 0 };
    R_RUN(il_guard_exec(tx, &q, NULL, why));
    return &r;
}

static void
make_typed(const struct t_ground *g)
{
    t_sql(g, g->is_postgres ? "CREATE TABLE v (i BIGINT, d DOUBLE PRECISION, t TEXT, b BYTEA, "
                              "j JSONB, yes BOOLEAN, n NUMERIC)"
                            : "CREATE TABLE v (i INTEGER, d REAL, t TEXT, b BLOB, j TEXT, "
                              "yes INTEGER, n TEXT)");
}

static void
is_bytes(const il_guard_value *v, il_guard_type type, const void *data, size_t n)
{
    T_EQ(v->type, type);
    T_EQ(v->n_bytes, n);
    T_TRUE(n == 0 || memcmp(v->data, data, n) == 0);
}

static void
round_trip(const struct t_ground *g, il_guard_tx *tx, int64_t i, double d, const char *text,
           const void *blob, size_t n_blob, const char *json)
{
    const il_guard_value in[] = { R_INT(i),
                                  il_guard_double(d),
                                  R_TEXT(text),
                                  il_guard_blob(blob, n_blob),
                                  il_guard_json(json),
                                  R_INT(1),
                                  R_TEXT("12.50") };

    t_exec(tx, "DELETE FROM v");
    (void)ask(tx,
              g->is_postgres ? "INSERT INTO v VALUES ($1, $2, $3, $4, $5, $6::int::boolean, $7)"
                             : "INSERT INTO v VALUES ($1, $2, $3, $4, $5, $6, $7)",
              in, ARRAY_LEN(in), 0);
    const struct row *r = ask(tx, "SELECT * FROM v WHERE i = $1 AND t = $3 AND d = $2", in, 3, 0);
    T_EQ(r->n, 7);
    T_EQ(r->values[0].type, IL_GUARD_INT);
    T_EQ(r->values[0].integer, i);
    T_EQ(r->values[1].type, IL_GUARD_DOUBLE);
    T_TRUE(!(r->values[1].number < d) && !(r->values[1].number > d));
    is_bytes(&r->values[2], IL_GUARD_TEXT, text, strlen(text));
    is_bytes(&r->values[3], IL_GUARD_BLOB, blob, n_blob);
    is_bytes(&r->values[4], g->is_postgres ? IL_GUARD_JSON : IL_GUARD_TEXT, json, strlen(json));
    T_EQ(r->values[5].type, IL_GUARD_INT);
    T_EQ(r->values[5].integer, 1);
    is_bytes(&r->values[6], IL_GUARD_TEXT, "12.50", 5);
}

G_TEST(values_of_every_type_both_ways)
{
    il_guard *c = t_rows_open(g, NULL, NULL);

    make_typed(g);
    il_guard_tx *tx = begin(c);
    round_trip(g, tx, INT64_MAX, 0.1, "it's", "a\0b\xff\\", 5, "{\"a\": 1}");
    round_trip(g, tx, INT64_MIN, -1.7976931348623157e308, "", "", 0, "null");
    round_trip(g, tx, 0, 4.9406564584124654e-324, "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\0", 1,
               "[]");
    t_commit(tx);
    il_guard_close(c);
}

G_TEST(nulls_and_values_as_text)
{
    il_guard            *c    = t_rows_open(g, NULL, NULL);
    const il_guard_value in[] = { il_guard_null(), R_TEXT(NULL), il_guard_json(NULL),
                                  il_guard_blob(NULL, 7) };

    make_typed(g);
    il_guard_tx *tx = begin(c);
    (void)ask(tx, "INSERT INTO v (i, t, j, b) VALUES ($1, $2, $3, $4)", in, 4, 0);
    const struct row *r = ask(tx, "SELECT i, d, t, b, j FROM v", NULL, 0, 0);
    for (size_t i = 0; i < r->n; i++)
        T_EQ(r->values[i].type, IL_GUARD_NULL);
    t_exec(tx, "UPDATE v SET i = -5, d = 0.5, t = 'x'");
    r = ask(tx, "SELECT i, d, t, b FROM v", NULL, 0, IL_GUARD_AS_TEXT);
    is_bytes(&r->values[0], IL_GUARD_TEXT, "-5", 2);
    is_bytes(&r->values[1], IL_GUARD_TEXT, "0.5", 3);
    is_bytes(&r->values[2], IL_GUARD_TEXT, "x", 1);
    T_EQ(r->values[3].type, IL_GUARD_NULL);
    t_commit(tx);
    il_guard_close(c);
}

/* ---- fences ---------------------------------------------------------------------------------- */

static il_guard_fence
take(il *h, const char *key)
{
    il_acquire_opts o     = IL_ACQUIRE_OPTS_INIT;
    il_lease       *lease = NULL;

    o.ttl_ms = 60000;
    R_RUN(il_acquire(h, key, &o, &lease, why));
    il_guard_fence f = { .h = h, .key = key, .fence = il_lease_fence(lease) };
    il_lease_free(lease);
    return f;
}

static il_status
begin_with(il_guard *c, const il_guard_fence *fences, size_t n, il_guard_tx **ret, il_error *err)
{
    il_guard_tx_opts o = IL_GUARD_TX_OPTS_INIT;

    o.fences   = fences;
    o.n_fences = n;
    *err       = (il_error){ .message = "" };
    return il_guard_begin(c, &o, ret, err);
}

G_TEST(several_fences_in_any_order)
{
    il            *h = t_ground_store(g);
    il_guard      *c = t_rows_open(g, NULL, NULL);
    il_guard_fence a = take(h, "k:a"), b = take(h, "k:b");
    il_guard_fence ab[] = { a, b }, ba[] = { b, a }, aa[] = { a, a };
    il_guard_tx   *tx = NULL;
    il_error       err;

    T_EQ(begin_with(c, ab, 2, &tx, &err), IL_OK);
    t_commit(tx);
    T_EQ(begin_with(c, ba, 2, &tx, &err), IL_OK);
    t_commit(tx);
    T_EQ(t_ground_count(g, "SELECT count(*) FROM interlock_fence"), 2);
    T_EQ(begin_with(c, aa, 2, &tx, &err), IL_INVAL);
    T_HAS(err.message, "k:a");
    /* one that goes stale in the middle */
    t_rows_make(g);
    T_EQ(begin_with(c, ab, 2, &tx, &err), IL_OK);
    t_exec(tx, "UPDATE users SET balance = 0");
    R_RUN(il_break(h, "k:b", b.fence, "a test", IL_BREAK_NOW, why));
    T_EQ(il_guard_commit(tx, &err), IL_STALE);
    T_HAS(err.message, "k:b");
    T_EQ(t_ground_count(g, "SELECT balance FROM users WHERE id = 1"), 10);
    T_EQ(begin_with(c, ba, 2, &tx, &err), IL_STALE);
    T_EQ(begin_with(c, &a, 1, &tx, &err), IL_OK);
    t_commit(tx);
    il_guard_close(c);
    il_close(h);
}

G_TEST(as_many_fences_as_allowed)
{
    il            *h  = t_ground_store(g);
    il_guard      *c  = t_rows_open(g, NULL, NULL);
    il_guard_tx   *tx = NULL;
    char           keys[IL_GUARD_FENCES_MAX + 1][16];
    il_guard_fence fences[IL_GUARD_FENCES_MAX + 1];
    il_error       err;

    for (size_t i = 0; i < ARRAY_LEN(fences); i++) {
        (void)snprintf(keys[i], sizeof keys[i], "k:%zu", i);
        fences[i] = take(h, keys[i]);
    }
    T_EQ(begin_with(c, fences, IL_GUARD_FENCES_MAX, &tx, &err), IL_OK);
    t_commit(tx);
    T_EQ(begin_with(c, fences, IL_GUARD_FENCES_MAX + 1, &tx, &err), IL_INVAL);
    T_HAS(err.message, "16");
    il_guard_close(c);
    il_close(h);
}

/* ---- limits ---------------------------------------------------------------------------------- */

G_TEST(as_many_values_as_allowed)
{
    il_guard      *c = t_rows_open(g, NULL, NULL);
    il_guard_value values[IL_GUARD_VALUES_MAX + 1];
    char           sql[4096] = "SELECT id FROM users WHERE id IN ($1";
    size_t         n         = 0;
    il_error       err;

    t_rows_make(g);
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        values[i] = R_INT((int64_t)i + 3);
    for (size_t i = 1; i < IL_GUARD_VALUES_MAX; i++)
        (void)snprintf(sql + strlen(sql), sizeof sql - strlen(sql), ", $%zu", i + 1);
    (void)snprintf(sql + strlen(sql), sizeof sql - strlen(sql), ")");
    il_guard_query q  = { .sql = sql, .values = values, .n_values = IL_GUARD_VALUES_MAX };
    il_guard_tx   *tx = begin(c);
    R_RUN(il_guard_exec(tx, &q, NULL, why));
    il_guard_target all = { .entity = "User", .table = "users" };
    R_RUN(il_guard_lock_many(tx, &all, "id", values, IL_GUARD_VALUES_MAX, &n, why));
    T_EQ(n, 3);
    T_EQ(il_guard_lock_many(tx, &all, "id", values, ARRAY_LEN(values), &n, &err), IL_INVAL);
    T_HAS(err.message, "256");
    il_guard_rollback(tx);
    tx         = begin(c);
    q.n_values = ARRAY_LEN(values);
    T_EQ(il_guard_exec(tx, &q, NULL, &err), IL_INVAL);
    T_HAS(err.message, "256");
    il_guard_rollback(tx);
    il_guard_close(c);
}

/* A table whose primary key has n columns. */
static void
make_wide(const struct t_ground *g, const char *name, unsigned n)
{
    char columns[256] = "", keys[128] = "", sql[512];

    for (unsigned i = 0; i < n; i++) {
        (void)snprintf(columns + strlen(columns), sizeof columns - strlen(columns), "k%u INTEGER, ",
                       i);
        (void)snprintf(keys + strlen(keys), sizeof keys - strlen(keys), "%sk%u", i > 0 ? ", " : "",
                       i);
    }
    (void)snprintf(sql, sizeof sql, "CREATE TABLE %s (%sPRIMARY KEY (%s))", name, columns, keys);
    t_sql(g, sql);
}

G_TEST(as_many_key_columns_as_allowed)
{
    il_guard       *c = t_rows_open(g, NULL, NULL);
    il_guard_column key[IL_GUARD_KEY_COLUMNS_MAX + 1];
    char            names[IL_GUARD_KEY_COLUMNS_MAX + 1][8];
    il_guard_target row = { .entity = "Seat", .table = "eight", .key = key };
    const char     *unique[IL_GUARD_KEY_COLUMNS_MAX + 1];
    il_guard_id     id;
    int             inserted = 0;
    il_error        err;

    make_wide(g, "eight", IL_GUARD_KEY_COLUMNS_MAX);
    make_wide(g, "nine", IL_GUARD_KEY_COLUMNS_MAX + 1);
    for (size_t i = 0; i < ARRAY_LEN(key); i++) {
        (void)snprintf(names[i], sizeof names[i], "k%zu", i);
        key[i]    = (il_guard_column){ names[i], R_INT((int64_t)i) };
        unique[i] = names[i];
    }
    il_guard_tx *tx = begin(c);
    R_RUN(il_guard_insert_or_get(tx, "eight", key, 8, unique, 8, &inserted, &id, why));
    T_EQ(inserted, 1);
    T_EQ(id.n, 8);
    R_RUN(il_guard_insert_or_get(tx, "eight", key, 8, unique, 8, &inserted, &id, why));
    T_EQ(inserted, 0);
    row.n_key = IL_GUARD_KEY_COLUMNS_MAX;
    R_RUN(il_guard_lock(tx, &row, &id, why));
    T_EQ(id.n, 8);
    T_EQ(id.values[7].integer, 7);
    row.n_key = IL_GUARD_KEY_COLUMNS_MAX + 1;
    T_EQ(il_guard_lock(tx, &row, NULL, &err), IL_INVAL);
    T_EQ(il_guard_insert_or_get(tx, "nine", key, 9, unique, 9, NULL, NULL, &err), IL_INVAL);
    row.table = "nine";
    row.n_key = 1;
    T_EQ(il_guard_lock(tx, &row, NULL, &err), IL_INVAL);
    T_HAS(err.message, "primary key");
    il_guard_rollback(tx);
    il_guard_close(c);
}

G_TEST(as_many_rows_as_allowed)
{
    il_guard       *c = t_rows_open(g, NULL, NULL);
    char            sql[256];
    size_t          n   = 0;
    il_guard_value  one = R_INT(1), two = R_INT(2);
    il_guard_target seats = { .entity = "Seat", .table = "seats" };
    il_error        err;

    t_sql(g, "CREATE TABLE seats (id INTEGER PRIMARY KEY, kind INTEGER)");
    (void)snprintf(sql, sizeof sql,
                   "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
                   "INSERT INTO seats SELECT i, CASE WHEN i <= %d THEN 1 ELSE 2 END FROM n",
                   IL_GUARD_ROWS_MAX + 1, IL_GUARD_ROWS_MAX);
    t_sql(g, sql);
    il_guard_tx *tx = begin(c);
    R_RUN(il_guard_lock_many(tx, &seats, "kind", &one, 1, &n, why));
    T_EQ(n, IL_GUARD_ROWS_MAX);
    T_EQ(il_guard_lock_many(tx, &seats, "kind", &two, 1, &n, &err), IL_LIMIT);
    T_HAS(err.message, "4096");
    T_EQ(il_guard_commit(tx, &err), IL_STATE);
    tx                    = begin(c);
    il_guard_value both[] = { one, two };
    T_EQ(il_guard_lock_many(tx, &seats, "kind", both, 2, &n, &err), IL_LIMIT);
    il_guard_rollback(tx);
    il_guard_close(c);
}

G_TEST(as_many_tags_as_allowed)
{
    struct t_row_events seen;
    il_guard           *c = t_rows_open(g, NULL, &seen);
    char                name[IL_GUARD_NAME_BYTES_MAX + 2];
    il_error            err;

    t_rows_make(g);
    il_guard_tx *tx = begin(c);
    for (int i = 0; i < IL_GUARD_TAGS_MAX; i++) {
        (void)snprintf(name, sizeof name, "tag%d", i); /* copied */
        R_RUN(il_guard_tag(tx, name, i > 0 ? R_INT(i) : R_TEXT("zero"), why));
    }
    T_EQ(il_guard_tag(tx, "more", R_INT(1), &err), IL_LIMIT);
    T_HAS(err.message, "8");
    R_RUN(il_guard_lock(tx, R_USER(1), NULL, why)); /* tags of all its events, whenever they come */
    t_commit(tx);
    T_STREQ(seen.rows[0].tags, "tag0=zero|tag1=1|tag2=2|tag3=3|tag4=4|tag5=5|tag6=6|tag7=7|");
    tx = begin(c);
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    T_EQ(il_guard_tag(tx, name, R_INT(1), &err), IL_INVAL);
    name[IL_GUARD_NAME_BYTES_MAX] = '\0';
    R_RUN(il_guard_tag(tx, name, il_guard_null(), why));
    T_EQ(il_guard_tag(tx, "", R_INT(1), &err), IL_INVAL);
    T_EQ(il_guard_tag(tx, NULL, R_INT(1), &err), IL_INVAL);
    il_guard_rollback(tx);
    il_guard_close(c);
}

G_TEST(names_as_long_as_allowed)
{
    il_guard        *c = t_rows_open(g, NULL, NULL);
    char             name[IL_GUARD_NAME_BYTES_MAX + 2];
    il_guard_tx_opts o  = IL_GUARD_TX_OPTS_INIT;
    il_guard_tx     *tx = NULL;
    il_error         err;

    t_rows_make(g);
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    o.pipeline            = name;
    T_EQ(il_guard_begin(c, &o, &tx, &err), IL_INVAL);
    o.pipeline = "p";
    o.caller   = name;
    T_EQ(il_guard_begin(c, &o, &tx, &err), IL_INVAL);
    name[IL_GUARD_NAME_BYTES_MAX] = '\0';
    o.pipeline                    = name;
    R_RUN(il_guard_begin(c, &o, &tx, why));
    T_EQ(il_guard_lock(tx, R_ROW("User", name, "id", R_INT(1)), NULL, &err), IL_NOT_FOUND);
    T_EQ(il_guard_lock(tx, R_ROW("User", "users", name, R_INT(1)), NULL, &err), IL_NOT_FOUND);
    name[IL_GUARD_NAME_BYTES_MAX] = 'n';
    T_TRUE(il_guard_lock(tx, R_ROW("User", name, "id", R_INT(1)), NULL, &err) != IL_OK);
    T_HAS(err.message, "256");
    T_TRUE(il_guard_lock(tx, R_ROW("User", "users", name, R_INT(1)), NULL, &err) != IL_OK);
    T_HAS(err.message, "256");
    T_EQ(il_guard_require_constraint(tx, "users", name, &err), IL_INVAL);
    R_RUN(il_guard_lock(tx, R_USER(1), NULL, why));
    T_EQ(il_guard_lock(tx, R_ROW(name, "users", "id", R_INT(1)), NULL, &err), IL_OK); /* held */
    T_EQ(il_guard_lock(tx, R_ROW(name, "users", "id", R_INT(2)), NULL, &err), IL_ORDER);
    il_guard_rollback(tx);
    il_guard_close(c);
}

static il_status
open_with(const struct t_ground *g, il_guard_opts o, il_error *err)
{
    il_guard *c = NULL;

    *err         = (il_error){ .message = "" };
    il_status st = il_guard_open(g->url, &o, &c, err);
    il_guard_close(c);
    return st;
}
#define OPTS(...) ((il_guard_opts){ .struct_size = sizeof(il_guard_opts), __VA_ARGS__ })

G_TEST(options_of_a_handle_have_limits)
{
    il_guard_rank ranks[IL_GUARD_RANKS_MAX + 1];
    char          names[IL_GUARD_RANKS_MAX + 1][16];
    char          name[IL_GUARD_NAME_BYTES_MAX + 2];
    il_error      err;

    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(ranks); i++) {
        (void)snprintf(names[i], sizeof names[i], "class%zu", i);
        ranks[i] = (il_guard_rank){ names[i], (int)i };
    }
    T_EQ(open_with(g, OPTS(.ranks = ranks, .n_ranks = IL_GUARD_RANKS_MAX), &err), IL_OK);
    T_EQ(open_with(g, OPTS(.ranks = ranks, .n_ranks = IL_GUARD_RANKS_MAX + 1), &err), IL_INVAL);
    T_HAS(err.message, "64");
    ranks[0].rank = 1000000;
    T_EQ(open_with(g, OPTS(.ranks = ranks, .n_ranks = 1), &err), IL_OK);
    ranks[0].rank = 1000001;
    T_EQ(open_with(g, OPTS(.ranks = ranks, .n_ranks = 1), &err), IL_INVAL);
    ranks[0].rank = -1;
    T_EQ(open_with(g, OPTS(.ranks = ranks, .n_ranks = 1), &err), IL_INVAL);
    ranks[0] = (il_guard_rank){ name, 1 };
    T_EQ(open_with(g, OPTS(.ranks = ranks, .n_ranks = 1), &err), IL_INVAL);
    name[IL_GUARD_NAME_BYTES_MAX] = '\0';
    T_EQ(open_with(g, OPTS(.ranks = ranks, .n_ranks = 1), &err), IL_OK);
    ranks[0].entity = NULL;
    T_EQ(open_with(g, OPTS(.ranks = ranks, .n_ranks = 1), &err), IL_INVAL);
    ranks[0] = ranks[1];
    T_EQ(open_with(g, OPTS(.ranks = ranks, .n_ranks = 2), &err), IL_INVAL);
    T_HAS(err.message, "class1");
    T_EQ(open_with(g, OPTS(.n_ranks = 1), &err), IL_INVAL);
    T_EQ(open_with(g, OPTS(.conns_max = IL_GUARD_CONNS_MAX), &err), IL_OK);
    T_EQ(open_with(g, OPTS(.conns_max = IL_GUARD_CONNS_MAX + 1), &err), IL_INVAL);
    T_EQ(open_with(g, OPTS(.lock_timeout_ms = -1), &err), IL_INVAL);
    T_EQ(open_with(g, OPTS(.lock_timeout_ms = 86400001), &err), IL_INVAL);
    T_EQ(open_with(g, OPTS(.statement_timeout_ms = IL_FOREVER), &err), IL_OK);
    T_EQ(open_with(g, OPTS(.connect_timeout_ms = 15001), &err), IL_INVAL);
    T_EQ(open_with(g, OPTS(.flags = 1U << 31), &err), IL_INVAL);
    T_EQ(open_with(g, OPTS(.search_path = "a, b"), &err), IL_OK);
    T_EQ(open_with(g, OPTS(.search_path = "a; DROP TABLE t"), &err), IL_INVAL);
    T_EQ(open_with(g, (il_guard_opts){ .struct_size = 1 }, &err), IL_INVAL);
}

/* ---- bad arguments --------------------------------------------------------------------------- */

static il_status
do_nothing(void *cookie UNUSED, il_guard_tx *tx UNUSED, il_error *err UNUSED)
{
    return IL_OK;
}

G_TEST(handles_and_transactions_that_are_missing)
{
    il_guard_query    q  = { .sql = "SELECT 1" };
    il_guard         *c  = NULL;
    il_guard_tx      *tx = NULL;
    il_guard_tx_opts  o  = IL_GUARD_TX_OPTS_INIT;
    const char       *u  = "a";
    il_guard_column   a  = { "a", R_INT(1) };
    il_guard_children k  = { .table = "t", .parent = "p" };

    il_guard_close(NULL);
    il_guard_interrupt(NULL);
    il_guard_rollback(NULL);
    T_EQ(il_guard_open(NULL, NULL, &c, NULL), IL_INVAL);
    T_EQ(il_guard_open(g->url, NULL, NULL, NULL), IL_INVAL);
    T_EQ(il_guard_open("mysql://x", NULL, &c, NULL), IL_INVAL);
    T_EQ(il_guard_open("sqlite:", NULL, &c, NULL), IL_INVAL);
    T_EQ(il_guard_open_sqlite(NULL, NULL, &c, NULL), IL_INVAL);
    T_EQ(il_guard_open_postgres(NULL, NULL, &c, NULL), IL_INVAL);
    T_EQ(il_guard_connect(NULL, NULL), IL_INVAL);
    T_EQ(il_guard_begin(NULL, NULL, &tx, NULL), IL_INVAL);
    T_EQ(il_guard_transact(NULL, NULL, do_nothing, NULL, NULL, NULL), IL_INVAL);
    T_EQ(il_guard_commit(NULL, NULL), IL_INVAL);
    T_EQ(il_guard_try(NULL, do_nothing, NULL, NULL), IL_INVAL);
    T_EQ(il_guard_tag(NULL, "a", R_INT(1), NULL), IL_INVAL);
    T_EQ(il_guard_exec(NULL, &q, NULL, NULL), IL_INVAL);
    T_EQ(il_guard_lock(NULL, R_USER(1), NULL, NULL), IL_INVAL);
    T_EQ(il_guard_lock_many(NULL, R_USER(1), "id", NULL, 0, NULL, NULL), IL_INVAL);
    T_EQ(il_guard_add(NULL, R_USER(1), "a", 1, NULL, NULL, NULL), IL_INVAL);
    T_EQ(il_guard_transition(NULL, R_USER(1), "a", R_INT(1), R_INT(2), NULL, NULL), IL_INVAL);
    T_EQ(il_guard_set_json(NULL, R_USER(1), "a", "{}", NULL), IL_INVAL);
    T_EQ(il_guard_recompute(NULL, R_USER(1), "a", &k, NULL, NULL), IL_INVAL);
    T_EQ(il_guard_insert_or_get(NULL, "t", &a, 1, &u, 1, NULL, NULL, NULL), IL_INVAL);
    T_EQ(il_guard_require_constraint(NULL, "t", "c", NULL), IL_INVAL);
    T_STREQ(il_guard_outcome_name((il_guard_outcome)77), "none");
    T_STREQ(il_guard_outcome_name(IL_GUARD_COMMITTED), "committed");
    T_STREQ(il_guard_outcome_name(IL_GUARD_UNKNOWN), "unknown");

    c = t_rows_open(g, NULL, NULL);
    T_EQ(il_guard_begin(c, NULL, NULL, NULL), IL_INVAL);
    T_EQ(il_guard_transact(c, NULL, NULL, NULL, NULL, NULL), IL_INVAL);
    o.struct_size = 1;
    T_EQ(il_guard_begin(c, &o, &tx, NULL), IL_INVAL);
    T_EQ(il_guard_transact(c, &o, do_nothing, NULL, NULL, NULL), IL_INVAL);
    o          = (il_guard_tx_opts)IL_GUARD_TX_OPTS_INIT;
    o.n_fences = 1;
    T_EQ(il_guard_begin(c, &o, &tx, NULL), IL_INVAL);
    o.fences = &(il_guard_fence){ .h = NULL };
    T_EQ(il_guard_begin(c, &o, &tx, NULL), IL_INVAL);
    o       = (il_guard_tx_opts)IL_GUARD_TX_OPTS_INIT;
    o.flags = 1U << 31;
    T_EQ(il_guard_begin(c, &o, &tx, NULL), IL_INVAL);
    o          = (il_guard_tx_opts)IL_GUARD_TX_OPTS_INIT;
    o.once_key = "k"; /* only il_guard_transact() */
    T_EQ(il_guard_begin(c, &o, &tx, NULL), IL_INVAL);
    il_guard_close(c);
}

/* None of them is a reason to end the transaction. */
G_TEST(arguments_that_are_missing)
{
    il_guard         *c = t_rows_open(g, NULL, NULL);
    const char       *u = "email";
    il_guard_column   a = { "email", R_TEXT("x") }, no_name = { NULL, R_INT(1) };
    il_guard_column   bad    = { "email", { .type = IL_GUARD_TEXT } }; /* without data */
    il_guard_column   odd    = { "email", { .type = IL_GUARD_TYPE_COUNT } };
    il_guard_children k      = { .table = "users", .parent = "id" };
    il_guard_target   row    = { .entity = "User", .table = "users", .key = &a, .n_key = 1 };
    il_guard_target   rows[] = { row, row, row, row, row, row, row };

    t_rows_make(g);
    rows[0].entity  = NULL;
    rows[1].table   = NULL;
    rows[2].key     = NULL;
    rows[3].n_key   = 0;
    rows[4].key     = &no_name;
    rows[5].key     = &bad;
    rows[6].key     = &odd;
    il_guard_tx *tx = begin(c);
    T_EQ(il_guard_lock(tx, NULL, NULL, NULL), IL_INVAL);
    T_EQ(il_guard_add(tx, NULL, "balance", 1, NULL, NULL, NULL), IL_INVAL);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        T_EQ(il_guard_lock(tx, &rows[i], NULL, NULL), IL_INVAL);
        T_EQ(il_guard_add(tx, &rows[i], "balance", 1, NULL, NULL, NULL), IL_INVAL);
        T_EQ(il_guard_transition(tx, &rows[i], "state", R_INT(1), R_INT(1), NULL, NULL), IL_INVAL);
        T_EQ(il_guard_set_json(tx, &rows[i], "doc", "{}", NULL), IL_INVAL);
        T_EQ(il_guard_recompute(tx, &rows[i], "small", &k, NULL, NULL), IL_INVAL);
    }
    T_EQ(il_guard_add(tx, &row, NULL, 1, NULL, NULL, NULL), IL_INVAL);
    T_EQ(il_guard_transition(tx, &row, NULL, R_INT(1), R_INT(1), NULL, NULL), IL_INVAL);
    T_EQ(il_guard_transition(tx, &row, "state", bad.value, R_INT(1), NULL, NULL), IL_INVAL);
    T_EQ(il_guard_transition(tx, &row, "state", R_INT(1), bad.value, NULL, NULL), IL_INVAL);
    T_EQ(il_guard_set_json(tx, &row, "doc", NULL, NULL), IL_INVAL);
    T_EQ(il_guard_recompute(tx, &row, "small", NULL, NULL, NULL), IL_INVAL);
    T_EQ(il_guard_lock_many(tx, &rows[3], NULL, NULL, 0, NULL, NULL), IL_INVAL);
    T_EQ(il_guard_lock_many(tx, &rows[3], "id", NULL, 1, NULL, NULL), IL_INVAL);
    T_EQ(il_guard_insert_or_get(tx, NULL, &a, 1, &u, 1, NULL, NULL, NULL), IL_INVAL);
    T_EQ(il_guard_insert_or_get(tx, "users", NULL, 1, &u, 1, NULL, NULL, NULL), IL_INVAL);
    T_EQ(il_guard_insert_or_get(tx, "users", &a, 0, &u, 1, NULL, NULL, NULL), IL_INVAL);
    T_EQ(il_guard_insert_or_get(tx, "users", &no_name, 1, &u, 1, NULL, NULL, NULL), IL_INVAL);
    T_EQ(il_guard_insert_or_get(tx, "users", &bad, 1, &u, 1, NULL, NULL, NULL), IL_INVAL);
    T_EQ(il_guard_insert_or_get(tx, "users", &a, 1, NULL, 1, NULL, NULL, NULL), IL_INVAL);
    T_EQ(il_guard_insert_or_get(tx, "users", &a, 1, &u, 0, NULL, NULL, NULL), IL_INVAL);
    u = NULL;
    T_EQ(il_guard_insert_or_get(tx, "users", &a, 1, &u, 1, NULL, NULL, NULL), IL_INVAL);
    u = "balance"; /* not among the columns */
    T_EQ(il_guard_insert_or_get(tx, "users", &a, 1, &u, 1, NULL, NULL, NULL), IL_INVAL);
    T_EQ(il_guard_require_constraint(tx, NULL, "c", NULL), IL_INVAL);
    T_EQ(il_guard_require_constraint(tx, "users", NULL, NULL), IL_INVAL);
    T_EQ(il_guard_require_constraint(tx, "users", "", NULL), IL_INVAL);
    T_EQ(il_guard_exec(tx, NULL, NULL, NULL), IL_INVAL);
    T_EQ(il_guard_exec(tx, &(il_guard_query){ .sql = NULL }, NULL, NULL), IL_INVAL);
    T_EQ(il_guard_exec(tx, &(il_guard_query){ .sql = "SELECT $1", .n_values = 1 }, NULL, NULL),
         IL_INVAL);
    T_EQ(il_guard_try(tx, NULL, NULL, NULL), IL_INVAL);
    T_EQ(il_guard_tag(tx, "a", bad.value, NULL), IL_INVAL);
    R_RUN(il_guard_lock(tx, R_USER(1), NULL, why));
    t_commit(tx);
    il_guard_close(c);
}

/* ---- read only ------------------------------------------------------------------------------- */

G_TEST(a_read_only_transaction_locks_and_changes_nothing)
{
    il_guard       *c   = t_rows_open(g, NULL, NULL);
    il_guard_value  one = R_INT(1);
    const char     *u   = "email";
    il_guard_column a   = { "email", R_TEXT("x") };
    il_error        err;

    t_rows_make(g);
    il_guard_tx *tx = t_begin(c, NULL, true);
    T_EQ(il_guard_lock(tx, R_USER(1), NULL, &err), IL_STATE);
    T_HAS(err.message, "read-only");
    T_EQ(il_guard_lock_many(tx, R_USER(1), "id", &one, 1, NULL, &err), IL_STATE);
    T_EQ(il_guard_add(tx, R_USER(1), "balance", 1, NULL, NULL, &err), IL_STATE);
    T_EQ(il_guard_insert_or_get(tx, "users", &a, 1, &u, 1, NULL, NULL, &err), IL_STATE);
    R_RUN(il_guard_require_constraint(tx, "users", "users_email", why));
    T_EQ(ask(tx, "SELECT count(*) FROM users", NULL, 0, 0)->values[0].integer, 5);
    t_commit(tx);
    T_EQ(t_ground_count(g, "SELECT balance FROM users WHERE id = 1"), 10);
    il_guard_close(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        G_ROW(values_of_every_type_both_ways),
        G_ROW(nulls_and_values_as_text),
        G_ROW(several_fences_in_any_order),
        G_ROW(as_many_fences_as_allowed),
        G_ROW(as_many_values_as_allowed),
        G_ROW(as_many_key_columns_as_allowed),
        G_ROW(as_many_rows_as_allowed),
        G_ROW(as_many_tags_as_allowed),
        G_ROW(names_as_long_as_allowed),
        G_ROW(options_of_a_handle_have_limits),
        G_ROW(handles_and_transactions_that_are_missing),
        G_ROW(arguments_that_are_missing),
        G_ROW(a_read_only_transaction_locks_and_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
