/*
 * race.c: the six classes of races that the guard kit is for, each without its layer, where the
 * damage shows, and with it, where there is none; and the order of locks.
 *
 * Interleavings are fixed. In PostgreSQL the second transaction begins while the first is open, and
 * the first commits when the server says that the second waits for it. In SQLite the second cannot
 * begin before the first has ended.
 */
#include <pthread.h>
#include <stdio.h>

#include "guard/ground.h"
#include "harness/clock.h"
#include "harness/postgres.h"
#include "harness/proxy.h"

#define ROW(entity, table, key, n) \
    (&(const il_guard_target){ (entity), (table), (key), (n), IL_GUARD_PLACE })
#define ID(n) (&(const il_guard_column){ "id", il_guard_int(n) })

static const il_guard_rank ranks[] = { { "Tournament", 10 }, { "License", 30 }, { "User", 50 } };

/* With one connection. */
static il_guard *
open_at(const char *url, const char *search_path, int64_t timeout_ms)
{
    il_guard_opts o = IL_GUARD_OPTS_INIT;
    il_guard     *c = NULL;
    il_error      err;

    o.ranks           = ranks;
    o.n_ranks         = ARRAY_LEN(ranks);
    o.lock_timeout_ms = timeout_ms;
    o.conns_max       = 1;
    o.search_path     = search_path;
    if (il_guard_open(url, &o, &c, &err) != IL_OK)
        T_FAIL("%s", err.message);
    return c;
}

static il_guard *
open_ranked(const struct t_ground *g)
{
    return open_at(g->url, NULL, g->is_postgres ? G_LIMIT_MS : 50);
}

static void
ask(const struct t_ground *g, const char *sql)
{
    char out[4096];

    (void)t_ground_ask(g, sql, out);
}

static void
commit(il_guard_tx *tx)
{
    il_error err;

    if (il_guard_commit(tx, &err) != IL_OK)
        T_FAIL("%s", err.message);
}

/* ---- reading --------------------------------------------------------------------------------- */

#define TEXT_BYTES 256

static int
take_text(void *cookie, const il_guard_row *row)
{
    (void)snprintf(cookie, TEXT_BYTES, "%s", t_guard_text(row, 0));
    return 1;
}

static il_status
read_text(il_guard_tx *tx, const char *sql, char out[TEXT_BYTES], il_error *reterr)
{
    out[0] = '\0';
    return t_guard_exec(tx, sql, NULL, 0, take_text, out, NULL, reterr);
}

static int64_t
backend_of(il_guard_tx *tx)
{
    char     text[TEXT_BYTES];
    il_error err;

    T_EQ(read_text(tx, "SELECT pg_backend_pid()", text, &err), IL_OK);
    return strtoll(text, NULL, 10);
}

/* Until the server says that this session waits for a lock. */
static void
await_waiting(const struct t_ground *g, int64_t backend)
{
    char    sql[128];
    int64_t until_ms = t_real_ms() + G_LIMIT_MS;

    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*) FROM pg_stat_activity WHERE pid = %d AND wait_event_type = "
                   "'Lock'",
                   (int)backend);
    while (t_ground_count(g, sql) == 0)
        T_TRUE(t_real_ms() < until_ms);
}

/* ---- two transactions at once ---------------------------------------------------------------- */

/* A call on a thread of its own. */
struct call {
    il_guard_tx *tx;
    il_guard_fn *fn;
    void        *cookie;
    il_status    status;
    il_error     err;
    pthread_t    thread;
};

static void *
call_main(void *arg)
{
    struct call *c = arg;

    c->status = c->fn(c->cookie, c->tx, &c->err);
    return NULL;
}

static void
call_start(struct call *c)
{
    T_EQ(pthread_create(&c->thread, NULL, call_main, c), 0);
}

/* Run fn for A and, before that has committed, for B. Both commit. */
static void
at_once(const struct t_ground *g, il_guard_fn *fn, void *cookie_a, void *cookie_b)
{
    il_guard   *a = open_ranked(g), *b = open_ranked(g);
    struct call of_b = { .fn = fn, .cookie = cookie_b };
    il_error    err;

    il_guard_tx *of_a = t_begin(a, NULL, false);
    if (fn(cookie_a, of_a, &err) != IL_OK)
        T_FAIL("%s", err.message);
    if (g->is_postgres) {
        of_b.tx         = t_begin(b, NULL, false);
        int64_t backend = backend_of(of_b.tx);
        call_start(&of_b);
        await_waiting(g, backend);
        commit(of_a);
        T_EQ(pthread_join(of_b.thread, NULL), 0);
    } else {
        T_EQ(il_guard_begin(b, NULL, &of_b.tx, &err), IL_TIMEOUT);
        commit(of_a);
        of_b.tx = t_begin(b, NULL, false);
        (void)call_main(&of_b);
    }
    if (of_b.status != IL_OK)
        T_FAIL("%s", of_b.err.message);
    commit(of_b.tx);
    il_guard_close(a);
    il_guard_close(b);
}

/* A careless program: reads, and later writes what it made of it. */
struct careless {
    const char *read;
    void (*write)(il_guard_tx *tx, const char *seen, bool is_b);
};

/* Both read before one of them writes. In SQLite reading is a transaction of its own. */
static void
at_once_carelessly(const struct t_ground *g, const struct careless *how)
{
    il_guard    *c[2];
    il_guard_tx *tx[2];
    char         seen[2][TEXT_BYTES];
    il_error     err;

    for (int i = 0; i < 2; i++) {
        c[i]  = open_ranked(g);
        tx[i] = t_begin(c[i], NULL, false);
        T_EQ(read_text(tx[i], how->read, seen[i], &err), IL_OK);
        if (!g->is_postgres)
            commit(tx[i]);
    }
    for (int i = 0; i < 2; i++) {
        if (!g->is_postgres)
            tx[i] = t_begin(c[i], NULL, false);
        how->write(tx[i], seen[i], i == 1);
        commit(tx[i]);
        il_guard_close(c[i]);
    }
}

/* ---- double write: two that change a state and pay for it ------------------------------------ */

#define JOB_MAKE "CREATE TABLE job (id INTEGER PRIMARY KEY, state TEXT)"
#define PAID_MAKE "CREATE TABLE paid (job INTEGER)"
#define PAID_COUNT "SELECT count(*) FROM paid"

static void
finish_carelessly(il_guard_tx *tx, const char *seen, bool is_b UNUSED)
{
    if (strcmp(seen, "open") != 0)
        return;
    t_exec(tx, "UPDATE job SET state = 'done' WHERE id = 1");
    t_exec(tx, "INSERT INTO paid VALUES (1)");
}

static il_status
finish(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    il_guard_value found = il_guard_null();

    il_status st =
        il_guard_transition(tx, ROW("User", "job", ID(1), 1), "state", il_guard_text("open"),
                            il_guard_text("done"), &found, reterr);
    if (st == IL_STATE) { /* an answer */
        *(bool *)cookie = found.type == IL_GUARD_TEXT && strcmp(found.data, "done") == 0;
        return IL_OK;
    }
    if (st == IL_OK)
        st = t_guard_exec(tx, "INSERT INTO paid VALUES (1)", NULL, 0, NULL, NULL, NULL, reterr);
    return st;
}

G_TEST(a_state_changes_once)
{
    bool refused[2] = { false, false };

    ask(g, JOB_MAKE);
    ask(g, PAID_MAKE);
    ask(g, "INSERT INTO job VALUES (1, 'open')");
    at_once_carelessly(g, &(struct careless){ "SELECT state FROM job", finish_carelessly });
    T_EQ(t_ground_count(g, PAID_COUNT), 2);
    ask(g, "DELETE FROM paid");
    ask(g, "UPDATE job SET state = 'open'");
    at_once(g, finish, &refused[0], &refused[1]);
    T_TRUE(!refused[0] && refused[1]);
    T_EQ(t_ground_count(g, PAID_COUNT), 1);
}

/* ---- lost update: two that read a balance and write it --------------------------------------- */

#define BALANCE_MAKE "CREATE TABLE users (id INTEGER PRIMARY KEY, balance BIGINT NOT NULL)"
#define BALANCE "SELECT balance FROM users WHERE id = 1"

static il_status
write_less(il_guard_tx *tx, const char *seen, il_error *reterr)
{
    char sql[128];

    (void)snprintf(sql, sizeof sql, "UPDATE users SET balance = %lld WHERE id = 1",
                   strtoll(seen, NULL, 10) - 30);
    return t_guard_exec(tx, sql, NULL, 0, NULL, NULL, NULL, reterr);
}

static void
charge_carelessly(il_guard_tx *tx, const char *seen, bool is_b UNUSED)
{
    il_error err;

    if (write_less(tx, seen, &err) != IL_OK)
        T_FAIL("%s", err.message);
}

static il_status
charge(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    static const int64_t zero = 0;

    return il_guard_add(tx, ROW("User", "users", ID(1), 1), "balance", -30, &zero, cookie, reterr);
}

G_TEST(no_update_is_lost)
{
    int64_t after[2];

    ask(g, BALANCE_MAKE);
    ask(g, "INSERT INTO users VALUES (1, 100)");
    at_once_carelessly(g, &(struct careless){ BALANCE, charge_carelessly });
    T_EQ(t_ground_count(g, BALANCE), 70);
    ask(g, "UPDATE users SET balance = 100");
    at_once(g, charge, &after[0], &after[1]);
    T_EQ(after[0], 70);
    T_EQ(after[1], 40);
    T_EQ(t_ground_count(g, BALANCE), 40);
}

/* What a transaction reads under the lock is what the one before has written. */
static il_status
charge_under_lock(void *cookie UNUSED, il_guard_tx *tx, il_error *reterr)
{
    char      seen[TEXT_BYTES];
    il_status st = il_guard_lock(tx, ROW("User", "users", ID(1), 1), NULL, reterr);

    if (st == IL_OK)
        st = read_text(tx, BALANCE, seen, reterr);
    return st == IL_OK ? write_less(tx, seen, reterr) : st;
}

G_TEST(nor_under_a_row_lock)
{
    ask(g, BALANCE_MAKE);
    ask(g, "INSERT INTO users VALUES (1, 100)");
    at_once(g, charge_under_lock, NULL, NULL);
    T_EQ(t_ground_count(g, BALANCE), 40);
}

/* ---- double insert: two that look first ------------------------------------------------------ */

#define BADGE_COLUMNS "(id INTEGER PRIMARY KEY, who BIGINT, kind TEXT"

struct badge {
    int     inserted;
    int64_t id, ours;
};

static void
award_carelessly(il_guard_tx *tx, const char *seen, bool is_b)
{
    if (strcmp(seen, "0") == 0)
        t_exec(tx, is_b ? "INSERT INTO badge VALUES (2, 7, 'gold')"
                        : "INSERT INTO badge VALUES (1, 7, 'gold')");
}

static il_status
award(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    static const char *const unique[] = { "who", "kind" };
    struct badge            *b        = cookie;
    const il_guard_column    row[]    = { { "id", il_guard_int(b->ours) },
                                          { "who", il_guard_int(7) },
                                          { "kind", il_guard_text("gold") } };
    il_guard_id              id;

    il_status st = il_guard_insert_or_get(tx, "badge", row, ARRAY_LEN(row), unique, 2, &b->inserted,
                                          &id, reterr);
    if (st == IL_OK)
        b->id = id.values[0].integer;
    /* and the transaction goes on */
    return st == IL_OK
               ? t_guard_exec(tx, "INSERT INTO paid VALUES (1)", NULL, 0, NULL, NULL, NULL, reterr)
               : st;
}

G_TEST(one_row_is_inserted)
{
    struct badge b[2] = { { .ours = 1 }, { .ours = 2 } };

    ask(g, PAID_MAKE);
    ask(g, "CREATE TABLE badge " BADGE_COLUMNS ")");
    at_once_carelessly(
        g, &(struct careless){ "SELECT count(*) FROM badge WHERE who = 7", award_carelessly });
    T_EQ(t_ground_count(g, "SELECT count(*) FROM badge"), 2);
    ask(g, "DROP TABLE badge");
    ask(g, "CREATE TABLE badge " BADGE_COLUMNS ", UNIQUE (who, kind))");
    at_once(g, award, &b[0], &b[1]);
    T_EQ(b[0].inserted, 1);
    T_EQ(b[1].inserted, 0);
    T_EQ(b[1].id, 1);
    T_EQ(t_ground_count(g, "SELECT count(*) FROM badge"), 1);
    T_EQ(t_ground_count(g, PAID_COUNT), 2);
}

/* ---- retry amplification: a commit with an unknown outcome, repeated ------------------------- */

static il_status
count_up(void *cookie UNUSED, il_guard_tx *tx, il_error *reterr)
{
    return il_guard_add(tx, ROW("User", "users", ID(1), 1), "balance", 1, NULL, NULL, reterr);
}

static il_status
count_once(il_guard *c, const char *key, int *ret_replayed)
{
    il_guard_tx_opts o = IL_GUARD_TX_OPTS_INIT;
    il_error         err;

    o.once_key = key;
    return il_guard_transact(c, &o, count_up, NULL, ret_replayed, &err);
}

/* The caller died after the commit, before it could make a note of it, and begins again. */
static void
repeat_on_file(const struct t_ground *g)
{
    il_guard *c        = open_ranked(g);
    int       replayed = 0;

    for (int i = 0; i < 2; i++)
        T_EQ(count_once(c, NULL, NULL), IL_OK);
    T_EQ(t_ground_count(g, BALANCE), 2);
    for (int i = 0; i < 2; i++)
        T_EQ(count_once(c, "a", &replayed), IL_OK);
    T_EQ(replayed, 1);
    T_EQ(t_ground_count(g, BALANCE), 3);
    il_guard_close(c);
}

/* The answer to the n-th request is lost, n = 1, 2, …: one of them is that to the commit. */
static void
repeat_on_server(const struct t_ground *g)
{
    char        target[T_PATH_BYTES], url[T_PATH_BYTES], key[32];
    const char *folder    = strstr(g->server, "host=") + strlen("host=");
    unsigned    n         = 1;
    int         n_replays = 0, replayed = 0;
    il_status   st;
    t_path(target, "%.*s/.s.PGSQL.5432", (int)strcspn(folder, "&"), folder);
    struct t_proxy *proxy = t_proxy_new(target);
    t_path(url, "postgres://postgres@127.0.0.1:%u/postgres?sslmode=disable", t_proxy_port(proxy));
    il_guard *c = open_at(url, g->schema, G_LIMIT_MS);

    T_EQ(count_once(c, NULL, NULL), IL_OK);
    do {
        ask(g, "UPDATE users SET balance = 0");
        t_proxy_lose(proxy, T_PROXY_ANSWER, n++);
        st = count_once(c, NULL, NULL);
        T_TRUE(t_proxy_lost(proxy));
    } while (st != IL_UNKNOWN);
    T_EQ(count_once(c, NULL, NULL), IL_OK); /* as a careless caller does */
    T_EQ(t_ground_count(g, BALANCE), 2);
    T_EQ(count_once(c, "first", NULL), IL_OK);
    n = 1;
    do {
        ask(g, "UPDATE users SET balance = 0");
        (void)snprintf(key, sizeof key, "key %u", n);
        t_proxy_lose(proxy, T_PROXY_ANSWER, n++);
        T_EQ(count_once(c, key, &replayed), IL_OK);
        T_EQ(t_ground_count(g, BALANCE), 1);
        n_replays += replayed;
    } while (t_proxy_lost(proxy));
    T_EQ(n_replays, 1);
    il_guard_close(c);
    t_proxy_free(proxy);
}

G_TEST(a_repeated_call_has_one_effect)
{
    ask(g, BALANCE_MAKE);
    ask(g, "INSERT INTO users VALUES (1, 0)");
    if (g->is_postgres)
        repeat_on_server(g);
    else
        repeat_on_file(g);
}

/* ---- JSON overwrite: two that each change a member of one document --------------------------- */

#define DOC "SELECT doc FROM license WHERE id = 1"
#define DOC_START "{\"a\":1,\"b\":1}"
#define DOC_A 5 /* where the values are */
#define DOC_B 11

static void
license_make(const struct t_ground *g)
{
    char sql[256];

    (void)snprintf(sql, sizeof sql,
                   "CREATE TABLE license (id INTEGER PRIMARY KEY, who BIGINT, sport TEXT, doc %s,"
                   " UNIQUE (who, sport))",
                   g->is_postgres ? "json" : "TEXT");
    ask(g, sql);
    ask(g, "INSERT INTO license VALUES (1, 7, 'football', '" DOC_START "')");
}

static void
expect_doc(const struct t_ground *g, const char *doc)
{
    char out[4096];

    T_STREQ(t_ground_ask(g, "SELECT CAST(doc AS text) FROM license WHERE id = 1", out), doc);
}

static void
set_carelessly(il_guard_tx *tx, const char *seen, bool is_b)
{
    char        doc[TEXT_BYTES];
    const char *values[] = { doc };
    il_error    err;

    (void)snprintf(doc, sizeof doc, "%s", seen);
    doc[is_b ? DOC_B : DOC_A]++;
    if (t_guard_exec(tx, "UPDATE license SET doc = $1 WHERE id = 1", values, 1, NULL, NULL, NULL,
                     &err) != IL_OK)
        T_FAIL("%s", err.message);
}

/* One asks for the row by its id, the other by user and sport. */
static const il_guard_column license_key[] = {
    { "who", { .type = IL_GUARD_INT, .integer = 7 } },
    { "sport", { .type = IL_GUARD_TEXT, .data = "football", .n_bytes = 8 } },
};
static bool is_a = false, is_b = true;

static il_status
set_under_lock(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    bool                   second = *(const bool *)cookie;
    const il_guard_target *row =
        second ? ROW("License", "license", license_key, 2) : ROW("License", "license", ID(1), 1);
    char doc[TEXT_BYTES];

    il_status st = il_guard_lock(tx, row, NULL, reterr);
    if (st == IL_OK)
        st = read_text(tx, DOC, doc, reterr);
    if (st != IL_OK)
        return st;
    doc[second ? DOC_B : DOC_A]++;
    return il_guard_set_json(tx, row, "doc", doc, reterr);
}

G_TEST(no_document_is_overwritten)
{
    license_make(g);
    at_once_carelessly(g, &(struct careless){ DOC, set_carelessly });
    expect_doc(g, "{\"a\":1,\"b\":2}");
    ask(g, "UPDATE license SET doc = '" DOC_START "'");
    at_once(g, set_under_lock, &is_a, &is_b);
    expect_doc(g, "{\"a\":2,\"b\":2}");
    /* the other way round */
    at_once(g, set_under_lock, &is_b, &is_a);
    expect_doc(g, "{\"a\":3,\"b\":3}");
}

G_TEST(a_document_needs_its_lock)
{
    il_guard *c = open_ranked(g);
    il_error  err;

    license_make(g);
    il_guard_tx *tx = t_begin(c, NULL, false);
    T_EQ(il_guard_set_json(tx, ROW("License", "license", ID(1), 1), "doc", "{}", &err), IL_STATE);
    T_EQ(il_guard_commit(tx, &err), IL_STATE);
    expect_doc(g, DOC_START);
    il_guard_close(c);
}

/* ---- replay order: rows of the same moment --------------------------------------------------- */

static int
replay_one(void *cookie, const il_guard_row *row)
{
    int64_t *level = cookie;

    /* as skills are computed: it matters which comes first */
    *level = *level * 2 + strtoll(t_guard_text(row, 0), NULL, 10);
    return 1;
}

static int64_t
replay(const struct t_ground *g, const char *sql)
{
    il_guard    *c     = open_ranked(g);
    il_guard_tx *tx    = t_begin(c, NULL, true);
    int64_t      level = 0;
    il_error     err;

    if (t_guard_exec(tx, sql, NULL, 0, replay_one, &level, NULL, &err) != IL_OK)
        T_FAIL("%s", err.message);
    commit(tx);
    il_guard_close(c);
    return level;
}

G_TEST(a_replay_sorts_by_time_and_id)
{
    /* the same rows, in the order in which two finalizations happened to write them */
    ask(g, "CREATE TABLE early (id TEXT PRIMARY KEY, at BIGINT, points BIGINT)");
    ask(g, "CREATE TABLE late (id TEXT PRIMARY KEY, at BIGINT, points BIGINT)");
    ask(g, "INSERT INTO early VALUES ('a', 1, 5), ('b', 1, 9)");
    ask(g, "INSERT INTO late VALUES ('b', 1, 9), ('a', 1, 5)");
    T_TRUE(replay(g, "SELECT points FROM early ORDER BY at") !=
           replay(g, "SELECT points FROM late ORDER BY at"));
    T_EQ(replay(g, "SELECT points FROM early ORDER BY at, id"), 19);
    T_EQ(replay(g, "SELECT points FROM late ORDER BY at, id"), 19);
}

/* ---- the order of locks ---------------------------------------------------------------------- */

static il_status
add_to_second(void *cookie UNUSED, il_guard_tx *tx, il_error *reterr)
{
    return t_guard_exec(tx, "UPDATE users SET balance = balance + 1 WHERE id = 2", NULL, 0, NULL,
                        NULL, NULL, reterr);
}

/* Plain statements: each waits for the other, and the server ends one of them. */
static void
deadlock(const struct t_ground *g)
{
    il_guard   *a = open_ranked(g), *b = open_ranked(g);
    struct call of_a = { .tx = t_begin(a, NULL, false), .fn = add_to_second };
    il_error    err;

    int64_t      backend = backend_of(of_a.tx);
    il_guard_tx *of_b    = t_begin(b, NULL, false);
    t_exec(of_a.tx, "UPDATE users SET balance = balance + 1 WHERE id = 1");
    t_exec(of_b, "UPDATE users SET balance = balance + 1 WHERE id = 2");
    call_start(&of_a);
    await_waiting(g, backend);
    il_status st = t_try(of_b, "UPDATE users SET balance = balance + 1 WHERE id = 1", &err);
    if (st != IL_OK) /* else the server has chosen the other one, and has rolled it back */
        il_guard_rollback(of_b);
    T_EQ(pthread_join(of_a.thread, NULL), 0);
    T_TRUE((st == IL_DEADLOCK && of_a.status == IL_OK) ||
           (st == IL_OK && of_a.status == IL_DEADLOCK));
    if (st == IL_OK)
        commit(of_b);
    if (of_a.status == IL_OK)
        commit(of_a.tx);
    else
        il_guard_rollback(of_a.tx);
    T_EQ(t_ground_count(g, "SELECT sum(balance) FROM users"), 2);
    il_guard_close(a);
    il_guard_close(b);
}

static il_status
lock_second(void *cookie UNUSED, il_guard_tx *tx, il_error *reterr)
{
    return il_guard_lock(tx, ROW("User", "users", ID(2), 1), NULL, reterr);
}

/* Through the kit the one that takes them the wrong way round is refused, and does not wait. */
static void
opposite(const struct t_ground *g)
{
    il_guard    *a = open_ranked(g), *b = open_ranked(g);
    il_guard_tx *of_b;
    struct call  of_a = { .fn = lock_second };
    il_error     err  = { .message = "" };

    if (g->is_postgres) {
        of_a.tx = t_begin(a, NULL, false);
        T_EQ(il_guard_lock(of_a.tx, ROW("User", "users", ID(1), 1), NULL, &err), IL_OK);
    }
    of_b = t_begin(b, NULL, false);
    T_EQ(il_guard_lock(of_b, ROW("User", "users", ID(2), 1), NULL, &err), IL_OK);
    if (g->is_postgres) {
        int64_t backend = backend_of(of_a.tx);
        call_start(&of_a);
        await_waiting(g, backend);
    }
    T_EQ(il_guard_lock(of_b, ROW("User", "users", ID(1), 1), NULL, &err), IL_ORDER);
    T_HAS(err.message, "race.c:");
    il_guard_rollback(of_b);
    if (g->is_postgres) {
        T_EQ(pthread_join(of_a.thread, NULL), 0);
        T_EQ(of_a.status, IL_OK);
        commit(of_a.tx);
    }
    /* and so is a smaller rank after a greater one */
    of_b = t_begin(b, NULL, false);
    T_EQ(il_guard_lock(of_b, ROW("User", "users", ID(1), 1), NULL, &err), IL_OK);
    T_EQ(il_guard_lock(of_b, ROW("License", "license", ID(1), 1), NULL, &err), IL_ORDER);
    il_guard_rollback(of_b);
    il_guard_close(a);
    il_guard_close(b);
}

G_TEST(opposite_orders_are_refused)
{
    ask(g, BALANCE_MAKE);
    ask(g, "INSERT INTO users VALUES (1, 0), (2, 0)");
    license_make(g);
    if (g->is_postgres) /* in SQLite there is one lock for all */
        deadlock(g);
    opposite(g);
}

/* A row that is held is no violation, whichever key it is asked for by. */
G_TEST(a_row_that_is_held_may_be_asked_for_again)
{
    il_guard *c = open_ranked(g);
    il_error  err;

    license_make(g);
    ask(g, BALANCE_MAKE);
    ask(g, "INSERT INTO users VALUES (1, 0)");
    il_guard_tx *tx = t_begin(c, NULL, false);
    T_EQ(il_guard_lock(tx, ROW("License", "license", ID(1), 1), NULL, &err), IL_OK);
    T_EQ(il_guard_lock(tx, ROW("User", "users", ID(1), 1), NULL, &err), IL_OK);
    T_EQ(il_guard_lock(tx, ROW("License", "license", license_key, 2), NULL, &err), IL_OK);
    commit(tx);
    il_guard_close(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        G_ROW(a_state_changes_once),           G_ROW(no_update_is_lost),
        G_ROW(nor_under_a_row_lock),           G_ROW(one_row_is_inserted),
        G_ROW(a_repeated_call_has_one_effect), G_ROW(no_document_is_overwritten),
        G_ROW(a_document_needs_its_lock),      G_ROW(a_replay_sorts_by_time_and_id),
        G_ROW(opposite_orders_are_refused),    G_ROW(a_row_that_is_held_may_be_asked_for_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
