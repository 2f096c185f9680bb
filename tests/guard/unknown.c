/*
 * unknown.c: the connection to PostgreSQL is cut at each request and each answer of a transfer. A
 * transaction that did not reach its commit is tried again; a commit whose outcome is unknown is
 * reported as such, or, with an idempotency key, tried again without a second effect.
 */
#include <poll.h>
#include <stdio.h>

#include "guard/bank.h"
#include "harness/clock.h"
#include "harness/postgres.h"
#include "harness/proxy.h"

#define CUTS_MAX 100 /* more requests than a transfer has */

/* How the bank is reached, and what is lost on the way. */
struct way {
    struct t_ground  *g;
    struct t_proxy   *proxy;
    const char       *url;
    enum t_proxy_loss what;
    bool              once;  /* with an idempotency key */
    bool              first; /* on a new handle, before the table of idempotency keys exists */
};

struct counts {
    unsigned n_unknown, n_replayed;
};

/* A transfer that is another one each time, if it is called more than once: its ledger does not
 * keep it from being made twice. */
struct anew {
    struct bank_transfer t;
    char                 name[32];
    unsigned             n_calls;
};

static il_status
move_anew(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    struct anew *a = cookie;

    (void)snprintf(a->t.key, sizeof a->t.key, "%s#%u", a->name, a->n_calls++);
    return bank_move(&a->t, tx, reterr);
}

/* How often the transfer was made: its ledger rows, once no session of a cut connection is in the
 * middle of something. That balances follow the ledger is checked in the end. */
static int64_t
effects(const struct t_ground *g, const char *name)
{
    char    sql[512], out[4096];
    int64_t until_ms = t_real_ms() + G_LIMIT_MS;

    (void)snprintf(sql, sizeof sql,
                   "SELECT (SELECT count(*) FROM pg_locks l JOIN pg_stat_activity s USING (pid) "
                   "JOIN pg_class c ON c.oid = l.relation WHERE pid <> pg_backend_pid() AND "
                   "c.relnamespace = '%s'::regnamespace) || ' ' || (SELECT count(*) FROM ledger "
                   "WHERE key LIKE '%s#%%')",
                   g->schema, name);
    while (strncmp(t_ground_ask(g, sql, out), "0 ", 2) != 0) {
        T_TRUE(t_real_ms() < until_ms);
        (void)poll(NULL, 0, 5);
    }
    int64_t n_rows = strtoll(out + 2, NULL, 10);
    T_EQ(n_rows % 2, 0);
    return n_rows / 2;
}

static il_guard *
open_way(const struct way *w)
{
    il_guard *c = NULL;
    il_error  err;

    T_EQ(bank_open(w->url, w->g->schema, G_LIMIT_MS, 0, &c, &err), IL_OK);
    if (il_guard_connect(c, &err) != IL_OK)
        T_FAIL("%s", err.message);
    return c;
}

/* Lose the n-th one. True: there was one to lose. */
static bool
lose_one(const struct way *w, il_guard *c, unsigned n, struct counts *counts)
{
    struct anew      a        = { .t = { .from = 1, .to = 2, .amount = 1 } };
    il_guard_tx_opts o        = IL_GUARD_TX_OPTS_INIT;
    il_error         err      = { .message = "" };
    int              replayed = 0;

    (void)snprintf(a.name, sizeof a.name, "%d-%d-%d-%u", (int)w->what, (int)w->once, (int)w->first,
                   n);
    o.once_key = w->once ? a.name : NULL;
    t_proxy_lose(w->proxy, w->what, n);
    il_status st   = il_guard_transact(c, &o, move_anew, &a, &replayed, &err);
    bool      lost = t_proxy_lost(w->proxy);
    t_proxy_lose(w->proxy, w->what, 0);
    int64_t n_effects = effects(w->g, a.name);
    if (st != IL_OK && (w->once || !lost || st != IL_UNKNOWN))
        T_FAIL("%s: %s: %s", a.name, il_status_name(st), err.message);
    if (st == IL_OK)
        T_EQ(n_effects, 1);
    else /* a request did not arrive; an answer means that it did */
        T_EQ(n_effects, w->what == T_PROXY_ANSWER ? 1 : 0);
    counts->n_unknown += st == IL_UNKNOWN;
    counts->n_replayed += replayed != 0;
    return lost;
}

static void
lose_each(const struct way *w)
{
    il_guard     *c      = open_way(w);
    struct counts counts = { 0 };
    unsigned      n      = 0;
    bool          lost   = true;
    char          out[4096];

    while (lost) {
        T_TRUE(n++ < CUTS_MAX);
        if (w->first) {
            il_guard_close(c);
            (void)t_ground_ask(w->g, "DROP TABLE IF EXISTS interlock_done", out);
            c = open_way(w);
        }
        lost = lose_one(w, c, n, &counts);
    }
    il_guard_close(c);
    bank_check(w->g);
    /* the commit, and nothing else */
    T_EQ(counts.n_unknown, w->once ? 0 : 1);
    T_EQ(counts.n_replayed, w->once && w->what == T_PROXY_ANSWER ? 1 : 0);
    T_LESS(5, n);
}

/* A proxy in front of the server. */
static struct t_proxy *
proxy_before(const struct t_ground *g)
{
    const char *folder = strstr(g->server, "host=") + strlen("host=");
    char        target[T_PATH_BYTES];

    t_path(target, "%.*s/.s.PGSQL.5432", (int)strcspn(folder, "&"), folder);
    return t_proxy_new(target);
}

G_TEST(each_request_and_answer_is_lost)
{
    char            url[T_PATH_BYTES];
    struct t_proxy *proxy = proxy_before(g);

    t_path(url, "postgres://postgres@127.0.0.1:%u/postgres?sslmode=disable", t_proxy_port(proxy));
    bank_make(g);
    for (int i = 0; i < 4; i++)
        lose_each(&(struct way){ .g     = g,
                                 .proxy = proxy,
                                 .url   = url,
                                 .what  = i % 2 == 0 ? T_PROXY_REQUEST : T_PROXY_ANSWER,
                                 .once  = i >= 2 });
    t_proxy_free(proxy);
}

/* The first call with a key creates the table of keys. */
G_TEST(and_when_the_table_of_keys_is_created)
{
    char            url[T_PATH_BYTES];
    struct t_proxy *proxy = proxy_before(g);

    t_path(url, "postgres://postgres@127.0.0.1:%u/postgres?sslmode=disable", t_proxy_port(proxy));
    bank_make(g);
    for (int i = 0; i < 2; i++)
        lose_each(&(struct way){ .g     = g,
                                 .proxy = proxy,
                                 .url   = url,
                                 .what  = i == 0 ? T_PROXY_REQUEST : T_PROXY_ANSWER,
                                 .once  = true,
                                 .first = true });
    t_proxy_free(proxy);
}

/* PgBouncer loses its connection to the server, and says so in words of its own. */
G_TEST(behind_a_pooler_too)
{
    struct t_bouncer bouncer;
    char             server[T_PATH_BYTES];
    struct t_proxy  *proxy = proxy_before(g);

    t_path(server, "postgres://postgres@/postgres?host=127.0.0.1 port=%u", t_proxy_port(proxy));
    t_bouncer_start(&bouncer, server);
    bank_make(g);
    for (int i = 0; i < 2; i++)
        lose_each(&(struct way){
            .g = g, .proxy = proxy, .url = bouncer.url, .what = T_PROXY_ANSWER, .once = i == 1 });
    t_bouncer_release(&bouncer);
    t_proxy_free(proxy);
}

/* ---- a server that does not come back -------------------------------------------------------- */

/* The network is cut from the moment at which a commit's outcome is unknown. */
static void
cut_when_unknown(void *cookie, const il_guard_event *event)
{
    if (event->outcome == IL_GUARD_UNKNOWN)
        t_proxy_cut(cookie, true);
}

/* All attempts to find out fail; that the last one failed does not mean that the first did. */
G_TEST(an_outcome_stays_unknown)
{
    static const il_guard_rank ranks[] = { { "Account", 50 } };
    struct bank_transfer       t       = { .from = 1, .to = 2, .amount = 1, .key = "k" };
    il_guard_opts              o       = IL_GUARD_OPTS_INIT;
    il_guard_tx_opts           tx_opts = IL_GUARD_TX_OPTS_INIT;
    char                       url[T_PATH_BYTES];
    struct t_proxy            *proxy    = proxy_before(g);
    il_status                  st       = IL_OK;
    int                        replayed = 0;
    il_error                   err;

    bank_make(g);
    t_path(url, "postgres://postgres@127.0.0.1:%u/postgres?sslmode=disable", t_proxy_port(proxy));
    o.ranks              = ranks;
    o.n_ranks            = ARRAY_LEN(ranks);
    o.connect_timeout_ms = 300;
    o.search_path        = g->schema;
    o.observe            = cut_when_unknown;
    o.cookie             = proxy;
    tx_opts.tries_max    = 2;
    tx_opts.once_key     = t.key;
    for (unsigned n = 1; st == IL_OK; n++) {
        il_guard *c = NULL;
        T_TRUE(n < CUTS_MAX);
        (void)snprintf(t.key, sizeof t.key, "k%u", n);
        T_EQ(il_guard_open(url, &o, &c, &err), IL_OK);
        while (il_guard_connect(c, &err) != IL_OK)
            continue; /* on a busy machine 300 ms may be too short */
        t_proxy_lose(proxy, T_PROXY_ANSWER, n);
        st = il_guard_transact(c, &tx_opts, bank_move, &t, NULL, &err);
        il_guard_close(c);
    }
    if (st != IL_UNKNOWN)
        T_FAIL("%s: %s", t.key, err.message);
    t_proxy_cut(proxy, false);
    /* The caller asks again later, with the same key. */
    il_guard *c = NULL;
    T_EQ(bank_open(url, g->schema, G_LIMIT_MS, 0, &c, &err), IL_OK);
    T_EQ(il_guard_transact(c, &tx_opts, bank_move, &t, &replayed, &err), IL_OK);
    T_EQ(replayed, 1);
    T_EQ(bank_rows(g, t.key), 2);
    bank_check(g);
    il_guard_close(c);
    t_proxy_free(proxy);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        G_ROW(each_request_and_answer_is_lost),
        G_ROW(and_when_the_table_of_keys_is_created),
        G_ROW(behind_a_pooler_too),
        G_ROW(an_outcome_stays_unknown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
