/*
 * spec.h: a spec: sessions of steps, and the orders in which they are played. The language is described
 * in README.md here.
 */
#ifndef T_SPEC_H
#define T_SPEC_H

#include "harness/store.h"

#define SESSIONS_MAX 6
#define STEPS_MAX 12   /* of one session */
#define COMMANDS_MAX 8 /* of one step */
#define NAME_BYTES 64
#define RANKS_MAX 8
#define ORDERS_MAX 5000 /* permutations of one spec */

enum verb {
    VERB_ACQUIRE,
    VERB_RENEW,
    VERB_RELEASE,
    VERB_CHECK,
    VERB_BREAK,
    VERB_GET,
    VERB_LIST,
    VERB_CLOCK, /* time passes as it does in life: sweeps, wake-ups, signs of life */
    VERB_JUMP,  /* time passes and nobody notices: a suspended machine */
    VERB_WALL,  /* somebody sets the wall clock */
    VERB_SWEEP,
    VERB_REOPEN,
    VERB_FREEZE, /* a session stops looking, as under SIGSTOP */
    VERB_THAW,
    VERB_COUNT
};

struct command {
    enum verb verb;
    char      name[NAME_BYTES];   /* of the key, or of a session */
    char      holder[NAME_BYTES]; /* "" = the session's name */
    char      place[NAME_BYTES];
    bool      now; /* break */
    il_mode   mode;
    uint32_t  permits;
    int64_t   ttl_ms, wait_ms, settle_ms;
    int64_t   ms;
};

struct step {
    char           name[NAME_BYTES];
    struct command commands[COMMANDS_MAX];
    size_t         n_commands;
};

struct session {
    char        name[NAME_BYTES];
    struct step steps[STEPS_MAX];
    size_t      n_steps;
};

/* An order: for each step, the session that takes its next one. */
struct order {
    unsigned char i_session[SESSIONS_MAX * STEPS_MAX];
    size_t        n;
};

struct spec {
    const char    *path;
    struct session setup; /* one step, when there is a setup */
    struct session sessions[SESSIONS_MAX];
    size_t         n_sessions;
    char           rank_names[RANKS_MAX][NAME_BYTES];
    const char    *ranks[RANKS_MAX];
    size_t         n_ranks;
    struct order  *orders; /* as given, or all of them */
    size_t         n_orders;
};

/* Read a spec; an error names the line and ends the program. */
struct spec *spec_read(const char *path);
void         spec_free(struct spec *sp);

/* Play one order; the line that describes it goes to `out`. */
struct play;
struct play *play_new(const struct t_engine *engine, const struct spec *sp);
void         play_free(struct play *p);
void         play_order(struct play *p, size_t i_order, char *out, size_t n_bytes);

#endif
