/*
 * buf.c: growable strings; the contract is in buf.h.
 */
#include "base/buf.h"

#include <stdio.h>

void
il__buf_init(struct il__buf *b, size_t n_bytes_max)
{
    CHECK(n_bytes_max > 0);
    *b = (struct il__buf){ .n_bytes_max = n_bytes_max };
}

void
il__buf_release(struct il__buf *b)
{
    size_t n_bytes_max = b->n_bytes_max;

    il__free(b->data);
    *b = (struct il__buf){ .n_bytes_max = n_bytes_max };
}

void
il__buf_clear(struct il__buf *b)
{
    b->n_bytes = 0;
    b->failed  = false;
    if (b->data != NULL)
        b->data[0] = '\0';
}

void
il__buf_keep_last(struct il__buf *b, size_t n_keep)
{
    if (b->n_bytes <= n_keep)
        return;
    memmove(b->data, b->data + (b->n_bytes - n_keep), n_keep);
    b->n_bytes      = n_keep;
    b->data[n_keep] = '\0';
}

/* Make room for n_more bytes and a NUL; false (and `failed` set) when that is impossible. */
static bool
reserve(struct il__buf *b, size_t n_more)
{
    CHECK(b->n_bytes <= b->n_bytes_max);
    if (b->failed)
        return false;
    if (n_more > b->n_bytes_max - b->n_bytes) {
        b->failed = true;
        return false;
    }
    size_t need = b->n_bytes + n_more + 1;
    if (need <= b->capacity)
        return true;
    size_t capacity = MAX(MAX(need, b->capacity * 2), 64);
    char  *data     = il__realloc(b->data, capacity);
    if (data == NULL) {
        b->failed = true;
        return false;
    }
    b->data     = data;
    b->capacity = capacity;
    return true;
}

char *
il__buf_room(struct il__buf *b, size_t n_bytes)
{
    return reserve(b, n_bytes) ? b->data + b->n_bytes : NULL;
}

void
il__buf_add(struct il__buf *b, const void *data, size_t n_bytes)
{
    if (!reserve(b, n_bytes))
        return;
    if (n_bytes > 0)
        memcpy(b->data + b->n_bytes, data, n_bytes);
    b->n_bytes += n_bytes;
    b->data[b->n_bytes] = '\0';
}

void
il__buf_adds(struct il__buf *b, const char *s)
{
    il__buf_add(b, s, strlen(s));
}

void
il__buf_addc(struct il__buf *b, char c)
{
    il__buf_add(b, &c, 1);
}

void
il__buf_vaddf(struct il__buf *b, const char *fmt, va_list ap)
{
    va_list again;

    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n < 0 || !reserve(b, (size_t)n)) {
        b->failed = true;
        return;
    }
    (void)vsnprintf(b->data + b->n_bytes, (size_t)n + 1, fmt, ap); /* its length is known */
    b->n_bytes += (size_t)n;
}

void
il__buf_addf(struct il__buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    il__buf_vaddf(b, fmt, ap);
    va_end(ap);
}

void
il__buf_add_url(struct il__buf *b, const char *text)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";

    for (; *text != '\0'; text++) {
        if (strchr(plain, *text) != NULL)
            il__buf_addc(b, *text);
        else
            il__buf_addf(b, "%%%02X", (unsigned)(unsigned char)*text);
    }
}

const char *
il__buf_str(const struct il__buf *b)
{
    return b->data != NULL ? b->data : "";
}

char *
il__buf_take(struct il__buf *b)
{
    char *data = NULL;

    if (!b->failed) {
        if (b->data == NULL)
            data = il__strdup("");
        else
            data = TAKE(b->data);
    }
    il__buf_release(b);
    return data;
}
