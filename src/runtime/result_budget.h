/*
 * result_budget.h: limits the memory that results occupy: for all clients of a server, and for each
 * tenant. The maximum size of an op's results is reserved before the op is executed, and the unused
 * part is returned afterwards: so the limit holds whatever the ops return.
 */
#ifndef IL_RUNTIME_RESULT_BUDGET_H
#define IL_RUNTIME_RESULT_BUDGET_H

#include <stdatomic.h>

#include "base/base.h"

struct il__result_budget {
    struct il__result_budget *above; /* the budget this one is part of; NULL = none */
    size_t                    n_max;
    atomic_size_t             n_bytes;
};

/* Reserve bytes in the budget and its parents. False: one of them is used up; nothing was
 * reserved. */
bool il__result_budget_take(struct il__result_budget *budget, size_t n_bytes);
/* Change a reservation from n_taken to n_bytes, up or down. NULL is fine. */
void il__result_budget_change(struct il__result_budget *budget, size_t n_taken, size_t n_bytes);

#endif
