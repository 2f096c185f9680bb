/*
 * events.c: prints the lines of il_guard_log() for transactions of all kinds, and of events with
 * odd texts. events.py checks each line against docs/guard-event.schema.json.
 */
#include <math.h>
#include <unistd.h>

#include "guard/ground.h"

static const il_guard_rank ranks[] = { { "User", 10 }, { "Booking", 20 } };

static il_guard *
open_logged(const struct t_ground *g, int *fd)
{
    il_guard_opts o = IL_GUARD_OPTS_INIT;
    il_guard     *c = NULL;
    il_error      err;

    o.ranks           = ranks;
    o.n_ranks         = ARRAY_LEN(ranks);
    o.lock_timeout_ms = 100;
    o.observe         = il_guard_log;
    o.cookie          = fd;
    if (il_guard_open(g->url, &o, &c, &err) != IL_OK)
        T_FAIL("%s: %s", g->url, err.message);
    return c;
}

static il_guard_tx *
begin(il_guard *c, const char *pipeline, const char *caller)
{
    il_guard_tx_opts o  = IL_GUARD_TX_OPTS_INIT;
    il_guard_tx     *tx = NULL;
    il_error         err;

    o.pipeline = pipeline;
    o.caller   = caller;
    if (il_guard_begin(c, &o, &tx, &err) != IL_OK)
        T_FAIL("begin: %s", err.message);
    return tx;
}

static il_status
lock(il_guard_tx *tx, const char *entity, const char *table, int64_t id)
{
    il_guard_column key = { "id", il_guard_int(id) };
    il_error        err;

    return il_guard_lock(tx, &(il_guard_target){ entity, table, &key, 1, IL_GUARD_PLACE }, NULL,
                         &err);
}

static void
tag(il_guard_tx *tx, const char *name, il_guard_value value)
{
    T_EQ(il_guard_tag(tx, name, value, NULL), IL_OK);
}

static void
commits(il_guard *c)
{
    il_guard_tx *tx = begin(c, "booking", "create \"quoted\" \xc3\xa9\x01\n");

    tag(tx, "user_id", il_guard_int(6));
    tag(tx, "user_id", il_guard_int(7)); /* the last one counts */
    tag(tx, "share", il_guard_double(0.25));
    tag(tx, "nan", il_guard_double((double)NAN));
    tag(tx, "\"\n\xff", il_guard_text("\t\xff\xf0\x9f\x98\x80"));
    tag(tx, "skills_updated", il_guard_json("[\"dribbling\", {\"x\": null}]"));
    tag(tx, "bad_json", il_guard_json("{\"x\":"));
    tag(tx, "blob", il_guard_blob("\0\1", 2));
    T_EQ(lock(tx, "User", "users", 1), IL_OK);
    T_EQ(lock(tx, "Booking", "bookings", 1), IL_OK);
    T_EQ(il_guard_commit(tx, NULL), IL_OK);
    tx = begin(c, NULL, NULL);
    T_EQ(lock(tx, "User", "users", 1), IL_OK);
    il_guard_rollback(tx);
}

static void
fails(il_guard *c)
{
    il_guard_tx *tx = begin(c, "booking", "order");
    il_error     err;

    T_EQ(lock(tx, "Booking", "bookings", 1), IL_OK);
    T_EQ(lock(tx, "User", "users", 1), IL_ORDER);
    il_guard_rollback(tx);
    tx = begin(c, "booking", "violation");
    T_EQ(lock(tx, "User", "users", 1), IL_OK);
    T_EQ(t_try(tx, "INSERT INTO users VALUES (1, 0)", &err), IL_UNIQUE);
    il_guard_rollback(tx);
}

/* Two transactions want the same rows; on SQLite the second does not even begin. */
static void
conflicts(const struct t_ground *g, il_guard *c)
{
    if (!g->is_postgres)
        return;
    il_guard_tx *first = begin(c, "booking", "first"), *second = begin(c, "booking", "second");
    T_EQ(lock(first, "Booking", "bookings", 1), IL_OK);
    T_EQ(lock(second, "User", "users", 1), IL_OK);
    T_EQ(lock(second, "Booking", "bookings", 1), IL_TIMEOUT);
    il_guard_rollback(second);
    T_EQ(il_guard_commit(first, NULL), IL_OK);
}

/* The longest possible line, for each outcome. */
static void
long_events(int *fd)
{
    char           *text = calloc(1, 5000);
    char            line[IL_GUARD_EVENT_BYTES_MAX], small[100];
    il_error        err;
    il_guard_column tags[IL_GUARD_TAGS_MAX];
    char            names[IL_GUARD_TAGS_MAX][8];
    il_guard_event  e = { .entity = "User", .table = "users", .n_attempt = 1 };

    T_EQ(il_guard_event_json(&e, 1767225600000, line, sizeof line, &err), IL_OK);
    T_STREQ(line,
            "{\"ts\":\"2026-01-01T00:00:00.000Z\",\"event\":\"lock_acquired\",\"pipeline\":\"\","
            "\"caller\":\"\",\"entity\":\"User\",\"table\":\"users\",\"key\":\"\","
            "\"lock_wait_ms\":0.000,\"lock_hold_ms\":0.000,\"query_count\":0,\"attempt\":1,"
            "\"outcome\":\"committed\",\"constraint\":null,\"place\":\"\",\"tags\":{}}");
    T_EQ(il_guard_event_json(&e, 0, line, strlen(line) + 1, &err), IL_OK);
    T_EQ(il_guard_event_json(&e, 0, line, strlen(line), &err), IL_LIMIT);
    T_EQ(il_guard_event_json(&e, 0, small, sizeof small, &err), IL_LIMIT);
    T_EQ(il_guard_event_json(NULL, 0, line, sizeof line, &err), IL_INVAL);
    memset(text, '\x01', 4999);
    for (size_t i = 0; i < IL_GUARD_TAGS_MAX; i++) {
        (void)snprintf(names[i], sizeof names[i], "t%zu", i);
        tags[i] = (il_guard_column){ names[i], il_guard_text(text) };
    }
    e = (il_guard_event){ .pipeline   = text,
                          .caller     = text,
                          .entity     = text,
                          .table      = text,
                          .key        = text,
                          .place      = text,
                          .constraint = text,
                          .wait_ns    = INT64_MAX,
                          .hold_ns    = -5,
                          .n_queries  = UINT32_MAX,
                          .n_attempt  = UINT32_MAX,
                          .tags       = tags,
                          .n_tags     = IL_GUARD_TAGS_MAX };
    for (int i = 0; i < IL_GUARD_OUTCOME_COUNT; i++) {
        e.outcome = (il_guard_outcome)i;
        T_EQ(il_guard_event_json(&e, INT64_C(253402300799999), line, sizeof line, &err), IL_OK);
        il_guard_log(fd, &e);
    }
    for (size_t i = 0; i < 4998; i += 2) /* never cut within a character */
        memcpy(text + i + 1, "\xc3\xa9", 2);
    text[4999] = '\0';
    il_guard_log(fd, &e);
    free(text);
}

int
main(void)
{
    struct t_ground g;
    int             fd = STDOUT_FILENO;
    char            out[4096];

    t_ground_make(&g);
    (void)t_ground_ask(&g, "CREATE TABLE users (id INTEGER PRIMARY KEY, balance INTEGER)", out);
    (void)t_ground_ask(&g, "CREATE TABLE bookings (id INTEGER PRIMARY KEY, n INTEGER)", out);
    (void)t_ground_ask(&g, "INSERT INTO users VALUES (1, 0)", out);
    (void)t_ground_ask(&g, "INSERT INTO bookings VALUES (1, 0)", out);
    il_guard *c = open_logged(&g, &fd);
    commits(c);
    fails(c);
    conflicts(&g, c);
    long_events(&fd);
    il_guard_close(c);
    t_ground_release(&g);
    return 0;
}
