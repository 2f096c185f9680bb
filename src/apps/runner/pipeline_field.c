/*
 * pipeline_field.c: parses texts with parameters: templates and statements of a pipeline file.
 * The readers of plain fields are those of all our files (apps/common/reading.h).
 */
#include "apps/runner/pipeline_internal.h"

#include <stdio.h>

#include "apps/runner/template.h"

#define TEXT_BYTES_MAX 65536 /* of one value: a script, a statement, a body */

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
    for (size_t i = 0; (name = parameter_at(own(r)->p, i)) != NULL; i++) {
        if (strcmp(name, word) != 0)
            continue;
        if (!own(r)->in_probe || i < own(r)->p->n_parameters ||
            (strcmp(word, "fence") != 0 && strcmp(word, "step_id") != 0 &&
             strcmp(word, "attempt") != 0))
            return true;
        il__reading_fault(r, line, where, "{%s} is not available before the run starts", word);
        return false;
    }
    il__reading_fault(r, line, where,
                      "no such parameter: '%s'%s; write {{%s}} for the literal text", word,
                      il__reading_hint(word, parameter_at, own(r)->p, hint, sizeof hint), word);
    return false;
}

bool
il__pipeline_read_template(struct reading *r, const struct doc_node *node, struct place where,
                           struct pipeline_text *ret)
{
    const char           *text = il__reading_scalar(r, node, where, "a string");
    const char           *at   = text;
    bool                  ok   = true;
    struct template_piece piece;

    if (text == NULL)
        return false;
    if (strlen(text) > TEXT_BYTES_MAX) {
        il__reading_fault(r, node->line, where, "longer than %d bytes", TEXT_BYTES_MAX);
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
il__pipeline_read_sql(struct reading *r, const struct doc_node *node, struct place where,
                      struct pipeline_text *ret)
{
    const char           *text = il__reading_scalar(r, node, where, "a statement");
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
                          "invalid placeholder %.*s; use {name} with the name of a parameter",
                          (int)piece.n_bytes, piece.text);
    }
    ret->text = il__reading_strdup(r, text);
    return ok && ret->text != NULL;
}
