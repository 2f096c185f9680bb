/*
 * seen.h: remembers observed values, to check those that may only grow or never change.
 */
#ifndef T_SEEN_H
#define T_SEEN_H

#include "harness/check.h"

/* One thing: a run, a job, a queue, a key. What the numbers mean is up to its kind. */
struct t_seen {
    char     kind;
    char    *tenant;
    char    *name;
    uint64_t seq;    /* tells a thing from a later one of the same name */
    uint64_t newest; /* greatest fence or token */
    uint64_t sum;    /* of what must not change any more; 0 = nothing yet */
    int64_t  limits[2];
    int64_t *times; /* when something was done to it; the newest last */
    size_t   n_times;
};

struct t_seen_map {
    struct t_seen *items; /* open addressing */
    size_t         n;
    size_t         capacity;
};

void t_seen_release(struct t_seen_map *m);
/* The thing; a new one when it was never seen. Valid until the next call. */
struct t_seen *t_seen_find(struct t_seen_map *m, char kind, const char *tenant, const char *name);
void           t_seen_add_time(struct t_seen *s, int64_t time_ms);

/* Add to a sum, which starts at 1. */
uint64_t t_sum_number(uint64_t sum, uint64_t number);
uint64_t t_sum_text(uint64_t sum, const char *text);

#endif
