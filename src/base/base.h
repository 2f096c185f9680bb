/*
 * base.h: basics used everywhere: checks, scope cleanup, memory, small macros.
 *
 * Knows nothing about locks. Every .c file includes it first, after the system headers.
 *
 * Memory and text:
 *   arena.c    a chain of growing blocks, freed at once
 *   buf.c      a growable string with a maximum
 *   parse.c    numbers, durations and times from text; UTF-8
 *   decimal.c  decimal numbers as scaled integers
 *   suggest.c  "did you mean"
 *   error.c    the status table, and filling in an il_error
 *   id.c       UUIDs
 *
 * Containers:
 *   map.c   a hash table
 *   hash.c  its hash
 *   heap.c  a pairing heap
 *   tree.c  a search tree
 *
 * Time:
 *   clock.c      the clocks of the machine
 *   time.c       the calendar, RFC 3339
 *   zone.c       time zones
 *   zone_file.c  parses their files
 *
 * Between threads and processes:
 *   mutex.c        mutexes with ranks
 *   board.c        futex words that waiters sleep on
 *   ring.c         messages beside the words of a board
 *   mapped_file.c  mapped memory whose file may be truncated
 *   thread.c       starting threads, and their signal mask
 *
 * Other:
 *   base.c  failed checks, the allocator hooks, small files
 *   dl.c    libraries that are loaded on first use
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
 * CHECK: asserts against programming errors; never compiled out. Bad input and bad stored data are
 * not programming errors: those return a status.
 */
#define CHECK(x) \
    (__builtin_expect(!!(x), 1) ? (void)0 : il__check_failed(#x, __FILE__, __LINE__, __func__))

_Noreturn void il__check_failed(const char *expr, const char *file, int line, const char *func);

/* A local that owns a resource: AUTO(fn) calls `void fn(T *p)` when it goes out of scope. */
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
/*
 * The smaller and the larger of two values. Each argument is evaluated once, since a second call
 * (to a clock, say) may return another value. Both are converted to their common type, as in a
 * comparison, so a constant needs no cast. The number keeps the variables of nested calls (a MIN
 * inside a MAX) apart. Not usable in constant expressions.
 */
#ifdef __cppcheck__ /* which cannot parse a statement expression in an initializer */
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#else
#define MIN(a, b) IL__CHOOSE(a, <, b, __COUNTER__)
#define MAX(a, b) IL__CHOOSE(a, >, b, __COUNTER__)
#define IL__CHOOSE(a, op, b, n) IL__CHOOSE_AS(a, op, b, n) /* n becomes a number */
#define IL__CHOOSE_AS(a, op, b, n)                        \
    ({                                                    \
        __typeof__(1 ? (a) : (b)) first_##n  = (a);       \
        __typeof__(1 ? (a) : (b)) second_##n = (b);       \
        first_##n op second_##n ? first_##n : second_##n; \
    })
#endif

#define UNUSED __attribute__((unused))
#define MUST_USE __attribute__((warn_unused_result))
/* Ignore a warn_unused_result value; a comment at each use says why that is right. */
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
 * Memory, through the hooks of il_set_allocator(). NULL when out of memory: every caller checks,
 * and the library never aborts for lack of memory. il__free(NULL) is fine.
 */
void *il__alloc(size_t n_bytes);
void *il__calloc(size_t n, size_t size);
/* For tables with random access: requests huge pages for a large one. Zeroed. */
void *il__calloc_table(size_t n, size_t size);
void *il__realloc(void *p, size_t n_bytes);
char *il__strdup(const char *s);
char *il__strndup(const char *s, size_t n_bytes);
void  il__free(void *p);
/*
 * Room for one more item in an array of n, by doubling. `array` is the address of the pointer to
 * it. False: out of memory, nothing changed.
 */
bool il__grow(void *array, size_t n, size_t *capacity, size_t item_bytes) MUST_USE;
/* Copy bytes to *at and advance it; returns where they were copied to. */
char *il__put(char **at, const void *data, size_t n_bytes);

/* Read the beginning of a file, as of /proc, and add a NUL. Returns how many bytes; 0: empty, or it
 * cannot be read. */
size_t il__read_small(const char *path, char *text, size_t n_bytes);

static inline void
il__freep(void *p)
{
    void *owned;

    memcpy(&owned, p, sizeof owned);
    il__free(owned);
}

#include "base/banned.h"

#endif
