/*
 * pipeline.h: a parsed pipeline file in a test, with all messages about it.
 */
#ifndef T_UNIT_PIPELINE_H
#define T_UNIT_PIPELINE_H

#include "apps/runner/pipeline.h"
#include "harness/unit.h"

static const struct pipeline_defaults t_defaults = { 3, 5000, true };

/* "error 3 steps[0].run: text\n" for each remark. */
static inline void
t_remark(void *cookie, const struct doc_remark *remark)
{
    struct il__buf *said = cookie;

    il__buf_addf(said, "%s %zu %s%s%s\n", remark->is_error ? "error" : "advice", remark->line,
                 remark->field, remark->field[0] != '\0' ? ": " : "", remark->text);
}

/* The pipeline, or NULL; `said` is initialised here. */
static inline struct pipeline *
t_parse(const char *text, struct il__buf *said)
{
    struct pipeline *p   = NULL;
    il_error         err = { 0 };

    il__buf_init(said, 1 << 20);
    il_status st = il__pipeline_parse("acme", "f.yml", text, strlen(text), &t_defaults, t_remark,
                                      said, &p, &err);
    if (st == IL_OK)
        return p;
    T_EQ(st, IL_INVAL);
    T_HAS(il__buf_str(said), "error ");
    T_HAS(err.message, "f.yml:"); /* the first of them */
    T_HAS(il__buf_str(said), strchr(strchr(err.message, ':') + 1, ':') + 2);
    return NULL;
}

/* It is fine; without advice unless the test looks for it. */
static inline struct pipeline *
t_good(const char *text)
{
    AUTO_BUF struct il__buf said = { 0 };
    struct pipeline        *p    = t_parse(text, &said);

    if (p == NULL)
        T_FAIL("refused:\n%s\n%s", il__buf_str(&said), text);
    return p;
}

/* It is refused, and each of `parts` (until NULL) was said. */
static inline void
t_bad(const char *text, const char *part)
{
    AUTO_BUF struct il__buf said = { 0 };
    struct pipeline        *p    = t_parse(text, &said);

    if (p != NULL)
        T_FAIL("accepted, but expected '%s':\n%s", part, text);
    if (strstr(il__buf_str(&said), part) == NULL)
        T_FAIL("expected '%s', was told:\n%s\n%s", part, il__buf_str(&said), text);
}

/* It is fine, and this was advised. */
static inline void
t_advised(const char *text, const char *part)
{
    AUTO_BUF struct il__buf said = { 0 };
    struct pipeline        *p    = t_parse(text, &said);

    if (p == NULL || strstr(il__buf_str(&said), part) == NULL)
        T_FAIL("expected '%s', was told:\n%s\n%s", part, il__buf_str(&said), text);
    il__pipeline_unref(p);
}

/* Memory of which the allocation number t_fail_at is not to be had. */
static size_t t_n_allocations UNUSED, t_fail_at UNUSED;

static inline void *
t_failing_realloc(void *cookie UNUSED, void *p, size_t n_bytes)
{
    return ++t_n_allocations == t_fail_at ? NULL : realloc(p, n_bytes);
}

static inline void *
t_failing_alloc(void *cookie, size_t n_bytes)
{
    return t_failing_realloc(cookie, NULL, n_bytes);
}

static inline void
t_failing_free(void *cookie UNUSED, void *p)
{
    free(p);
}

static const il_allocator t_failing UNUSED = { t_failing_alloc, t_failing_realloc, t_failing_free,
                                               NULL };

#endif
