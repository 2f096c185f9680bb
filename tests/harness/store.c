/*
 * store.c: stores under test. The engine table is here; ops are in op.c.
 */
#include "harness/store.h"

#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>

#include "runtime/handle.h"
#include "store/remote/remote.h"

#define ATTEND_MS 10000
#define T_SETTLE_MAX 32
#define SQLITE "sqlite:%s/x.db?clock=test", "sqlite:%s/real.db"

const struct t_engine t_engines[] = {
    /* name, URL on the test clock and on the real one, shared, durable, handles, traced, server */
    { "memory", "memory:%s?clock=test", "memory:%s/real", true, false, 1, false, NULL },
    { "sqlite", SQLITE, true, true, 1, false, NULL },
    { "sqlite-2", SQLITE, true, true, 2, false, NULL },    /* two handles in turn */
    { "sqlite-trace", SQLITE, true, true, 1, true, NULL }, /* behind the decorator */
    { "postgres", NULL, NULL, true, true, 1, false, &t_server_postgres },
    { "postgres-2", NULL, NULL, true, true, 2, false, &t_server_postgres },
    { "postgres-bouncer", NULL, NULL, true, true, 2, false, &t_server_bouncer },
    { "redis", NULL, NULL, true, true, 1, false, &t_server_redis },
    { "redis-2", NULL, NULL, true, true, 2, false, &t_server_redis },
    { 0 },
};

const struct t_engine *
t_engine_find(const char *name)
{
    for (const struct t_engine *e = t_engines; e->name != NULL; e++) {
        if (strcmp(e->name, name) == 0)
            return e;
    }
    T_FAIL("there is no engine '%s'", name);
}

static void
look_at_line(void *cookie UNUSED, const char *line)
{
    CHECK(line[0] != '\0' && strchr(line, '\n') == NULL);
}

il *
t_store_open(struct t_store *s)
{
    il_open_opts opts = IL_OPEN_OPTS_INIT;
    il          *h    = NULL;
    il_error     err  = { 0 };

    opts.clock   = &s->clock.il;
    opts.ranks   = s->ranks;
    opts.n_ranks = s->n_ranks;
    opts.flags   = IL_OPEN_NO_SWEEP;
    opts.trace   = s->engine->traced ? look_at_line : NULL;
    if (il_open(s->url, &opts, &h, &err) != IL_OK)
        T_FAIL("%s: %s: %s", s->url, il_status_name(err.status), err.message);
    return h;
}

void
t_attend(il *h)
{
    int64_t until_ms = t_real_ms() + ATTEND_MS;

    while (il__store_attend(h->store) != 0) {
        if (t_real_ms() > until_ms)
            T_FAIL("no wake-up has arrived for %d ms", ATTEND_MS);
        (void)poll(NULL, 0, 1);
    }
}

static uint32_t
settled(il *h)
{
    return il__board_read(h->store->board, il__board_slot("settle", "settle", "settle"));
}

void
t_settle(struct t_store *s, il *const *handles, size_t n)
{
    uint32_t slot     = il__board_slot("settle", "settle", "settle");
    uint32_t expected = 1;
    uint32_t before[T_SETTLE_MAX];
    int64_t  until_ms = t_real_ms() + ATTEND_MS;

    if (s->engine->server == NULL)
        return;
    CHECK(n <= T_SETTLE_MAX);
    for (size_t i = 0; i < n; i++)
        before[i] = settled(handles[i]);
    if (s->engine->server->settle != NULL) {
        s->engine->server->settle(s->url);
    } else {
        /* Each over its own connection, behind its own. They do not hear themselves. */
        for (size_t i = 0; i < n; i++) {
            struct remote_store *r = il__remote_from(handles[i]->store);
            r->via->wake(r, &slot, 1);
        }
        expected = (uint32_t)n - 1;
    }
    for (size_t i = 0; i < n; i++) {
        while (settled(handles[i]) - before[i] < expected) {
            if (t_real_ms() > until_ms)
                T_FAIL("a wake-up has not arrived for %d ms", ATTEND_MS);
            (void)poll(NULL, 0, 1);
        }
    }
}

il *
t_store_open_real(struct t_store *s)
{
    il      *h   = NULL;
    il_error err = { 0 };

    if (il_open(s->real_url, NULL, &h, &err) != IL_OK)
        T_FAIL("%s: %s: %s", s->real_url, il_status_name(err.status), err.message);
    t_attend(h); /* threads wait on it: no wake-up from before is to come later */
    return h;
}

void
t_store_absent(struct t_store *s, char url[T_PATH_BYTES])
{
    if (s->engine->server != NULL && s->engine->server->absent != NULL)
        s->engine->server->absent(s->url, url);
    else
        t_path(url, "%s", s->real_url);
}

/* The URLs of the table have one %s, for the folder. */
static void
fill_url(char url[T_PATH_BYTES], const char *pattern, const char *dir)
{
    const char *hole = strstr(pattern, "%s");

    CHECK(hole != NULL);
    t_path(url, "%.*s%s%s", (int)(hole - pattern), pattern, dir, hole + 2);
}

void
t_engine_make(const struct t_engine *engine, const char *dir, char url[T_PATH_BYTES],
              char real_url[T_PATH_BYTES])
{
    if (engine->server != NULL) {
        engine->server->make(url, real_url);
        return;
    }
    fill_url(url, engine->url, dir);
    fill_url(real_url, engine->real_url, dir);
}

void
t_engine_forget(const struct t_engine *engine, const char *url, const char *real_url)
{
    if (engine->server != NULL)
        engine->server->forget(url, real_url);
}

static void
open_handles(struct t_store *s)
{
    for (size_t i = 0; i < s->engine->n_handles; i++) {
        s->handles[i] = t_store_open(s);
        s->n_handles  = i + 1;
    }
}

static void
close_handles(struct t_store *s)
{
    for (size_t i = 0; i < s->n_handles; i++)
        il_close(s->handles[i]);
    s->n_handles = 0;
}

/* ---- new stores in a file -------------------------------------------------------------------- */

/* The files of an empty store, which say all about it. */
static struct {
    const char *name;
    char       *data; /* NULL = there is none */
    size_t      n_bytes;
} empty[] = { { "x.db", NULL, 0 }, { "x.db-wal", NULL, 0 } };

static void
make_empty(const struct t_engine *engine)
{
    struct t_store new = { .engine = engine };
    char path[T_PATH_BYTES];

    t_clock_init(&new.clock);
    t_tmp_make(new.dir);
    t_engine_make(engine, new.dir, new.url, new.real_url);
    il_close(t_store_open(&new));
    for (size_t i = 0; i < ARRAY_LEN(empty); i++) {
        t_path(path, "%s/%s", new.dir, empty[i].name);
        if (t_file_exists(path))
            empty[i].data = t_file_read(path, &empty[i].n_bytes);
    }
    CHECK(empty[0].data != NULL);
    t_tmp_remove(new.dir);
}

/*
 * A store in a file is a copy of an empty one: creating one takes longer than most tests. The first
 * of a process is created, like the stores of tests that call il_open() themselves.
 */
static void
copy_empty(const struct t_store *s)
{
    static bool is_first = true;
    char        path[T_PATH_BYTES];

    if (!is_first && empty[0].data == NULL)
        make_empty(s->engine);
    for (size_t i = 0; i < ARRAY_LEN(empty) && !is_first; i++) {
        if (empty[i].data == NULL)
            continue;
        t_path(path, "%s/%s", s->dir, empty[i].name);
        t_file_write(path, empty[i].data, empty[i].n_bytes);
        CHECK(chmod(path, 0600) == 0);
    }
    is_first = false;
}

struct t_store *
t_store_new(const struct t_engine *engine)
{
    struct t_store *s = calloc(1, sizeof *s);

    CHECK(s != NULL);
    s->engine  = engine;
    s->results = calloc(T_RESULTS_MAX, sizeof *s->results);
    CHECK(s->results != NULL);
    t_clock_init(&s->clock);
    t_tmp_make(s->dir);
    t_engine_make(engine, s->dir, s->url, s->real_url);
    if (engine->durable && engine->server == NULL)
        copy_empty(s);
    open_handles(s);
    return s;
}

void
t_store_free(struct t_store *s)
{
    if (s == NULL)
        return;
    close_handles(s);
    for (size_t i = 0; i < T_RESULTS_MAX; i++)
        il_op_release(&s->results[i]);
    t_engine_forget(s->engine, s->url, s->real_url);
    t_tmp_remove(s->dir);
    free(s->results);
    free(s);
}

void
t_store_reopen(struct t_store *s)
{
    close_handles(s);
    open_handles(s);
}

void
t_store_set_ranks(struct t_store *s, const char *const *ranks, size_t n)
{
    s->ranks   = ranks;
    s->n_ranks = n;
    t_store_reopen(s);
}

il *
t_handle(struct t_store *s)
{
    return s->handles[s->i_turn++ % s->n_handles];
}

void
t_pass(struct t_store *s, int64_t ms)
{
    t_clock_step(&s->clock, ms);
}
