/*
 * history.h: a random history: ops of every family, batches, clock steps, reopens and reboots, as
 * data.
 *
 * A step contains choices, not results: the fence of a release is "the 7th newest known", so that a
 * history stays meaningful when steps are removed to find the relevant ones.
 */
#ifndef T_HISTORY_H
#define T_HISTORY_H

#include <stdio.h>

#include "core/op.h"
#include "harness/rng.h"
#include "harness/store.h"

enum step_kind {
    STEP_OP,
    STEP_SWEEP,  /* to the end: bounded sweeps until there is no more */
    STEP_LIST,   /* page by page */
    STEP_PASS,   /* time passes */
    STEP_UNTIL,  /* time passes until something that was promised is due, or nearly */
    STEP_WALL,   /* the wall clock is set */
    STEP_REOPEN, /* one handle of the engine under test */
    STEP_REBOOT, /* all of them, on another boot */
    STEP_KIND_COUNT
};

#define N_FAMILIES (IL__FAMILY_CACHE + 1)
#define N_KEYS 24
#define N_KEYS_FEW 8
#define N_HOLDERS 54
#define N_HOLDERS_MANY 22
#define N_HOLDERS_FEW 10
#define N_TENANTS 2
#define N_QUEUES 3

struct step {
    enum step_kind kind;
    bool           joins;       /* STEP_OP: in one batch with the step before */
    bool           looks;       /* check the invariants afterwards */
    bool           own_names;   /* the op names what its fence or token belongs to */
    bool           takes_fence; /* the op's fence or token is one that is known */
    unsigned       i_known; /* which one of its family, 0 = the newest; STEP_UNTIL: which date */
    unsigned       i_handle;
    il_op          op; /* STEP_OP, STEP_LIST: the inputs; their strings are constants */
    uint32_t       limit;
    bool           partly; /* one pass of the sweep only, though there is more */
    int64_t        ms;
};

/* What makes one history different from the next. */
struct taste {
    unsigned weights[N_FAMILIES]; /* how often which family is chosen */
    unsigned n_keys;
    unsigned n_holders;
    unsigned n_tenants;
    unsigned mode_mix;  /* 0 = exclusive only, 1 = all, 2 = mostly permits */
    unsigned wait_mix;  /* in 10: how many acquires wait */
    unsigned batch_mix; /* in 10: how many ops join a batch */
    bool     settles;
    bool     deep;    /* long queues of few keys: many holders, who wait, and little time */
    int64_t  rate_ms; /* of queues with a rate */
};

extern const char *const t_keys[N_KEYS];
extern const char *const t_holders[N_HOLDERS];
extern const char *const t_tenants[N_TENANTS];
extern const char *const t_queues[N_QUEUES];

/* A string that lives as long as the program; equal strings are one. */
const char *t_name(const char *text);
/* The name of the i-th run, job, …: a letter and a number. */
const char *t_id(char letter, unsigned i);
/* The number of a thing near the i-th step, of which one in `every` makes a new one. */
unsigned t_near(struct t_rng *r, size_t i_step, unsigned every);

#define PICK(r, array) ((array)[t_rng_below((r), ARRAY_LEN(array))])

/* Choose an op (or, for listings, which one) of a family; names that are the same in every family,
 * key, holder and tenant, are chosen already. */
void history_lock(struct t_rng *r, const struct taste *t, size_t i_step, struct step *st);
void history_run(struct t_rng *r, const struct taste *t, size_t i_step, struct step *st);
void history_once(struct t_rng *r, const struct taste *t, size_t i_step, struct step *st);
void history_job(struct t_rng *r, const struct taste *t, size_t i_step, struct step *st);
void history_cache(struct t_rng *r, const struct taste *t, size_t i_step, struct step *st);

/* Bytes of one kind or another: payloads, results, responses, values, output. */
struct blob {
    const void *data;
    size_t      n_bytes;
};
struct blob history_blob(struct t_rng *r);

/* Fill steps[n] from the seed. */
void history_make(uint64_t seed, struct step *steps, size_t n);
/* Does this seed declare ranks? */
bool history_ranked(uint64_t seed);

/* One line: the inputs of an op, the fields that are not zero. */
void step_print(FILE *out, size_t i, const struct step *st);
void step_print_in(FILE *out, const il_op *op);

#endif
