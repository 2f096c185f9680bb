/*
 * campus.h: the baselines of the campus: an enrollment by hand, with the same writes as ours.
 */
#ifndef BENCH_CAMPUS_H
#define BENCH_CAMPUS_H

#include "servers.h"

/* Where one side has its tables. */
struct campus_site {
    struct bench   *b;
    bool            is_postgres;
    char            store_path[BENCH_PATH_BYTES]; /* of SQLite */
    char            path[BENCH_PATH_BYTES];       /* of SQLite: the tables */
    struct database database;                     /* of PostgreSQL */
    char            store_url[BENCH_URL_BYTES], data_url[BENCH_URL_BYTES];
};

/* A connection that enrolls by hand. Close it with campus_hand_close(). */
struct campus_hand;
struct campus_hand *campus_hand_open(const struct campus_site *s);
void                campus_hand_close(struct campus_hand *h);
void                campus_hand_enroll(struct campus_hand *h, const char *user, const char *id);
/* Users u000000 to u099999 and the tournament t, which is open. */
#define CAMPUS_USERS 100000
void campus_hand_fill(const struct campus_site *s);

#endif
