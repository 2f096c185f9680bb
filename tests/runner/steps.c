/*
 * steps.c: sql and check steps on users' databases.
 */
#include <jansson.h>

#include "harness/clock.h"
#include "runner/attempt.h"

static void
make(const struct t_ground *g, const char *sql)
{
    char out[4096];

    (void)t_ground_ask(g, sql, out);
}

/* An attempt of a run that has its key. */
static il *
begin(struct t_attempt *t, const struct t_ground *g)
{
    il *h = t_ground_store(g);

    t_attempt_init(t);
    t->connection.url = g->url;
    t->pub.h          = h;
    t->pub.tenant     = "default";
    t->pub.fence      = t_take(h, "run-1", 60000);
    return h;
}

static void
end(struct t_attempt *t, il *h)
{
    t_attempt_release(t);
    il_close(h);
}

/* ---- sql ------------------------------------------------------------------------------------- */

static enum runner_outcome
run_sql(struct t_attempt *t, struct pipeline_text *texts, size_t n)
{
    t->step.type  = PIPELINE_SQL;
    t->step.sql   = texts;
    t->step.n_sql = n;
    return t_attempt_run(t, runner_step_sql);
}

G_TEST(statements_in_one_transaction)
{
    struct t_attempt     t;
    il                  *h       = begin(&t, g);
    struct pipeline_text texts[] = { { "CREATE TABLE IF NOT EXISTS t (id INTEGER, name TEXT)" },
                                     { "INSERT INTO t VALUES (1, {name}), (2, {name})" },
                                     { "UPDATE t SET name = {name} || '!' WHERE id = 2" },
                                     { "SELECT id, name, NULL AS gone FROM t ORDER BY id" } };

    t_attempt_value(&t, "name", "it's\ta tab; DROP TABLE t; --");
    if (run_sql(&t, texts, 4) != RUNNER_STEP_COMPLETED)
        T_FAIL("%s", t.result.error);
    T_HAS(T_OUT(&t), "statement 2: 2 rows changed\n");
    T_HAS(T_OUT(&t), "statement 3: 1 row changed\n");
    T_HAS(T_OUT(&t), "id\tname\tgone\n1\tit's\\ta tab; DROP TABLE t; --\tNULL\n2\tit's");
    T_HAS(t.result.details, "\"rows_changed\":3}");
    json_t *details = json_loads(t.result.details, 0, NULL);
    T_EQ(json_array_size(json_object_get(details, "statements")), 4);
    json_decref(details);
    T_EQ(t_ground_count(g, "SELECT count(*) FROM t"), 2);
    end(&t, h);
}

G_TEST(one_that_fails_undoes_all)
{
    struct t_attempt     t;
    il                  *h       = begin(&t, g);
    struct pipeline_text texts[] = { { "INSERT INTO t VALUES (1)" },
                                     { "INSERT INTO t VALUES (2)" },
                                     { "INSERT INTO no_such_table VALUES (3)" } };

    make(g, "CREATE TABLE t (id INTEGER)");
    T_EQ(run_sql(&t, texts, 3), RUNNER_STEP_FAILED);
    T_TRUE(t.result.final);
    T_HAS(t.result.error, "statement 3 of 3: ");
    T_HAS(t.result.error, "no_such_table");
    T_EQ(t_ground_count(g, "SELECT count(*) FROM t"), 0);
    texts[2].text = "COMMIT";
    T_EQ(run_sql(&t, texts, 3), RUNNER_STEP_FAILED);
    T_TRUE(t.result.final);
    T_EQ(t_ground_count(g, "SELECT count(*) FROM t"), 0);
    texts[2].text = "SELECT {missing}";
    T_EQ(run_sql(&t, texts, 3), RUNNER_STEP_FAILED);
    T_TRUE(t.result.final);
    T_HAS(t.result.error, "missing");
    T_EQ(t_ground_count(g, "SELECT count(*) FROM t"), 0);
    end(&t, h);
}

G_TEST(a_run_that_has_lost_its_lease_writes_nothing)
{
    struct t_attempt     t;
    il                  *h       = begin(&t, g);
    struct pipeline_text texts[] = { { "INSERT INTO t VALUES (1)" } };

    make(g, "CREATE TABLE t (id INTEGER)");
    t_break(h, t.pub.fence);
    T_EQ(run_sql(&t, texts, 1), RUNNER_STEP_FAILED);
    T_TRUE(t.result.final);
    T_HAS(t.result.error, "fence");
    T_EQ(t_ground_count(g, "SELECT count(*) FROM t"), 0);
    end(&t, h);
}

G_TEST(many_rows_are_cut)
{
    struct t_attempt     t;
    il                  *h       = begin(&t, g);
    struct pipeline_text texts[] = { { "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 "
                                       "FROM n WHERE i < 5000) SELECT i FROM n" } };

    if (run_sql(&t, texts, 1) != RUNNER_STEP_COMPLETED)
        T_FAIL("%s", t.result.error);
    T_HAS(T_OUT(&t), "\n100\n(more than 100 rows");
    T_TRUE(strstr(T_OUT(&t), "\n101\n") == NULL);
    T_HAS(t.result.details, "\"rows\":100,\"more_rows\":true");
    end(&t, h);
}

G_TEST(connections_that_are_not_there)
{
    struct t_attempt     t;
    il                  *h       = begin(&t, g);
    struct pipeline_text texts[] = { { "SELECT 1" } };

    t.step.connection = "other";
    T_EQ(run_sql(&t, texts, 1), RUNNER_STEP_FAILED);
    T_TRUE(t.result.final);
    T_HAS(t.result.error, "'other'");
    t.step.connection = "db";
    t.connection.url  = "postgres://u:geheim@127.0.0.1:1/db";
    T_EQ(run_sql(&t, texts, 1), RUNNER_STEP_FAILED);
    T_TRUE(!t.result.final); /* it may come back */
    T_HAS(t.result.error, "connection 'db': ");
    T_TRUE(strstr(t.result.error, "geheim") == NULL);
    t.connection.url = "oracle://u:geheim@h/db";
    T_EQ(run_sql(&t, texts, 1), RUNNER_STEP_FAILED);
    T_TRUE(t.result.final);
    T_TRUE(strstr(t.result.error, "geheim") == NULL);
    end(&t, h);
}

G_TEST(a_statement_is_stopped)
{
    struct t_attempt     t;
    il                  *h    = begin(&t, g);
    struct pipeline_text text = {
        g->is_postgres
            ? "SELECT pg_sleep(600)"
            : "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    };

    t.step.type  = PIPELINE_SQL;
    t.step.sql   = &text;
    t.step.n_sql = 1;
    t_attempt_start(&t, runner_step_sql);
    int64_t until_ms = t_real_ms() + G_LIMIT_MS;
    for (bool set = false; !set;) { /* until there is something to stop */
        (void)pthread_mutex_lock(&t.mutex);
        set = t.stop_fn != NULL;
        (void)pthread_mutex_unlock(&t.mutex);
        T_TRUE(t_real_ms() < until_ms);
    }
    t_attempt_stop(&t);
    t_attempt_end(&t);
    T_EQ(t.result.outcome, RUNNER_STEP_STOPPED);
    end(&t, h);
}

/* ---- check ----------------------------------------------------------------------------------- */

#define E(k, ...)                                          \
    {                                                      \
        .kind = PIPELINE_##k, .kind_text = #k, __VA_ARGS__ \
    }

static enum runner_outcome
run_check(struct t_attempt *t, const char *table, struct pipeline_expectation *e, size_t n)
{
    t->step.type           = PIPELINE_CHECK;
    t->step.table          = table;
    t->step.expectations   = e;
    t->step.n_expectations = n;
    return t_attempt_run(t, runner_step_check);
}

/* One expectation of the table `orders`; passed? Its details are in *ret (may be NULL). */
static bool
holds(struct t_attempt *t, struct pipeline_expectation e, json_t **ret)
{
    enum runner_outcome outcome = run_check(t, "orders", &e, 1);

    if (outcome != RUNNER_STEP_COMPLETED && outcome != RUNNER_STEP_FAILED)
        T_FAIL("outcome %d: %s", (int)outcome, t->result.error);
    if (t->result.details == NULL)
        T_FAIL("%s", t->result.error);
    json_t *details = json_loads(t->result.details, 0, NULL);
    json_t *first   = json_array_get(json_object_get(details, "expectations"), 0);
    T_TRUE(first != NULL);
    T_EQ(json_is_true(json_object_get(first, "passed")), outcome == RUNNER_STEP_COMPLETED);
    T_STREQ(json_string_value(json_object_get(details, "result")),
            outcome == RUNNER_STEP_COMPLETED ? "PASS" : "FAIL");
    if (ret != NULL)
        *ret = json_incref(first);
    json_decref(details);
    return outcome == RUNNER_STEP_COMPLETED;
}

static void
make_orders(const struct t_ground *g)
{
    make(g, "CREATE TABLE orders (id INTEGER, amount NUMERIC, note TEXT, day DATE, \"odd "
            "\"\"name\" TEXT)");
    make(g, "INSERT INTO orders VALUES (1, 10, 'a', '2026-01-01', 'x'), (2, 20.5, 'b', "
            "'2026-01-02', 'y'), "
            "(3, 30, NULL, '2026-01-03', 'z'), (3, 40, '7', '2026-01-04', NULL)");
}

G_TEST(row_count)
{
    struct t_attempt t;
    il              *h = begin(&t, g);

    make_orders(g);
    T_TRUE(holds(&t, (struct pipeline_expectation)E(ROW_COUNT, .min = "4", .max = "4"), NULL));
    T_TRUE(holds(&t, (struct pipeline_expectation)E(ROW_COUNT, .min = "1"), NULL));
    T_TRUE(holds(&t, (struct pipeline_expectation)E(ROW_COUNT, .max = "4"), NULL));
    T_TRUE(holds(&t, (struct pipeline_expectation)E(ROW_COUNT), NULL));
    T_TRUE(!holds(&t, (struct pipeline_expectation)E(ROW_COUNT, .min = "5"), NULL));
    T_HAS(t.result.details, "4 rows, expected at least 5");
    T_TRUE(!holds(&t, (struct pipeline_expectation)E(ROW_COUNT, .max = "3.5"), NULL));
    T_TRUE(!holds(&t, (struct pipeline_expectation)E(ROW_COUNT, .min = "many"), NULL));
    end(&t, h);
}

G_TEST(columns)
{
    struct t_attempt t;
    il              *h = begin(&t, g);
    json_t          *e = NULL;

    make_orders(g);
    T_TRUE(holds(&t, (struct pipeline_expectation)E(COLUMN_EXISTS, .column = "note"), NULL));
    T_TRUE(holds(&t, (struct pipeline_expectation)E(COLUMN_EXISTS, .column = "odd \"name"), NULL));
    T_TRUE(!holds(&t, (struct pipeline_expectation)E(COLUMN_EXISTS, .column = "nope"), NULL));
    T_HAS(t.result.details, "no column nope");
    T_TRUE(!holds(&t, (struct pipeline_expectation)E(COLUMN_EXISTS), NULL));
    T_TRUE(holds(&t, (struct pipeline_expectation)E(NOT_NULL, .column = "id"), NULL));
    T_TRUE(!holds(&t, (struct pipeline_expectation)E(NOT_NULL, .column = "odd \"name"), NULL));
    T_TRUE(!holds(&t, (struct pipeline_expectation)E(NOT_NULL, .column = "note"), &e));
    T_STREQ(json_string_value(json_object_get(e, "observed")), "1");
    T_EQ(json_array_size(json_object_get(e, "samples")), 1);
    T_TRUE(json_is_null(json_object_get(json_array_get(json_object_get(e, "samples"), 0), "note")));
    T_STREQ(
        json_string_value(json_object_get(json_array_get(json_object_get(e, "samples"), 0), "id")),
        "3");
    json_decref(e);
    T_HAS(T_OUT(&t), "id=3 amount=30 note=NULL");
    T_TRUE(!holds(&t, (struct pipeline_expectation)E(NOT_NULL, .column = "nope"), NULL));
    T_TRUE(holds(&t, (struct pipeline_expectation)E(UNIQUE, .column = "amount"), NULL));
    /* NULLs are no twins */
    T_TRUE(holds(&t, (struct pipeline_expectation)E(UNIQUE, .column = "note"), NULL));
    T_TRUE(!holds(&t, (struct pipeline_expectation)E(UNIQUE, .column = "id"), &e));
    T_STREQ(json_string_value(
                json_object_get(json_array_get(json_object_get(e, "samples"), 0), "times")),
            "2");
    json_decref(e);
    end(&t, h);
}

G_TEST(values_between)
{
    struct t_attempt t;
    il              *h = begin(&t, g);
    json_t          *e = NULL;

    make_orders(g);
    T_TRUE(holds(
        &t, (struct pipeline_expectation)E(BETWEEN, .column = "amount", .min = "10", .max = "40"),
        NULL));
    T_TRUE(holds(&t, (struct pipeline_expectation)E(BETWEEN, .column = "amount", .min = "9.99"),
                 NULL));
    T_TRUE(holds(
        &t, (struct pipeline_expectation)E(BETWEEN, .column = "id", .min = "0.5", .max = "3.5"),
        NULL));
    T_TRUE(
        !holds(&t, (struct pipeline_expectation)E(BETWEEN, .column = "amount", .max = "20.4"), &e));
    T_STREQ(json_string_value(json_object_get(e, "observed")), "3");
    T_EQ(json_array_size(json_object_get(e, "samples")), 3);
    json_decref(e);
    T_TRUE(holds(&t,
                 (struct pipeline_expectation)E(BETWEEN, .column = "day", .min = "2026-01-01",
                                                .max = "2026-01-04"),
                 NULL));
    T_TRUE(!holds(&t, (struct pipeline_expectation)E(BETWEEN, .column = "day", .min = "2026-01-02"),
                  NULL));
    T_TRUE(holds(
        &t, (struct pipeline_expectation)E(BETWEEN, .column = "odd \"name", .min = "x", .max = "z"),
        NULL)); /* NULL passes */
    T_TRUE(!holds(&t, (struct pipeline_expectation)E(BETWEEN, .column = "odd \"name", .min = "y"),
                  NULL));
    T_TRUE(!holds(&t, (struct pipeline_expectation)E(BETWEEN, .column = "note", .min = "1"),
                  NULL)); /* a is no number */
    T_TRUE(!holds(&t, (struct pipeline_expectation)E(BETWEEN, .column = "amount"), NULL));
    T_TRUE(!holds(&t,
                  (struct pipeline_expectation)E(BETWEEN, .column = "amount",
                                                 .min = "1; DROP TABLE orders"),
                  NULL) ||
           !g->is_postgres);
    T_EQ(t_ground_count(g, "SELECT count(*) FROM orders"), 4);
    end(&t, h);
}

G_TEST(sql_of_the_users)
{
    struct t_attempt t;
    il              *h = begin(&t, g);
    json_t          *e = NULL;

    make_orders(g);
    t_attempt_value(&t, "least", "35");
    T_TRUE(holds(
        &t,
        (struct pipeline_expectation)E(CUSTOM, .sql = { "SELECT * FROM orders WHERE amount < 0" }),
        NULL));
    T_TRUE(!holds(&t,
                  (struct pipeline_expectation)E(
                      CUSTOM, .sql = { "SELECT id FROM orders WHERE amount < {least}" }),
                  &e));
    T_STREQ(json_string_value(json_object_get(e, "observed")), "3");
    T_EQ(json_array_size(json_object_get(e, "samples")), 3);
    json_decref(e);
    T_TRUE(holds(&t,
                 (struct pipeline_expectation)E(CUSTOM, .min = "100", .max = "101",
                                                .sql = { "SELECT sum(amount) FROM orders" }),
                 NULL));
    T_TRUE(!holds(&t,
                  (struct pipeline_expectation)E(CUSTOM, .max = "100",
                                                 .sql = { "SELECT sum(amount) FROM orders" }),
                  NULL));
    T_HAS(t.result.details, "100.5, expected at most 100");
    T_TRUE(!holds(&t,
                  (struct pipeline_expectation)E(CUSTOM, .max = "100",
                                                 .sql = { "SELECT 1 FROM orders WHERE id = 99" }),
                  NULL));
    T_TRUE(!holds(&t, (struct pipeline_expectation)E(CUSTOM, .sql = { "SELEC" }), NULL));
    T_TRUE(!holds(&t, (struct pipeline_expectation)E(CUSTOM, .sql = { "DELETE FROM orders" }),
                  NULL)); /* it only reads */
    T_TRUE(!holds(&t, (struct pipeline_expectation)E(CUSTOM), NULL));
    T_EQ(t_ground_count(g, "SELECT count(*) FROM orders"), 4);
    end(&t, h);
}

G_TEST(all_are_tried)
{
    struct t_attempt            t;
    il                         *h   = begin(&t, g);
    struct pipeline_expectation e[] = { E(CUSTOM, .sql = { "SELECT * FROM no_such_table" }),
                                        E(ROW_COUNT, .min = "1"),
                                        { .kind = PIPELINE_UNKNOWN, .kind_text = "sorted" },
                                        E(UNIQUE, .column = "amount") };

    make_orders(g);
    T_EQ(run_check(&t, "orders", e, 4), RUNNER_STEP_WARNING);
    T_HAS(t.result.error, "WARNING, 2 of 4");
    T_HAS(t.result.details, "\"result\":\"WARNING\",\"failed\":2,\"tried\":4}");
    T_HAS(T_OUT(&t), "FAILED CUSTOM: ");
    T_HAS(T_OUT(&t), "ok     ROW_COUNT: 4 rows");
    T_HAS(T_OUT(&t), "FAILED sorted: unknown kind");
    T_HAS(T_OUT(&t), "ok     UNIQUE amount: ");
    T_HAS(T_OUT(&t), "WARNING: 2 of 4 expectations failed");
    T_EQ(run_check(&t, "orders", e + 1, 1), RUNNER_STEP_COMPLETED);
    T_EQ(run_check(&t, "orders", e + 2, 1), RUNNER_STEP_FAILED);
    T_EQ(run_check(&t, "no_such_table", e + 1, 3), RUNNER_STEP_FAILED);
    T_HAS(t.result.details, "no such table: no_such_table");
    T_EQ(run_check(&t, "orders", e, 0), RUNNER_STEP_FAILED);
    end(&t, h);
}

G_TEST(an_empty_table_fails)
{
    struct t_attempt            t;
    il                         *h   = begin(&t, g);
    struct pipeline_expectation e[] = { E(NOT_NULL, .column = "id"),
                                        E(COLUMN_EXISTS, .column = "id"), E(ROW_COUNT),
                                        E(ROW_COUNT, .max = "5"), E(ROW_COUNT, .min = "0") };

    make(g, "CREATE TABLE orders (id INTEGER)");
    T_EQ(run_check(&t, "orders", e, 4), RUNNER_STEP_FAILED);
    T_HAS(t.result.details, "the table is empty");
    T_EQ(run_check(&t, "orders", e, 5), RUNNER_STEP_WARNING); /* the last one allows it */
    T_EQ(run_check(&t, "orders", e + 4, 1), RUNNER_STEP_COMPLETED);
    end(&t, h);
}

G_TEST(samples_are_bounded)
{
    struct t_attempt            t;
    il                         *h = begin(&t, g);
    struct pipeline_expectation e[100];

    make(g, "CREATE TABLE orders (id INTEGER, a TEXT)");
    make(g,
         g->is_postgres
             ? "INSERT INTO orders SELECT i, repeat('\xc3\xa4', 5000) FROM generate_series(1, 50) i"
             : "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50) "
               "INSERT INTO orders SELECT i, "
               "replace(hex(zeroblob(2500)), '0', '\xc3\xa4') FROM n");
    for (size_t i = 0; i < ARRAY_LEN(e); i++)
        e[i] = (struct pipeline_expectation)E(BETWEEN, .column = "id", .max = "0");
    T_EQ(run_check(&t, "orders", e, ARRAY_LEN(e)), RUNNER_STEP_FAILED);
    T_TRUE(t.result.details != NULL);
    T_TRUE(strlen(t.result.details) < DATA_DETAILS_BYTES_MAX);
    json_t *details = json_loads(t.result.details, 0, NULL); /* so it is UTF-8 */
    T_TRUE(details != NULL);
    json_t *samples =
        json_object_get(json_array_get(json_object_get(details, "expectations"), 0), "samples");
    T_EQ(json_array_size(samples), 5);
    T_EQ(strlen(json_string_value(json_object_get(json_array_get(samples, 0), "a"))),
         200 + strlen("…"));
    json_decref(details);
    end(&t, h);
}

/* What a check has seen, nobody who was before can change any more. */
G_TEST(a_check_shows_its_fence)
{
    struct t_attempt            t;
    il                         *h = begin(&t, g);
    struct pipeline_expectation e = E(ROW_COUNT);

    make_orders(g);
    T_EQ(run_check(&t, "orders", &e, 1), RUNNER_STEP_COMPLETED);
    if (!g->is_shared)
        T_EQ(t_ground_count(g, "SELECT fence FROM interlock_fence"), t.pub.fence);
    t_break(h, t.pub.fence);
    T_EQ(run_check(&t, "orders", &e, 1), RUNNER_STEP_FAILED);
    T_TRUE(t.result.final);
    T_HAS(t.result.error, "fence");
    end(&t, h);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        G_ROW(statements_in_one_transaction),
        G_ROW(one_that_fails_undoes_all),
        G_ROW(a_run_that_has_lost_its_lease_writes_nothing),
        G_ROW(many_rows_are_cut),
        G_ROW(connections_that_are_not_there),
        G_ROW(a_statement_is_stopped),
        G_ROW(row_count),
        G_ROW(columns),
        G_ROW(values_between),
        G_ROW(sql_of_the_users),
        G_ROW(all_are_tried),
        G_ROW(an_empty_table_fails),
        G_ROW(samples_are_bounded),
        G_ROW(a_check_shows_its_fence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
