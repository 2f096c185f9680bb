/*
 * step_run.c: helpers shared by sql and check steps.
 */
#include "apps/runner/step_run.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/parse.h"

#define WAIT_MS_MIN 1000
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
    /* A commit with unknown outcome may have happened: a retry could apply it twice. */
    bool unknown = st == IL_STORE && strcmp(err->native, GUARD_UNKNOWN) == 0;
    bool final =
        st == IL_INVAL || st == IL_STALE || st == IL_STATE || st == IL_NOT_FOUND || unknown;
    runner_result_fail(ret, final, "%s%s", what, err->message);
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

size_t
runner_cut(const char *text, size_t n_max)
{
    size_t n = strnlen(text, n_max + 1);

    if (n <= n_max)
        return n;
    n = n_max;
    while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80)
        n--;
    return n;
}

void
runner_text_value(struct runner_text *t, const char *value, size_t n_max)
{
    static const char from[] = "\t\n\r\\", to[] = "tnr\\";

    if (value == NULL) {
        runner_text_addf(t, "NULL");
        return;
    }
    size_t n = runner_cut(value, n_max);
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
    il__guard_interrupt(cookie);
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
    il_status st = il__guard_new(url, MAX(a->timeout_ms, WAIT_MS_MIN), &l->c, &err);
    if (st == IL_OK) {
        runner_attempt_on_stop(a, interrupt, l->c);
        st = il__guard_connect(l->c, &err);
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
    il__guard_close(l->c);
    l->c = NULL;
}

il_status
runner_link_begin(struct runner_link *l, bool read_only, struct guard_tx **ret, il_error *reterr)
{
    struct guard_fence fence = {
        .h = l->a->h, .tenant = l->a->tenant, .key = l->a->key, .fence = l->a->fence
    };

    return il__guard_begin(l->c, &fence, read_only, ret, reterr);
}
