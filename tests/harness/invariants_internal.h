/*
 * invariants_internal.h: shared by the files that check the invariants of one family each.
 */
#ifndef T_INVARIANTS_INTERNAL_H
#define T_INVARIANTS_INTERNAL_H

#include "harness/invariants.h"

/* Kinds of things in t_watch.seen. */
#define T_SEEN_RUN 'r'
#define T_SEEN_JOB 'j'
#define T_SEEN_QUEUE 'q'
#define T_SEEN_GROUP 'g'
#define T_SEEN_ONCE 'o'
#define T_SEEN_CACHE 'c'

/* An invariant is broken: the sentence goes to `why`; false. */
bool t_broken(char why[T_WHY_BYTES], const char *fmt, ...) PRINTF_LIKE(2, 3);

/* A page of a listing; false when that fails. */
bool t_watch_page(il *h, il_op *op, char why[T_WHY_BYTES]);

/* `leases` are those of the tenant at this moment. */
bool t_watch_runs(struct t_watch *w, il *h, const char *tenant, const il_op *leases,
                  char why[T_WHY_BYTES]);
bool t_watch_jobs(struct t_watch *w, il *h, const char *tenant, char why[T_WHY_BYTES]);

#endif
