/*
 * load.h: callers that execute pairs for a while, and two kinds of them alternately.
 *
 * Ours and its baseline are driven by the same code, so that names, clock readings and loops cost
 * both the same.
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include "report.h"

/* Each caller rotates over its keys; a holder is never reused. Both are incremented in place. */
struct names {
    char     key[32];
    char     holder[32];
    unsigned i_key, n_keys;
};

void names_init(struct names *n, unsigned i_caller, unsigned n_keys);
void names_next(struct names *n);

struct caller {
    struct names   names; /* of the current pair */
    il_error       err;   /* for the step to use */
    struct load   *load;
    uint64_t       n_pairs;
    int64_t        end_ns;
    struct samples latency;
};

struct load {
    unsigned n_threads;
    unsigned i_first; /* number of the first caller: loads of one store have distinct callers */
    unsigned n_keys;  /* per thread, at most 10,000 */
    unsigned sample_every; /* steps between two that are timed */
    int64_t  round_ns;
    bool     one_per_cpu; /* pin each thread to its own CPU, as far as there are enough */
    /* Execute one or more pairs with the caller's names and advance them; returns how many. */
    unsigned (*step)(void *cookie, struct caller *c);
    void *cookie;
    /* load_init() sets these */
    struct caller *callers;
    _Atomic bool   go;
};

/* Set the fields above first. End with load_release(). */
void load_init(struct load *l);
void load_release(struct load *l);
/* Run all callers at once for round_ns; returns pairs per second. A round continues where the last
 * one ended. */
double load_round(struct load *l);
/* Of the timed steps of all rounds. */
struct quantiles load_latency(struct load *l);
/* Discard them: the rounds so far were not part of the measurement. */
void load_forget_latency(struct load *l);
/* load_round() as the round of a struct side; the cookie is the load. */
double load_side(void *cookie);

/* The step of ours: an acquire and a release, an il_apply() each. The cookie is an `il **`. */
unsigned load_il_pair(void *cookie, struct caller *c);

/* Ours and the baseline alternately: one warm-up round each, then n_rounds that count. */
struct side {
    double (*round)(void *cookie);
    void *cookie;
};
void compare(struct result *r, unsigned n_rounds, struct side ours, struct side baseline);

#endif
