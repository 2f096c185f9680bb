/*
 * guard.h: the baselines of the guard kit: its statements by hand, one thread. The step of each
 * locks a user's row, takes 1 from its balance, inserts a new row into the ledger in a savepoint,
 * and commits.
 */
#ifndef BENCH_GUARD_H
#define BENCH_GUARD_H

#include "load.h"
#include "servers.h"

#define GUARD_USERS 1024 /* rows; the keys of a caller */

/* A database with the tables. The caller calls the function with _close. */
struct guard_sqlite;
struct guard_sqlite *guard_sqlite_open(const char *path);
void                 guard_sqlite_close(struct guard_sqlite *g);
unsigned             guard_sqlite_step(void *cookie, struct caller *c);

struct guard_postgres;
struct guard_postgres *guard_postgres_open(struct bench *b, const char *database);
void                   guard_postgres_close(struct guard_postgres *g);
unsigned               guard_postgres_step(void *cookie, struct caller *c);

/* Create the tables in a SQLite file, in WAL mode. */
void guard_sqlite_make(const char *path);

#endif
