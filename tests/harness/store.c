/*
 * store.c: stores under test. The engine table is here; ops are in op.c.
 */
#include "harness/store.h"

#include <stdio.h>

#define SQLITE "sqlite:%s/x.db?clock=test", "sqlite:%s/real.db"

const struct t_engine t_engines[] = {
    /* name, URL on the test clock and on the real one, shared, durable, handles, traced */
    { "memory", "memory:%s?clock=test", "memory:%s/real", true, false, 1, false },
    { "sqlite", SQLITE, true, true, 1, false },
    { "sqlite-2", SQLITE, true, true, 2, false },    /* two handles in turn */
    { "sqlite-trace", SQLITE, true, true, 1, true }, /* behind the decorator */
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

il *
t_store_open_real(struct t_store *s)
{
    il      *h   = NULL;
    il_error err = { 0 };

    if (il_open(s->real_url, NULL, &h, &err) != IL_OK)
        T_FAIL("%s: %s: %s", s->real_url, il_status_name(err.status), err.message);
    return h;
}

/* The URLs of the table have one %s, for the folder. */
static void
fill_url(char url[T_PATH_BYTES], const char *pattern, const char *dir)
{
    const char *hole = strstr(pattern, "%s");

    CHECK(hole != NULL);
    t_path(url, "%.*s%s%s", (int)(hole - pattern), pattern, dir, hole + 2);
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
    fill_url(s->url, engine->url, s->dir);
    fill_url(s->real_url, engine->real_url, s->dir);
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
