/*
 * template.h: texts with {name} in them, taken apart piece by piece. Used when a file is read (are the names known?) and when a step is run (values.c).
 */
#ifndef IL_APPS_RUNNER_TEMPLATE_H
#define IL_APPS_RUNNER_TEMPLATE_H

#include "base/base.h"

#define TEMPLATE_NAME_BYTES_MAX 64

enum template_kind {
    TEMPLATE_END,
    TEMPLATE_TEXT,        /* as it is; of {{name}}, only {name} */
    TEMPLATE_NAME,        /* the name, without its braces */
    TEMPLATE_QUOTED,      /* SQL: a literal, a quoted name or a comment, as it is */
    TEMPLATE_PLACEHOLDER, /* SQL: $1 */
};
struct template_piece {
    enum template_kind kind;
    const char        *text;
    size_t             n_bytes;
};

/* The piece at *at, which moves behind it. {x y}, {"a": 1}, {} and single braces are text. */
enum template_kind il__template_next(const char **at, struct template_piece *ret);
/* The same in SQL: what stands in quotes or comments is one piece, whatever it holds. `start` is where the statement begins. */
enum template_kind il__template_next_sql(const char *start, const char **at,
                                         struct template_piece *ret);
/* Does it hold a {name}? */
bool il__template_has_names(const char *text);
/* Is it ^[A-Za-z_][A-Za-z0-9_]*$, not longer than a name may be? */
bool il__template_is_name(const char *text, size_t n_bytes);

#endif
