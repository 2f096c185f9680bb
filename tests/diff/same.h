/*
 * same.h: compares the results of two engines. Fences, tokens and tickets are compared by first
 * appearance: the n-th one seen on one side corresponds to the n-th one on the other.
 */
#ifndef T_SAME_H
#define T_SAME_H

#include "diff/history.h"

#define N_SIDES 2
#define WHY_BYTES 2048
#define KNOWN_MAX 4096
#define DATES_MAX 64

struct known { /* a fence, a token or a ticket, as each side calls it, and what it belongs to */
    uint64_t        real[N_SIDES];
    enum il__family family;
    const char     *tenant;
    const char     *key;
    const char     *holder;
    const char     *id;
};

struct same {
    struct known fences[KNOWN_MAX];
    size_t       n_fences;
    struct known tickets[KNOWN_MAX];
    size_t       n_tickets;
    int64_t      dates[DATES_MAX]; /* when something is due, on the clock of the lease; a ring */
    size_t       n_dates;
    int64_t      now_ms; /* of the model, before an op is compared */
    int64_t      wall_ms;
    char        *why; /* the difference */
};

/* Compare what came of an op on either side, and learn the numbers in it. False: the difference is
 * in `why`. */
bool same_result(struct same *s, const il_op *a, const il_op *b);

/* The i-th newest fence or token of a family; NULL when there is none. Runs' fences are those of
 * locks, too. */
const struct known *same_known(const struct same *s, enum il__family family, unsigned i);

bool same_differ(struct same *s, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
