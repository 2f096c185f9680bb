/*
 * guard.c: guarded transactions on users' tables, compared with the same statements by hand, on
 * SQLite and on PostgreSQL. Both sides use their tables for all rounds. bench/guard-cost counts the
 * instructions of guard_step().
 */
#include "guard.h"

#include <stdio.h>

#include "bench.h"
#include "interlock-guard.h"

#include "bench_sql.inc"

/* What an observer of a program would keep; also shows that events arrive. */
struct seen {
    uint64_t n_events;
    int64_t  wait_ns, hold_ns;
};

static void
observe(void *cookie, const il_guard_event *event)
{
    struct seen *s = cookie;

    s->n_events++;
    s->wait_ns += event->wait_ns;
    s->hold_ns += event->hold_ns;
}

static il_guard *
guard_open(const char *url, struct seen *seen)
{
    static const il_guard_rank ranks[] = { { "Tournament", 10 },
                                           { "User", 20 },
                                           { "Booking", 30 } };
    il_guard_opts              o       = IL_GUARD_OPTS_INIT;
    il_guard                  *g       = NULL;
    il_error                   err     = { 0 };

    o.ranks   = ranks;
    o.n_ranks = ARRAY_LEN(ranks);
    o.observe = observe;
    o.cookie  = seen;
    o.flags   = strncmp(url, "sqlite:", 7) == 0 ? IL_GUARD_OWN_FILE : 0;
    must(il_guard_open(url, &o, &g, &err), "il_guard_open", &err);
    return g;
}

/* One transaction; not inlined, so that callgrind can count its instructions alone. */
static __attribute__((noinline)) unsigned
guard_step(void *cookie, struct caller *c)
{
    static const int64_t     zero     = 0;
    static const char *const unique[] = { "key" };
    il_guard_tx_opts         o        = IL_GUARD_TX_OPTS_INIT;
    il_guard_column          key      = { "id", il_guard_int(c->names.i_key) };
    const il_guard_target    user     = { "User", "users", &key, 1, IL_GUARD_PLACE };
    const il_guard_column    row[]    = { { "user_id", il_guard_int(c->names.i_key) },
                                          { "amount", il_guard_int(1) },
                                          { "key", il_guard_text(c->names.holder) } };
    il_guard               **g        = cookie;
    il_guard_tx             *tx       = NULL;
    int                      inserted = 0;

    o.pipeline = "bench";
    o.caller   = "guard_step";
    must(il_guard_begin(*g, &o, &tx, &c->err), "il_guard_begin", &c->err);
    must(il_guard_lock(tx, &user, NULL, &c->err), "il_guard_lock", &c->err);
    must(il_guard_add(tx, &user, "balance", -1, &zero, NULL, &c->err), "il_guard_add", &c->err);
    must(il_guard_insert_or_get(tx, "ledger", row, ARRAY_LEN(row), unique, 1, &inserted, NULL,
                                &c->err),
         "il_guard_insert_or_get", &c->err);
    must(il_guard_commit(tx, &c->err), "il_guard_commit", &c->err);
    CHECK(inserted == 1);
    names_next(&c->names);
    return 1;
}

/* Both sides in turn; adds the result. */
static void
measure(struct bench *b, struct result *r, il_guard *g, const struct seen *seen,
        unsigned (*step)(void *cookie, struct caller *c), void *cookie)
{
    struct load ours = { .n_threads    = 1,
                         .n_keys       = GUARD_USERS,
                         .sample_every = 1,
                         .round_ns     = b->round_ns,
                         .step         = guard_step,
                         .cookie       = &g };
    struct load base = ours;

    base.step   = step;
    base.cookie = cookie;
    load_init(&ours);
    load_init(&base);
    compare(r, b->n_rounds, (struct side){ load_side, &ours }, (struct side){ load_side, &base });
    r->ours_latency     = load_latency(&ours);
    r->baseline_latency = load_latency(&base);
    if (seen->n_events < r->ours_latency.n)
        die("%s: %llu events of %zu transactions", r->name, (unsigned long long)seen->n_events,
            r->ours_latency.n);
    load_release(&ours);
    load_release(&base);
    il_guard_close(g);
    report_add(&b->report, r);
}

static void
sqlite_row(struct bench *b)
{
    struct result r    = { .name         = "guard-sqlite",
                           .what         = "guarded transaction: lock, add, insert or get",
                           .against      = "the same statements by hand, prepared",
                           .durability   = BENCH_FULL,
                           .unit         = UNIT_OPS_PER_S,
                           .wanted       = WANTED_RATIO_AT_LEAST,
                           .wanted_value = 0.80 };
    struct seen   seen = { 0 };
    char          path[BENCH_PATH_BYTES], raw_path[BENCH_PATH_BYTES];
    char          url[BENCH_PATH_BYTES + 16];

    (void)temp_path(b, "guard.db", path);
    (void)temp_path(b, "guard-raw.db", raw_path);
    (void)snprintf(url, sizeof url, "sqlite:%s", path);
    guard_sqlite_make(path);
    struct guard_sqlite *raw = guard_sqlite_open(raw_path);
    measure(b, &r, guard_open(url, &seen), &seen, guard_sqlite_step, raw);
    guard_sqlite_close(raw);
    temp_remove_database(path);
    temp_remove_database(raw_path);
}

static void
postgres_row(struct bench *b)
{
    struct result r    = { .name         = "guard-postgres",
                           .what         = "guarded transaction: lock, add, insert or get",
                           .against      = "the same statements by hand, libpq, same round trips",
                           .durability   = BENCH_POSTGRES,
                           .unit         = UNIT_OPS_PER_S,
                           .wanted       = WANTED_RATIO_AT_LEAST,
                           .wanted_value = 0.80 };
    struct seen   seen = { 0 };
    const char   *why;
    char          url[BENCH_URL_BYTES];

    if (!postgres_ready(b, &why)) {
        report_leave_out(&b->report, r.name, why);
        return;
    }
    struct database ours = postgres_database(b, 0), peer = postgres_database(b, 1);
    (void)snprintf(url, sizeof url, "postgres://postgres@/%s?host=%s", ours.name, postgres_dir(b));
    PGconn *c = postgres_connect(b, ours.name);
    postgres_exec(c, sql_guard_make_postgres);
    PQfinish(c);
    struct guard_postgres *raw = guard_postgres_open(b, peer.name);
    measure(b, &r, guard_open(url, &seen), &seen, guard_postgres_step, raw);
    guard_postgres_close(raw);
    postgres_drop(b, &ours);
    postgres_drop(b, &peer);
}

void
bench_guard(struct bench *b, unsigned is_postgres)
{
    if (is_postgres != 0)
        postgres_row(b);
    else
        sqlite_row(b);
}
