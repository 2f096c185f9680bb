/*
 * servers.h: the servers of a run: PostgreSQL, and Redis with and without persistence. Each is
 * started on first use in the temporary folder, and stopped with the run.
 */
#ifndef BENCH_SERVERS_H
#define BENCH_SERVERS_H

#include <hiredis/hiredis.h>
#include <libpq-fe.h>

#include "process.h"

/* Durability of the measured work. */
#define BENCH_POSTGRES "PostgreSQL fsync=on synchronous_commit=on"
#define BENCH_REDIS "none (Redis without persistence)"
#define BENCH_REDIS_AOF "Redis appendonly=yes appendfsync=always"

#define BENCH_URL_BYTES (BENCH_PATH_BYTES + 128)

/* Start PostgreSQL if installed. False: *why has the reason. */
bool postgres_ready(struct bench *b, const char **why);
/* Its folder, to be used as PGHOST; the user is postgres, without a password. */
const char *postgres_dir(const struct bench *b);
/* A new, empty database for ours (0) or the peer (1); drop it after measuring, so that it does not
 * disturb the next one. In a quick run all share the same two, since creating one takes long; the
 * store is new nevertheless. */
struct database {
    char name[32];
    char url[BENCH_URL_BYTES]; /* of a new store in it */
};
struct database postgres_database(struct bench *b, unsigned i);
void            postgres_drop(struct bench *b, const struct database *d);
/* A separate connection; statements must succeed. */
PGconn *postgres_connect(struct bench *b, const char *database);
void    postgres_exec(PGconn *c, const char *sql);

/* Start Redis if installed, with a file synced before each response, or without. */
bool          redis_ready(struct bench *b, bool durable, const char **why);
const char   *redis_socket(const struct bench *b, bool durable);
const char   *redis_url(const struct bench *b, bool durable, char url[BENCH_URL_BYTES]);
redisContext *redis_open(struct bench *b, bool durable);
/* Delete all stored data. */
void redis_empty(struct bench *b, bool durable);

/* End all of them. */
void servers_stop(struct bench *b);

#endif
