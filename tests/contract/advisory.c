/*
 * advisory.c: PostgreSQL advisory locks alongside ours, as taken by programs that only know those.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>

#include "harness/postgres.h"
#include "harness/proc.h"
#include "harness/suite.h"
#include "interlock-guard.h"
#include "store/store.h"

#define NEEDS_POSTGRES(s)                                                    \
    do {                                                                     \
        if ((s)->engine->server != &t_server_postgres) {                     \
            il_advisory *none = NULL;                                        \
            T_EQ(il_advisory_take(t_handle(s), "k", &none, NULL), IL_INVAL); \
            return;                                                          \
        }                                                                    \
    } while (0)

/* The ids that older workers use. */
T_TEST(the_ids_of_keys)
{
    static const struct {
        const char *key, *id;
    } rows[] = {
        { "event:00000000-0000-0000-0000-000000000000", "339352178" },
        { "source_event:486677", "484352892" },
        { "event:101", "1924712862" },
    };
    char text[T_PG_TEXT_BYTES], sql[256];

    NEEDS_POSTGRES(s);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        il_advisory *a = NULL;
        T_EQ(il_advisory_take(t_handle(s), rows[i].key, &a, NULL), IL_OK);
        (void)snprintf(sql, sizeof sql,
                       "SELECT count(*)::text FROM pg_locks WHERE locktype = 'advisory' AND "
                       "granted AND classid = 0 "
                       "AND objid = %s",
                       rows[i].id);
        T_STREQ(t_postgres_ask(s->url, sql, text), "1");
        (void)snprintf(sql, sizeof sql, "SELECT pg_try_advisory_lock(%s)::text", rows[i].id);
        T_STREQ(t_postgres_ask(s->url, sql, text), "false");
        il_advisory_release(a);
        T_STREQ(t_postgres_ask(s->url, sql, text), "true");
        T_STREQ(t_postgres_ask(s->url, "SELECT pg_advisory_unlock_all()::text", text), "");
    }
}

T_TEST(who_comes_second_is_told)
{
    il_advisory *a   = NULL;
    il_advisory *b   = NULL;
    il_error     err = { 0 };

    NEEDS_POSTGRES(s);
    T_EQ(il_advisory_take_id(t_handle(s), 20261115, &a, NULL), IL_OK);
    T_EQ(il_advisory_take_id(t_handle(s), 20261115, &b, &err), IL_HELD);
    T_TRUE(strstr(err.message, "20261115") != NULL);
    T_TRUE(b == NULL);
    T_EQ(il_advisory_check(a, NULL), IL_OK);
    il_advisory_release(a);
    T_EQ(il_advisory_take_id(t_handle(s), 20261115, &b, NULL), IL_OK);
    il_advisory_release(b);
    T_EQ(il_advisory_take(t_handle(s), "a\nb", &b, NULL), IL_INVAL);
    il_advisory_release(NULL);
}

/* It holds no snapshot: nothing is kept from being cleaned up because of it. */
T_TEST(it_pins_no_snapshot)
{
    char         text[T_PG_TEXT_BYTES];
    il_advisory *a = NULL;

    NEEDS_POSTGRES(s);
    T_EQ(il_advisory_take(t_handle(s), "event:101", &a, NULL), IL_OK);
    T_STREQ(t_postgres_ask(s->url,
                           "SELECT bool_and(state = 'idle in transaction' AND backend_xmin IS NULL "
                           "AND backend_xid IS NULL)::text "
                           "FROM pg_stat_activity WHERE pid IN (SELECT pid FROM pg_locks WHERE "
                           "locktype = 'advisory' "
                           "AND objid = 1924712862)",
                           text),
            "true");
    il_advisory_release(a);
}

/* The connection is lost, and with it the lock: its owner is told. */
T_TEST(a_lost_connection_is_a_lost_lock)
{
    char          text[T_PG_TEXT_BYTES];
    il_advisory  *a   = NULL;
    il_error      err = { 0 };
    struct pollfd fd;

    NEEDS_POSTGRES(s);
    T_EQ(il_advisory_take(t_handle(s), "event:101", &a, NULL), IL_OK);
    fd = (struct pollfd){ .fd = il_advisory_fd(a), .events = POLLIN };
    T_EQ(poll(&fd, 1, 0), 0);
    T_STREQ(t_postgres_ask(s->url,
                           "SELECT pg_terminate_backend(pid)::text FROM pg_locks WHERE locktype = "
                           "'advisory' AND objid = 1924712862",
                           text),
            "true");
    T_EQ(poll(&fd, 1, 10000), 1);
    T_EQ(il_advisory_check(a, &err), IL_LOST);
    T_EQ(il_advisory_check(a, &err), IL_LOST);
    il_advisory_release(a);
    T_EQ(il_advisory_take(t_handle(s), "event:101", &a, NULL), IL_OK);
    il_advisory_release(a);
}

/* Through the handle of a database: the same locks. */
T_TEST(of_a_guarded_database)
{
    il_guard    *g     = NULL;
    il_advisory *ours  = NULL;
    il_advisory *other = NULL;

    NEEDS_POSTGRES(s);
    T_EQ(il_guard_open(s->url, NULL, &g, NULL), IL_OK);
    T_EQ(il_guard_advisory_take(g, "event:101", &ours, NULL), IL_OK);
    T_EQ(il_advisory_take(t_handle(s), "event:101", &other, NULL), IL_HELD);
    T_EQ(il_guard_advisory_take_id(g, 1924712862, &other, NULL), IL_HELD);
    T_EQ(il_advisory_check(ours, NULL), IL_OK);
    il_guard_close(g); /* the lock has a connection of its own */
    T_EQ(il_advisory_check(ours, NULL), IL_OK);
    il_advisory_release(ours);
    T_EQ(il_advisory_take(t_handle(s), "event:101", &other, NULL), IL_OK);
    il_advisory_release(other);
    T_EQ(il_guard_open("sqlite:none.db", NULL, &g, NULL), IL_OK);
    T_EQ(il_guard_advisory_take(g, "event:101", &ours, NULL), IL_INVAL);
    il_guard_close(g);
}

/* Idle for longer than the server waits: the library keeps it alive. */
T_TEST(idle_holders_keep_it)
{
    char         text[T_PG_TEXT_BYTES];
    il_advisory *a = NULL;

    NEEDS_POSTGRES(s);
    il__store_advisory_ttl_ms = 300;
    T_EQ(il_advisory_take(t_handle(s), "event:101", &a, NULL), IL_OK);
    T_STREQ(t_postgres_ask(s->url, "SELECT pg_sleep(0.9)::text", text), "");
    T_EQ(il_advisory_check(a, NULL), IL_OK);
    T_STREQ(t_postgres_ask(s->url,
                           "SELECT count(*)::text FROM pg_locks WHERE locktype = 'advisory' "
                           "AND objid = 1924712862",
                           text),
            "1");
    il_advisory_release(a);
    il__store_advisory_ttl_ms = ADVISORY_TTL_MS;
}

static int
hold_it(void *arg)
{
    const char  *url = arg;
    il_guard    *g   = NULL;
    il_advisory *a   = NULL;

    il__store_advisory_ttl_ms = 300;
    CHECK(il_guard_open(url, NULL, &g, NULL) == IL_OK);
    CHECK(il_guard_advisory_take(g, "event:102", &a, NULL) == IL_OK);
    CHECK(raise(SIGSTOP) == 0);
    bool lost = il_advisory_check(a, NULL) == IL_LOST;
    il_advisory_release(a);
    il_guard_close(g);
    return lost ? 0 : 1;
}

/* A process that is stopped does not keep it for good, and learns of that when it goes on. */
T_TEST(stopped_holders_lose_it)
{
    struct t_proc p;
    il_advisory  *a = NULL;
    char          text[T_PG_TEXT_BYTES];

    NEEDS_POSTGRES(s);
    t_proc_fork(&p, hold_it, s->url);
    T_TRUE(t_pid_in_state(p.pid, 'T', 20000));
    for (int i = 0; i < 200 && a == NULL; i++) {
        if (il_advisory_take(t_handle(s), "event:102", &a, NULL) == IL_HELD)
            (void)t_postgres_ask(s->url, "SELECT pg_sleep(0.05)::text", text);
    }
    T_TRUE(a != NULL);
    CHECK(kill(p.pid, SIGCONT) == 0);
    T_EQ(t_proc_exit(&p, 20000), 0);
    t_proc_release(&p);
    il_advisory_release(a);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(the_ids_of_keys),         T_ROW(who_comes_second_is_told),
        T_ROW(it_pins_no_snapshot),     T_ROW(a_lost_connection_is_a_lost_lock),
        T_ROW(of_a_guarded_database),   T_ROW(idle_holders_keep_it),
        T_ROW(stopped_holders_lose_it),
    };

    return T_SUITE("advisory", tests);
}
