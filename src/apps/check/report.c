/*
 * report.c: invariants and their results as JSON and as JUnit XML, which CI systems read.
 */
#include <inttypes.h>
#include <stdio.h>

#include "apps/check/check.h"
#include "base/parse.h"
#include "core/limits.h"

bool
il__check_fails(const struct check_result *r, bool strict)
{
    return r->outcome == CHECK_BROKEN && (r->check->severity == INVARIANT_ERROR ||
                                          (strict && r->check->severity == INVARIANT_WARNING));
}

static void
add_count(struct il__buf *out, int64_t n, const char *one, const char *several)
{
    il__buf_addf(out, "%s%" PRId64 " %s", out->n_bytes > 0 ? ", " : "", n, n == 1 ? one : several);
}

void
il__check_summary(const struct check_result *r, struct il__buf *out)
{
    if (r->outcome == CHECK_ERROR || r->outcome == CHECK_SKIPPED) {
        il__buf_adds(out, r->outcome == CHECK_ERROR ? r->error.message : "the app has no tables");
        return;
    }
    size_t n_not_needed = il__invariant_not_needed(&r->found, NULL, 0);
    if (r->found.n_new > 0)
        add_count(out, r->found.n_new, "new offender", "new offenders");
    if (r->found.n_known > 0)
        add_count(out, r->found.n_known, "known", "known");
    if (n_not_needed > 0)
        add_count(out, (int64_t)n_not_needed, "baseline key no longer occurs",
                  "baseline keys no longer occur");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* A JSON string of any text: invalid UTF-8 becomes '?'. NULL gives null. */
static json_t *
text_json(const char *text)
{
    if (text == NULL)
        return json_null();
    if (il__utf8_valid(text, strlen(text)))
        return json_string(text);
    AUTO_FREE char *copy = il__strdup(text);
    for (char *p = copy; p != NULL && *p != '\0'; p++)
        *p = (unsigned char)*p < 0x80 ? *p : '?';
    return copy != NULL ? json_string(copy) : NULL;
}

static json_t *
time_json(int64_t ms)
{
    char text[IL__TIME_TEXT_BYTES];

    return ms != IL__NEVER ? json_string(il__time_text(ms, text)) : json_null();
}

json_t *
il__check_json(const struct check *c, int64_t now_ms)
{
    return json_pack(
        "{s:o, s:o, s:s, s:o, s:o, s:o, s:s, s:o, s:I, s:I, s:o, s:o}", "tenant",
        text_json(c->tenant), "name", text_json(c->name), "severity",
        il__invariant_severity_name(c->severity), "description", text_json(c->description),
        "connection", text_json(c->connection), "schedule", text_json(c->schedule_text), "timezone",
        c->zone->name, "next_at", time_json(il__check_next_tick(c, now_ms)), "timeout_ms",
        (json_int_t)c->timeout_ms, "baseline", (json_int_t)c->n_baseline, "path",
        c->path[0] != '\0' ? text_json(c->path) : json_null(), "error", text_json(c->fault));
}

json_t *
il__check_offenders_json(const struct invariant_found *f)
{
    json_t *all = json_array();

    for (size_t i = 0; i < f->n_offenders && all != NULL; i++) {
        json_t *one = json_pack("{s:o, s:o}", "key", text_json(f->offenders[i].key), "text",
                                text_json(f->offenders[i].text));
        if (json_array_append_new(all, one) != 0) {
            json_decref(all);
            all = NULL;
        }
    }
    return all;
}

json_t *
il__check_not_needed_json(const struct invariant_found *f)
{
    const char *keys[INVARIANT_OFFENDERS_MAX];
    size_t      n   = il__invariant_not_needed(f, keys, ARRAY_LEN(keys));
    json_t     *all = json_array();

    for (size_t i = 0; i < MIN(n, ARRAY_LEN(keys)) && all != NULL; i++) {
        if (json_array_append_new(all, text_json(keys[i])) != 0) {
            json_decref(all);
            all = NULL;
        }
    }
    return json_pack("{s:I, s:o}", "count", (json_int_t)n, "keys", all);
}

json_t *
il__check_result_json(const struct check_result *r)
{
    return json_pack("{s:o, s:o, s:s, s:s, s:I, s:I, s:o, s:o, s:o, s:o, s:I}", "tenant",
                     text_json(r->check->tenant), "name", text_json(r->check->name), "severity",
                     il__invariant_severity_name(r->check->severity), "outcome",
                     il__check_outcome_name(r->outcome), "new", (json_int_t)r->found.n_new, "known",
                     (json_int_t)r->found.n_known, "offenders", il__check_offenders_json(&r->found),
                     "not_needed", il__check_not_needed_json(&r->found), "error",
                     text_json(r->outcome == CHECK_ERROR ? r->error.message : NULL), "started_at",
                     time_json(r->started_ms), "duration_ms", (json_int_t)r->took_ms);
}

/* ---- JUnit ----------------------------------------------------------------------------------- */

/* The bytes of the character at `s` if XML 1.0 allows it, else 0. */
static size_t
xml_char(const char *s)
{
    unsigned char c = (unsigned char)*s;
    size_t        n = c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;

    if (n == 1)
        return c >= 0x20 || strchr("\t\n\r", c) != NULL ? 1 : 0;
    if (strnlen(s, n) < n || !il__utf8_valid(s, n))
        return 0;
    return n == 3 && (memcmp(s, "\xEF\xBF\xBE", 3) == 0 || memcmp(s, "\xEF\xBF\xBF", 3) == 0) ? 0
                                                                                              : n;
}

/* A text, in an attribute or between tags; what XML cannot express becomes '?'. */
static void
add_xml(struct il__buf *out, const char *text)
{
    static const struct {
        char        c;
        const char *entity;
    } entities[] = { { '&', "&amp;" },  { '<', "&lt;" },   { '>', "&gt;" },
                     { '"', "&quot;" }, { '\n', "&#10;" }, { '\t', "&#9;" } };

    while (*text != '\0') {
        const char *entity = NULL;
        size_t      n      = xml_char(text);
        for (size_t i = 0; i < ARRAY_LEN(entities); i++)
            entity = *text == entities[i].c ? entities[i].entity : entity;
        if (entity != NULL)
            il__buf_adds(out, entity);
        else if (n > 0)
            il__buf_add(out, text, n);
        else
            il__buf_addc(out, '?');
        text += MAX(n, 1);
    }
}

static void
add_offenders(struct il__buf *out, const struct invariant_found *f)
{
    for (size_t i = 0; i < f->n_offenders; i++) {
        add_xml(out, f->offenders[i].key);
        if (f->offenders[i].text != NULL) {
            il__buf_adds(out, ": ");
            add_xml(out, f->offenders[i].text);
        }
        il__buf_addc(out, '\n');
    }
    if (f->n_new > (int64_t)f->n_offenders)
        il__buf_addf(out, "and %" PRId64 " more\n", f->n_new - (int64_t)f->n_offenders);
}

/* <TAG message="SUMMARY">OFFENDERS</TAG> */
static void
add_problem(struct il__buf *out, const char *tag, const struct check_result *r)
{
    AUTO_BUF struct il__buf summary = { 0 };

    il__buf_init(&summary, sizeof r->error.message + 200);
    il__check_summary(r, &summary);
    il__buf_addf(out, "    <%s message=\"", tag);
    add_xml(out, il__buf_str(&summary));
    il__buf_addf(out, "\" type=\"%s\">", il__invariant_severity_name(r->check->severity));
    add_offenders(out, &r->found);
    il__buf_addf(out, "</%s>\n", tag);
}

static void
add_case(struct il__buf *out, const struct check_result *r, bool strict)
{
    il__buf_adds(out, "  <testcase classname=\"");
    add_xml(out, r->check->tenant);
    il__buf_adds(out, "\" name=\"");
    add_xml(out, r->check->name);
    il__buf_addf(out, "\" time=\"%" PRId64 ".%03d\">\n", r->took_ms / 1000,
                 (int)(r->took_ms % 1000));
    if (il__check_fails(r, strict)) {
        add_problem(out, "failure", r);
    } else if (r->outcome == CHECK_ERROR) {
        add_problem(out, "error", r);
    } else if (r->outcome == CHECK_SKIPPED) {
        il__buf_adds(out, "    <skipped/>\n");
    } else if (r->outcome == CHECK_BROKEN) {
        il__buf_addf(out, "    <system-out>%s: %" PRId64 " new\n",
                     il__invariant_severity_name(r->check->severity), r->found.n_new);
        add_offenders(out, &r->found);
        il__buf_adds(out, "</system-out>\n");
    }
    il__buf_adds(out, "  </testcase>\n");
}

void
il__check_junit(const struct check_result *results, size_t n, bool strict, struct il__buf *out)
{
    size_t n_failed = 0, n_errors = 0, n_skipped = 0;

    for (size_t i = 0; i < n; i++) {
        n_failed += il__check_fails(&results[i], strict);
        n_errors += results[i].outcome == CHECK_ERROR;
        n_skipped += results[i].outcome == CHECK_SKIPPED;
    }
    il__buf_adds(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    il__buf_addf(out,
                 "<testsuite name=\"interlock check\" tests=\"%zu\" failures=\"%zu\" "
                 "errors=\"%zu\" skipped=\"%zu\">\n",
                 n, n_failed, n_errors, n_skipped);
    for (size_t i = 0; i < n; i++)
        add_case(out, &results[i], strict);
    il__buf_adds(out, "</testsuite>\n");
}
