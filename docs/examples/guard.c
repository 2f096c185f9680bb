/*
 * guard.c: money from one account to another, in one safe transaction.
 *
 * Both rows are locked in the order of their keys, the numbers change in the database, and nobody
 * can overdraw an account. The transaction has an idempotency key, so a repeated call does nothing,
 * and shows the fence of a lease, so a holder that has lost its lease cannot commit.
 */
#include <inttypes.h>
#include <stdio.h>

#include <interlock-guard.h>

static const il_guard_rank ranks[] = { { "account", 10 } };

struct transfer {
    int64_t from, to, amount;
    int64_t left; /* on the first account, afterwards */
};

static il_status
run(il_guard_tx *tx, const char *sql, il_error *err)
{
    il_guard_query query = { .sql = sql };

    return il_guard_exec(tx, &query, NULL, err);
}

static il_status
create(void *cookie, il_guard_tx *tx, il_error *err)
{
    (void)cookie;
    il_status st = run(tx,
                       "CREATE TABLE IF NOT EXISTS account (id integer PRIMARY KEY, balance bigint "
                       "NOT NULL CONSTRAINT account_not_negative CHECK (balance >= 0))",
                       err);
    if (st == IL_OK)
        st = run(tx, "INSERT INTO account VALUES (1, 100), (2, 0) ON CONFLICT DO NOTHING", err);
    return st;
}

static il_status
transfer(void *cookie, il_guard_tx *tx, il_error *err)
{
    struct transfer *t       = cookie;
    il_guard_value   both[]  = { il_guard_int(t->from), il_guard_int(t->to) };
    il_guard_column  payer   = { "id", il_guard_int(t->from) };
    il_guard_column  payee   = { "id", il_guard_int(t->to) };
    il_guard_target  all     = { "account", "account", NULL, 0, IL_GUARD_PLACE };
    il_guard_target  from    = { "account", "account", &payer, 1, IL_GUARD_PLACE };
    il_guard_target  to      = { "account", "account", &payee, 1, IL_GUARD_PLACE };
    int64_t          min     = 0;
    size_t           n_found = 0;

    il_status st = il_guard_lock_many(tx, &all, "id", both, 2, &n_found, err);
    if (st == IL_OK)
        st = il_guard_add(tx, &from, "balance", -t->amount, &min, &t->left, err);
    if (st == IL_OK)
        st = il_guard_add(tx, &to, "balance", t->amount, NULL, NULL, err);
    return st;
}

static int
transfer_twice(il_guard *bank, il *store, il_lease *lease, il_error *err)
{
    il_guard_fence   fence    = { store, NULL, "bank", il_lease_fence(lease) };
    il_guard_tx_opts opts     = IL_GUARD_TX_OPTS_INIT;
    struct transfer  t        = { 1, 2, 30, 0 };
    int              replayed = 0;

    opts.caller   = "transfer";
    opts.fences   = &fence;
    opts.n_fences = 1;
    opts.once_key = "transfer-1042";
    if (il_guard_transact(bank, &opts, transfer, &t, &replayed, err) != IL_OK)
        return 0;
    if (!replayed) /* else a former run of this program did it */
        printf("%" PRId64 " left\n", t.left);
    if (il_guard_transact(bank, &opts, transfer, &t, &replayed, err) != IL_OK)
        return 0;
    printf("the second call: %s\n", replayed ? "done before" : "done again");

    opts.once_key = NULL;
    t.amount      = 1000;
    il_status st  = il_guard_transact(bank, &opts, transfer, &t, NULL, err);
    printf("%s: %s\n", il_status_name(st), err->message);
    return replayed && st == IL_STATE;
}

int
main(int argc, char **argv)
{
    il           *store = NULL;
    il_guard     *bank  = NULL;
    il_lease     *lease = NULL;
    il_guard_opts opts  = IL_GUARD_OPTS_INIT;
    il_error      err   = { .status = IL_OK };

    opts.ranks   = ranks;
    opts.n_ranks = 1;
    opts.flags   = IL_GUARD_OWN_FILE;
    int ok       = il_open(argc > 1 ? argv[1] : "sqlite:locks.db", NULL, &store, &err) == IL_OK &&
             il_acquire(store, "bank", NULL, &lease, &err) == IL_OK &&
             il_guard_open(argc > 2 ? argv[2] : "sqlite:bank.db", &opts, &bank, &err) == IL_OK &&
             il_guard_transact(bank, NULL, create, NULL, NULL, &err) == IL_OK &&
             transfer_twice(bank, store, lease, &err);
    if (!ok)
        fprintf(stderr, "%s\n", err.message);
    il_guard_close(bank);
    if (lease != NULL && il_lease_release(lease, NULL) != IL_OK)
        ok = 0;
    il_lease_free(lease);
    il_close(store);
    return ok ? 0 : 1;
}
