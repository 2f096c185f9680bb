/*
 * ledger.c: the ledgers of credits and XP; see ledger.h.
 */
#include "apps/campus/ledger.h"

#include <inttypes.h>

#include "base/error.h"

#include "apps/campus/campus_ledger_sql.inc"

static const struct {
    const char          *balance;
    struct app_statement add, after;
} ledgers[] = {
    [CAMPUS_CREDITS] = { "credit_balance", APP_STATEMENT(credit_add), APP_STATEMENT(credit_after) },
    [CAMPUS_XP]      = { "xp_balance", APP_STATEMENT(xp_add), APP_STATEMENT(xp_after) },
};

/* Insert the row of a payment, unless the ledger has its key. balance NULL: not known yet. */
static il_status
add_payment(struct campus_call *c, il_guard_tx *tx, const struct campus_payment *p,
            const int64_t *balance, bool *ret_new, il_error *reterr)
{
    int64_t n = 0;

    il_status st = campus_run(
        tx, &ledgers[p->ledger].add,
        APP_VALUES(il_guard_text(c->tenant), il_guard_text(p->key), il_guard_text(p->user),
                   il_guard_text(p->tournament), il_guard_int(p->amount), il_guard_text(p->type),
                   il_guard_int(c->now_ms),
                   balance != NULL ? il_guard_int(*balance) : il_guard_null()),
        &n, reterr);
    *ret_new = n > 0;
    return st;
}

#ifdef IL_MUTANT_campus_balance_overwritten
/* Seeded bug: read the balance, add here, write it. */
static il_status
overwrite(struct campus_call *c, il_guard_tx *tx, const struct campus_payment *p, int64_t *ret,
          il_error *reterr)
{
    static const struct app_statement set = APP_STATEMENT(balance_overwrite);
    struct campus_user                u   = { .credits = 0 };

    il_status st = campus_user_read(c, tx, p->user, &u, reterr);
    *ret         = u.credits + p->amount;
    if (st == IL_OK && *ret < 0)
        return IL_STATE;
    return st == IL_OK ? campus_run(tx, &set,
                                    APP_VALUES(il_guard_text(c->tenant), il_guard_text(p->user),
                                               il_guard_int(*ret)),
                                    NULL, reterr)
                       : st;
}
#endif

/*
 * The balance first, so that the row is complete at once: a statement less while the tournament is
 * locked. Race-free: both are one transaction, and what turns out to be charged before is given
 * back in it.
 */
static il_status
charge(struct campus_call *c, il_guard_tx *tx, const struct campus_payment *p, bool *ret_new,
       il_error *reterr)
{
    static const int64_t zero    = 0;
    const char          *column  = ledgers[p->ledger].balance;
    bool                 is_new  = false;
    int64_t              balance = 0;

#ifdef IL_MUTANT_campus_balance_overwritten
    il_status st = overwrite(c, tx, p, &balance, reterr);
#else
    il_status st =
        il_guard_add(tx, CAMPUS_USER(c, p->user), column, p->amount, &zero, &balance, reterr);
#endif
    if (st == IL_STATE)
        return campus_refuse(c, CAMPUS_E_INSUFFICIENT_CREDITS, reterr,
                             "user %s has %" PRId64 " credits but needs %" PRId64, p->user, balance,
                             -p->amount);
    if (st == IL_OK)
        st = add_payment(c, tx, p, &balance, &is_new, reterr);
    if (st == IL_OK && !is_new)
        st = il_guard_add(tx, CAMPUS_USER(c, p->user), column, -p->amount, NULL, NULL, reterr);
    *ret_new = st == IL_OK && is_new;
    return st;
}

/*
 * Race-free: of two transactions with the same key one inserts the row, and the other waits for its
 * commit and finds it. The balance changes in the database, by the same amount, only after that.
 */
il_status
campus_pay(struct campus_call *c, il_guard_tx *tx, const struct campus_payment *p, bool *ret_new,
           il_error *reterr)
{
    bool    is_new  = false;
    int64_t balance = 0;

    *ret_new = false;
    if (p->key == NULL)
        return campus_no_memory(reterr);
    if (p->amount < 0)
        return charge(c, tx, p, ret_new, reterr);
    il_status st = add_payment(c, tx, p, NULL, &is_new, reterr);
#ifdef IL_MUTANT_campus_paid_again
    is_new = true;
#endif
    if (st != IL_OK || !is_new)
        return st;
    st = il_guard_add(tx, CAMPUS_USER(c, p->user), ledgers[p->ledger].balance, p->amount, NULL,
                      &balance, reterr);
    if (st == IL_OK)
        st = campus_run(
            tx, &ledgers[p->ledger].after,
            APP_VALUES(il_guard_text(c->tenant), il_guard_text(p->key), il_guard_int(balance)),
            NULL, reterr);
    *ret_new = st == IL_OK;
    return st;
}
