/*
 * seed.h: a reproducible data set: users with credits and licenses, tournaments in several states,
 * sessions that overlap. All ids follow from their numbers, and each step is an operation with a
 * fixed id, so that seeding again changes nothing. A larger seed adds what is missing, except to
 * tournaments that somebody has moved meanwhile. Times are relative to the day of the call.
 */
#ifndef IL_APPS_CAMPUS_SEED_H
#define IL_APPS_CAMPUS_SEED_H

#include "apps/campus/campus.h"

#define CAMPUS_SEED_USERS_MIN 16
#define CAMPUS_SEED_SKILLS 29

struct campus_seed {
    uint64_t seed; /* of the random numbers */
    int64_t  n_users, n_tournaments, n_sessions;
    void (*progress)(void *cookie, uint64_t done, uint64_t total); /* may be NULL */
    void *cookie;
};
/* c->id and c->now_ms are ignored. */
il_status campus_seed(struct campus_call *c, const struct campus_seed *s, il_error *reterr)
    MUST_USE;

/* The ids: "seed-user-007". */
void campus_seed_id(char out[CAMPUS_ID_BYTES_MAX + 1], const char *what, int64_t i);
/* The next number of a sequence, below `below`. */
uint64_t campus_random(uint64_t *state, uint64_t below);

extern const char *const campus_seed_skills[CAMPUS_SEED_SKILLS];

#endif
