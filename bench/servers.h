/*
 * servers.h: the servers of a run: PostgreSQL, Redis without and with a file. Each is started in the folder for temporary files when it is first
 * needed, and ends with the run.
 */
#ifndef BENCH_SERVERS_H
#define BENCH_SERVERS_H

#include <hiredis/hiredis.h>
#include <libpq-fe.h>

#include "process.h"

/* Durability of what is measured on them. */
#define BENCH_POSTGRES "PostgreSQL fsync=on synchronous_commit=on"
#define BENCH_REDIS "none (Redis without persistence)"
#define BENCH_REDIS_AOF "Redis appendonly=yes appendfsync=always"

#define BENCH_URL_BYTES (BENCH_PATH_BYTES + 128)

/* Is there a PostgreSQL? Starts it. False: *why says why not. */
bool postgres_ready(struct bench *b, const char **why);
/* Where it is: its folder is the PGHOST of others; the user is postgres, and nobody asks for a password. */
const char *postgres_dir(const struct bench *b);
/* A new, empty database for ours (0) or the peer (1); drop it when it has been measured, so that nothing of it disturbs the next one. In
 * a quick run all have the same two, since making one takes long; the store is new nevertheless. */
struct database {
    char name[32];
    char url[BENCH_URL_BYTES]; /* of a new store in it */
};
struct database postgres_database(struct bench *b, unsigned i);
void            postgres_drop(struct bench *b, const struct database *d);
/* A connection of one's own; statements must succeed. */
PGconn *postgres_connect(struct bench *b, const char *database);
void    postgres_exec(PGconn *c, const char *sql);

/* Is there a Redis? With a file that is synced before each answer, or without. */
bool          redis_ready(struct bench *b, bool durable, const char **why);
const char   *redis_socket(const struct bench *b, bool durable);
const char   *redis_url(const struct bench *b, bool durable, char url[BENCH_URL_BYTES]);
redisContext *redis_open(struct bench *b, bool durable);
/* Forget everything that is stored. */
void redis_empty(struct bench *b, bool durable);

/* End all of them. */
void servers_stop(struct bench *b);

#endif
