/*
 * html.h: an HTML page as a tree, and its inline scripts. Internal to the parsers of pages.
 *
 * libxml2 never sees the page itself but a copy that scan.c has checked: without scripts, styles,
 * comments and declarations, with bounded tags. Together with a bound on the depth, parsing costs
 * time and memory in proportion to the page, whatever it holds.
 */
#ifndef IL_APPS_INGEST_HTML_H
#define IL_APPS_INGEST_HTML_H

#include "apps/ingest/libraries.h"
#include "base/buf.h"

#define HTML_TAG_BYTES_MAX 8192
#define HTML_ATTRIBUTES_MAX 64 /* of a tag */
#define HTML_PARTS_MAX 200000  /* tags and attributes of a page */
#define HTML_DEPTH_MAX 256
#define HTML_SCRIPTS_MAX 64 /* inline ones; the others are ignored */
#define HTML_CELLS_MAX 32   /* of a row; the others are ignored */

struct html_script {
    const char *text;
    size_t      n_bytes;
};

struct html {
    struct il__buf     utf8;                      /* the page, if it was not UTF-8 */
    struct il__buf     clean;                     /* what libxml2 reads */
    xmlDoc            *doc;                       /* NULL: an empty page */
    struct html_script scripts[HTML_SCRIPTS_MAX]; /* in the body or `utf8` */
    size_t             n_scripts;
};

/* The cells of a row of a table. */
struct html_row {
    const xmlNode *cells[HTML_CELLS_MAX];
    size_t         n;
    bool           is_head; /* all cells are th */
};

/* `h` is all zero. The body is borrowed until il__html_release(). IL_OK, IL_NOMEM, or IL_INVAL: the
 * page exceeds a limit. */
il_status il__html_parse(struct html *h, const char *body, size_t n_bytes, il_error *reterr)
    MUST_USE;
void il__html_release(struct html *h);
/* Fill `clean` and `scripts`. */
il_status il__html_scan(struct html *h, const char *text, size_t n_bytes, il_error *reterr)
    MUST_USE;

/* Elements below `top` in document order, NULL at the end: the one after `at` (start with
 * `top`). */
const xmlNode *il__html_next(const xmlNode *top, const xmlNode *at);
const xmlNode *il__html_top(const struct html *h);
/* The first element below `top` with this class; `name` NULL = any element. */
const xmlNode *il__html_find(const xmlNode *top, const char *name, const char *class_name);

bool        il__html_is(const xmlNode *n, const char *name);
bool        il__html_has_class(const xmlNode *n, const char *class_name);
const char *il__html_attribute(const xmlNode *n, const char *name); /* NULL = not there */
/* Is it inside an element of that name, below `top`? */
bool il__html_inside(const xmlNode *n, const xmlNode *top, const char *name);
void il__html_row(const xmlNode *tr, struct html_row *ret);

/* Add the text of an element, with a newline for each br, without what is below an element of a
 * name or class in `without`: a list like "sup .hidden a", NULL = nothing. */
void il__html_text(const xmlNode *n, const char *without, struct il__buf *out);

#endif
