/*
 * search.c: the deadlock search does not query every waiter of a long queue. Counts calls, not
 * time.
 */
#include <stdio.h>
#include <stdlib.h>

#include "harness/redis.h"
#include "harness/suite.h"

#define N_WAIT 400
#define CALLS_MAX 20
#define WAIT .wait_ms = 600000

static long
calls(struct t_store *s)
{
    char        out[T_REDIS_REPLY_BYTES];
    char        socket[T_PATH_BYTES];
    const char *at = strstr(s->url, "://") + 3;

    t_path(socket, "%.*s", (int)strcspn(at, "?"), at);
    (void)t_redis_ask(socket, out, (const char *const[]){ "INFO", "commandstats", NULL });
    const char *found = strstr(out, "cmdstat_fcall:calls=");
    const char *reads = strstr(out, "cmdstat_fcall_ro:calls=");
    return (found != NULL ? strtol(strchr(found, '=') + 1, NULL, 10) : 0) +
           (reads != NULL ? strtol(strchr(reads, '=') + 1, NULL, 10) : 0);
}

static void
take(struct t_store *s, const char *key, const char *holder)
{
    (void)T_IS(t_acquire(s, key, holder, .ttl_ms = 3600000), IL_OK);
}

/* Half of those who wait hold something, too: so they may stand in somebody's way, and their units
 * are looked at. */
static void
queue_up(struct t_store *s)
{
    char holder[32], key[32];

    take(s, "hot", "first");
    for (unsigned i = 0; i < N_WAIT; i++) {
        (void)snprintf(holder, sizeof holder, "waits-%u", i);
        (void)snprintf(key, sizeof key, "own:%u", i);
        if (i % 2 != 0)
            take(s, key, holder);
        (void)T_IS(t_acquire(s, "hot", holder, WAIT), IL_QUEUED);
    }
    take(s, "mine", "me");
}

T_TEST(along_a_long_queue)
{
    queue_up(s);
    long before = calls(s);
    (void)T_IS(t_acquire(s, "hot", "me", WAIT), IL_QUEUED);
    T_LESS(calls(s) - before, CALLS_MAX);
    /* Nobody is overlooked: neither the one at the head nor one in the middle. */
    before          = calls(s);
    const il_op *op = T_IS(t_acquire(s, "mine", "first", WAIT), IL_DEADLOCK);
    T_HAS(op->out.detail, "'hot'");
    T_LESS(calls(s) - before, CALLS_MAX);
    take(s, "other", "somebody");
    (void)T_IS(t_acquire(s, "other", "waits-201/1", WAIT), IL_QUEUED);
    (void)T_IS(t_acquire(s, "own:201", "somebody", WAIT), IL_DEADLOCK);
    (void)T_IS(t_acquire(s, "own:203", "first", WAIT), IL_DEADLOCK);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { T_ROW(along_a_long_queue) };

    /* A server of its own: what others do there would be counted. */
    CHECK(setenv("IL_TEST_STORE", "redis", 1) == 0 && unsetenv("IL_TEST_REDIS") == 0);
    return T_SUITE("redis-search", tests);
}
