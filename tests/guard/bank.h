/*
 * bank.h: ten accounts and a ledger, which the guard kit's race and fault tests move money between.
 *
 * A transfer writes two rows of the ledger, one for each account, and changes both balances. The
 * key of a transfer is unique in the ledger for each account: a transfer that is repeated finds its
 * rows and changes nothing.
 */
#ifndef T_BANK_H
#define T_BANK_H

#include "guard/ground.h"

#define BANK_ACCOUNTS 10
#define BANK_START 1000 /* the balance of each account in the beginning */

struct bank_transfer {
    char    key[64];
    int64_t from, to, amount;
    /* Called after each call on the transaction; may be NULL. */
    void (*step)(void *cookie);
    void *cookie;
};

/* Create the tables. */
void bank_make(const struct t_ground *g);
/* The sum of all balances is what it was, each balance is that of its ledger rows and not negative,
 * and each transfer has both its rows. */
void bank_check(const struct t_ground *g);
/* Rows of the ledger with this key: 0 or 2. */
int64_t bank_rows(const struct t_ground *g, const char *key);

/* A handle with the classes of the bank; search_path may be NULL. */
il_status bank_open(const char *url, const char *search_path, int64_t lock_timeout_ms,
                    uint32_t flags, il_guard **ret, il_error *reterr);
/* An il_guard_fn; cookie: struct bank_transfer. IL_STATE: the account has too little. */
il_status bank_move(void *cookie, il_guard_tx *tx, il_error *reterr);

#endif
