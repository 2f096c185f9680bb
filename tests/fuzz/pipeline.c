/*
 * pipeline.c: pipeline files. Any content gives a usable pipeline or faults with their lines; never
 * both, never neither.
 */
#include "apps/runner/pipeline.h"

#include <stdio.h>

#include "fuzz/fuzz.h"

struct seen {
    size_t n_errors, n_advice, n_lines;
};

static void
on_remark(void *cookie, const struct doc_remark *remark)
{
    struct seen *seen = cookie;

    CHECK(strcmp(remark->path, "f.yml") == 0 && remark->field != NULL && remark->text[0] != '\0');
    CHECK(remark->line <= seen->n_lines);
    *(remark->is_error ? &seen->n_errors : &seen->n_advice) += 1;
}

/* Everything that a run would do with its texts, with values that try to be more than values. */
static void
use_text(const struct pipeline_text *t, const struct pipeline_values *v, bool sql)
{
    AUTO_BUF struct il__buf out = { 0 };
    const char             *values[16];
    size_t                  n;
    il_error                err;

    if (t->text == NULL)
        return;
    il__buf_init(&out, 4 << 20);
    if (sql) {
        if (il__pipeline_bind(t, v, &out, values, ARRAY_LEN(values), &n, &err) == IL_OK)
            CHECK(n <= ARRAY_LEN(values) && strstr(il__buf_str(&out), "EVIL") == NULL);
        return;
    }
    for (int escape = PIPELINE_PLAIN; escape <= PIPELINE_JSON; escape++)
        CHECK(il__pipeline_expand(t, v, (enum pipeline_escape)escape, &out, &err) == IL_OK ||
              out.failed);
}

static void
use_step(const struct pipeline *p, const struct pipeline_step *s, const struct pipeline_values *v)
{
    CHECK(s->id != NULL && s->level > 0 && s->level <= p->n_levels && s->timeout_ms > 0);
    for (size_t i = 0; i < s->n_needs; i++)
        CHECK(s->needs[i] < p->n_steps && p->steps[s->needs[i]].level < s->level);
    for (size_t i = 0; i < s->command.n_argv; i++)
        use_text(&s->command.argv[i], v, false);
    for (size_t i = 0; i < s->command.n_env; i++)
        use_text(&s->command.env[i].value, v, false);
    for (size_t i = 0; i < s->http.n_headers; i++)
        use_text(&s->http.headers[i].value, v, false);
    use_text(&s->http.url, v, false);
    use_text(&s->http.body, v, false);
    for (size_t i = 0; i < s->n_sql; i++)
        use_text(&s->sql[i], v, true);
    for (size_t i = 0; i < s->n_expectations; i++)
        use_text(&s->expectations[i].sql, v, true);
    CHECK(s->type != PIPELINE_COMMAND || (s->command.n_argv > 0) != (s->command.script != NULL));
    CHECK(s->type != PIPELINE_SQL || (s->n_sql > 0 && s->connection != NULL));
    CHECK(s->type != PIPELINE_HTTP || (s->http.method != NULL && s->http.url.text != NULL));
    CHECK(s->type != PIPELINE_CHECK || (s->n_expectations > 0 && s->connection != NULL));
}

static void
use(struct pipeline *p)
{
    static const char *const known[] = { "run_id", "tenant",  "pipeline_id",
                                         "fence",  "step_id", "attempt" };
    AUTO_BUF struct il__buf  graph   = { 0 };
    struct pipeline_values   v       = { 0 };

    for (size_t i = 0; i < p->n_parameters; i++) {
        v.items[v.n].name    = p->parameters[i].name;
        v.items[v.n++].value = "'; EVIL \"$(x)\n";
    }
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        v.items[v.n].name    = known[i];
        v.items[v.n++].value = "EVIL";
    }
    CHECK(p->n_steps > 0 && p->n_steps <= PIPELINE_STEPS_MAX && p->n_levels > 0);
    for (size_t i = 0; i < p->n_steps; i++)
        use_step(p, &p->steps[i], &v);
    il__buf_init(&graph, 4 << 20);
    CHECK(il__pipeline_graph(p, &graph));
    CHECK(il__pipeline_next_tick(p, 1) > 1);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    static const struct pipeline_defaults defaults = { 3, 5000, true };
    char                                 *text     = fuzz_text(data, n_bytes);
    struct pipeline                      *p        = NULL;
    struct seen seen = { .n_lines = n_bytes + 1 }; /* CR, NEL, LS and PS end lines, too */
    il_error    err  = { .message = "" };

    /* A file that holds EVIL itself says nothing about where values go. */
    if (memmem(data, n_bytes, "EVIL", 4) == NULL) {
        il_status st = il__pipeline_parse("acme", "f.yml", text, n_bytes, &defaults, on_remark,
                                          &seen, &p, &err);
        CHECK((st == IL_OK) == (seen.n_errors == 0));
        CHECK(st == IL_OK || (st == IL_INVAL && strncmp(err.message, "f.yml:", 6) == 0));
        if (st == IL_OK)
            use(p);
        il__pipeline_unref(p);
    }
    free(text);
    return 0;
}
