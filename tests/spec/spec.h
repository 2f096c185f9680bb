/*
 * spec.h: a spec: sessions of steps, and the orders in which they are played. The language is
 * described in README.md here.
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

/* Commands that are not ops. */
enum verb {
    VERB_OP,
    VERB_CLOCK, /* time passes as it does in life: sweeps, wake-ups, signs of life */
    VERB_JUMP,  /* time passes and nobody notices: a suspended machine */
    VERB_WALL,  /* somebody sets the wall clock */
    VERB_SWEEP,
    VERB_REOPEN,
    VERB_FREEZE, /* a session stops looking, as under SIGSTOP */
    VERB_THAW,
};

/* What a command says; what is not said is 0 or "". */
struct command {
    enum verb  verb;
    il_op_type type; /* VERB_OP */
    uint32_t   flags;
    char       name[NAME_BYTES];   /* of the key or queue, or of a session */
    char       id[NAME_BYTES];     /* of a run or job; of a schedule */
    char       holder[NAME_BYTES]; /* "" = the session's name */
    char       place[NAME_BYTES];
    char       value[NAME_BYTES]; /* payload, result, response, cached value, output */
    char       meta[NAME_BYTES];
    char       print[NAME_BYTES]; /* fingerprint */
    char       policy[NAME_BYTES];
    char       state[NAME_BYTES];
    char       group[NAME_BYTES];
    char       unique[NAME_BYTES];
    char       parent[NAME_BYTES];
    char       schedule[NAME_BYTES]; /* with _ for blanks */
    char       missed[NAME_BYTES];
    char       strategy[NAME_BYTES];
    il_mode    mode;
    int64_t    permits, limit, priority, children, attempts, progress, code, rate, group_limit,
        live_max, day_max;
    int64_t ttl_ms, wait_ms, settle_ms, keep_ms, delay_ms, lease_ms, grace_ms, rate_ms, period_ms;
    int64_t chance;
    int64_t ms;
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

struct parser {
    struct spec    *sp;
    unsigned        line;
    struct session *session;
};

_Noreturn void parse_bad(const struct parser *p, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The next word of *text, cut out of it; NULL at the end. */
char *parse_word(char **text);
void  parse_name(const struct parser *p, char name[NAME_BYTES], const char *text);
/* One command; `text` is cut to pieces. */
void parse_command(const struct parser *p, struct command *c, char *text);

/* Read a spec; an error names the line and ends the program. */
struct spec *spec_read(const char *path);
void         spec_free(struct spec *sp);

/* Play one order; the line that describes it goes to `out`. */
struct play;
struct play *play_new(const struct t_engine *engine, const struct spec *sp);
void         play_free(struct play *p);
void         play_order(struct play *p, size_t i_order, char *out, size_t n_bytes);

#endif
