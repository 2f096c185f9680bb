/*
 * fault_store.h: a wrapper around a store, which it then owns, whose n-th call fails.
 */
#ifndef T_FAULT_STORE_H
#define T_FAULT_STORE_H

#include "store/store.h"

enum t_fault_kind {
    T_FAULT_BEFORE, /* the call fails and nothing happened */
    T_FAULT_AFTER,  /* it happened, but the caller is told that it failed */
};
/* Fail the n-th call (counted from 1; 0 = none) of apply or read with IL_STORE. */
il_status t_fault_wrap(struct il__store *inner, unsigned n, enum t_fault_kind kind,
                       struct il__store **ret, il_error *reterr) MUST_USE;
/* Has the fault been injected? `s` is a fault store. */
bool t_fault_fired(struct il__store *s);

#endif
