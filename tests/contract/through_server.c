/*
 * through_server.c: the same ops on a memory store directly, and on one behind a real server: the
 * same status, details and il_error. A list, not random histories: these are in unit-wire_op, which
 * needs no server.
 */
#include <ctype.h>
#include <stdio.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "harness/clock.h"
#include "harness/proc.h"
#include "harness/tmp.h"
#include "harness/unit.h"
#include "runtime/handle.h"
#include "wire/wire.h"

#define LIMIT_MS 60000
#define N_SIDES 2 /* directly, and through the server */

/* What is done, in order, as elements of a batch; with `fence`, the last one granted on that side
 * is the fence or token. */
static const struct {
    bool        fence;
    il_status   status;
    const char *op;
} steps[] = {
    { false, IL_OK, "{'op':'acquire','key':'b:1','holder':'h1','meta':'m'}" },
    { true, IL_OK, "{'op':'renew','key':'b:1','holder':'h1'}" },
    { true, IL_STALE, "{'op':'check_fence','key':'b:2'}" },
    { false, IL_STALE, "{'op':'check_fence','key':'b:1','fence':7}" },
    { false, IL_STALE, "{'op':'renew','key':'b:1','holder':'h1','fence':7}" },
    { false, IL_HELD, "{'op':'release','key':'b:1','holder':'h2','fence':7}" },
    { false, IL_HELD, "{'op':'acquire','key':'b:1','holder':'h2'}" },
    { false, IL_QUEUED, "{'op':'acquire','key':'b:1','holder':'h2','wait_ms':60000}" },
    { false, IL_ORDER, "{'op':'acquire','key':'a:1','holder':'h1','place':'here'}" },
    { false, IL_OK, "{'op':'acquire','key':'s','holder':'h1','mode':'permit','permits':2}" },
    { false, IL_MISMATCH, "{'op':'acquire','key':'s','holder':'h2','mode':'permit','permits':3}" },
    { false, IL_INVAL, "{'op':'break','key':'free','reason':'r'}" },
    { false, IL_NOT_HELD, "{'op':'break','key':'free','reason':'r','fence':7}" },
    { false, IL_NOT_HELD, "{'op':'renew','key':'free','holder':'h1','fence':7}" },
    { false, IL_OK, "{'op':'acquire','key':'l','holder':'h1'}" },
    { true, IL_OK, "{'op':'break','key':'l','reason':'stuck'}" },
    { true, IL_LOST, "{'op':'renew','key':'l','holder':'h1'}" },
    { false, IL_OK, "{'op':'acquire','key':'c:x','holder':'h5'}" },
    { false, IL_OK, "{'op':'acquire','key':'c:y','holder':'h6'}" },
    { false, IL_QUEUED, "{'op':'acquire','key':'c:y','holder':'h5','wait_ms':60000}" },
    { false, IL_DEADLOCK, "{'op':'acquire','key':'c:x','holder':'h6','wait_ms':60000}" },
    { false, IL_OK, "{'op':'run_start','key':'r:1','id':'r1','holder':'w1'}" },
    { false, IL_STALE, "{'op':'run_stage','id':'r1','holder':'w1','fence':7,'stage':'s'}" },
    { false, IL_DUPLICATE, "{'op':'run_start','key':'r:1','id':'r2','holder':'w2'}" },
    { false, IL_HELD,
      "{'op':'run_start','key':'r:1','id':'r2','holder':'w2','on_conflict':'reject'}" },
    { false, IL_LIMIT, "{'op':'run_start','key':'r:2','id':'r2','holder':'w2','live_max':1}" },
    { false, IL_MISMATCH, "{'op':'run_start','key':'r:3','id':'r1','holder':'w2'}" },
    { false, IL_NOT_FOUND, "{'op':'run_get','id':'none'}" },
    { false, IL_NOT_FOUND, "{'op':'run_cancel','id':'none','reason':'r'}" },
    { false, IL_OK, "{'op':'once_begin','key':'o','attempt':'a1','fingerprint':'f','meta':'m'}" },
    { false, IL_BUSY, "{'op':'once_begin','key':'o','attempt':'a2','fingerprint':'f'}" },
    { false, IL_MISMATCH, "{'op':'once_begin','key':'o','attempt':'a2','fingerprint':'g'}" },
    { false, IL_STALE, "{'op':'once_finish','key':'o','attempt':'a2','token':7}" },
    { false, IL_OK, "{'op':'push','queue':'q','id':'j1','payload':'p'}" },
    { false, IL_OK, "{'op':'push','queue':'q','id':'j2','payload':'p','unique_key':'u'}" },
    { false, IL_DUPLICATE, "{'op':'push','queue':'q','id':'j3','payload':'p','unique_key':'u'}" },
    { false, IL_MISMATCH, "{'op':'push','queue':'q','id':'j1','payload':'other'}" },
    { false, IL_OK, "{'op':'claim','queue':'q','claim_id':'c1','worker':'w','limit':9}" },
    { false, IL_EMPTY, "{'op':'claim','queue':'q','claim_id':'c2','worker':'w'}" },
    { false, IL_STALE, "{'op':'heartbeat','id':'j1','token':7}" },
    { false, IL_STALE, "{'op':'job_finish','id':'j1','token':7}" },
    { false, IL_STATE, "{'op':'job_seal','id':'j1'}" },
    { false, IL_NOT_FOUND, "{'op':'job_get','id':'none'}" },
    { false, IL_NOT_FOUND, "{'op':'claim','queue':'none','claim_id':'c3','worker':'w'}" },
    { false, IL_LEAD, "{'op':'cache_lookup','key':'v','holder':'h1'}" },
    { false, IL_WAIT, "{'op':'cache_lookup','key':'v','holder':'h2'}" },
    { false, IL_STALE,
      "{'op':'cache_fill','key':'v','holder':'h1','token':7,'value':'x','ttl_ms':60000}" },
    { true, IL_OK, "{'op':'cache_fill','key':'v','holder':'h1','value':'x','ttl_ms':60000}" },
    { false, IL_HIT, "{'op':'cache_lookup','key':'v','holder':'h2'}" },
    { false, IL_NOT_FOUND, "{'op':'cron_remove','name':'none'}" },
};

static struct t_proc server;
static char          dir[T_PATH_BYTES];
static il           *handles[N_SIDES];
static uint64_t      fences[N_SIDES]; /* the last that was granted */
static void         *arena;

/* ---- the server ------------------------------------------------------------------------------ */

static void
make_key(const char *data)
{
    const char       *bin      = getenv("INTERLOCK_BIN");
    const char *const create[] = { bin,      "key", "create",  "--tenant", "default", "--admin",
                                   "--data", data,  "--store", "memory:",  "--json",  NULL };
    struct t_proc     p        = { .in = -1, .out = -1 };

    t_proc_start(&p, create, NULL);
    if (t_proc_exit(&p, LIMIT_MS) != 0)
        T_FAIL("key create: %s", p.text);
    json_t *json = json_loads(p.text, 0, NULL);
    T_TRUE(json != NULL);
    T_EQ(setenv("INTERLOCK_API_KEY", json_string_value(json_object_get(json, "key")), 1), 0);
    json_decref(json);
    t_proc_release(&p);
}

static void
set_up(void)
{
    static const char *const ranks[] = { "a", "b" };
    static const char *const env[]   = { "INTERLOCK_RANKS=a,b", NULL };
    il_open_opts             opts    = IL_OPEN_OPTS_INIT;
    char                     data[T_PATH_BYTES], listen[T_PATH_BYTES], url[T_PATH_BYTES];
    il_error                 err;

    t_tmp_make(dir);
    t_path(data, "%s/data.db", dir);
    t_path(listen, "unix:%s/socket", dir);
    t_path(url, "http+unix:%s/socket", dir);
    make_key(data);
    const char *const serve[] = {
        getenv("INTERLOCK_BIN"), "serve", "--allow-root", "--store", "memory:", "--data", data,
        "--log-level",           "error", "--listen",     listen,    NULL
    };
    t_proc_start(&server, serve, env);
    int64_t until = t_real_ms() + LIMIT_MS;
    while (il_open(url, NULL, &handles[1], &err) != IL_OK) {
        if (t_real_ms() > until || t_pid_gone(server.pid, 0))
            T_FAIL("no server: %s", err.message);
        (void)usleep(20000);
    }
    opts.ranks   = ranks;
    opts.n_ranks = ARRAY_LEN(ranks);
    if (il_open("memory:", &opts, &handles[0], &err) != IL_OK)
        T_FAIL("%s", err.message);
}

static void
tear_down(void)
{
    for (size_t i = 0; i < N_SIDES; i++)
        il_close(handles[i]);
    t_proc_release(&server);
    t_tmp_remove(dir);
    il__arena_free(&arena);
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* A text without its numbers: fences, and how long something takes. */
static const char *
plain(const char *text, char out[1024])
{
    size_t n = 0;

    for (; text != NULL && *text != '\0' && n < 1023; text++) {
        if (!isdigit((unsigned char)*text))
            out[n++] = *text;
        else if (n == 0 || out[n - 1] != '#')
            out[n++] = '#';
    }
    out[n] = '\0';
    return out;
}

static void
same_text(const char *what, const char *a, const char *b)
{
    char plain_a[1024], plain_b[1024];

    if ((a == NULL) != (b == NULL) || strcmp(plain(a, plain_a), plain(b, plain_b)) != 0)
        T_FAIL("%s: '%s' and '%s'", what, a != NULL ? a : "(none)", b != NULL ? b : "(none)");
}

static void
same_out(const il_op_out *a, const il_op_out *b)
{
    T_EQU(b->flags, a->flags);
    T_EQU(b->position, a->position);
    T_EQU(b->fence != 0, a->fence != 0);
    T_EQ(b->code, a->code);
    T_EQU(b->value_bytes, a->value_bytes);
    T_EQU(b->n_items, a->n_items);
    T_EQU(b->n_runs, a->n_runs);
    T_EQU(b->n_jobs, a->n_jobs);
    same_text("detail", a->detail, b->detail);
    same_text("meta", a->meta, b->meta);
    for (size_t i = 0; i < a->n_items; i++) {
        T_STREQ(b->items[i].holder, a->items[i].holder);
        T_STREQ(b->items[i].meta, a->items[i].meta);
        T_EQ(b->items[i].state, a->items[i].state);
        T_EQU(b->items[i].n_waiters, a->items[i].n_waiters);
    }
    for (size_t i = 0; i < a->n_runs; i++) {
        T_STREQ(b->runs[i].id, a->runs[i].id);
        T_STREQ(b->runs[i].stage, a->runs[i].stage);
        T_EQ(b->runs[i].state, a->runs[i].state);
    }
    for (size_t i = 0; i < a->n_jobs; i++) {
        T_STREQ(b->jobs[i].id, a->jobs[i].id);
        T_EQ(b->jobs[i].state, a->jobs[i].state);
        T_EQU(b->jobs[i].attempt, a->jobs[i].attempt);
    }
}

static void
same_error(const il_op *a, const il_op *b)
{
    il_error of_a = { .status = IL_OK }, of_b = { .status = IL_OK };

    T_EQ(il__error_of_op(b, &of_b), il__error_of_op(a, &of_a));
    same_text("message", of_a.message, of_b.message);
    T_STREQ(of_b.holder, of_a.holder);
    T_STREQ(of_b.constraint, of_a.constraint);
    T_EQU(of_b.fence != 0, of_a.fence != 0);
}

/* ---- the steps ------------------------------------------------------------------------------- */

static json_t *
make_op(size_t i, il_op *op)
{
    char     text[512];
    il_error err;

    (void)snprintf(text, sizeof text, "%s", steps[i].op);
    for (char *p = text; *p != '\0'; p++)
        *p = *p == '\'' ? '"' : *p;
    json_t *json = json_loads(text, 0, NULL);
    T_TRUE(json != NULL);
    if (steps[i].fence) { /* it is required */
        const char *name = strstr(text, "cache_") != NULL ? "token" : "fence";
        T_EQ(json_object_set_new(json, name, json_integer(1)), 0);
    }
    if (il__wire_parse_op(json, op, &arena, &err) != IL_OK)
        T_FAIL("%s: %s", text, err.message);
    return json;
}

U_TEST(every_outcome)
{
    il_error err;

    set_up();
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        il_op   ops[N_SIDES];
        json_t *json[N_SIDES];
        for (size_t k = 0; k < N_SIDES; k++) {
            json[k] = make_op(i, &ops[k]);
            if (steps[i].fence)
                ops[k].fence = fences[k];
            if (il_apply(handles[k], &ops[k], 1, &err) != IL_OK)
                T_FAIL("%s: %s", steps[i].op, err.message);
            if (ops[k].status != steps[i].status)
                T_FAIL("%s: %s%s, expected %s: %s", steps[i].op, il_status_name(ops[k].status),
                       k == 1 ? " through the server" : "", il_status_name(steps[i].status),
                       ops[k].out.detail != NULL ? ops[k].out.detail : "");
            if ((ops[k].status == IL_OK || ops[k].status == IL_LEAD) && ops[k].out.fence != 0)
                fences[k] = ops[k].out.fence;
        }
        same_out(&ops[0].out, &ops[1].out);
        same_error(&ops[0], &ops[1]);
        for (size_t k = 0; k < N_SIDES; k++) {
            il_op_release(&ops[k]);
            json_decref(json[k]);
        }
    }
    tear_down();
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { U_ROW(every_outcome) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
