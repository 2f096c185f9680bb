/*
 * lease-picture.c: prints the life of a lease, from the edge table of src/core/lease.c, as a
 * Mermaid picture and a table. docs/check-picture compares that with the page
 * docs/contributing/ARCHITECTURE.md.
 */
#include <stdio.h>

#include "core/lease.h"

/* A state as Mermaid wants it: what has not begun is a dot. */
static const char *
node(il_lease_state state)
{
    return state == IL_LEASE_NONE ? "[*]" : il_lease_state_name(state);
}

int
main(void)
{
    size_t                       n;
    const struct il__lease_edge *edges = il__lease_edges(&n);

    (void)puts("```mermaid\nstateDiagram-v2");
    for (size_t i = 0; i < n; i++)
        (void)printf("    %s --> %s: %s\n", node(edges[i].from), node(edges[i].to),
                     il__lease_event_name(edges[i].event));
    for (unsigned state = 0; state < IL_LEASE_STATE_COUNT; state++) {
        if (il__lease_ended((il_lease_state)state))
            (void)printf("    %s --> [*]\n", il_lease_state_name((il_lease_state)state));
    }
    (void)puts("```\n\n| from | event | to | because |\n|---|---|---|---|");
    for (size_t i = 0; i < n; i++)
        (void)printf("| %s | %s | %s | %s |\n", il_lease_state_name(edges[i].from),
                     il__lease_event_name(edges[i].event), il_lease_state_name(edges[i].to),
                     edges[i].why);
    return fflush(stdout) == 0 ? 0 : 1;
}
