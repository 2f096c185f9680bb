/*
 * fair.c: fair queueing between tenants; the algorithm is described in fair.h.
 */
#include "runtime/fair.h"

#include "base/hash.h"

unsigned
il__fair_share(const char *tenant)
{
    return (unsigned)(il__hash_bytes(tenant, strlen(tenant)) % IL__FAIR_SHARES);
}

void
il__fair_add(struct il__fair *f, struct il__heap_node *node, unsigned share, size_t cost)
{
    CHECK(share < IL__FAIR_SHARES && cost > 0);
#ifdef IL_MUTANT_tenants_queue_together
    share = 0;
#endif
    f->ahead[share] = MAX(f->ahead[share], f->now) + (int64_t)cost;
    node->at        = f->ahead[share];
    il__heap_add(&f->heap, node);
}

void
il__fair_take(struct il__fair *f)
{
    struct il__heap_node *first = f->heap.first;

    CHECK(first != NULL);
    f->now = MAX(f->now, first->at);
    il__heap_remove(&f->heap, first);
}
