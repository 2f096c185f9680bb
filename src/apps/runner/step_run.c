/*
 * step_run.c: helpers shared by sql and check steps.
 */
#include "apps/runner/step_run.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/parse.h"

#define WAIT_MS_MIN 1000
#define WAIT_MS_MAX 86400000
#define CONNECT_MS_MAX 15000
#define TEXT_BYTES_MAX 65536
#define FLUSH_BYTES 8192

/* ---- results --------------------------------------------------------------------------------- */

void
runner_result_fail(struct runner_result *ret, bool final, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(ret->error, sizeof ret->error, fmt, ap);
    va_end(ap);
    ret->outcome = RUNNER_STEP_FAILED;
    ret->final   = final;
}

void
runner_result_status(struct runner_result *ret, const struct runner_attempt *a, il_status st,
                     const char *what, const il_error *err)
{
    if (st == IL_CANCELLED && runner_attempt_should_stop(a)) {
        ret->outcome = RUNNER_STEP_STOPPED;
        (void)snprintf(ret->error, sizeof ret->error, "%s%s", what, err->message);
        return;
    }
    /* Only what may work next time. A commit with an unknown outcome (IL_UNKNOWN) may have
     * happened: a retry could apply it twice. */
    runner_result_fail(ret, il_status_retryable(st) == 0, "%s%s", what, err->message);
}

/* ---- text ------------------------------------------------------------------------------------ */

void
runner_text_init(struct runner_text *t, struct runner_attempt *a)
{
    t->a = a;
    il__buf_init(&t->b, TEXT_BYTES_MAX);
}

void
runner_text_flush(struct runner_text *t)
{
    if (t->b.n_bytes > 0)
        runner_attempt_output(t->a, 1, t->b.data, t->b.n_bytes);
    il__buf_clear(&t->b);
    t->b.failed = false; /* output that does not fit is no reason to fail */
}

void
runner_text_release(struct runner_text *t)
{
    runner_text_flush(t);
    il__buf_release(&t->b);
}

void
runner_text_addf(struct runner_text *t, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    il__buf_vaddf(&t->b, fmt, ap);
    va_end(ap);
    if (t->b.n_bytes >= FLUSH_BYTES)
        runner_text_flush(t);
}

void
runner_text_value(struct runner_text *t, const char *value, size_t n_max)
{
    static const char from[] = "\t\n\r\\", to[] = "tnr\\";

    if (value == NULL) {
        runner_text_addf(t, "NULL");
        return;
    }
    size_t n = il__utf8_cut(value, n_max);
    for (size_t i = 0; i < n; i++) {
        const char *at = strchr(from, value[i]);
        if (at != NULL) {
            il__buf_addc(&t->b, '\\');
            il__buf_addc(&t->b, to[at - from]);
        } else {
            il__buf_addc(&t->b, (unsigned char)value[i] < ' ' ? '?' : value[i]);
        }
    }
    runner_text_addf(t, "%s", value[n] != '\0' ? "…" : "");
}

/* ---- connections ----------------------------------------------------------------------------- */

static const char *
url_of(const struct runner_attempt *a, const char *name)
{
    for (size_t i = 0; name != NULL && i < a->n_connections; i++) {
        if (strcmp(a->connections[i].name, name) == 0)
            return a->connections[i].url;
    }
    return NULL;
}

static void
interrupt(void *cookie)
{
    il_guard_interrupt(cookie);
}

bool
runner_link_open(struct runner_link *l, struct runner_attempt *a, struct runner_result *ret)
{
    const char *name = a->step->connection;
    const char *url  = url_of(a, name);
    il_error    err  = { .message = "" };
    char        what[160];

    *l = (struct runner_link){ .a = a };
    if (url == NULL) {
        runner_result_fail(ret, true, "connection '%.100s' is not configured",
                           name != NULL ? name : "");
        return false;
    }
    (void)snprintf(what, sizeof what, "connection '%.100s': ", name);
    /* Other steps of the run may hold the file for as long as they take. */
    il_guard_opts o        = IL_GUARD_OPTS_INIT;
    o.lock_timeout_ms      = MIN(MAX(a->timeout_ms, WAIT_MS_MIN), WAIT_MS_MAX);
    o.statement_timeout_ms = IL_FOREVER; /* the attempt has a timeout of its own */
    o.connect_timeout_ms   = MIN(o.lock_timeout_ms, CONNECT_MS_MAX);
    o.conns_max            = 1;
    il_status st           = il_guard_open(url, &o, &l->g, &err);
    if (st == IL_OK) {
        runner_attempt_on_stop(a, interrupt, l->g);
        st = il_guard_connect(l->g, &err);
    }
    if (st == IL_OK)
        return true;
    runner_result_status(ret, a, st, what, &err);
    runner_link_close(l);
    return false;
}

void
runner_link_close(struct runner_link *l)
{
    runner_attempt_on_stop(l->a, NULL, NULL); /* first: do not interrupt a closed one */
    il_guard_close(l->g);
    l->g = NULL;
}

il_status
runner_link_begin(struct runner_link *l, bool read_only, il_guard_tx **ret, il_error *reterr)
{
    il_guard_fence fence = {
        .h = l->a->h, .tenant = l->a->tenant, .key = l->a->key, .fence = l->a->fence
    };
    il_guard_tx_opts o = IL_GUARD_TX_OPTS_INIT;

    o.fences   = &fence;
    o.n_fences = 1;
    o.flags    = read_only ? IL_GUARD_READ_ONLY : 0;
    return il_guard_begin(l->g, &o, ret, reterr);
}

il_status
runner_link_exec(il_guard_tx *tx, const char *sql, const char *const *values, size_t n,
                 il_guard_row_fn *each, void *cookie, int64_t *ret_n_changed, il_error *reterr)
{
    il_guard_value texts[IL_GUARD_VALUES_MAX];

    CHECK(n <= IL_GUARD_VALUES_MAX);
    for (size_t i = 0; i < n; i++)
        texts[i] = il_guard_text(values[i]);
    const il_guard_query q = { .sql      = sql,
                               .values   = texts,
                               .n_values = n,
                               .flags    = IL_GUARD_AS_TEXT,
                               .each     = each,
                               .cookie   = cookie };
    return il_guard_exec(tx, &q, ret_n_changed, reterr);
}

const char *
runner_row_text(const il_guard_row *row, size_t i)
{
    return row->values[i].type == IL_GUARD_NULL ? NULL : row->values[i].data;
}
