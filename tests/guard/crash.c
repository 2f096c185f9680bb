/*
 * crash.c: a process is killed at every statement of a transfer, and between all its calls. Nothing
 * half-done remains, the next transfer works, and repeating the one that was cut short with its
 * idempotency key makes it exactly once. IL_TEST_BOUNCER=1: the process connects through PgBouncer.
 */
#include <signal.h>
#include <stdio.h>

#include "guard/bank.h"
#include "harness/postgres.h"
#include "harness/proc.h"

#define POINTS_MAX 200 /* more than a transfer has */

static void
start(const struct t_ground *g, struct t_proc *p, const char *key, const char *once, unsigned n)
{
    const char *url = getenv("IL_TEST_BOUNCER") != NULL ? t_bouncer_url()
                      : g->is_postgres                  ? g->server
                                                        : g->url;
    char        number[16];

    T_TRUE(getenv("GUARD_WORKER") != NULL);
    (void)snprintf(number, sizeof number, "%u", n);
    t_proc_start(p,
                 (const char *const[]){ getenv("GUARD_WORKER"), "stop", url,
                                        g->is_postgres ? g->schema : "-", "0", key,
                                        once != NULL ? once : "-", number, NULL },
                 NULL);
}

static void
move(il_guard *c, const char *key, const char *once)
{
    struct bank_transfer t = { .from = 1, .to = 2, .amount = 1 };
    il_guard_tx_opts     o = IL_GUARD_TX_OPTS_INIT;
    il_error             err;

    (void)snprintf(t.key, sizeof t.key, "%s", key);
    o.once_key = once;
    if (il_guard_transact(c, &o, bank_move, &t, NULL, &err) != IL_OK)
        T_FAIL("%s: %s", key, err.message);
}

/* Kill one at its n-th point. False: it had fewer. */
static bool
kill_at(const struct t_ground *g, il_guard *c, unsigned n, bool with_key)
{
    struct t_proc *p = calloc(1, sizeof *p);
    char           line[T_PROC_LINE_BYTES], out[4096], key[2][64], once[32];

    T_TRUE(p != NULL);
    (void)snprintf(once, sizeof once, "%s%u", with_key ? "once" : "plain", n);
    for (int i = 0; i < 2; i++) /* the ledger would let both pass */
        (void)snprintf(key[i], sizeof key[i], "%s#%d", once, i);
    if (with_key)
        (void)t_ground_ask(g, "DROP TABLE IF EXISTS interlock_done", out);
    start(g, p, key[0], with_key ? once : NULL, n);
    T_LINE(p, "point", G_LIMIT_MS, line);
    bool stopped = strcmp(line, "point done") != 0;
    if (stopped) {
        T_TRUE(t_pid_in_state(p->pid, 'T', G_LIMIT_MS));
        t_proc_signal(p, SIGKILL);
        T_TRUE(t_proc_end(p, G_LIMIT_MS));
    } else {
        T_EQ(t_proc_exit(p, G_LIMIT_MS), 0);
        T_EQ(bank_rows(g, key[0]), 2);
    }
    t_proc_release(p);
    free(p);
    if (with_key) {
        move(c, key[1], once);
        T_EQ(bank_rows(g, key[0]) + bank_rows(g, key[1]), 2);
    } else {
        (void)snprintf(key[1], sizeof key[1], "next%u", n);
        move(c, key[1], NULL); /* on the same accounts: the dead one keeps no lock */
        T_EQ(bank_rows(g, key[1]), 2);
        T_TRUE(bank_rows(g, key[0]) == 0 || bank_rows(g, key[0]) == 2);
    }
    bank_check(g);
    return stopped;
}

static void
kill_at_each(const struct t_ground *g, bool with_key)
{
    unsigned n = 1;

    bank_make(g);
    for (bool stopped = true; stopped; n++) {
        /* A handle of its own, as it remembers that the table of keys exists. */
        il_guard *c = NULL;
        il_error  err;
        T_EQ(bank_open(g->url, NULL, G_LIMIT_MS, 0, &c, &err), IL_OK);
        T_TRUE(n < POINTS_MAX);
        stopped = kill_at(g, c, n, with_key);
        il_guard_close(c);
    }
    print_message("# killed at %u points\n", n - 2);
    T_LESS(15, n);
}

G_TEST(nothing_half_done_remains)
{
    kill_at_each(g, false);
}

G_TEST(with_a_key_it_is_done_once)
{
    kill_at_each(g, true);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        G_ROW(nothing_half_done_remains),
        G_ROW(with_a_key_it_is_done_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
