/*
 * transfer.c: eight processes move money between ten accounts at once: no update is lost, no money
 * appears or disappears, no balance is negative, and what was acknowledged is in the ledger.
 *
 * IL_TEST_TRANSFERS is the number of transfers of each process: 500, or 10,000 at night (`make
 * torture-guard`). IL_TEST_BOUNCER=1: the processes connect through PgBouncer.
 */
#include <inttypes.h>
#include <stdio.h>

#include "guard/bank.h"
#include "harness/postgres.h"
#include "harness/proc.h"
#include "harness/rng.h"

#define WORKERS 8
#define TRANSFERS 500
#define TRANSFER_MS_MAX 1000 /* a limit, not an expectation */

static void
run_all(const struct t_ground *g, uint32_t flags)
{
    struct t_proc *procs = calloc(WORKERS, sizeof *procs);
    uint64_t       n     = t_env_u64("IL_TEST_TRANSFERS", TRANSFERS);
    const char    *url   = getenv("IL_TEST_BOUNCER") != NULL ? t_bouncer_url()
                           : g->is_postgres                  ? g->server
                                                             : g->url;
    char           number[24], bits[24];

    T_TRUE(procs != NULL && getenv("GUARD_WORKER") != NULL);
    (void)snprintf(number, sizeof number, "%" PRIu64, n);
    (void)snprintf(bits, sizeof bits, "%u", (unsigned)flags);
    for (int i = 0; i < WORKERS; i++) {
        char name[16], log[T_PATH_BYTES];
        (void)snprintf(name, sizeof name, "w%d", i);
        t_path(log, "%s/%s", g->dir, name);
        t_proc_start(&procs[i],
                     (const char *const[]){ getenv("GUARD_WORKER"), "many", url,
                                            g->is_postgres ? g->schema : "-", bits, name, number,
                                            log, NULL },
                     NULL);
        T_LINE(&procs[i], "ready", G_LIMIT_MS, NULL);
    }
    for (int i = 0; i < WORKERS; i++)
        t_proc_say(&procs[i], "go");
    for (int i = 0; i < WORKERS; i++) {
        int status = t_proc_exit(&procs[i], (int64_t)n * WORKERS * TRANSFER_MS_MAX);
        if (status != 0)
            T_FAIL("worker %d: status %d: %s", i, status, procs[i].text);
        t_proc_release(&procs[i]);
    }
    free(procs);
}

/* ---- what was acknowledged ------------------------------------------------------------------- */

static void
copy_log(il_guard_tx *tx, char *text)
{
    for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end          = '\0';
        char    *rest = strchr(line, ' ');
        il_error err;
        int64_t  numbers[3];
        T_TRUE(rest != NULL);
        *rest++ = '\0';
        for (int i = 0; i < 3; i++)
            numbers[i] = strtoll(rest, &rest, 10);
        const il_guard_value values[] = { il_guard_text(line), il_guard_int(numbers[0]),
                                          il_guard_int(numbers[1]), il_guard_int(numbers[2]) };
        const il_guard_query q        = { .sql      = "INSERT INTO acked VALUES ($1, $2, $3, $4)",
                                          .values   = values,
                                          .n_values = ARRAY_LEN(values) };
        if (il_guard_exec(tx, &q, NULL, &err) != IL_OK)
            T_FAIL("%s", err.message);
    }
}

static void
check_acked(const struct t_ground *g)
{
    char      out[4096], log[T_PATH_BYTES];
    il_guard *c = t_ground_open(g, 0);
    il_error  err;

    (void)t_ground_ask(g, "CREATE TABLE acked (key TEXT, a BIGINT, b BIGINT, amount BIGINT)", out);
    il_guard_tx *tx = t_begin(c, NULL, false);
    for (int i = 0; i < WORKERS; i++) {
        t_path(log, "%s/w%d", g->dir, i);
        char *text = t_file_read(log, NULL);
        copy_log(tx, text);
        free(text);
    }
    T_EQ(il_guard_commit(tx, &err), IL_OK);
    il_guard_close(c);
    T_LESS(WORKERS, t_ground_count(g, "SELECT count(*) FROM acked"));
    T_EQ(t_ground_count(g, "SELECT count(*) FROM acked LEFT JOIN ledger l ON l.key = acked.key AND "
                           "l.account = a AND l.amount = -acked.amount WHERE l.key IS NULL"),
         0);
    T_EQ(t_ground_count(g, "SELECT count(*) FROM acked LEFT JOIN ledger l ON l.key = acked.key AND "
                           "l.account = b AND l.amount = acked.amount WHERE l.key IS NULL"),
         0);
    /* nor is there anything else */
    T_EQ(t_ground_count(g, "SELECT count(DISTINCT key) FROM ledger"),
         t_ground_count(g, "SELECT count(DISTINCT key) FROM acked"));
    print_message("# %" PRId64 " transfers acknowledged, %" PRId64 " of them different\n",
                  t_ground_count(g, "SELECT count(*) FROM acked"),
                  t_ground_count(g, "SELECT count(DISTINCT key) FROM acked"));
}

G_TEST(money_is_neither_made_nor_lost)
{
    bank_make(g);
    run_all(g, 0);
    bank_check(g);
    check_acked(g);
}

/* A file with a write-ahead log, whose checkpoints the processes take turns at. */
G_TEST(nor_in_a_file_of_our_own)
{
    if (g->is_postgres)
        return;
    bank_make(g);
    run_all(g, IL_GUARD_OWN_FILE);
    bank_check(g);
    check_acked(g);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        G_ROW(money_is_neither_made_nor_lost),
        G_ROW(nor_in_a_file_of_our_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
