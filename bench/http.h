/*
 * http.h: starting our server or a bare one, and sending requests to it, for the HTTP benchmarks.
 */
#ifndef BENCH_HTTP_H
#define BENCH_HTTP_H

#include "load.h"
#include "process.h"

struct site {
    struct process process;
    unsigned       port;
    char           key[160];
};
/* pipelines: a folder, or NULL. */
void site_open(struct site *s, const struct bench *b, const char *store, const char *pipelines);
/* Bare libmicrohttpd; $BENCH_BARE_BYTES: the size of what it answers to a GET. */
void bare_open(struct site *s);
/* As many as this process may have. */
void allow_descriptors(void);
int  connect_to(const struct site *s);
/* Send a request and, if a response is expected, read it (it is short). */
void ask(int fd, const struct site *s, const char *method, const char *path, const char *body,
         char *answer, size_t n_answer);

/* wrk. */
struct hammer {
    char               wrk[BENCH_PATH_BYTES];
    char               seconds[16];
    const struct site *site;
    const char        *script;   /* NULL = pairs */
    struct samples     p50, p99; /* of each round */
};
/* Rounds of a struct side: pairs of requests per second; requests per second. */
double           hammer_round(void *cookie);
double           hammer_requests(void *cookie);
struct quantiles hammer_latency(struct hammer *h);

#endif
