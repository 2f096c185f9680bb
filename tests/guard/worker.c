/*
 * worker.c: guard-worker: the processes of the guard kit's race and fault tests.
 *
 *   many URL PATH FLAGS NAME N LOG   N transfers; every fifth one is also made by all other
 *                                    workers; what was acknowledged goes to LOG
 *
 * PATH: the search_path, or "-". FLAGS: of il_guard_opts.
 */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "guard/bank.h"
#include "harness/rng.h"

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

int
main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    if (strcmp(what, "many") == 0 && argc == 8)
        return many((const char *const *)argv + 2);
    (void)fprintf(stderr, "usage: guard-worker many ARGUMENT...\n");
    return 64;
}
