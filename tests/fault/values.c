/*
 * values.c: answers and cached values in a SQLite file: readers do not wait for writers, and
 * damaged numbers do no harm: no crash, and every op still gets an answer.
 */
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <unistd.h>

#include "harness/cache.h"
#include "harness/once.h"
#include "harness/suite.h"
#include "harness/unit.h"

static struct t_store *
store(void)
{
    struct t_store *s = t_store_new(t_engine_find("sqlite"));
    uint64_t token = T_IS(t_once_begin(s, "k", "a", .print = "p", .meta = "m"), IL_OK)->out.fence;

    (void)T_IS(t_once_begin(s, "claim", "a", .print = "p"), IL_OK);
    (void)T_IS(t_once_finish(s, "k", "a", token, "answer"), IL_OK);
    (void)t_cache_put(s, "k", "value", .grace_ms = 10000);
    (void)T_IS(t_cache_lookup(s, "build", "a"), IL_LEAD);
    return s;
}

U_TEST(reads_do_not_wait_for_writers)
{
    struct t_store *s = store();
    char            path[T_PATH_BYTES];

    t_path(path, "%s/x.db-lock", s->dir);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    T_TRUE(fd >= 0 && flock(fd, LOCK_EX) == 0); /* as if somebody was writing, for ever */
    (void)T_REPLAYS(t_once_get(s, "k"), "answer", 6, 0);
    (void)T_IS(t_once_get(s, "claim"), IL_BUSY);
    (void)T_SHOWS(t_cache_get(s, "k"), IL_HIT, "value");
    (void)T_IS(t_cache_get(s, "build"), IL_WAIT);
    T_EQU(T_IS(t_cache_stats(s, NULL), IL_OK)->out.cache.n_entries, 1);
    T_EQ(close(fd), 0);
    t_store_free(s);
}

static void
execute(struct t_store *s, const char *sql)
{
    sqlite3 *db = NULL;
    char     path[T_PATH_BYTES];

    t_path(path, "%s/x.db", s->dir);
    T_EQ(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        T_FAIL("%s: %s", sql, sqlite3_errmsg(db));
    T_EQ(sqlite3_close(db), SQLITE_OK);
}

/* Every op, whatever its answer; il__store_apply() checks that each is in order. */
static void
try_all(struct t_store *s)
{
    static const char *const keys[] = { "k", "claim", "build" };

    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const char *key = keys[i];
        T_TRUE(t_once_get(s, key)->status != IL_NOMEM);
        T_TRUE(t_once_begin(s, key, "b", .print = "p")->status != IL_NOMEM);
        T_TRUE(t_once_begin(s, key, "a", .print = "p")->status != IL_NOMEM);
        T_TRUE(t_once_finish(s, key, "a", 1, "x")->status != IL_NOMEM);
        T_TRUE(t_once_abandon(s, key, "a", 1)->status != IL_NOMEM);
        T_TRUE(t_cache_get(s, key, .fence = 1, .chance = 1)->status != IL_NOMEM);
        T_TRUE(t_cache_lookup(s, key, "b", .chance = 1)->status != IL_NOMEM);
        T_TRUE(t_cache_lookup(s, key, "a", .fence = 1)->status != IL_NOMEM);
        T_TRUE(t_cache_fill(s, key, "a", 1, "x")->status != IL_NOMEM);
        T_TRUE(t_cache_abandon(s, key, "a", 1)->status != IL_NOMEM);
        T_TRUE(t_cache_drop(s, key, .flags = IL_DROP_STALE)->status != IL_NOMEM);
    }
    (void)T_IS(t_cache_stats(s, NULL), IL_OK);
    (void)T_IS(t_sweep(s), IL_OK);
}

U_TEST(damaged_numbers_do_no_harm)
{
    static const char *const columns[] = {
        "il_once.token",
        "il_once.state",
        "il_once.expires_ms",
        "il_once.keep_ms",
        "il_once.purge_ms",
        "il_once.created_at",
        "il_once.code",
        "il_cache_value.filled",
        "il_cache_value.began_at",
        "il_cache_value.fresh_until",
        "il_cache_value.stale_until",
        "il_cache_value.purge_at",
        "il_cache_value.build_ms",
        "il_cache_value.code",
        "il_cache_value.negative",
        "il_cache_build.token",
        "il_cache_build.expires_ms",
        "il_cache_build.began_ms",
        "il_cache_build.began_at",
    };
    static const char *const values[] = { "0", "-1", "9223372036854775807", "-9223372036854775808",
                                          "9007199254740992" };
    char                     sql[160];

    for (size_t i = 0; i < ARRAY_LEN(columns) * ARRAY_LEN(values); i++) {
        struct t_store *s      = store();
        const char     *column = columns[i / ARRAY_LEN(values)];
        int             n      = (int)strcspn(column, ".");
        (void)snprintf(sql, sizeof sql, "UPDATE %.*s SET %s = %s", n, column, column + n + 1,
                       values[i % ARRAY_LEN(values)]);
        execute(s, sql);
        try_all(s);
        t_store_free(s);
    }
}

U_TEST(an_answer_without_bytes_is_empty)
{
    struct t_store *s = store();

    execute(s, "UPDATE il_once SET response = NULL");
    (void)T_REPLAYS(t_once_get(s, "k"), "", 0, 0);
    execute(s, "UPDATE il_once SET before = 'x', fingerprint = zeroblob(100000)");
    (void)T_IS(t_once_begin(s, "k", "b", .print = "p"), IL_MISMATCH);
    t_store_free(s);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(reads_do_not_wait_for_writers),
        U_ROW(damaged_numbers_do_no_harm),
        U_ROW(an_answer_without_bytes_is_empty),
    };

    return cmocka_run_group_tests_name("values", tests, NULL, NULL);
}
