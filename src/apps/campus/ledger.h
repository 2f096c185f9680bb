/*
 * ledger.h: the ledgers of credits and XP, and the balances that follow from them.
 */
#ifndef IL_APPS_CAMPUS_LEDGER_H
#define IL_APPS_CAMPUS_LEDGER_H

#include "apps/campus/campus_tx.h"

enum campus_ledger {
    CAMPUS_CREDITS,
    CAMPUS_XP
};
struct campus_payment {
    enum campus_ledger ledger;
    const char        *user;
    int64_t            amount; /* may be negative */
    const char        *type;
    const char        *key;        /* idempotency key */
    const char        *tournament; /* may be NULL */
};
/*
 * Write a row of the ledger and change the balance by it; if the balance grows, the row first. If
 * the ledger has the key already, nothing changes and *ret_new is false. Locks the user's row (rank
 * 50). Refused with INSUFFICIENT_CREDITS if the balance would become negative.
 */
il_status campus_pay(struct campus_call *c, il_guard_tx *tx, const struct campus_payment *p,
                     bool *ret_new, il_error *reterr) MUST_USE;

#endif
