/*
 * page_reader.h: shared by the parsers of pages: a page being parsed.
 *
 * Memory and texts need no check at each use: the first failure is remembered, and
 * il__reader_finish() reports it.
 */
#ifndef IL_APPS_INGEST_PAGE_READER_H
#define IL_APPS_INGEST_PAGE_READER_H

#include "apps/ingest/html.h"
#include "apps/ingest/liverc.h"

struct reader {
    struct liverc_page         *page;
    const struct liverc_source *source;
    enum liverc_code            format; /* the code for a page that is not what it should be */
    il_error                   *err;
    struct html                 html;
    struct il__buf              raw, text; /* scratch */
    bool                        no_memory;
    bool                        too_long; /* a text exceeds LIVERC_TEXT_BYTES_MAX */
};

#define AUTO_READER AUTO(il__reader_release)

/* Parse the HTML of a page; `page` gets what is read. */
il_status il__reader_open(struct reader *r, struct liverc_page *page, const struct liverc_source *s,
                          enum liverc_code format, il_error *reterr) MUST_USE;
void      il__reader_release(struct reader *r);
/* IL_OK, or why what was read cannot be used. */
il_status il__reader_finish(struct reader *r) MUST_USE;

/* Refuse the page: IL_INVAL; IL_NOMEM if memory has run out before. */
il_status il__reader_fail(struct reader *r, enum liverc_code code, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
void il__reader_warn(struct reader *r, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Zeroed memory that lives as long as the page; NULL: remembered. */
void *il__reader_alloc(struct reader *r, size_t n_bytes);
/* Append an item to an array of the page: the new one, zeroed; NULL: remembered. */
void *il__reader_append(struct reader *r, void *array, size_t *n, size_t size);
/* A copy that lives as long as the page; "" when memory has run out. */
const char *il__reader_keep(struct reader *r, const char *text);
/* The normalised text of an element (see il__html_text()), and of a string; "" for `n` NULL. */
const char *il__reader_text(struct reader *r, const xmlNode *n, const char *without);
const char *il__reader_clean(struct reader *r, const char *text);
const char *il__reader_upper(struct reader *r, const char *text);
/* The first line with a text; a br ends a line. */
const char *il__reader_first_line(struct reader *r, const xmlNode *n, const char *without);
/* The same in scratch memory, for texts that are only looked at: gone with the next call of any of
 * these, and cut off if it is too long. */
const char *il__reader_peek(struct reader *r, const xmlNode *n, const char *without);

/* Does a link lead to a page like view_race_result? Its id, which lives as long as the page, or
 * NULL. */
const char *il__reader_link_id(struct reader *r, const char *href, const char *page);
/* The id of this page: that of its URL, or the one in links of the page to one of `pages` (ends
 * with NULL), which must be the same. *ret is NULL if there is neither. */
il_status il__reader_id(struct reader *r, const char *const *pages, const char **ret) MUST_USE;

/* SHA-256 in hexadecimal. */
void il__liverc_digest(const void *data, size_t n_bytes, char out[LIVERC_DIGEST_BYTES]);

#endif
