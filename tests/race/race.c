/*
 * race.c: shared by the race tests.
 */
#include "race/race.h"

#include <poll.h>
#include <stdio.h>

#include "harness/store.h"

#define ARGS_MAX 32

void
race_init(struct race *r)
{
    *r = (struct race){ .bin = getenv("INTERLOCK_BIN"), .worker = getenv("RACE_WORKER") };
    if (r->bin == NULL || r->worker == NULL)
        T_FAIL("INTERLOCK_BIN and RACE_WORKER must be set, as meson does");
    t_tmp_make(r->dir);
    const char *engine = getenv("IL_TEST_STORE");
    r->server          = engine != NULL ? t_engine_find(engine)->server : NULL;
    if (r->server != NULL) {
        r->server->make(r->test_url, r->url);
    } else {
        t_path(r->url, "sqlite:%s/x.db", r->dir);
        t_path(r->test_url, "sqlite:%s/test.db?clock=test", r->dir);
    }
    t_path(r->log, "%s/log", r->dir);
    t_path(r->file, "%s/file", r->dir);
    t_file_write(r->file, "0\n", 2);
    /* No configuration or state of whoever runs the tests. */
    T_EQ(setenv("HOME", r->dir, 1), 0);
    T_EQ(setenv("XDG_CONFIG_HOME", r->dir, 1), 0);
    T_EQ(setenv("XDG_STATE_HOME", r->dir, 1), 0);
    T_EQ(setenv("INTERLOCK_STORE", r->url, 1), 0);
}

void
race_release(struct race *r)
{
    if (r->server != NULL)
        r->server->forget(r->test_url, r->url);
    t_tmp_remove(r->dir);
}

il *
race_open(const struct race *r)
{
    il      *h   = NULL;
    il_error err = { 0 };

    if (il_open(r->url, NULL, &h, &err) != IL_OK)
        T_FAIL("%s", err.message);
    return h;
}

void
race_run(const struct race *r, struct t_proc *p, const char *const *options, const char *key,
         const char *const *arguments)
{
    const char *argv[ARGS_MAX] = { r->bin };
    size_t      n              = 1;

    for (; *options != NULL; options++)
        argv[n++] = *options;
    argv[n++] = key;
    argv[n++] = "--";
    argv[n++] = r->worker;
    for (; *arguments != NULL; arguments++)
        argv[n++] = *arguments;
    CHECK(n < ARGS_MAX);
    t_proc_start(p, argv, NULL);
}

static size_t
count(il *h, const char *key, uint32_t flags)
{
    il_op    op  = { 0 };
    il_error err = { 0 };

    if (il_list(h, key, NULL, IL_PAGE_ITEMS_MAX, flags, &op, &err) != IL_OK)
        T_FAIL("list: %s", err.message);
    size_t n = op.out.n_items;
    il_op_release(&op);
    return n;
}

/* What other processes do gives no event here: it is looked for every few milliseconds. */
static void
look_again_soon(int64_t until_ms, const char *what, size_t n, size_t expected)
{
    if (t_real_ms() >= until_ms)
        T_FAIL("%s: %zu, expected %zu", what, n, expected);
    (void)poll(NULL, 0, 5);
}

void
race_await_count(il *h, const char *key, uint32_t flags, size_t n, int64_t limit_ms)
{
    int64_t until_ms = t_real_ms() + limit_ms;

    for (size_t seen; (seen = count(h, key, flags)) != n;)
        look_again_soon(until_ms, key, seen, n);
}

static size_t
count_lines(const char *path, const char *prefix)
{
    size_t n = 0;

    if (!t_file_exists(path))
        return 0;
    char *text = t_file_read(path, NULL);
    for (const char *line = text; *line != '\0';) {
        const char *end = strchr(line, '\n');
        if (end == NULL)
            break; /* not complete yet */
        n += strncmp(line, prefix, strlen(prefix)) == 0;
        line = end + 1;
    }
    free(text);
    return n;
}

void
race_await_lines(const char *path, const char *prefix, size_t n, int64_t limit_ms)
{
    int64_t until_ms = t_real_ms() + limit_ms;

    for (size_t seen; (seen = count_lines(path, prefix)) < n;)
        look_again_soon(until_ms, path, seen, n);
}
