/*
 * worker.c: guard-worker: the processes of the guard kit's race and fault tests.
 *
 *   many URL PATH FLAGS NAME N LOG   N transfers; every fifth one is also made by all other
 *                                    workers; what was acknowledged goes to LOG
 *   stop URL PATH FLAGS KEY ONCE N   one transfer; the process stops itself at its N-th point
 *
 * A point is a statement that was sent to the server, the begin and the end of a statement in
 * SQLite, or a call on the transaction that has returned. ONCE: the idempotency key, or "-".
 * PATH: the search_path, or "-". FLAGS: of il_guard_opts.
 */
#include <inttypes.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

#include "guard/bank.h"
#include "harness/rng.h"
#include "store/postgres/libpq.h"

#define SHARED_EVERY 5
#define LOCK_TIMEOUT_MS 60000 /* a busy machine is no reason to fail */

static _Noreturn void
die(const char *what, const il_error *err)
{
    (void)fprintf(stderr, "guard-worker: %s: %s: %s\n", what, il_status_name(err->status),
                  err->message);
    exit(99);
}

static il_guard *
open_bank(const char *url, const char *path, const char *flags)
{
    il_guard *g   = NULL;
    il_error  err = { .message = "" };

    if (bank_open(url, strcmp(path, "-") != 0 ? path : NULL, LOCK_TIMEOUT_MS,
                  (uint32_t)strtoul(flags, NULL, 10), &g, &err) != IL_OK)
        die(url, &err);
    return g;
}

/* ---- many transfers -------------------------------------------------------------------------- */

/* What a key stands for depends on the key alone: others who use it mean the same transfer. */
static void
plan(struct bank_transfer *t, const char *name, unsigned n)
{
    struct t_rng rng;
    uint64_t     seed = 0;
    bool         all  = n % SHARED_EVERY == 0;

    (void)snprintf(t->key, sizeof t->key, "%s:%u", all ? "all" : name, n);
    for (const char *p = t->key; *p != '\0'; p++)
        seed = seed * 131 + (unsigned char)*p;
    t_rng_init(&rng, seed);
    t->from   = 1 + t_rng_below(&rng, BANK_ACCOUNTS);
    t->to     = 1 + (t->from + t_rng_below(&rng, BANK_ACCOUNTS - 1)) % BANK_ACCOUNTS;
    t->amount = 1 + t_rng_below(&rng, BANK_START / 2);
}

static int
many(const char *const *argv)
{
    il_guard        *g    = open_bank(argv[0], argv[1], argv[2]);
    const char      *name = argv[3];
    unsigned         n    = (unsigned)strtoul(argv[4], NULL, 10);
    FILE            *log  = fopen(argv[5], "we");
    il_guard_tx_opts o    = IL_GUARD_TX_OPTS_INIT;
    il_error         err  = { .message = "" };
    unsigned         n_ok = 0;

    o.pipeline  = "transfer";
    o.caller    = name;
    o.tries_max = IL_GUARD_TRIES_MAX;
    if (log == NULL || il_guard_connect(g, &err) != IL_OK)
        die("cannot begin", &err);
    (void)printf("ready\n");
    (void)fflush(stdout);
    if (getchar() == EOF)
        return 96; /* the test is gone */
    for (unsigned i = 1; i <= n; i++) {
        struct bank_transfer t = { .step = NULL };
        plan(&t, name, i);
        il_status st = il_guard_transact(g, &o, bank_move, &t, NULL, &err);
        if (st != IL_OK && st != IL_STATE)
            die(t.key, &err);
        if (st == IL_OK)
            (void)fprintf(log, "%s %" PRId64 " %" PRId64 " %" PRId64 "\n", t.key, t.from, t.to,
                          t.amount);
        n_ok += st == IL_OK;
    }
    il_guard_close(g);
    if (fclose(log) != 0)
        return 95;
    (void)printf("done %u\n", n_ok);
    return 0;
}

/* ---- a process that stops -------------------------------------------------------------------- */

static unsigned n_points, stop_at;

static void
point(const char *what)
{
    if (++n_points != stop_at)
        return;
    (void)printf("point %u: %.60s\n", n_points, what);
    (void)fflush(stdout);
    (void)raise(SIGSTOP);
}

static void
after_call(void *cookie UNUSED)
{
    point("a call has returned");
}

static const struct pg_libpq *real;
static struct pg_libpq        ours;

static int
send_query(PGconn *pq, const char *sql)
{
    int ok = real->PQsendQuery(pq, sql);

    point(sql);
    return ok;
}

static int
send_params(PGconn *pq, const char *sql, int n, const Oid *types, const char *const *values,
            const int *lengths, const int *formats, int format)
{
    int ok = real->PQsendQueryParams(pq, sql, n, types, values, lengths, formats, format);

    point(sql);
    return ok;
}

static int
send_pipeline(PGconn *pq)
{
    int ok = real->PQpipelineSync(pq);

    point("a pipeline");
    return ok;
}

static void
watch_postgres(void)
{
    il_error err;

    if (il__pg_libpq_load(&err) != IL_OK)
        die("libpq", &err);
    real                   = il__pq;
    ours                   = *real;
    ours.PQsendQuery       = send_query;
    ours.PQsendQueryParams = send_params;
    ours.PQpipelineSync    = send_pipeline;
    il__pq                 = &ours;
}

static int
trace(unsigned what, void *cookie UNUSED, void *stmt, void *more UNUSED)
{
    const char *sql = sqlite3_sql(stmt);

    (void)what; /* its begin or its end */
    point(sql != NULL ? sql : "a statement");
    return 0;
}

static int
watch_connection(sqlite3 *db, char **why UNUSED, const struct sqlite3_api_routines *api UNUSED)
{
    return sqlite3_trace_v2(db, SQLITE_TRACE_STMT | SQLITE_TRACE_PROFILE, trace, NULL);
}

static int
stop(const char *const *argv)
{
    struct bank_transfer t   = { .from = 1, .to = 2, .amount = 1, .step = after_call };
    il_guard_tx_opts     o   = IL_GUARD_TX_OPTS_INIT;
    il_error             err = { .message = "" };

    (void)snprintf(t.key, sizeof t.key, "%s", argv[3]);
    o.once_key = strcmp(argv[4], "-") != 0 ? argv[4] : NULL;
    stop_at    = (unsigned)strtoul(argv[5], NULL, 10);
    if (strncmp(argv[0], "sqlite:", 7) == 0)
        (void)sqlite3_auto_extension((void (*)(void))watch_connection);
    else
        watch_postgres();
    il_guard *g = open_bank(argv[0], argv[1], argv[2]);
    if (il_guard_transact(g, &o, bank_move, &t, NULL, &err) != IL_OK)
        die(t.key, &err);
    il_guard_close(g);
    (void)printf("point done\n");
    return 0;
}

int
main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    if (strcmp(what, "many") == 0 && argc == 8)
        return many((const char *const *)argv + 2);
    if (strcmp(what, "stop") == 0 && argc == 8)
        return stop((const char *const *)argv + 2);
    (void)fprintf(stderr, "usage: guard-worker many|stop ARGUMENT...\n");
    return 64;
}
