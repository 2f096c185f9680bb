/*
 * expand.c: substitutes the parameters of a run for {name}. A value stays one value: one argument,
 * one header, one bound parameter of a statement; it is never parsed again.
 */
#include "apps/runner/pipeline_internal.h"

#include "apps/runner/template.h"
#include "base/error.h"
#include "base/parse.h"

/* Names set by the runner itself; callers cannot set them. */
static const char *const known[] = { "run_id", "tenant",  "pipeline_id",
                                     "fence",  "step_id", "attempt" };

const char *
il__pipeline_value(const struct pipeline_values *v, const char *name)
{
    for (size_t i = 0; i < v->n; i++) {
        if (strcmp(v->items[i].name, name) == 0)
            return v->items[i].value;
    }
    return NULL;
}

bool
il__pipeline_parameter_ok(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (strcmp(known[i], name) == 0)
            return false;
    }
    return il__template_is_name(name, strlen(name));
}

const char *
il__pipeline_known_name(size_t i)
{
    return i < ARRAY_LEN(known) ? known[i] : NULL;
}

/* ---- escaping -------------------------------------------------------------------------------- */

/* Escape as the inside of a JSON string. */
static void
add_json(struct il__buf *out, const char *value)
{
    for (const char *p = value; *p != '\0'; p++) {
        unsigned char c = (unsigned char)*p;
        if (c == '"' || c == '\\') {
            il__buf_addc(out, '\\');
            il__buf_addc(out, *p);
        } else if (c < 0x20 || c == 0x7F) {
            il__buf_addf(out, "\\u%04x", c);
        } else {
            il__buf_addc(out, *p);
        }
    }
}

static void
add_value(struct il__buf *out, const char *value, enum pipeline_escape escape)
{
    switch (escape) {
    case PIPELINE_URL:
        il__buf_add_url(out, value);
        break;
    case PIPELINE_JSON:
        add_json(out, value);
        break;
    case PIPELINE_PLAIN:
        il__buf_adds(out, value);
        break;
    }
}

/* ---- substitution ---------------------------------------------------------------------------- */

static const char *
value_of(const struct pipeline_values *v, const struct template_piece *p, il_error *reterr)
{
    char name[TEMPLATE_NAME_BYTES_MAX + 1];

    CHECK(p->n_bytes < sizeof name);
    memcpy(name, p->text, p->n_bytes);
    name[p->n_bytes]  = '\0';
    const char *value = il__pipeline_value(v, name);
    if (value == NULL)
        (void)il__error_set(reterr, IL_INVAL, "parameter '%s' has no value", name);
    return value;
}

static il_status
finish(const struct il__buf *out, il_error *reterr)
{
    if (out->failed)
        return il__error_set(
            reterr, IL_INVAL,
            "the text exceeds %zu bytes after parameter substitution, or out of memory",
            out->n_bytes_max);
    return IL_OK;
}

il_status
il__pipeline_expand(const struct pipeline_text *t, const struct pipeline_values *v,
                    enum pipeline_escape escape, struct il__buf *out, il_error *reterr)
{
    const char           *at = t->text;
    struct template_piece p;

    while (il__template_next(&at, &p) != TEMPLATE_END) {
        if (p.kind == TEMPLATE_TEXT) {
            il__buf_add(out, p.text, p.n_bytes);
            continue;
        }
        const char *value = value_of(v, &p, reterr);
        if (value == NULL)
            return IL_INVAL;
        add_value(out, value, escape);
    }
    return finish(out, reterr);
}

/* Would the placeholder merge with the text next to it? $ and digits are part of names in one
 * database or the other, as are : and ( after $name in SQLite. */
static bool
sticks(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           (c & 0x80) != 0 || (c != '\0' && strchr("_$:@#({", c) != NULL);
}

il_status
il__pipeline_bind(const struct pipeline_text *sql, const struct pipeline_values *v,
                  struct il__buf *out, const char **values, size_t n_max, size_t *ret_n,
                  il_error *reterr)
{
    const char           *at = sql->text;
    size_t                n  = 0;
    struct template_piece p;

    while (il__template_next_sql(sql->text, &at, &p) != TEMPLATE_END) {
        if (p.kind == TEMPLATE_PLACEHOLDER)
            return il__error_set(reterr, IL_INVAL,
                                 "the statement contains its own placeholder: %.*s", (int)p.n_bytes,
                                 p.text);
        if (p.kind != TEMPLATE_NAME) {
            il__buf_add(out, p.text, p.n_bytes);
            continue;
        }
        const char *value = value_of(v, &p, reterr);
        if (value == NULL)
            return IL_INVAL;
        if (n == n_max)
            return il__error_set(reterr, IL_INVAL, "the statement has more than %zu parameters",
                                 n_max);
        /* One placeholder per occurrence, even of the same name: its type may differ by place. */
        values[n++] = value;
        if (out->n_bytes > 0 && sticks(out->data[out->n_bytes - 1]))
            il__buf_addc(out, ' ');
        il__buf_addf(out, "$%zu", n);
        if (sticks(*at))
            il__buf_addc(out, ' ');
    }
    il_status st = finish(out, reterr);
    if (st == IL_OK)
        *ret_n = n;
    return st;
}
