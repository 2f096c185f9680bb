/*
 * template.h: splits texts with {name} into pieces. Used when a file is parsed (are the names
 * known?) and when a step is run (expand.c).
 */
#ifndef IL_APPS_RUNNER_TEMPLATE_H
#define IL_APPS_RUNNER_TEMPLATE_H

#include "base/base.h"

#define TEMPLATE_NAME_BYTES_MAX 64

enum template_kind {
    TEMPLATE_END,
    TEMPLATE_TEXT,        /* literal text; for {{name}}, just {name} */
    TEMPLATE_NAME,        /* the name, without its braces */
    TEMPLATE_QUOTED,      /* SQL: a literal, a quoted name or a comment, unchanged */
    TEMPLATE_PLACEHOLDER, /* SQL: $1 */
};
struct template_piece {
    enum template_kind kind;
    const char        *text;
    size_t             n_bytes;
};

/* The piece at *at, which advances. {x y}, {"a": 1}, {} and single braces are text. */
enum template_kind il__template_next(const char **at, struct template_piece *ret);
/* The same for SQL: a quoted text or comment is one piece, whatever it contains. `start` is the
 * beginning of the statement. */
enum template_kind il__template_next_sql(const char *start, const char **at,
                                         struct template_piece *ret);
/* Does it contain a {name}? */
bool il__template_has_names(const char *text);
/* Is it ^[A-Za-z_][A-Za-z0-9_]*$ and within the length limit of names? */
bool il__template_is_name(const char *text, size_t n_bytes);

#endif
