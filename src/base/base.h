/*
 * base.h: what every file of the project may rely on: checks, cleanup, memory, small macros.
 *
 * Nothing here knows about locks. Included first (after system headers) by every .c file.
 */
#ifndef IL_BASE_BASE_H
#define IL_BASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "interlock.h"

/*
 * CHECK: a programmer's error, never compiled out. Bad input and bad stored data are not programmer's
 * errors: they are statuses.
 */
#define CHECK(x) \
    (__builtin_expect(!!(x), 1) ? (void)0 : il__check_failed(#x, __FILE__, __LINE__, __func__))

_Noreturn void il__check_failed(const char *expr, const char *file, int line, const char *func);

/* A local that owns something: AUTO(fn) with `void fn(T *p)`, run when the scope is left. */
#define AUTO(fn) __attribute__((cleanup(fn)))
#define AUTO_FREE AUTO(il__freep)
#define DEFINE_AUTO(type, fn)          \
    static inline void fn##p(type **p) \
    {                                  \
        if (*p != NULL) {              \
            fn(*p);                    \
            *p = NULL;                 \
        }                              \
    }

/* Move ownership out of a variable. */
#define TAKE(p)                         \
    ({                                  \
        __typeof__(p) *take_  = &(p);   \
        __typeof__(p)  taken_ = *take_; \
        *take_                = NULL;   \
        taken_;                         \
    })

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define UNUSED __attribute__((unused))
#define MUST_USE __attribute__((warn_unused_result))
/* Ignore a result that the compiler insists on; the comment beside it says why that is right. */
#define IGNORE(call)  \
    do {              \
        if ((call)) { \
        }             \
    } while (0)
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
#define const_container_of(ptr, type, member) \
    ((const type *)(const void *)((const char *)(ptr)-offsetof(type, member)))

/*
 * Memory, through the hooks of il_set_allocator(). NULL when there is none: every caller checks, the
 * library never aborts for lack of memory. il__free(NULL) is fine.
 */
void *il__alloc(size_t n_bytes);
void *il__calloc(size_t n, size_t size);
/* For a table that is looked up at random: asks for large pages when it is large. Zeroed. */
void *il__calloc_table(size_t n, size_t size);
void *il__realloc(void *p, size_t n_bytes);
char *il__strdup(const char *s);
char *il__strndup(const char *s, size_t n_bytes);
void  il__free(void *p);
/* Copy bytes to *at, which moves on; where they are then. */
char *il__put(char **at, const void *data, size_t n_bytes);

static inline void
il__freep(void *p)
{
    void *owned;

    memcpy(&owned, p, sizeof owned);
    il__free(owned);
}

#include "base/banned.h"

#endif
