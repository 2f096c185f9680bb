/* source.c: opens and closes a source, and the generator. See source.h. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

#include "apps/usage/source_internal.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "proc/proc.h"

#define CONNS_DEFAULT 8

/* ---- open and close -------------------------------------------------------------------------- */

static il_status
check(const struct usage_source_opts *o, il_error *reterr)
{
    switch (o->type) {
    case USAGE_SOURCE_http:
        if (o->url == NULL || strstr(o->url, "{date}") == NULL)
            return il__error_set(reterr, IL_INVAL, "usage.source.url must contain {date}");
        return usage_http_check(o, reterr);
    case USAGE_SOURCE_sql:
        if (o->database == NULL)
            return il__error_set(reterr, IL_INVAL,
                                 "usage.source.connection must be a name in `connections`");
        if (o->query == NULL)
            return il__error_set(reterr, IL_INVAL, "usage.source.query is not set");
        if (!usage_sql_uses(o->query, '1'))
            return il__error_set(reterr, IL_INVAL, "usage.source.query must use $1, the date");
        return IL_OK;
    case USAGE_SOURCE_command:
        if (o->command == NULL)
            return il__error_set(reterr, IL_INVAL, "usage.source.command is not set");
        return IL_OK;
    default:
        return IL_OK;
    }
}

static il_status
copy(struct usage_source *s, const struct usage_source_opts *o, il_error *reterr)
{
    const char **texts[] = { &s->o.url, &s->o.header, &s->o.database, &s->o.query, &s->o.command };

    s->o = *o;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (*texts[i] == NULL)
            continue;
        *texts[i] = il__arena_strdup(&s->mem, *texts[i]);
        if (*texts[i] == NULL)
            return il__error_nomem(reterr);
    }
    return IL_OK;
}

static il_status
connect_to(struct usage_source *s, il_error *reterr)
{
    il_guard_opts o = IL_GUARD_OPTS_INIT;
    il_error      err;

    o.conns_max            = s->o.n_conns != 0 ? s->o.n_conns : CONNS_DEFAULT;
    o.statement_timeout_ms = s->o.timeout_ms;
    il_status st           = il_guard_open(s->o.database, &o, &s->guard, &err);
    return st == IL_OK ? IL_OK
                       : il__error_set(reterr, st, "usage.source.connection: %s", err.message);
}

il_status
usage_source_open(const struct usage_source_opts *o, struct usage_source **ret, il_error *reterr)
{
    struct usage_source *s  = il__calloc(1, sizeof *s);
    il_status            st = check(o, reterr);

    if (s == NULL)
        return il__error_nomem(reterr);
    if (st == IL_OK)
        st = copy(s, o, reterr);
    if (st == IL_OK && o->type == USAGE_SOURCE_sql)
        st = connect_to(s, reterr);
    if (st == IL_OK && o->type == USAGE_SOURCE_command)
        st = il__proc_spawner_open(&s->spawner, reterr);
    if (st == IL_OK)
        *ret = s;
    else
        usage_source_close(s);
    return st;
}

void
usage_source_stop(struct usage_source *s)
{
    atomic_store(&s->stopped, true);
    if (s->guard != NULL)
        il_guard_interrupt(s->guard);
}

void
usage_source_close(struct usage_source *s)
{
    if (s == NULL)
        return;
    il__proc_spawner_close(s->spawner);
    il_guard_close(s->guard);
    if (s->o.database != NULL && s->mem != NULL)
        explicit_bzero((char *)(uintptr_t)s->o.database, strlen(s->o.database)); /* ours: in mem */
    il__arena_free(&s->mem);
    il__free(s);
}

bool
usage_fetch_stopped(const struct usage_source *s, const struct usage_fetch *f)
{
    return atomic_load(&s->stopped) || f->should_stop(f->cookie);
}

static usage_fetch_fn fetch_generator;

il_status
usage_source_fetch(struct usage_source *s, const struct usage_fetch *f, struct il__buf *out,
                   il_error *reterr)
{
    static usage_fetch_fn *const fetch[] = {
        [USAGE_SOURCE_generator] = fetch_generator,
        [USAGE_SOURCE_http]      = usage_fetch_http,
        [USAGE_SOURCE_sql]       = usage_fetch_sql,
        [USAGE_SOURCE_command]   = usage_fetch_command,
    };

    if (s->o.type == USAGE_SOURCE_none)
        return il__error_set(reterr, IL_STATE, "no source is configured (usage.source.type)");
    il_status st = fetch[s->o.type](s, f, out, reterr);
    if (st == IL_OK && out->failed)
        st = il__error_set(reterr, IL_LIMIT, "the source returned more than %zu MiB",
                           USAGE_RAW_BYTES_MAX >> 20);
    return st;
}

/* ---- the generator --------------------------------------------------------------------------- */

#define USERS 6

/* A user has a model, and a model a provider, so that the three breakdowns add up to the total. */
static const struct {
    const char *user, *model, *provider;
    int64_t     micros_per_1000;
} people[USERS] = {
    { "ann", "large", "north", 9000 },  { "bob", "small", "north", 1500 },
    { "cid", "medium", "south", 7500 }, { "dora", "medium", "south", 7500 },
    { "eve", "large", "north", 9000 },  { "finn", "open", "west", 2500 },
};

/* The same for the same tenant, date and user. */
static struct usage_metrics
invent(const struct usage_fetch *f, size_t i)
{
    uint64_t seed = il__hash_stable(f->tenant, strlen(f->tenant), i + 1);
    uint64_t hash = il__hash_stable(f->date, strlen(f->date), seed);
    int64_t  n = 100 + (int64_t)(hash % 900), failed = (int64_t)(hash >> 32) % 7;
    int64_t  prompt = n * (200 + (int64_t)(hash >> 16) % 400), completion = prompt / 3;

    return (struct usage_metrics){
        .api_requests        = n,
        .prompt_tokens       = prompt,
        .completion_tokens   = completion,
        .total_tokens        = prompt + completion,
        .spend               = (prompt + completion) * people[i].micros_per_1000 / 1000,
        .successful_requests = n - failed,
        .failed_requests     = failed,
    };
}

/* Print the sums by user, by model or by provider. */
static void
print_by(struct il__buf *out, const struct usage_metrics all[USERS], enum usage_by by)
{
    struct usage_part  items[USERS];
    struct usage_parts parts = { items, USERS };

    for (size_t i = 0; i < USERS; i++) {
        const char *const names[] = { people[i].user, people[i].model, people[i].provider };
        items[i]                  = (struct usage_part){ names[by], all[i] };
    }
    CHECK(usage_parts_fold(&parts));
    il__buf_addf(out, ",\"by_%s\":[", usage_by_names[by]);
    for (size_t i = 0; i < parts.n; i++) {
        il__buf_adds(out, i > 0 ? "," : "");
        il__wire_print(out, &usage_wire_part, &parts.items[i], 0);
    }
    il__buf_addc(out, ']');
}

/* False: it was stopped. */
static bool
work_for(const struct usage_source *s, const struct usage_fetch *f, int64_t ms)
{
    int64_t end_ns = il__clock_boot_ns() + ms * IL__NS_PER_MS;

    for (;;) {
        int64_t left_ms = (end_ns - il__clock_boot_ns() + IL__NS_PER_MS - 1) / IL__NS_PER_MS;
        if (usage_fetch_stopped(s, f))
            return false;
        if (left_ms <= 0)
            return true;
        (void)poll(NULL, 0, (int)MIN(left_ms, USAGE_STOP_MS));
    }
}

static il_status
fetch_generator(struct usage_source *s, const struct usage_fetch *f, struct il__buf *out,
                il_error *reterr)
{
    struct usage_metrics all[USERS], total = { 0 };
    uint64_t             n = atomic_fetch_add(&s->n_fetches, 1);

    if (!work_for(s, f, MIN(s->o.cost_ms, s->o.timeout_ms)))
        return il__error_set(reterr, IL_CANCELLED, "stopped");
    if (s->o.cost_ms > s->o.timeout_ms)
        return il__error_set(reterr, IL_TIMEOUT, "timed out");
    if ((int64_t)(il__hash_stable(f->date, strlen(f->date), n) % 100) < s->o.fail_percent)
        return il__error_set(reterr, IL_STATE, "simulated failure (usage.source.fail_percent)");
    for (size_t i = 0; i < USERS; i++) {
        all[i] = invent(f, i);
        CHECK(usage_metrics_add(&total, &all[i]));
    }
    il__buf_addf(out, "{\"date\":\"%s\",\"metrics\":", f->date);
    il__wire_print(out, &usage_wire_metrics, &total, 0);
    for (enum usage_by by = 0; by < USAGE_BY_COUNT; by++)
        print_by(out, all, by);
    il__buf_addc(out, '}');
    return IL_OK;
}
