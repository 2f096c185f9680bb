/*
 * bank.c: accounts and a ledger for tests; see bank.h.
 */
#include "guard/bank.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const make[] = {
    "CREATE TABLE account (id INTEGER PRIMARY KEY, balance BIGINT NOT NULL CHECK (balance >= 0))",
    /* without a foreign key's lock on the account nothing would show that ours lets it pass */
    "CREATE TABLE ledger (key TEXT NOT NULL, account INTEGER NOT NULL REFERENCES account (id),"
    " amount BIGINT NOT NULL, PRIMARY KEY (key, account))",
};

void
bank_make(const struct t_ground *g)
{
    char out[4096], sql[256];

    /* Nobody reads what the harness's own server logs, and a full pipe would stop it. */
    if (g->is_postgres && getenv("IL_TEST_POSTGRES") == NULL)
        (void)t_ground_ask(g, "ALTER ROLE postgres SET log_min_messages = 'panic'", out);
    for (size_t i = 0; i < ARRAY_LEN(make); i++)
        (void)t_ground_ask(g, make[i], out);
    for (int i = 1; i <= BANK_ACCOUNTS; i++) {
        (void)snprintf(sql, sizeof sql, "INSERT INTO account VALUES (%d, %d)", i, BANK_START);
        (void)t_ground_ask(g, sql, out);
    }
}

void
bank_check(const struct t_ground *g)
{
    char sql[512];

    T_EQ(t_ground_count(g, "SELECT sum(balance) FROM account"), BANK_ACCOUNTS * BANK_START);
    T_EQ(t_ground_count(g, "SELECT count(*) FROM account WHERE balance < 0"), 0);
    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*) FROM account a WHERE balance <> %d + (SELECT "
                   "coalesce(sum(amount), 0) FROM ledger l WHERE l.account = a.id)",
                   BANK_START);
    T_EQ(t_ground_count(g, sql), 0);
    T_EQ(t_ground_count(g, "SELECT count(*) FROM (SELECT key FROM ledger GROUP BY key HAVING "
                           "count(*) <> 2 OR sum(amount) <> 0) bad"),
         0);
}

int64_t
bank_rows(const struct t_ground *g, const char *key)
{
    char sql[256];

    (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM ledger WHERE key = '%s'", key);
    return t_ground_count(g, sql);
}

il_status
bank_open(const char *url, const char *search_path, int64_t lock_timeout_ms, uint32_t flags,
          il_guard **ret, il_error *reterr)
{
    static const il_guard_rank ranks[] = { { "Account", 50 } };
    il_guard_opts              o       = IL_GUARD_OPTS_INIT;

    o.ranks           = ranks;
    o.n_ranks         = ARRAY_LEN(ranks);
    o.lock_timeout_ms = lock_timeout_ms;
    o.flags           = flags;
    o.search_path     = search_path;
    return il_guard_open(url, &o, ret, reterr);
}

static void
step(const struct bank_transfer *t)
{
    if (t->step != NULL)
        t->step(t->cookie);
}

/* One row of the ledger; *ret_new: it was not there. */
static il_status
note(il_guard_tx *tx, const struct bank_transfer *t, int64_t account, int64_t amount, int *ret_new,
     il_error *reterr)
{
    static const char *const unique[] = { "key", "account" };
    const il_guard_column    row[]    = { { "key", il_guard_text(t->key) },
                                          { "account", il_guard_int(account) },
                                          { "amount", il_guard_int(amount) } };

    il_status st = il_guard_insert_or_get(tx, "ledger", row, ARRAY_LEN(row), unique,
                                          ARRAY_LEN(unique), ret_new, NULL, reterr);
    step(t);
    return st;
}

static il_status
add(il_guard_tx *tx, const struct bank_transfer *t, int64_t account, int64_t amount,
    il_error *reterr)
{
    static const int64_t  zero = 0;
    const il_guard_column key  = { "id", il_guard_int(account) };
    const il_guard_target row  = { "Account", "account", &key, 1, IL_GUARD_PLACE };

    il_status st =
        il_guard_add(tx, &row, "balance", amount, amount < 0 ? &zero : NULL, NULL, reterr);
    step(t);
    return st;
}

il_status
bank_move(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    const struct bank_transfer *t      = cookie;
    const il_guard_value        ids[]  = { il_guard_int(t->from), il_guard_int(t->to) };
    const il_guard_target       both   = { "Account", "account", NULL, 0, IL_GUARD_PLACE };
    size_t                      n      = 0;
    int                         is_new = 0;

    step(t);
    il_status st = il_guard_lock_many(tx, &both, "id", ids, ARRAY_LEN(ids), &n, reterr);
    step(t);
    if (st == IL_OK && n != ARRAY_LEN(ids))
        return IL_NOT_FOUND;
    if (st == IL_OK)
        st = note(tx, t, t->from, -t->amount, &is_new, reterr);
    if (st != IL_OK || !is_new)
        return st;
    st = note(tx, t, t->to, t->amount, &is_new, reterr);
    if (st == IL_OK)
        st = add(tx, t, t->from, -t->amount, reterr);
    if (st == IL_OK)
        st = add(tx, t, t->to, t->amount, reterr);
    return st;
}
