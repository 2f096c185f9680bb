/*
 * history.h: a random history: ops, batches, clock steps, reopens and reboots, as data.
 *
 * A step holds choices, not results: which fence a release names is "the 7th newest known", so that a
 * history stays meaningful when steps are taken out of it to find the few that matter.
 */
#ifndef T_HISTORY_H
#define T_HISTORY_H

#include <stdio.h>

#include "harness/rng.h"
#include "harness/store.h"

enum step_kind {
    STEP_OP,
    STEP_SWEEP,  /* to the end: bounded sweeps until there is no more */
    STEP_LIST,   /* page by page */
    STEP_PASS,   /* time passes */
    STEP_WALL,   /* the wall clock is set */
    STEP_REOPEN, /* one handle of the engine under test */
    STEP_REBOOT, /* all of them, on another boot */
    STEP_KIND_COUNT
};

#define N_KEYS 8
#define N_HOLDERS 10
#define N_TENANTS 2

struct step {
    enum step_kind kind;
    bool           joins; /* STEP_OP: in one batch with the step before */
    bool           looks; /* check the invariants afterwards */
    il_op_type     type;
    unsigned       i_key;
    unsigned       i_holder;
    unsigned       i_tenant;
    unsigned       i_handle;
    unsigned       i_fence;   /* of what is known, 0 = the newest */
    bool           own_names; /* RENEW, RELEASE, …: key and holder are those of the fence */
    uint32_t       flags;
    uint32_t       limit;
    il_mode        mode;
    uint32_t       permits;
    int64_t        ttl_ms, wait_ms, settle_ms;
    int64_t        ms;
};

extern const char *const t_keys[N_KEYS];
extern const char *const t_holders[N_HOLDERS];
extern const char *const t_tenants[N_TENANTS];

/* Fill steps[n] from the seed. */
void history_make(uint64_t seed, struct step *steps, size_t n);
/* Does this seed declare ranks? */
bool history_ranked(uint64_t seed);
void step_print(FILE *out, size_t i, const struct step *st);

#endif
