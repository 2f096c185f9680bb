/*
 * guard_layers.c: the layers of the guard kit, one function each: courses with a number of places,
 * bookings, and accounts that pay for them. docs/GUARDS.md explains each function.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <interlock-guard.h>

/* One order for the whole program: a course before an account before a booking. */
static const il_guard_rank ranks[] = { { "course", 10 }, { "account", 20 }, { "booking", 30 } };

struct booking {
    int64_t course, account;
    int     is_new;
};

/* ---- layer 1: lock, then read, then decide --------------------------------------------------- */

static int
take_places(void *cookie, const il_guard_row *row)
{
    int64_t *places = cookie;

    *places = row->values[0].integer;
    return 0; /* no more rows */
}

static il_status
check_places(il_guard_tx *tx, int64_t course, il_error *err)
{
    il_guard_column key    = { "id", il_guard_int(course) };
    il_guard_target row    = { "course", "course", &key, 1, IL_GUARD_PLACE };
    int64_t         places = 0;
    il_guard_query  query  = { .sql      = "SELECT capacity - booked FROM course WHERE id = $1",
                               .values   = &key.value,
                               .n_values = 1,
                               .each     = take_places,
                               .cookie   = &places };

    il_status st = il_guard_lock(tx, &row, NULL, err); /* others wait from here to the commit */
    if (st == IL_OK)
        st = il_guard_exec(tx, &query, NULL, err);
    return st == IL_OK && places < 1 ? IL_LIMIT : st;
}

/* ---- layer 2: numbers, states, documents, aggregates ----------------------------------------- */

static il_status
pay(il_guard_tx *tx, int64_t account, int64_t price, il_error *err)
{
    il_guard_column key = { "id", il_guard_int(account) };
    il_guard_target row = { "account", "account", &key, 1, IL_GUARD_PLACE };
    int64_t         min = 0;

    return il_guard_add(tx, &row, "balance", -price, &min, NULL, err); /* IL_STATE: too little */
}

static il_status
close_course(void *cookie, il_guard_tx *tx, il_error *err)
{
    il_guard_column key = { "id", il_guard_int(*(int64_t *)cookie) };
    il_guard_target row = { "course", "course", &key, 1, IL_GUARD_PLACE };
    il_guard_value  found;

    il_status st = il_guard_transition(tx, &row, "state", il_guard_text("OPEN"),
                                       il_guard_text("CLOSED"), &found, err);
    if (st == IL_STATE && strcmp(found.data, "CLOSED") == 0)
        return IL_OK; /* somebody else has closed it */
    return st;
}

static il_status
count_bookings(void *cookie, il_guard_tx *tx, il_error *err)
{
    il_guard_column   key      = { "id", il_guard_int(*(int64_t *)cookie) };
    il_guard_target   row      = { "course", "course", &key, 1, IL_GUARD_PLACE };
    il_guard_column   live     = { "state", il_guard_text("CONFIRMED") };
    il_guard_children bookings = { .aggregate = IL_GUARD_COUNT,
                                   .table     = "booking",
                                   .parent    = "course_id",
                                   .where     = &live,
                                   .n_where   = 1 };

    il_status st = il_guard_lock(tx, &row, NULL, err);
    if (st == IL_OK)
        st = il_guard_recompute(tx, &row, "booked", &bookings, NULL, err);
    return st;
}

static il_status
set_settings(void *cookie, il_guard_tx *tx, il_error *err)
{
    il_guard_column key = { "id", il_guard_int(*(int64_t *)cookie) };
    il_guard_target row = { "course", "course", &key, 1, IL_GUARD_PLACE };

    il_status st = il_guard_lock(tx, &row, NULL, err); /* without it, the next call is IL_STATE */
    /* here the program reads the document and changes it */
    if (st == IL_OK)
        st = il_guard_set_json(tx, &row, "settings", "{\"room\": \"B12\"}", err);
    return st;
}

/* ---- layer 3: insert, or get the row that exists --------------------------------------------- */

static il_status
insert_booking(il_guard_tx *tx, struct booking *b, il_error *err)
{
    const char     *unique[]  = { "course_id", "account_id" };
    il_guard_column columns[] = { { "course_id", il_guard_int(b->course) },
                                  { "account_id", il_guard_int(b->account) },
                                  { "state", il_guard_text("CONFIRMED") } };

    return il_guard_insert_or_get(tx, "booking", columns, 3, unique, 2, &b->is_new, NULL, err);
}

/* ---- layer 4: constraints that exist --------------------------------------------------------- */

static il_status
check_constraints(void *cookie, il_guard_tx *tx, il_error *err)
{
    (void)cookie;
    il_status st = il_guard_require_constraint(tx, "booking", "booking_once", err);
    if (st == IL_OK)
        st = il_guard_require_constraint(tx, "account", "account_not_negative", err);
    return st;
}

/* ---- all of them in one transaction ---------------------------------------------------------- */

static il_status
book(void *cookie, il_guard_tx *tx, il_error *err)
{
    struct booking *b      = cookie;
    il_guard_column key    = { "id", il_guard_int(b->course) };
    il_guard_target course = { "course", "course", &key, 1, IL_GUARD_PLACE };

    il_status st = check_places(tx, b->course, err); /* rank 10 */
    if (st == IL_OK)
        st = insert_booking(tx, b, err); /* new rows have no rank */
    if (st != IL_OK || !b->is_new)
        return st;
    st = il_guard_add(tx, &course, "booked", 1, NULL, NULL, err); /* held already */
    if (st == IL_OK)
        st = pay(tx, b->account, 40, err); /* rank 20 */
    return st;
}

/* ---- savepoints ------------------------------------------------------------------------------ */

static il_status
book_or_wait(void *cookie, il_guard_tx *tx, il_error *err)
{
    struct booking *b         = cookie;
    il_guard_value  values[]  = { il_guard_int(b->course), il_guard_int(b->account) };
    il_guard_query  wait_list = { .sql      = "INSERT INTO waiting (course_id, account_id) "
                                               "VALUES ($1, $2) ON CONFLICT DO NOTHING",
                                  .values   = values,
                                  .n_values = 2 };

    il_status st = il_guard_try(tx, book, b, err); /* undone if it fails */
    if (st == IL_LIMIT || st == IL_STATE)          /* full, or too poor */
        st = il_guard_exec(tx, &wait_list, NULL, err);
    return st;
}

/* ---- the observer ---------------------------------------------------------------------------- */

static void
observe(void *cookie, const il_guard_event *event)
{
    (void)cookie;
    printf("%s.%s: %s %s waited %" PRId64 " us, held %" PRId64 " us, %u queries: %s\n",
           event->pipeline, event->caller, event->entity, event->key, event->wait_ns / 1000,
           event->hold_ns / 1000, event->n_queries, il_guard_outcome_name(event->outcome));
}

/* ---- the program ----------------------------------------------------------------------------- */

static il_status
create(void *cookie, il_guard_tx *tx, il_error *err)
{
    static const char *const texts[] = {
        "CREATE TABLE course (id integer PRIMARY KEY, state text NOT NULL, capacity integer NOT "
        "NULL, booked integer NOT NULL, settings json)",
        "CREATE TABLE account (id integer PRIMARY KEY, balance bigint NOT NULL, "
        "CONSTRAINT account_not_negative CHECK (balance >= 0))",
        "CREATE TABLE booking (id integer PRIMARY KEY, course_id integer NOT NULL REFERENCES "
        "course, account_id integer NOT NULL REFERENCES account, state text NOT NULL, "
        "CONSTRAINT booking_once UNIQUE (course_id, account_id))",
        "CREATE TABLE waiting (course_id integer, account_id integer, "
        "PRIMARY KEY (course_id, account_id))",
        "INSERT INTO course VALUES (1, 'OPEN', 1, 0, '{}')",
        "INSERT INTO account VALUES (7, 100), (8, 100)",
    };
    il_status st = IL_OK;

    (void)cookie;
    for (size_t i = 0; st == IL_OK && i < sizeof texts / sizeof texts[0]; i++) {
        il_guard_query query = { .sql = texts[i] };
        st                   = il_guard_exec(tx, &query, NULL, err);
    }
    return st;
}

static il_status
transact(il_guard *db, const char *caller, il_guard_fn *fn, void *cookie, il_error *err)
{
    il_guard_tx_opts opts = IL_GUARD_TX_OPTS_INIT;

    opts.pipeline = "courses";
    opts.caller   = caller;
    return il_guard_transact(db, &opts, fn, cookie, NULL, err);
}

/* An account before a course is against the ranks. */
static il_status
wrong_order(void *cookie, il_guard_tx *tx, il_error *err)
{
    struct booking *b  = cookie;
    il_status       st = pay(tx, b->account, 1, err);

    return st == IL_OK ? check_places(tx, b->course, err) : st;
}

static int
demonstrate(il_guard *db, il_error *err)
{
    struct booking first = { 1, 7, 0 }, again = { 1, 7, 0 }, second = { 1, 8, 0 };
    int64_t        course = 1;

    int ok = transact(db, "create", create, NULL, err) == IL_OK &&
             transact(db, "check", check_constraints, NULL, err) == IL_OK &&
             transact(db, "book", book, &first, err) == IL_OK && first.is_new &&
             transact(db, "book", book, &second, err) == IL_LIMIT &&
             transact(db, "book_or_wait", book_or_wait, &second, err) == IL_OK &&
             transact(db, "set_settings", set_settings, &course, err) == IL_OK &&
             transact(db, "count", count_bookings, &course, err) == IL_OK &&
             transact(db, "close", close_course, &course, err) == IL_OK &&
             transact(db, "close", close_course, &course, err) == IL_OK;
    if (!ok || transact(db, "book", wrong_order, &again, err) != IL_ORDER)
        return 0;
    printf("%s\n", err->message);
    return 1;
}

int
main(void)
{
    il_guard     *db   = NULL;
    il_guard_opts opts = IL_GUARD_OPTS_INIT;
    il_error      err  = { .status = IL_OK };

    opts.ranks   = ranks;
    opts.n_ranks = sizeof ranks / sizeof ranks[0];
    opts.flags   = IL_GUARD_OWN_FILE;
    opts.observe = observe;
    int ok       = il_guard_open("sqlite:courses.db", &opts, &db, &err) == IL_OK;
    ok           = ok && demonstrate(db, &err);
    if (!ok)
        fprintf(stderr, "%s\n", err.message);
    il_guard_close(db);
    return ok ? 0 : 1;
}
