/*
 * toy.c: see toy.h.
 */
#include "toy.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "core/cron.h"
#include "data/data.h"
#include "harness/clock.h"
#include "harness/postgres.h"

#define TIMEOUT_MS 600
#define STALL_MS INT64_C(2000)

struct toy {
    const char *name;
    int64_t     timeout_ms, stall_timeout_ms;
    bool        ticks;
};
static const struct toy toys[] = {
    { .name = "alive", .stall_timeout_ms = STALL_MS },
    { .name = "fails" },
    { .name = "late", .timeout_ms = TIMEOUT_MS },
    { .name = "lazy" },
    { .name = "quick" },
    { .name = "stages" },
    { .name = "stalled", .timeout_ms = 600000, .stall_timeout_ms = TIMEOUT_MS },
    { .name = "tick", .ticks = true },
};

/* A reference to a toy. */
struct subject {
    struct toys      *t;
    const struct toy *toy;
};

static void *
subject_new(struct toys *t, const struct toy *toy)
{
    struct subject *s = il__calloc(1, sizeof *s);

    CHECK(s != NULL);
    *s = (struct subject){ .t = t, .toy = toy };
    atomic_fetch_add(&t->n_refs, 1);
    return s;
}

/* ---- the kind: what exists ------------------------------------------------------------------- */

static void *
find(void *cookie, const char *tenant, const char *name)
{
    for (size_t i = 0; strcmp(tenant, TENANT) == 0 && i < ARRAY_LEN(toys); i++) {
        if (strcmp(toys[i].name, name) == 0)
            return subject_new(cookie, &toys[i]);
    }
    return NULL;
}

static void *
ref(void *subject)
{
    const struct subject *s = subject;

    return subject_new(s->t, s->toy);
}

static void
drop(void *subject)
{
    struct subject *s = subject;

    atomic_fetch_sub(&s->t->n_refs, 1);
    il__free(s);
}

static struct il__cron        each_minute;
static const struct il__zone *utc;

static void
plan(void *cookie, const void *subject, struct work_plan *ret)
{
    const struct toys *t   = cookie;
    const struct toy  *toy = ((const struct subject *)subject)->toy;

    *ret = (struct work_plan){
        .tenant           = TENANT,
        .name             = toy->name,
        .version          = "1",
        .timeout_ms       = toy->timeout_ms,
        .stall_timeout_ms = toy->stall_timeout_ms,
        .cron             = toy->ticks && t->with_ticks ? &each_minute : NULL,
        .zone             = utc,
        .catch_up_ms      = 120000,
    };
}

static void
tenants(void *cookie UNUSED, bool (*each)(void *each_cookie, const char *tenant), void *each_cookie)
{
    (void)each(each_cookie, TENANT);
}

static size_t
list(void *cookie, const char *after_tenant UNUSED, const char *after_name, void **subjects,
     size_t n)
{
    size_t n_found = 0;

    for (size_t i = 0; i < ARRAY_LEN(toys) && n_found < n; i++) {
        if (after_name == NULL || strcmp(toys[i].name, after_name) > 0)
            subjects[n_found++] = subject_new(cookie, &toys[i]);
    }
    return n_found;
}

static il_status
tick_op(void *cookie UNUSED, const struct work_tick *tick, void **mem, il_op *op, il_error *reterr)
{
    struct work_start start = { .tenant  = tick->plan.tenant,
                                .class   = CLASS,
                                .name    = tick->plan.name,
                                .id      = tick->id,
                                .type    = "schedule",
                                .policy  = IL_POLICY_SKIP,
                                .keep_ms = tick->keep_ms };

    return work_start_op(&start, mem, op, reterr);
}

static void
note(void *cookie, const struct work_note *n)
{
    struct toys *t = cookie;

    if (getenv("TOY_NOTES") != NULL)
        (void)fprintf(stderr, "# %d %s %s\n", (int)n->event, n->run != NULL ? n->run : "-",
                      n->text != NULL ? n->text : "");
    t_event_add(&t->events[n->event]);
}

/* ---- the kind: a run ------------------------------------------------------------------------- */

/* What a run waits on. */
struct doing {
    struct toys     *t;
    struct il__mutex mutex;
    pthread_cond_t   changed;
};

static void
on_stop(void *cookie)
{
    struct doing *d = cookie;

    il__mutex_lock(&d->mutex);
    CHECK(pthread_cond_broadcast(&d->changed) == 0);
    il__mutex_unlock(&d->mutex);
    t_event_add(&d->t->stopped);
}

/* Until it is to stop, or until the time; with a sign of life now and then. */
static void
wait_for_stop(struct work_run *run, struct doing *d, int64_t until_ns, bool alive)
{
    il__mutex_lock(&d->mutex);
    while (!work_run_should_stop(run) && il__clock_boot_ns() < until_ns) {
        if (alive)
            work_run_alive(run);
        (void)il__cond_wait(&d->changed, &d->mutex, 20 * IL__NS_PER_MS);
    }
    il__mutex_unlock(&d->mutex);
}

static void
leave_mark(const struct toys *t, const struct work_run *run)
{
    char path[T_PATH_BYTES], line[IL_ID_BYTES_MAX + 2];

    t_path(path, "%s/%s", t->dir, run->plan.name);
    int n  = snprintf(line, sizeof line, "%s\n", run->id);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && write(fd, line, (size_t)n) == n && close(fd) == 0);
}

static bool
act(struct work_run *run, struct doing *d)
{
    const char *name = run->plan.name;

    if (strcmp(name, "quick") == 0 || strcmp(name, "tick") == 0)
        return true;
    if (strcmp(name, "fails") == 0) {
        work_run_fail(run, false, "it always does");
        return false;
    }
    if (strcmp(name, "lazy") == 0)
        return false;
    if (strcmp(name, "alive") == 0) {
        wait_for_stop(run, d, il__clock_boot_ns() + 3 * STALL_MS / 2 * IL__NS_PER_MS, true);
        return !work_run_should_stop(run);
    }
    if (strcmp(name, "stages") == 0) {
        work_run_stage(run, "halfway", 50);
        work_run_say(run, "%s is here", json_string_value(json_object_get(run->parameters, "who")));
    }
    wait_for_stop(run, d, INT64_MAX, strcmp(name, "late") == 0);
    return false;
}

static bool
execute(struct work_run *run)
{
    static const struct work_callbacks callbacks = { .stop = on_stop };
    struct doing                       d         = { .t = run->cookie };

    il__mutex_init(&d.mutex, IL__MUTEX_execution);
    il__cond_init(&d.changed);
    leave_mark(d.t, run);
    work_run_callbacks(run, &callbacks, &d);
    bool done = act(run, &d);
    work_run_callbacks(run, NULL, NULL);
    CHECK(pthread_cond_destroy(&d.changed) == 0);
    il__mutex_destroy(&d.mutex);
    t_event_add(&d.t->returned);
    return done;
}

static const struct work_kind kind = {
    .class    = CLASS,
    .presence = "interlock.toy",
    .find     = find,
    .ref      = ref,
    .drop     = drop,
    .plan     = plan,
    .tenants  = tenants,
    .execute  = execute,
    .note     = note,
    .list     = list,
    .tick_op  = tick_op,
};

/* ---- executors ------------------------------------------------------------------------------- */

static void
init_events(struct toys *t)
{
    il_error err = { 0 };

    for (size_t i = 0; i < WORK_EVENT_COUNT; i++)
        t_event_init(&t->events[i]);
    t_event_init(&t->stopped);
    t_event_init(&t->returned);
    if (il__cron_parse("* * * * *", &each_minute, &err) != IL_OK ||
        il__zone_get("UTC", &utc, &err) != IL_OK)
        T_FAIL("%s", err.message);
}

static struct il__data *
open_data(const char *url, const char *data_url)
{
    struct il__data     *data = NULL;
    struct il__data_open o    = { .store_url = url,
                                  .data_url  = data_url[0] != '\0' ? data_url : NULL,
                                  .no_keys   = true };
    il_error             err  = { 0 };

    if (il__data_open(&o, &data, &err) != IL_OK)
        T_FAIL("%s: %s", url, err.message);
    return data;
}

void
toys_init(struct toys *t, struct t_store *s)
{
    memset(t, 0, sizeof *t);
    t->s = s;
    t_path(t->url, "%s", s->real_url);
    t_tmp_make_plain(t->dir, false);
    if (strncmp(s->engine->name, "redis", 5) == 0)
        t_path(t->data_url, "sqlite:%s/data.db", s->dir);
    if (strncmp(s->engine->name, "postgres", 8) == 0) {
        static unsigned n;
        (void)snprintf(t->schema, sizeof t->schema, "il_toy_%d_%u", (int)getpid(), n++);
        t_path(t->data_url, "%s&schema=%s", t_postgres_url(), t->schema);
    }
    init_events(t);
    t->h    = t_store_open_real(s);
    t->data = open_data(t->url, t->data_url);
}

void
toys_release(struct toys *t)
{
    T_EQ(atomic_load(&t->n_refs), 0);
    t_tmp_remove(t->dir);
    il__data_close(t->data);
    il_close(t->h);
    if (t->schema[0] != '\0') {
        char sql[128], out[T_PG_TEXT_BYTES];
        (void)snprintf(sql, sizeof sql, "DROP SCHEMA IF EXISTS %s CASCADE", t->schema);
        (void)t_postgres_ask(t_postgres_url(), sql, out);
    }
    for (size_t i = 0; i < WORK_EVENT_COUNT; i++)
        t_event_release(&t->events[i]);
    t_event_release(&t->stopped);
    t_event_release(&t->returned);
}

struct work *
toy_open(struct toys *t, il *h, struct toy_opts o)
{
    struct work_options opts = { .kind        = &kind,
                                 .cookie      = t,
                                 .h           = h,
                                 .data        = t->data,
                                 .mode        = o.mode,
                                 .lease_ms    = 3000,
                                 .grace_ms    = 300,
                                 .shutdown_ms = o.shutdown_ms,
                                 .runs_max    = o.runs_max };
    struct work        *w    = NULL;
    il_error            err  = { 0 };

    if (work_open(&opts, &w, &err) != IL_OK || work_start(w, &err) != IL_OK)
        T_FAIL("%s", err.message);
    return w;
}

/* toy URL DATA DIR */
static int
process_main(char **argv)
{
    struct toys t   = { .with_ticks = false };
    il_error    err = { 0 };

    t_path(t.dir, "%s", argv[4]);
    init_events(&t);
    if (il_open(argv[2], NULL, &t.h, &err) != IL_OK)
        T_FAIL("%s", err.message);
    t.data         = open_data(argv[2], argv[3]);
    struct work *w = toy_open(&t, t.h, (struct toy_opts){ .mode = WORK_SERVE });
    (void)printf("ready\n");
    (void)fflush(stdout);
    while (getchar() != EOF)
        continue;
    work_close(w);
    il__data_close(t.data);
    il_close(t.h);
    return atomic_load(&t.n_refs) == 0 ? 0 : 1;
}

int
toy_main(int argc, char **argv)
{
    return argc == 5 && strcmp(argv[1], "toy") == 0 ? process_main(argv) : -1;
}

void
toy_spawn(struct toys *t, struct t_proc *p)
{
    const char *argv[] = { "/proc/self/exe", "toy", t->url, t->data_url, t->dir, NULL };

    t_proc_start(p, argv, NULL);
    T_LINE(p, "ready", SOON_MS, NULL);
}

/* ---- runs ------------------------------------------------------------------------------------ */

void
toy_slot(struct toys *t, const char *name, char id[IL_ID_BYTES_MAX + 1])
{
    AUTO(il__arena_free) void *mem        = NULL;
    json_t                    *parameters = json_pack("{s:s}", "who", "Kilroy");
    struct work_start          start      = { .tenant     = TENANT,
                                              .class      = CLASS,
                                              .name       = name,
                                              .id         = id,
                                              .by         = "test",
                                              .type       = "api",
                                              .parameters = parameters,
                                              .policy     = IL_POLICY_QUEUE,
                                              .queue_max  = 100 };
    il_op                      op;
    il_error                   err = { 0 };

    T_EQ(il_uuid(id), IL_OK);
    if (work_start_op(&start, &mem, &op, &err) != IL_OK)
        T_FAIL("%s", err.message);
    T_EQ(il_apply(t->h, &op, 1, NULL), IL_OK);
    T_EQ(op.status, IL_OK);
    il_op_release(&op);
    json_decref(parameters);
}

static void
take(const il_op *op, struct toy_run *ret)
{
    const il_run_info *run = &op->out.runs[0];

    *ret = (struct toy_run){ .state = run->state, .progress = run->progress, .fence = run->fence };
    (void)snprintf(ret->error, sizeof ret->error, "%s", run->error);
    (void)snprintf(ret->stage, sizeof ret->stage, "%s", run->stage);
}

struct toy_run
toy_look(struct toys *t, const char *id)
{
    struct toy_run ret;
    il_op          op = { .type = IL_OP_RUN_GET, .tenant = TENANT, .in.run = { .id = id } };

    T_EQ(il_apply(t->h, &op, 1, NULL), IL_OK);
    T_EQ(op.status, IL_OK);
    take(&op, &ret);
    il_op_release(&op);
    return ret;
}

struct toy_run
toy_await(struct toys *t, const char *id, il_run_state state)
{
    struct toy_run ret;
    il_op          op    = { .type = IL_OP_RUN_GET, .tenant = TENANT, .in.run = { .id = id } };
    int64_t        limit = t_real_ms() + 3 * SOON_MS;

    for (;;) {
        T_EQ(il_apply(t->h, &op, 1, NULL), IL_OK);
        T_EQ(op.status, IL_OK);
        take(&op, &ret);
        if (ret.state == state)
            break;
        if (ret.state > IL_RUN_RUNNING || t_real_ms() > limit)
            T_FAIL("run %s is %s (%s), not %s", id, il_run_state_name(ret.state), ret.error,
                   il_run_state_name(state));
        IGNORE(il_wait(t->h, &op, 1000));
    }
    il_op_release(&op);
    return ret;
}

size_t
toy_begun(const struct toys *t, const char *name, const char *id)
{
    char   path[T_PATH_BYTES];
    size_t n = 0;

    t_path(path, "%s/%s", t->dir, name);
    if (!t_file_exists(path))
        return 0;
    char *text = t_file_read(path, NULL);
    char *rest = text, *line;
    while ((line = strsep(&rest, "\n")) != NULL)
        n += line[0] != '\0' && (id == NULL || strcmp(line, id) == 0);
    free(text);
    return n;
}
