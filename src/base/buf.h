/*
 * buf.h: a growable string with a maximum size.
 *
 * Callers need not check every append: once memory or the maximum runs out, the buffer is `failed`,
 * keeps its content and ignores further appends; check once, at the end. The data is always
 * NUL-terminated.
 */
#ifndef IL_BASE_BUF_H
#define IL_BASE_BUF_H

#include <stdarg.h>

#include "base/base.h"

struct il__buf {
    char  *data; /* NULL while empty; see il__buf_str() */
    size_t n_bytes;
    size_t capacity;
    size_t n_bytes_max;
    bool   failed;
};

void il__buf_init(struct il__buf *b, size_t n_bytes_max);
void il__buf_release(struct il__buf *b); /* frees; the buffer is empty and usable afterwards */
void il__buf_clear(struct il__buf *b);   /* empties, keeps the memory */
/* Drop bytes from the front, so that at most the last n_keep stay. */
void il__buf_keep_last(struct il__buf *b, size_t n_keep);

void il__buf_add(struct il__buf *b, const void *data, size_t n_bytes);
void il__buf_adds(struct il__buf *b, const char *s);
void il__buf_addc(struct il__buf *b, char c);
void il__buf_addf(struct il__buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Add a text as one segment of a path or a value of a query: all but letters, digits and -._~ are
 * percent-encoded. */
void il__buf_add_url(struct il__buf *b, const char *text);
/* Where the caller can write n_bytes directly, or NULL if they do not fit. Afterwards the caller
 * adds the number written to b->n_bytes, and a NUL. */
char *il__buf_room(struct il__buf *b, size_t n_bytes);
void  il__buf_vaddf(struct il__buf *b, const char *fmt, va_list ap) PRINTF_LIKE(2, 0);

/* The string, "" while empty; still owned by the buffer. */
const char *il__buf_str(const struct il__buf *b);
/* The string, now owned by the caller (il__free); NULL when the buffer failed. The buffer is empty
 * afterwards. */
char *il__buf_take(struct il__buf *b);

#define AUTO_BUF AUTO(il__buf_release)

#endif
