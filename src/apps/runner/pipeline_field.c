/*
 * pipeline_field.c: parses single fields of a pipeline file: texts, numbers, durations, choices,
 * texts with parameters. Each function reports what is wrong with the value and continues, so that
 * one pass finds all faults of a file.
 */
#include "apps/runner/pipeline_internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "apps/runner/template.h"
#include "base/arena.h"
#include "base/parse.h"
#include "base/suggest.h"

#define TEXT_BYTES_MAX 65536 /* of one value: a script, a statement, a body */

/* ---- remarks --------------------------------------------------------------------------------- */

static void PRINTF_LIKE(5, 0) remark(struct reading *r, bool is_error, size_t line,
                                     struct place where, const char *fmt, va_list ap)
{
    char field[READING_FIELD_BYTES];
    char text[400];
    struct reading_remark *new = il__arena_alloc(&r->scratch, sizeof *new);

    *(is_error ? &r->n_errors : &r->n_advice) += 1;
    if ((is_error ? r->n_errors : r->n_advice) > READING_REMARKS_MAX)
        return;
    (void)snprintf(field, sizeof field, "%s%s%s", where.at,
                   where.at[0] != '\0' && where.key[0] != '\0' ? "." : "", where.key);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    char *field_copy = il__arena_strdup(&r->scratch, field);
    char *text_copy  = il__arena_strdup(&r->scratch, text);
    if (new == NULL || field_copy == NULL || text_copy == NULL) {
        r->no_memory = true;
        return;
    }
    new->remark = (struct pipeline_remark){ r->path, line, field_copy, text_copy, is_error };
    struct reading_remark **at = &r->remarks;
    while (*at != NULL && (*at)->remark.line <= line)
        at = &(*at)->next;
    new->next = *at;
    *at       = new;
}

void
il__reading_fault(struct reading *r, size_t line, struct place where, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    remark(r, true, line, where, fmt, ap);
    va_end(ap);
}

void
il__reading_advise(struct reading *r, size_t line, struct place where, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    remark(r, false, line, where, fmt, ap);
    va_end(ap);
}

/* ---- memory ---------------------------------------------------------------------------------- */

void *
il__reading_alloc(struct reading *r, size_t n, size_t size)
{
    void *p = il__arena_alloc(&r->p->mem, MAX(n, 1) * size);

    if (p == NULL)
        r->no_memory = true;
    else
        memset(p, 0, MAX(n, 1) * size);
    return p;
}

char *
il__reading_strdup(struct reading *r, const char *text)
{
    char *copy = il__arena_strdup(&r->p->mem, text);

    r->no_memory |= copy == NULL;
    return copy;
}

/* ---- mappings -------------------------------------------------------------------------------- */

const struct doc_node *
il__doc_get(const struct doc_node *map, const char *key)
{
    for (const struct doc_node *m = map->first; m != NULL; m = m->next) {
        if (strcmp(m->key, key) == 0)
            return m;
    }
    return NULL;
}

const char *
il__reading_name_at(const void *cookie, size_t i)
{
    const char *const *names = cookie;

    return names[i];
}

const char *
il__reading_hint(const char *word, const char *(*next)(const void *cookie, size_t i),
                 const void *cookie, char *out, size_t n_bytes)
{
    const char *meant = il__suggest(word, next, cookie);

    out[0] = '\0';
    if (meant != NULL)
        (void)snprintf(out, n_bytes, " (did you mean '%.64s'?)", meant);
    return out;
}

struct two_lists {
    const char *const *first, *const *second;
};

static const char *
name_of_two(const void *cookie, size_t i)
{
    const struct two_lists *l = cookie;

    for (const char *const *n = l->first; *n != NULL; n++) {
        if (i-- == 0)
            return *n;
    }
    return l->second != NULL ? l->second[i] : NULL;
}

static bool
is_one_of(const char *word, const char *const *names)
{
    for (; names != NULL && *names != NULL; names++) {
        if (strcmp(word, *names) == 0)
            return true;
    }
    return false;
}

bool
il__reading_keys(struct reading *r, const struct doc_node *map, const char *at,
                 const char *const *names, const char *const *more)
{
    struct two_lists lists = { names, more };
    char             hint[100];
    bool             ok = true;

    if (map->type != DOC_MAP) {
        il__reading_fault(r, map->line, PLACE(at, ""), "must be a mapping (name: value)");
        return false;
    }
    for (const struct doc_node *m = map->first; m != NULL; m = m->next) {
        if (is_one_of(m->key, names) || is_one_of(m->key, more))
            continue;
        ok = false;
        il__reading_fault(r, m->key_line, PLACE(at, ""), "unknown key '%.60s'%s", m->key,
                          il__reading_hint(m->key, name_of_two, &lists, hint, sizeof hint));
    }
    return ok;
}

/* ---- scalars --------------------------------------------------------------------------------- */

/* The text of a node; NULL = it has none, which is reported. */
static const char *
scalar(struct reading *r, const struct doc_node *node, struct place where, const char *what)
{
    if (node->type == DOC_MAP && node->plain && node->n == 1 && node->first->type == DOC_TEXT &&
        node->first->text == NULL) {
        il__reading_fault(r, node->line, where,
                          "write \"{%.60s}\" in quotes; without them YAML reads a mapping",
                          node->first->key);
        return NULL;
    }
    if (node->type != DOC_TEXT)
        il__reading_fault(r, node->line, where, "must be %s, not a %s", what,
                          node->type == DOC_LIST ? "list" : "mapping");
    else if (node->text == NULL)
        il__reading_fault(r, node->line, where, "has no value; it must be %s", what);
    return node->type == DOC_TEXT ? node->text : NULL;
}

/* Control characters other than tabs and newlines. */
static bool
has_control(const char *s)
{
    for (; *s != '\0'; s++) {
        if (((unsigned char)*s < 0x20 && strchr("\t\n\r", *s) == NULL) || *s == 0x7F)
            return true;
    }
    return false;
}

const char *
il__reading_text(struct reading *r, const struct doc_node *map, const char *at, const char *key,
                 size_t n_max, bool required)
{
    const struct doc_node *node = il__doc_get(map, key);

    if (node == NULL) {
        if (required)
            il__reading_fault(r, map->line, PLACE(at, key), "is missing");
        return NULL;
    }
    const char *text = scalar(r, node, PLACE(at, key), "a text");
    if (text == NULL)
        return NULL;
    if (text[0] == '\0' && required)
        il__reading_fault(r, node->line, PLACE(at, key), "must not be empty");
    else if (strlen(text) > n_max)
        il__reading_fault(r, node->line, PLACE(at, key), "is longer than %zu bytes", n_max);
    else if (has_control(text))
        il__reading_fault(r, node->line, PLACE(at, key), "contains a control character");
    else
        return il__reading_strdup(r, text);
    return NULL;
}

int64_t
il__reading_number(struct reading *r, const struct doc_node *map, const char *at, const char *key,
                   int64_t min, int64_t max, int64_t fallback)
{
    const struct doc_node *node = il__doc_get(map, key);
    uint64_t               number;

    if (node == NULL)
        return fallback;
    const char *text = scalar(r, node, PLACE(at, key), "a number");
    if (text == NULL)
        return fallback;
    if (il__parse_u64(text, (uint64_t)max, &number) && (int64_t)number >= min)
        return (int64_t)number;
    il__reading_fault(r, node->line, PLACE(at, key),
                      "must be a whole number from %" PRId64 " to %" PRId64 ", not '%.60s'", min,
                      max, text);
    return fallback;
}

int64_t
il__reading_duration(struct reading *r, const struct doc_node *map, const char *at, const char *key,
                     int64_t min_ms, int64_t max_ms, int64_t fallback)
{
    const struct doc_node *node = il__doc_get(map, key);
    char                   min_text[IL__DURATION_TEXT_BYTES];
    char                   max_text[IL__DURATION_TEXT_BYTES];
    int64_t                ms;

    if (node == NULL)
        return fallback;
    const char *text = scalar(r, node, PLACE(at, key), "a duration, as 45s");
    if (text == NULL)
        return fallback;
    if (il_parse_duration(text, &ms, NULL) == IL_OK && ms >= min_ms && ms <= max_ms)
        return ms;
    il__reading_fault(r, node->line, PLACE(at, key),
                      "must be a duration from %s to %s (250ms, 30s, 5m, 1h), not '%.60s'",
                      il__duration_text(min_ms, min_text), il__duration_text(max_ms, max_text),
                      text);
    return fallback;
}

bool
il__reading_bool(struct reading *r, const struct doc_node *map, const char *at, const char *key,
                 bool fallback)
{
    const struct doc_node *node = il__doc_get(map, key);
    const char *text = node != NULL ? scalar(r, node, PLACE(at, key), "true or false") : NULL;

    if (text == NULL)
        return fallback;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        return text[0] == 't';
    il__reading_fault(r, node->line, PLACE(at, key), "must be true or false, not '%.60s'", text);
    return fallback;
}

static bool
same_choice(const char *a, const char *b)
{
    for (; *a != '\0' || *b != '\0'; a++, b++) {
        if (*a != *b && !((*a == '-' || *a == '_') && (*b == '-' || *b == '_')))
            return false;
    }
    return true;
}

size_t
il__reading_choice(struct reading *r, const struct doc_node *map, const char *at, const char *key,
                   const char *const *names, bool required)
{
    const struct doc_node *node = il__doc_get(map, key);
    char                   hint[100];
    char                   all[160];
    size_t                 n = 0;

    if (node == NULL && !required)
        return SIZE_MAX;
    all[0] = '\0';
    for (size_t i = 0; names[i] != NULL && n < sizeof all; i++)
        n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", i > 0 ? ", " : "", names[i]);
    if (node == NULL) {
        il__reading_fault(r, map->line, PLACE(at, key), "is missing; must be one of %s", all);
        return SIZE_MAX;
    }
    const char *text = scalar(r, node, PLACE(at, key), "a text");
    if (text == NULL)
        return SIZE_MAX;
    for (size_t i = 0; names[i] != NULL; i++) {
        if (same_choice(text, names[i]))
            return i;
    }
    il__reading_fault(r, node->line, PLACE(at, key), "'%.60s' is not one of %s%s", text, all,
                      il__reading_hint(text, il__reading_name_at, names, hint, sizeof hint));
    return SIZE_MAX;
}

int64_t
il__reading_timeout(struct reading *r, const struct doc_node *map, const char *at,
                    const struct reading_timeout *t, bool *ret_given)
{
    const struct doc_node *minutes  = il__doc_get(map, "timeout_minutes");
    const struct doc_node *duration = il__doc_get(map, "timeout");

    *ret_given = minutes != NULL || duration != NULL;
    if (minutes != NULL && duration != NULL)
        il__reading_fault(r, duration->key_line, PLACE(at, "timeout"),
                          "timeout_minutes is also set; set only one of them");
    if (minutes != NULL)
        return 60000 * il__reading_number(r, map, at, "timeout_minutes", 1, t->minutes_max,
                                          t->fallback_ms / 60000);
    return il__reading_duration(r, map, at, "timeout", t->min_ms, t->max_ms, t->fallback_ms);
}

const char *
il__reading_id(struct reading *r, const struct doc_node *map, const char *key, const char *at,
               size_t n_max)
{
    const char *id = il__reading_text(r, map, at, key, n_max, true);

    if (id == NULL)
        return NULL;
    for (const char *p = id; *p != '\0'; p++) {
        if ((*p >= 'A' && *p <= 'Z') || (*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9') ||
            *p == '_' || *p == '-')
            continue;
        il__reading_fault(r, il__doc_get(map, key)->line, PLACE(at, key),
                          "'%.60s' may contain only letters, digits, '_' and '-'", id);
        return NULL;
    }
    return id;
}

/* ---- texts with parameters ------------------------------------------------------------------- */

static const char *
parameter_at(const void *cookie, size_t i)
{
    const struct pipeline *p = cookie;

    return i < p->n_parameters ? p->parameters[i].name
                               : il__pipeline_known_name(i - p->n_parameters);
}

/* Is the {name} of a piece known here? If not, report it. */
static bool
name_ok(struct reading *r, const struct template_piece *piece, size_t line, struct place where)
{
    char        word[TEMPLATE_NAME_BYTES_MAX + 1];
    char        hint[100];
    const char *name;

    (void)snprintf(word, sizeof word, "%.*s", (int)piece->n_bytes, piece->text);
    for (size_t i = 0; (name = parameter_at(r->p, i)) != NULL; i++) {
        if (strcmp(name, word) != 0)
            continue;
        if (!r->in_probe || i < r->p->n_parameters ||
            (strcmp(word, "fence") != 0 && strcmp(word, "step_id") != 0 &&
             strcmp(word, "attempt") != 0))
            return true;
        il__reading_fault(r, line, where, "{%s} is not available before the run starts", word);
        return false;
    }
    il__reading_fault(r, line, where,
                      "no such parameter: '%s'%s; write {{%s}} for the literal text", word,
                      il__reading_hint(word, parameter_at, r->p, hint, sizeof hint), word);
    return false;
}

bool
il__reading_template(struct reading *r, const struct doc_node *node, struct place where,
                     struct pipeline_text *ret)
{
    const char           *text = scalar(r, node, where, "a text");
    const char           *at   = text;
    bool                  ok   = true;
    struct template_piece piece;

    if (text == NULL)
        return false;
    if (strlen(text) > TEXT_BYTES_MAX) {
        il__reading_fault(r, node->line, where, "is longer than %d bytes", TEXT_BYTES_MAX);
        return false;
    }
    while (il__template_next(&at, &piece) != TEMPLATE_END) {
        if (piece.kind == TEMPLATE_NAME)
            ok &= name_ok(r, &piece, node->line, where);
    }
    ret->text = il__reading_strdup(r, text);
    return ok && ret->text != NULL;
}

/* {name} in quotes is not substituted: probably not what was meant. */
static void
advise_quoted(struct reading *r, const struct template_piece *quoted, size_t line,
              struct place where)
{
    const char *end = quoted->text + quoted->n_bytes;
    const char *at  = quoted->text;

    if (*at != '\'' && *at != '"')
        return;
    for (struct template_piece piece; at < end && il__template_next(&at, &piece) != TEMPLATE_END;) {
        if (piece.kind != TEMPLATE_NAME || piece.text > end)
            continue;
        il__reading_advise(r, line, where,
                           "{%.*s} in quotes is text, not a parameter; write it without the quotes",
                           (int)piece.n_bytes, piece.text);
    }
}

bool
il__reading_sql(struct reading *r, const struct doc_node *node, struct place where,
                struct pipeline_text *ret)
{
    const char           *text = scalar(r, node, where, "a statement");
    const char           *at   = text;
    bool                  ok   = true;
    struct template_piece piece;

    if (text == NULL)
        return false;
    if (strspn(text, " \t\r\n;") == strlen(text) || strlen(text) > TEXT_BYTES_MAX) {
        il__reading_fault(r, node->line, where, "must be a statement of at most %d bytes",
                          TEXT_BYTES_MAX);
        return false;
    }
    while (il__template_next_sql(text, &at, &piece) != TEMPLATE_END) {
        if (piece.kind == TEMPLATE_NAME)
            ok &= name_ok(r, &piece, node->line, where);
        else if (piece.kind == TEMPLATE_QUOTED)
            advise_quoted(r, &piece, node->line, where);
        if (piece.kind != TEMPLATE_PLACEHOLDER)
            continue;
        ok = false;
        il__reading_fault(r, node->line, where,
                          "%.*s: placeholders are written {name}, with the name of a parameter",
                          (int)piece.n_bytes, piece.text);
    }
    ret->text = il__reading_strdup(r, text);
    return ok && ret->text != NULL;
}
