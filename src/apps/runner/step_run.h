/*
 * step_run.h: shared by the kinds of steps that run inside the server: connections to the users'
 * databases (sql, check), requests (http, and the probe of a pipeline).
 */
#ifndef IL_APPS_RUNNER_STEP_RUN_H
#define IL_APPS_RUNNER_STEP_RUN_H

#include "apps/runner/step.h"
#include "base/buf.h"
#include "guard/guard.h"

/* ---- results (step_run.c) -------------------------------------------------------------------- */

/* Set a failure; the text becomes the attempt's error. */
void runner_result_fail(struct runner_result *ret, bool final, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
/*
 * Map a status of the guard to the attempt's result. IL_CANCELLED: it was asked to stop; IL_STORE
 * and similar: a retry may succeed. `what` ("statement 2 of 3: ") is put before the error's text.
 */
void runner_result_status(struct runner_result *ret, const struct runner_attempt *a, il_status st,
                          const char *what, const il_error *err);

/* Collects text for the attempt's output and passes it on in pieces. */
struct runner_text {
    struct runner_attempt *a;
    struct il__buf         b;
};
void runner_text_init(struct runner_text *t, struct runner_attempt *a);
void runner_text_flush(struct runner_text *t); /* passes on what is buffered */
void runner_text_release(struct runner_text *t);
void runner_text_addf(struct runner_text *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* A database value: NULL as such; tab, newline and the like escaped with a backslash; at most
 * n_max bytes, then "…". */
void runner_text_value(struct runner_text *t, const char *value, size_t n_max);

/* ---- connections (step_run.c) ---------------------------------------------------------------- */

struct runner_link {
    struct runner_attempt *a;
    il_guard              *g;
};
/* Open the step's connection by name; it is interrupted when the attempt should stop. False:
 * *ret has the reason. */
bool runner_link_open(struct runner_link *l, struct runner_attempt *a, struct runner_result *ret);
void runner_link_close(struct runner_link *l);
/* Start a transaction with the fence of the run. */
il_status runner_link_begin(struct runner_link *l, bool read_only, il_guard_tx **ret,
                            il_error *reterr) MUST_USE;
/* Execute a statement with texts as values; NULL is NULL. Rows have texts, too. */
il_status runner_link_exec(il_guard_tx *tx, const char *sql, const char *const *values, size_t n,
                           il_guard_row_fn *each, void *cookie, int64_t *ret_n_changed,
                           il_error *reterr) MUST_USE;
/* A value of such a row; NULL = SQL NULL. */
const char *runner_row_text(const il_guard_row *row, size_t i);

/* ---- requests (fetch.c) ---------------------------------------------------------------------- */

/* One request; everything is borrowed. */
struct fetch {
    const struct pipeline_http   *http;
    const struct pipeline_values *values;
    const char                   *idempotency_key; /* NULL = none */
    int64_t                       timeout_ms;
    struct runner_attempt        *a; /* stops when the attempt should; NULL: when `runner` does */
    struct runner                *runner; /* NULL: nothing stops it */
    /* Called with the response body, piece by piece; not for a redirect. */
    void (*take)(void *cookie, const void *data, size_t n_bytes);
    void *cookie;
};
#define FETCH_URL_BYTES 512
struct fetch_answer {
    long     status;  /* 0: no response */
    bool     success; /* the status is an expected one */
    bool     final;   /* if not: a retry would fail as well */
    bool     stopped; /* stopped on request */
    bool     timed_out;
    unsigned n_redirects;
    int64_t  took_ms, n_bytes;
    char     url[FETCH_URL_BYTES]; /* without user, password, query and fragment */
    char     error[1024];          /* method, URL, reason; "" = success */
};
/* Send the request. Only http and https; certificates are verified; redirects are followed only
 * within the same scheme, host and port, at most five. Blocks. */
void runner_fetch(const struct fetch *f, struct fetch_answer *ret);

#endif
