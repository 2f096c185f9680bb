/*
 * peer.h: npm job queues, driven by the scripts in peers/: installed once into the temporary
 * folder; each runs as a child that answers rounds.
 */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include "process.h"

struct peer {
    struct process process;
    unsigned       n_jobs; /* of a round */
};

/* Make sure that node and the packages are installed. False: *why has the reason. */
bool peers_ready(struct bench *b, const char **why);
/* Start peers/SCRIPT with up to three arguments (NULL: no more). */
void peer_open(struct peer *p, struct bench *b, const char *script, const char *const args[3],
               unsigned n_jobs);
void peer_close(struct peer *p);
/* Jobs completed per second; pushing them is not counted. For a struct side; the cookie is the
 * peer. */
double peer_round(void *cookie);

#endif
