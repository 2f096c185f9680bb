/*
 * result_budget.c: limits the memory of results; see result_budget.h.
 */
#include "runtime/result_budget.h"

bool
il__result_budget_take(struct il__result_budget *budget, size_t n_bytes)
{
    for (struct il__result_budget *p = budget; p != NULL; p = p->above) {
        /* Add first and check afterwards: of two threads that meet at the limit, neither can slip
         * past it. */
        if (atomic_fetch_add(&p->n_bytes, n_bytes) + n_bytes <= p->n_max)
            continue;
        for (struct il__result_budget *q = budget; q != p->above; q = q->above)
            atomic_fetch_sub(&q->n_bytes, n_bytes);
        return false;
    }
    return true;
}

void
il__result_budget_change(struct il__result_budget *budget, size_t n_taken, size_t n_bytes)
{
    if (n_taken == n_bytes)
        return;
    for (struct il__result_budget *p = budget; p != NULL; p = p->above) {
        /* In one step, modulo 2^64: other threads must not see it used up in between. */
        CHECK(atomic_fetch_add(&p->n_bytes, n_bytes - n_taken) >= n_taken);
    }
}
