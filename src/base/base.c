/*
 * base.c: reporting failed checks, the allocator hooks, and reading small files.
 */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

_Noreturn void
il__check_failed(const char *expr, const char *file, int line, const char *func)
{
    char line_text[512];
    int  n = snprintf(line_text, sizeof line_text, "interlock: %s:%d: %s: check failed: %s\n", file,
                      line, func, expr);

    if (n > 0) {
        size_t n_bytes = MIN((size_t)n, sizeof line_text - 1);
        /* The process is about to abort; a failed write is ignored. */
        if (write(STDERR_FILENO, line_text, n_bytes) < 0)
            errno = 0;
    }
    abort();
}

static il_allocator hooks; /* all NULL: malloc and friends */

void
il_set_allocator(const il_allocator *allocator)
{
    static const il_allocator none;

    hooks = allocator != NULL ? *allocator : none;
}

void *
il__alloc(size_t n_bytes)
{
    if (n_bytes == 0)
        n_bytes = 1;
    return hooks.alloc != NULL ? hooks.alloc(hooks.cookie, n_bytes) : malloc(n_bytes);
}

void *
il__calloc(size_t n, size_t size)
{
    size_t n_bytes;

    if (__builtin_mul_overflow(n, size, &n_bytes))
        return NULL;
    void *p = il__alloc(n_bytes);
    if (p != NULL)
        memset(p, 0, n_bytes);
    return p;
}

void *
il__calloc_table(size_t n, size_t size)
{
    const uintptr_t large = 2 * 1024 * 1024;
    size_t          n_bytes;

    if (__builtin_mul_overflow(n, size, &n_bytes))
        return NULL;
    void *p = il__alloc(n_bytes);
    if (p == NULL)
        return NULL;
    /* Before the first access. Only a hint, and only for the huge pages entirely inside the
     * range. */
    uintptr_t first = ((uintptr_t)p + large - 1) & ~(large - 1);
    uintptr_t end   = ((uintptr_t)p + n_bytes) & ~(large - 1);
    if (end > first)
        (void)madvise((char *)p + (first - (uintptr_t)p), end - first, MADV_HUGEPAGE);
    memset(p, 0, n_bytes);
    return p;
}

void *
il__realloc(void *p, size_t n_bytes)
{
    if (n_bytes == 0)
        n_bytes = 1;
    return hooks.realloc != NULL ? hooks.realloc(hooks.cookie, p, n_bytes) : realloc(p, n_bytes);
}

void
il__free(void *p)
{
    if (p == NULL)
        return;
    if (hooks.free != NULL)
        hooks.free(hooks.cookie, p);
    else
        free(p);
}

bool
il__grow(void *array, size_t n, size_t *capacity, size_t item_bytes)
{
    void *items;

    if (n < *capacity)
        return true;
    size_t larger = MAX(*capacity * 2, 16);
    memcpy(&items, array, sizeof items);
    items = il__realloc(items, larger * item_bytes);
    if (items == NULL)
        return false;
    memcpy(array, &items, sizeof items);
    *capacity = larger;
    return true;
}

char *
il__strndup(const char *s, size_t n_bytes)
{
    char *copy = il__alloc(n_bytes + 1);

    if (copy != NULL) {
        memcpy(copy, s, n_bytes);
        copy[n_bytes] = '\0';
    }
    return copy;
}

char *
il__strdup(const char *s)
{
    return il__strndup(s, strlen(s));
}

char *
il__put(char **at, const void *data, size_t n_bytes)
{
    char *copy = *at;

    if (n_bytes > 0)
        memcpy(copy, data, n_bytes);
    *at += n_bytes;
    return copy;
}

size_t
il__read_small(const char *path, char *text, size_t n_bytes)
{
    ssize_t n  = -1;
    int     fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        n = read(fd, text, n_bytes - 1);
        (void)close(fd); /* was only read from */
    }
    n       = MAX(n, 0);
    text[n] = '\0';
    return (size_t)n;
}
