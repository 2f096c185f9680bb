/*
 * rows.c: row locks in rank order, and numbers, states, documents and aggregates of rows.
 */
#include "guard/rows.h"

#define BALANCE(id) "SELECT balance FROM users WHERE id = " #id

static il_guard_tx *
begin(il_guard *c)
{
    return t_begin(c, NULL, false);
}

/* ---- one row --------------------------------------------------------------------------------- */

static void
is_user(const il_guard_id *id, int64_t number)
{
    T_EQ(id->n, 1);
    T_EQ(id->values[0].type, IL_GUARD_INT);
    T_EQ(id->values[0].integer, number);
}

G_TEST(a_row_is_locked_by_any_key)
{
    struct t_row_events seen;
    il_guard           *c = t_rows_open(g, NULL, &seen);
    il_guard_id         id;

    t_rows_make(g);
    il_guard_tx *tx = begin(c);
    R_RUN(il_guard_lock(tx, R_USER(2), &id, why));
    is_user(&id, 2);
    /* the same row again: no violation, and no second event */
    R_RUN(il_guard_lock(tx, R_USER(2), NULL, why));
    R_RUN(il_guard_lock(tx, R_ROW("User", "users", "email", R_TEXT("b")), &id, why));
    is_user(&id, 2);
    R_RUN(il_guard_lock(tx, R_ROW("User", "users", "id", R_TEXT("2")), &id, why));
    is_user(&id, 2);
    R_RUN(il_guard_lock(tx, R_ROW_2("User", "users", "state", R_TEXT("new"), "email", R_TEXT("b")),
                        &id, why));
    is_user(&id, 2);
    t_commit(tx);
    T_EQ(seen.n, 1);
    T_STREQ(seen.rows[0].entity, "User");
    T_STREQ(seen.rows[0].table, "users");
    T_STREQ(seen.rows[0].key, "2");
    T_HAS(seen.rows[0].place, "rows.c:");
    il_guard_close(c);
}

G_TEST(another_key_first_and_then_the_primary_key)
{
    struct t_row_events seen;
    il_guard           *c = t_rows_open(g, NULL, &seen);
    il_guard_id         id;

    t_rows_make(g);
    il_guard_tx *tx = begin(c);
    R_RUN(il_guard_lock(tx, R_ROW("User", "users", "state", il_guard_null()), &id, why));
    is_user(&id, 3);
    R_RUN(il_guard_lock(tx, R_USER(3), &id, why));
    is_user(&id, 3);
    R_RUN(il_guard_add(tx, R_USER(3), "balance", 1, NULL, NULL, why));
    t_commit(tx);
    T_EQ(seen.n, 1);
    T_STREQ(seen.rows[0].key, "3");
    il_guard_close(c);
}

G_TEST(rows_that_cannot_be_locked)
{
    il_guard *c = t_rows_open(g, NULL, NULL);
    il_error  err;

    t_rows_make(g);
    t_sql(g, "CREATE TABLE plain (a INTEGER)");
    il_guard_tx *tx = begin(c);
    T_EQ(il_guard_lock(tx, R_USER(99), NULL, &err), IL_NOT_FOUND);
    T_HAS(err.message, "users");
    T_EQ(il_guard_lock(tx, R_ROW("User", "users", "email", R_TEXT("?")), NULL, &err), IL_NOT_FOUND);
    T_EQ(il_guard_lock(tx, R_ROW("User", "no_such", "id", R_INT(1)), NULL, &err), IL_NOT_FOUND);
    T_HAS(err.message, "no_such");
    T_EQ(il_guard_lock(tx, R_ROW("User", "users", "nope", R_INT(1)), NULL, &err), IL_NOT_FOUND);
    T_HAS(err.message, "nope");
    T_EQ(il_guard_lock(tx, R_ROW("User", "plain", "a", R_INT(1)), NULL, &err), IL_INVAL);
    T_HAS(err.message, "primary key");
    R_RUN(il_guard_lock(tx, R_USER(1), NULL, why)); /* answers: it goes on */
    t_commit(tx);
    tx = begin(c);
    T_EQ(il_guard_lock(tx, R_ROW("User", "users", "state", R_TEXT("new")), NULL, &err), IL_INVAL);
    T_HAS(err.message, "several rows");
    T_EQ(il_guard_commit(tx, &err), IL_STATE);
    il_guard_close(c);
}

G_TEST(a_table_in_a_schema)
{
    il_guard *c = t_rows_open(g, NULL, NULL);
    char      name[128];

    t_rows_make(g);
    (void)snprintf(name, sizeof name, "%s.users", g->is_postgres ? g->schema : "main");
    il_guard_tx *tx = begin(c);
    R_RUN(il_guard_lock(tx, R_ROW("User", name, "id", R_INT(1)), NULL, why));
    /* the same row, by the name without the schema */
    R_RUN(il_guard_lock(tx, R_USER(2), NULL, why));
    R_RUN(il_guard_lock(tx, R_USER(1), NULL, why));
    t_commit(tx);
    il_guard_close(c);
}

/* ---- many rows ------------------------------------------------------------------------------- */

static size_t
lock_many(il_guard_tx *tx, const il_guard_target *row, const char *column,
          const il_guard_value *values, size_t n)
{
    size_t n_found = 99;

    R_RUN(il_guard_lock_many(tx, row, column, values, n, &n_found, why));
    return n_found;
}
#define ALL(class_, in) (&(il_guard_target){ .entity = (class_), .table = (in) })

static void
keys_are(const struct t_row_events *seen, const char *expected)
{
    char text[256] = "";

    for (unsigned i = 0; i < seen->n; i++)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s|", seen->rows[i].key);
    T_STREQ(text, expected);
}

G_TEST(many_rows_are_locked_in_the_order_of_their_keys)
{
    struct t_row_events  seen;
    il_guard            *c     = t_rows_open(g, NULL, &seen);
    const il_guard_value ids[] = { R_INT(4), R_INT(1), R_INT(99), R_INT(3), R_INT(1) };
    const il_guard_value old[] = { R_TEXT("old"), R_TEXT("none") };

    t_rows_make(g);
    il_guard_tx *tx = begin(c);
    T_EQ(lock_many(tx, ALL("User", "users"), "id", ids, 0), 0);
    T_EQ(lock_many(tx, ALL("User", "users"), "id", ids, ARRAY_LEN(ids)), 3);
    T_EQ(lock_many(tx, ALL("User", "users"), "id", ids, ARRAY_LEN(ids)), 3); /* held */
    T_EQ(lock_many(tx, ALL("User", "users"), "state", old, 2), 2);           /* 4 is held, 5 new */
    t_commit(tx);
    keys_are(&seen, "1|3|4|5|");
    il_guard_close(c);
}

G_TEST(many_rows_with_further_conditions)
{
    struct t_row_events  seen;
    il_guard            *c        = t_rows_open(g, NULL, &seen);
    const il_guard_value ids[]    = { R_INT(2), R_INT(5), R_INT(1) };
    const il_guard_value states[] = { R_TEXT("new"), il_guard_null() };

    t_rows_make(g);
    il_guard_tx *tx = begin(c);
    T_EQ(lock_many(tx, R_ROW("User", "users", "state", R_TEXT("new")), "id", ids, 3), 2);
    T_EQ(lock_many(tx, ALL("User", "users"), "state", states, 2), 2); /* NULL is in no list */
    t_commit(tx);
    keys_are(&seen, "1|2|");
    il_guard_close(c);
}

G_TEST(keys_of_text_and_of_several_columns)
{
    struct t_row_events  seen;
    il_guard            *c       = t_rows_open(g, NULL, &seen);
    const il_guard_value names[] = { R_TEXT("b"), R_TEXT("a"), R_TEXT("B"), R_TEXT("\xc3\xa4") };
    const il_guard_value users[] = { R_INT(10), R_INT(9) };
    const il_guard_value coach[] = { R_INT(7) };
    il_guard_id          id;

    t_sql(g, "CREATE TABLE seats (name TEXT PRIMARY KEY)");
    t_sql(g, "INSERT INTO seats VALUES ('a'), ('b'), ('B'), ('\xc3\xa4')");
    t_sql(g, "CREATE TABLE licenses (sport TEXT, user_id INTEGER, n BIGINT, "
             "PRIMARY KEY (user_id, sport))");
    t_sql(g, "INSERT INTO licenses VALUES ('tennis', 7, 0), ('football', 7, 0), ('chess', 10, 0), "
             "('chess', 9, 0)");
    il_guard_tx *tx = begin(c);
    R_RUN(il_guard_lock(
        tx, R_ROW_2("License", "licenses", "sport", R_TEXT("football"), "user_id", R_INT(7)), &id,
        why));
    T_EQ(id.n, 2);
    T_EQ(id.values[0].integer, 7);
    T_STREQ(id.values[1].data, "football");
    T_EQ(lock_many(tx, ALL("License", "licenses"), "user_id", coach, 1), 2);
    T_EQ(lock_many(tx, ALL("License", "licenses"), "user_id", users, 2), 2);
    T_EQ(lock_many(tx, ALL("Seat", "seats"), "name", names, 4), 4);
    t_commit(tx);
    keys_are(&seen, "7,football|7,tennis|9,chess|10,chess|B|a|b|\xc3\xa4|");
    il_guard_close(c);
}

/* ---- the order ------------------------------------------------------------------------------- */

/* A refused lock: the message names all of `parts`, and the transaction cannot commit. */
static void
refused(il_guard *c, const il_guard_target *first, const il_guard_target *second,
        const char *const *parts)
{
    il_guard_tx *tx  = begin(c);
    il_error     err = { .message = "" };

    R_RUN(il_guard_lock(tx, first, NULL, why));
    T_EQ(il_guard_lock(tx, second, NULL, &err), IL_ORDER);
    for (; *parts != NULL; parts++)
        T_HAS(err.message, *parts);
    T_EQ(il_guard_commit(tx, &err), IL_STATE);
}

G_TEST(rows_are_locked_in_the_order_of_their_ranks)
{
    struct t_row_events   seen;
    il_guard             *c      = t_rows_open(g, NULL, &seen);
    il_guard_target       first  = *R_USER(1);
    il_guard_target       second = *R_TERM(1);
    const il_guard_column by_1 = { "id", R_INT(1) }, by_2 = { "id", R_INT(2) };

    t_rows_make(g);
    first.key    = &by_1;
    second.key   = &by_1;
    first.place  = "first.c:1";
    second.place = "second.c:2";
    refused(c, &first, &second,
            (const char *[]){ "first.c:1", "second.c:2", "User", "Term", "10", "50", NULL });
    T_EQ(seen.n, 1); /* of the row that was locked */
    T_EQ(seen.rows[0].outcome, IL_GUARD_REFUSED);
    /* one rank: the table, then the key */
    first.key    = &by_2;
    second       = first;
    second.key   = &by_1;
    second.place = NULL;
    refused(c, &first, &second, (const char *[]){ "first.c:1", "unknown place", NULL });
    /* by another key the order is the same */
    refused(c, &first, R_ROW("User", "users", "email", R_TEXT("a")),
            (const char *[]){ "User 2", NULL });
    refused(c, &first, R_ROW("Note", "terms", "id", R_INT(3)), (const char *[]){ "Note", NULL });
    refused(c, &first, R_ROW("Stranger", "users", "id", R_INT(3)),
            (const char *[]){ "Stranger has no rank", NULL });
    il_guard_close(c);
}

G_TEST(a_class_without_a_rank_is_refused)
{
    il_guard            *c     = t_rows_open(g, NULL, NULL);
    il_guard_tx         *tx    = NULL;
    const il_guard_value one[] = { R_INT(1) };
    il_error             err;

    t_rows_make(g);
    tx = begin(c);
    T_EQ(il_guard_lock(tx, R_ROW("Stranger", "users", "id", R_INT(1)), NULL, &err), IL_ORDER);
    il_guard_rollback(tx);
    tx = begin(c);
    T_EQ(il_guard_lock_many(tx, ALL("Stranger", "users"), "id", one, 1, NULL, &err), IL_ORDER);
    il_guard_rollback(tx);
    tx = begin(c);
    T_EQ(il_guard_add(tx, R_ROW("Stranger", "users", "id", R_INT(1)), "balance", 1, NULL, NULL,
                      &err),
         IL_ORDER);
    T_EQ(il_guard_commit(tx, &err), IL_STATE);
    T_EQ(t_ground_count(g, BALANCE(1)), 10);
    il_guard_close(c);
}

/* Each call of layer 2 counts as locking the row, and many rows as each of them. */
G_TEST(changes_and_many_rows_follow_the_order)
{
    il_guard            *c     = t_rows_open(g, NULL, NULL);
    const il_guard_value ids[] = { R_INT(3), R_INT(1) };
    il_error             err;

    t_rows_make(g);
    il_guard_tx *tx = begin(c);
    R_RUN(il_guard_add(tx, R_USER(2), "balance", 1, NULL, NULL, why));
    T_EQ(il_guard_add(tx, R_USER(1), "balance", 1, NULL, NULL, &err), IL_ORDER);
    il_guard_rollback(tx);
    tx = begin(c);
    R_RUN(il_guard_transition(tx, R_USER(2), "state", R_TEXT("new"), R_TEXT("x"), NULL, why));
    T_EQ(il_guard_lock_many(tx, ALL("User", "users"), "id", ids, 2, NULL, &err), IL_ORDER);
    il_guard_rollback(tx);
    tx = begin(c);
    T_EQ(lock_many(tx, ALL("User", "users"), "id", ids, 2), 2);
    T_EQ(il_guard_transition(tx, R_TERM(1), "code", R_TEXT("x"), R_TEXT("y"), NULL, &err),
         IL_ORDER);
    il_guard_rollback(tx);
    T_EQ(t_ground_count(g, BALANCE(2)), 20);
    il_guard_close(c);
}

G_TEST(the_right_order_is_accepted)
{
    struct t_row_events seen;
    il_guard           *c = t_rows_open(g, NULL, &seen);

    t_rows_make(g);
    t_sql(g, "CREATE TABLE a_notes (id INTEGER PRIMARY KEY)");
    t_sql(g, "INSERT INTO a_notes VALUES (9)");
    il_guard_tx *tx = begin(c);
    R_RUN(il_guard_lock(tx, R_TERM(1), NULL, why));
    R_RUN(il_guard_lock(tx, R_TERM(3), NULL, why));
    R_RUN(il_guard_lock(tx, R_ROW("Note", "a_notes", "id", R_INT(9)), NULL, why));
    R_RUN(il_guard_lock(tx, R_USER(1), NULL, why)); /* the same rank, a later table */
    R_RUN(il_guard_lock(tx, R_USER(2), NULL, why));
    R_RUN(il_guard_lock(tx, R_TERM(1), NULL, why)); /* held */
    R_RUN(il_guard_lock(tx, R_ROW("Term", "terms", "code", R_TEXT("z")), NULL, why));
    R_RUN(il_guard_add(tx, R_TERM(1), "total", 3, NULL, NULL, why));
    t_commit(tx);
    keys_are(&seen, "1|3|9|1|2|");
    il_guard_close(c);
}

struct to_lock {
    const il_guard_target *row;
    il_status              then;
};

static il_status
lock_and_end(void *cookie, il_guard_tx *tx, il_error *err)
{
    const struct to_lock *l  = cookie;
    il_status             st = il_guard_lock(tx, l->row, NULL, err);

    return st == IL_OK ? l->then : st;
}

G_TEST(rows_of_an_undone_savepoint_are_no_longer_held)
{
    struct t_row_events seen;
    il_guard           *c    = t_rows_open(g, NULL, &seen);
    il_guard_target     user = *R_USER(2), term = *R_TERM(1);
    il_guard_column     two = { "id", R_INT(2) }, one = { "id", R_INT(1) };
    il_error            err;

    user.key = &two;
    term.key = &one;
    t_rows_make(g);
    il_guard_tx *tx = begin(c);
    T_EQ(il_guard_try(tx, lock_and_end, &(struct to_lock){ &user, IL_BUSY }, &err), IL_BUSY);
    R_RUN(il_guard_lock(tx, R_TERM(1), NULL, why));
    T_EQ(il_guard_set_json(tx, R_USER(2), "doc", "{}", &err), IL_STATE);
    il_guard_rollback(tx);
    tx = begin(c);
    R_RUN(il_guard_try(tx, lock_and_end, &(struct to_lock){ &user, IL_OK }, why)); /* kept */
    T_EQ(il_guard_try(tx, lock_and_end, &(struct to_lock){ &term, IL_OK }, &err), IL_ORDER);
    R_RUN(il_guard_set_json(tx, R_USER(2), "doc", "{}", why)); /* it goes on */
    t_commit(tx);
    keys_are(&seen, "2|1|2|");
    il_guard_close(c);
}

/* ---- two at once (PostgreSQL) ---------------------------------------------------------------- */

struct second {
    il_guard *c;
    int64_t   value;
};

static il_status
read_under_lock(void *cookie, il_error *err)
{
    struct second       *s  = cookie;
    il_guard_tx         *tx = NULL;
    const il_guard_query q  = { .sql    = "SELECT balance FROM users WHERE id = 1",
                                .each   = t_take_pid,
                                .cookie = &s->value };

    il_status st = il_guard_begin(s->c, NULL, &tx, err);
    if (st == IL_OK)
        st = il_guard_lock(tx, R_ROW("User", "users", "email", R_TEXT("a")), NULL, err);
    if (st == IL_OK)
        st = il_guard_exec(tx, &q, NULL, err);
    if (st == IL_OK)
        return il_guard_commit(tx, err);
    il_guard_rollback(tx);
    return st;
}

/* One row by its id and by another key at once: the second one waits, and reads what the first has
 * written. */
G_TEST(a_locked_row_keeps_others_waiting)
{
    il_guard     *a = t_rows_open(g, NULL, NULL);
    struct second b = { .c = t_rows_open(g, NULL, NULL) };
    struct t_task task;

    t_rows_make(g);
    il_guard_tx *tx = begin(a);
    R_RUN(il_guard_lock(tx, R_USER(1), NULL, why));
    int64_t pid = g->is_postgres ? t_pid_of(tx) : 0;
    t_task_start(&task, read_under_lock, &b);
    if (g->is_postgres)
        T_TRUE(t_is_waited_for(g, pid, &task));
    t_exec(tx, "UPDATE users SET balance = 77 WHERE id = 1");
    t_commit(tx);
    T_EQ(t_task_end(&task), IL_OK);
    T_EQ(b.value, 77);
    il_guard_close(a);
    il_guard_close(b.c);
}

static il_status
add_seven(void *cookie, il_error *err)
{
    struct second *s   = cookie;
    il_guard_tx   *tx  = NULL;
    const int64_t  min = 0;

    il_status st = il_guard_begin(s->c, NULL, &tx, err);
    if (st == IL_OK)
        st = il_guard_add(tx, R_USER(1), "balance", 7, &min, &s->value, err);
    if (st == IL_OK)
        return il_guard_commit(tx, err);
    il_guard_rollback(tx);
    return st;
}

G_TEST(two_additions_at_once_are_both_made)
{
    il_guard     *a = t_rows_open(g, NULL, NULL);
    struct second b = { .c = t_rows_open(g, NULL, NULL) };
    struct t_task task;
    int64_t       value = 0;

    t_rows_make(g);
    il_guard_tx *tx = begin(a);
    R_RUN(il_guard_add(tx, R_USER(1), "balance", 5, NULL, &value, why));
    T_EQ(value, 15);
    int64_t pid = g->is_postgres ? t_pid_of(tx) : 0;
    t_task_start(&task, add_seven, &b);
    if (g->is_postgres)
        T_TRUE(t_is_waited_for(g, pid, &task));
    t_commit(tx);
    T_EQ(t_task_end(&task), IL_OK);
    T_EQ(b.value, 22);
    T_EQ(t_ground_count(g, BALANCE(1)), 22);
    il_guard_close(a);
    il_guard_close(b.c);
}

/* A child that refers to a locked row need not wait for it. */
G_TEST(a_locked_row_can_be_referred_to)
{
    il_guard *c = t_rows_open(g, NULL, NULL);

    t_rows_make(g);
    t_sql(g, "CREATE TABLE kids (id INTEGER PRIMARY KEY, user_id INTEGER REFERENCES users)");
    il_guard_tx *tx = begin(c);
    R_RUN(il_guard_lock(tx, R_USER(1), NULL, why));
    if (g->is_postgres)
        t_sql(g, "INSERT INTO kids VALUES (1, 1)");
    t_commit(tx);
    il_guard_close(c);
}

/* ---- numbers --------------------------------------------------------------------------------- */

G_TEST(a_number_is_added_to)
{
    struct t_row_events seen;
    il_guard           *c     = t_rows_open(g, NULL, &seen);
    int64_t             value = 0, min = 0;
    il_error            err;

    t_rows_make(g);
    il_guard_tx *tx = begin(c);
    R_RUN(il_guard_add(tx, R_USER(1), "balance", 5, NULL, &value, why));
    T_EQ(value, 15);
    R_RUN(il_guard_add(tx, R_ROW("User", "users", "email", R_TEXT("a")), "balance", -15, &min,
                       &value, why));
    T_EQ(value, 0);
    T_EQ(il_guard_add(tx, R_USER(1), "balance", -1, &min, &value, &err), IL_STATE);
    T_EQ(value, 0); /* as found */
    T_HAS(err.message, "balance of users is 0");
    T_EQ(il_guard_add(tx, R_USER(2), "balance", -21, &min, &value, &err), IL_STATE);
    T_EQ(value, 20);
    T_EQ(il_guard_add(tx, R_USER(99), "balance", 1, &min, &value, &err), IL_NOT_FOUND);
    T_EQ(il_guard_add(tx, R_USER(99), "balance", 1, NULL, &value, &err), IL_NOT_FOUND);
    R_RUN(il_guard_add(tx, R_USER(2), "small", 1, &min, NULL, why)); /* it goes on */
    t_commit(tx);
    keys_are(&seen, "1|2|");
    T_EQ(t_ground_count(g, BALANCE(1)), 0);
    T_EQ(t_ground_count(g, BALANCE(2)), 20);
    il_guard_close(c);
}

/* The addition fails, and nothing of it stays. */
static void
cannot_add(struct t_ground *g, il_guard *c, int64_t id, const char *column, int64_t delta,
           const int64_t *min, il_status expected)
{
    il_guard_tx *tx  = begin(c);
    il_error     err = { .message = "" };

    t_exec(tx, "UPDATE users SET state = 'seen' WHERE id = 5");
    T_EQ(il_guard_add(tx, R_USER(id), column, delta, min, NULL, &err), expected);
    T_TRUE(err.message[0] != '\0');
    T_EQ(il_guard_commit(tx, &err), IL_STATE);
    T_EQ(t_ground_count(g, "SELECT count(*) FROM users WHERE state = 'seen'"), 0);
}

G_TEST(what_is_no_integer_or_does_not_fit)
{
    il_guard *c   = t_rows_open(g, NULL, NULL);
    int64_t   min = 0;

    t_rows_make(g);
    cannot_add(g, c, 4, "balance", 1, NULL, IL_INVAL); /* NULL */
    cannot_add(g, c, 4, "balance", 1, &min, IL_INVAL);
    cannot_add(g, c, 1, "email", 1, NULL, IL_INVAL);
    cannot_add(g, c, 1, "balance", INT64_MAX, NULL, IL_INVAL);
    cannot_add(g, c, 1, "balance", -11, NULL, IL_CHECK);
    if (g->is_postgres) /* SQLite has no integers of 4 bytes */
        cannot_add(g, c, 1, "small", INT32_MAX, NULL, IL_INVAL);
    T_EQ(t_ground_count(g, BALANCE(1)), 10);
    il_guard_close(c);
}

/* ---- states ---------------------------------------------------------------------------------- */

G_TEST(a_state_changes_once)
{
    struct t_row_events seen;
    il_guard           *c = t_rows_open(g, NULL, &seen);
    il_guard_value      found;
    il_error            err;

    t_rows_make(g);
    il_guard_tx *tx = begin(c);
    R_RUN(il_guard_transition(tx, R_USER(1), "state", R_TEXT("new"), R_TEXT("paid"), NULL, why));
    T_EQ(il_guard_transition(tx, R_USER(1), "state", R_TEXT("new"), R_TEXT("x"), &found, &err),
         IL_STATE);
    T_EQ(found.type, IL_GUARD_TEXT);
    T_STREQ(found.data, "paid");
    T_HAS(err.message, "paid");
    T_EQ(il_guard_transition(tx, R_USER(3), "state", R_TEXT("new"), R_TEXT("x"), &found, &err),
         IL_STATE);
    T_EQ(found.type, IL_GUARD_NULL);
    T_EQ(il_guard_transition(tx, R_USER(99), "state", R_TEXT("new"), R_TEXT("x"), &found, &err),
         IL_NOT_FOUND);
    /* from NULL, and to NULL */
    R_RUN(il_guard_transition(tx, R_USER(3), "state", il_guard_null(), R_TEXT("new"), NULL, why));
    R_RUN(il_guard_transition(tx, R_USER(3), "state", R_TEXT("new"), il_guard_null(), NULL, why));
    R_RUN(il_guard_transition(tx, R_USER(5), "balance", R_INT(50), R_INT(51), NULL, why));
    t_commit(tx);
    keys_are(&seen, "1|3|5|");
    T_EQ(t_ground_count(g, "SELECT count(*) FROM users WHERE state = 'paid'"), 1);
    T_EQ(t_ground_count(g, "SELECT count(*) FROM users WHERE id = 3 AND state IS NULL"), 1);
    T_EQ(t_ground_count(g, BALANCE(5)), 51);
    il_guard_close(c);
}

/* ---- documents ------------------------------------------------------------------------------- */

G_TEST(a_document_needs_the_lock_of_its_row)
{
    il_guard *c = t_rows_open(g, NULL, NULL);
    il_error  err;

    t_rows_make(g);
    t_sql(g, g->is_postgres ? "ALTER TABLE users ADD skills JSONB"
                            : "ALTER TABLE users ADD skills TEXT "
                              "CHECK (skills IS NULL OR json_valid(skills))");
    il_guard_tx *tx = begin(c);
    T_EQ(il_guard_set_json(tx, R_USER(1), "skills", "{\"a\": 1}", &err), IL_STATE);
    T_HAS(err.message, "il_guard_lock");
    T_EQ(il_guard_commit(tx, &err), IL_STATE);
    tx = begin(c);
    R_RUN(il_guard_lock(tx, R_USER(1), NULL, why));
    T_EQ(il_guard_set_json(tx, R_USER(2), "skills", "{}", &err), IL_STATE); /* another row's */
    il_guard_rollback(tx);
    tx = begin(c);
    R_RUN(il_guard_lock(tx, R_USER(1), NULL, why));
    R_RUN(il_guard_set_json(tx, R_ROW("User", "users", "email", R_TEXT("a")), "skills",
                            "{\"a\": 1}", why));
    R_RUN(il_guard_lock(tx, R_ROW("User", "users", "email", R_TEXT("b")), NULL, why));
    R_RUN(il_guard_set_json(tx, R_USER(2), "skills", "{\"a\": 2}", why));
    T_EQ(il_guard_set_json(tx, R_USER(99), "skills", "{}", &err), IL_NOT_FOUND);
    t_commit(tx);
    T_EQ(t_ground_count(g, g->is_postgres ? "SELECT sum((skills->>'a')::int) FROM users"
                                          : "SELECT sum(skills->>'a') FROM users"),
         3);
    tx = begin(c); /* the database refuses what is no JSON */
    R_RUN(il_guard_lock(tx, R_USER(1), NULL, why));
    T_EQ(il_guard_set_json(tx, R_USER(1), "skills", "{", &err),
         g->is_postgres ? IL_INVAL : IL_CHECK);
    il_guard_rollback(tx);
    il_guard_close(c);
}

/* ---- aggregates ------------------------------------------------------------------------------ */

static int64_t
recompute(il_guard_tx *tx, il_guard_aggregate aggregate, const char *column,
          const il_guard_column *where, size_t n_where)
{
    int64_t                 value    = -1;
    const il_guard_children children = { .aggregate = aggregate,
                                         .table     = "places",
                                         .parent    = "term_id",
                                         .column    = column,
                                         .where     = where,
                                         .n_where   = n_where };

    R_RUN(il_guard_recompute(tx, R_TERM(1), "total", &children, &value, why));
    return value;
}

G_TEST(aggregates_are_computed_from_the_children)
{
    il_guard               *c        = t_rows_open(g, NULL, NULL);
    const il_guard_column   active[] = { { "state", R_TEXT("on") } };
    const il_guard_column   none[]   = { { "state", il_guard_null() }, { "n", R_INT(9) } };
    const il_guard_children count    = { .table = "places", .parent = "term_id" };
    il_error                err;

    t_rows_make(g);
    t_sql(g, "CREATE TABLE places (id INTEGER PRIMARY KEY, term_id INTEGER, state TEXT, "
             "n INTEGER)");
    t_sql(g, "INSERT INTO places VALUES (1, 1, 'on', 5), (2, 1, 'on', 7), (3, 1, 'off', 100), "
             "(4, 1, NULL, NULL), (5, 2, 'on', 1000)");
    il_guard_tx *tx = begin(c);
    T_EQ(il_guard_recompute(tx, R_TERM(1), "total", &count, NULL, &err), IL_STATE);
    il_guard_rollback(tx);
    tx = begin(c);
    R_RUN(il_guard_lock(tx, R_TERM(1), NULL, why));
    T_EQ(recompute(tx, IL_GUARD_COUNT, NULL, NULL, 0), 4);
    T_EQ(recompute(tx, IL_GUARD_COUNT, NULL, active, 1), 2);
    T_EQ(recompute(tx, IL_GUARD_SUM, "n", NULL, 0), 112);
    T_EQ(recompute(tx, IL_GUARD_SUM, "n", none, 2), 0); /* of no rows */
    T_EQ(recompute(tx, IL_GUARD_MIN, "n", NULL, 0), 5);
    T_EQ(recompute(tx, IL_GUARD_MIN, "n", none, 2), 0); /* it is NULL now */
    t_exec(tx, "UPDATE users SET balance = 1 WHERE id = 5 AND "
               "EXISTS (SELECT 1 FROM terms WHERE id = 1 AND total IS NULL)");
    T_EQ(recompute(tx, IL_GUARD_MAX, "n", active, 1), 7);
    t_commit(tx);
    T_EQ(t_ground_count(g, "SELECT total FROM terms WHERE id = 1"), 7);
    T_EQ(t_ground_count(g, "SELECT total FROM terms WHERE id = 2"), 0);
    T_EQ(t_ground_count(g, BALANCE(5)), 1);
    il_guard_close(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        G_ROW(a_row_is_locked_by_any_key),
        G_ROW(another_key_first_and_then_the_primary_key),
        G_ROW(rows_that_cannot_be_locked),
        G_ROW(a_table_in_a_schema),
        G_ROW(many_rows_are_locked_in_the_order_of_their_keys),
        G_ROW(many_rows_with_further_conditions),
        G_ROW(keys_of_text_and_of_several_columns),
        G_ROW(rows_are_locked_in_the_order_of_their_ranks),
        G_ROW(a_class_without_a_rank_is_refused),
        G_ROW(changes_and_many_rows_follow_the_order),
        G_ROW(the_right_order_is_accepted),
        G_ROW(rows_of_an_undone_savepoint_are_no_longer_held),
        G_ROW(a_locked_row_keeps_others_waiting),
        G_ROW(two_additions_at_once_are_both_made),
        G_ROW(a_locked_row_can_be_referred_to),
        G_ROW(a_number_is_added_to),
        G_ROW(what_is_no_integer_or_does_not_fit),
        G_ROW(a_state_changes_once),
        G_ROW(a_document_needs_the_lock_of_its_row),
        G_ROW(aggregates_are_computed_from_the_children),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
