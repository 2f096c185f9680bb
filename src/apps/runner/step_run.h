/*
 * step_run.h: what the kinds of steps that run inside the server share: connections to the users' databases (sql, check), requests (http, and the probe of a pipeline).
 */
#ifndef IL_APPS_RUNNER_STEP_RUN_H
#define IL_APPS_RUNNER_STEP_RUN_H

#include "apps/runner/step.h"
#include "base/buf.h"
#include "guard/guard.h"

/* ---- results (step_run.c) ---------------------------------------------------------------------------------------------------- */

/* It failed; the text is the attempt's error. */
void runner_result_fail(struct runner_result *ret, bool final, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* What a status of the guard's means for the attempt: IL_CANCELLED: it was told to stop; IL_STORE and kin: another attempt may do better. `what` ("statement 2 of 3: ") stands before the error's text. */
void runner_result_status(struct runner_result *ret, const struct runner_attempt *a, il_status st,
                          const char *what, const il_error *err);

/* Text on its way to the attempt's output: gathered, and handed on in pieces. */
struct runner_text {
    struct runner_attempt *a;
    struct il__buf         b;
};
void runner_text_init(struct runner_text *t, struct runner_attempt *a);
void runner_text_flush(struct runner_text *t); /* hands on what there is */
void runner_text_release(struct runner_text *t);
void runner_text_addf(struct runner_text *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* A value of a database: NULL as such; tab, newline and the like escaped with a backslash; at most n_max bytes, then "…". */
void runner_text_value(struct runner_text *t, const char *value, size_t n_max);
/* How many of the bytes of a text to keep, so that they are n_max at most and no character is cut in two. */
size_t runner_cut(const char *text, size_t n_max);

/* ---- connections (step_run.c) -------------------------------------------------------------------------------------------------- */

struct runner_link {
    struct runner_attempt *a;
    struct guard_conn     *c;
};
/* The step's connection, by its name; it is interrupted when the attempt should stop. False: *ret says why. */
bool runner_link_open(struct runner_link *l, struct runner_attempt *a, struct runner_result *ret);
void runner_link_close(struct runner_link *l);
/* A transaction with the fence of the run. */
il_status runner_link_begin(struct runner_link *l, bool read_only, struct guard_tx **ret,
                            il_error *reterr) MUST_USE;

/* ---- requests (fetch.c) --------------------------------------------------------------------------------------------------------- */

/* One request, all of it borrowed. */
struct fetch {
    const struct pipeline_http   *http;
    const struct pipeline_values *values;
    const char                   *idempotency_key; /* NULL = none */
    int64_t                       timeout_ms;
    struct runner_attempt *a;      /* it stops when the attempt should; NULL: when `runner` does */
    struct runner         *runner; /* NULL: nobody stops it */
    /* The body of the answer, piece by piece; not that of a redirection. */
    void (*take)(void *cookie, const void *data, size_t n_bytes);
    void *cookie;
};
#define FETCH_URL_BYTES 512
struct fetch_answer {
    long     status;  /* 0: there was no answer */
    bool     success; /* the status is one that was expected */
    bool     final;   /* if not: another attempt would meet the same */
    bool     stopped; /* it was told to stop */
    bool     timed_out;
    unsigned n_redirects;
    int64_t  took_ms, n_bytes;
    char     url[FETCH_URL_BYTES]; /* without user, password, query and fragment */
    char     error[1024];          /* method, URL, what is wrong; "" = success */
};
/* Carry it out. Only http and https; certificates are verified; redirections are followed within the same scheme, host and port only, at most five. Blocks. */
void runner_fetch(const struct fetch *f, struct fetch_answer *ret);

#endif
