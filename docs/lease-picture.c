/*
 * lease-picture.c: prints the life of a lease, from src/core/lease_edges.def, as a
 * Mermaid picture and a table. docs/check-picture compares that with the page
 * docs/contributing/ARCHITECTURE.md.
 */
#include <ctype.h>
#include <stdio.h>

#include "core/lease.h"

static const struct {
    il_lease_state from;
    const char    *event;
    il_lease_state to;
    const char    *why;
} edges[] = {
#define X(from, event, to, why) { IL_LEASE_##from, #event, IL_LEASE_##to, why },
#include "core/lease_edges.def"
#undef X
};

/* An event: in lower case. */
static const char *
lower(const char *name)
{
    static char out[16];
    size_t      i = 0;

    for (; name[i] != '\0' && i + 1 < sizeof out; i++)
        out[i] = (char)tolower((unsigned char)name[i]);
    out[i] = '\0';
    return out;
}

/* A state as Mermaid wants it: what has not begun is a dot. */
static const char *
node(il_lease_state state)
{
    return state == IL_LEASE_NONE ? "[*]" : il_lease_state_name(state);
}

int
main(void)
{
    (void)puts("```mermaid\nstateDiagram-v2");
    for (size_t i = 0; i < ARRAY_LEN(edges); i++)
        (void)printf("    %s --> %s: %s\n", node(edges[i].from), node(edges[i].to),
                     lower(edges[i].event));
    for (unsigned state = 0; state < IL_LEASE_STATE_COUNT; state++) {
        if (il__lease_ended((il_lease_state)state))
            (void)printf("    %s --> [*]\n", il_lease_state_name((il_lease_state)state));
    }
    (void)puts("```\n\n| from | event | to | because |\n|---|---|---|---|");
    for (size_t i = 0; i < ARRAY_LEN(edges); i++)
        (void)printf("| %s | %s | %s | %s |\n", il_lease_state_name(edges[i].from),
                     lower(edges[i].event), il_lease_state_name(edges[i].to), edges[i].why);
    return fflush(stdout) == 0 ? 0 : 1;
}
