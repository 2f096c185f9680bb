/*
 * arena.c: an arena as a chain of blocks, newest first; the contract is in arena.h.
 */
#include "base/arena.h"

struct block {
    struct block *older;
    size_t        n_used;
    size_t        capacity;
    _Alignas(16) char data[];
};

#define BLOCK_BYTES_MIN 512
#define BLOCK_BYTES_MAX 65536

void *
il__arena_alloc(void **chain, size_t n_bytes)
{
    struct block *b = *chain;

    n_bytes = (n_bytes + 15) & ~(size_t)15;
    if (b == NULL || b->capacity - b->n_used < n_bytes) {
        size_t capacity = b == NULL ? BLOCK_BYTES_MIN : MIN(b->capacity * 2, BLOCK_BYTES_MAX);
        capacity        = MAX(capacity, n_bytes);
        b               = il__alloc(sizeof *b + capacity);
        if (b == NULL)
            return NULL;
        b->older    = *chain;
        b->n_used   = 0;
        b->capacity = capacity;
        *chain      = b;
    }
    void *p = b->data + b->n_used;
    b->n_used += n_bytes;
    return p;
}

char *
il__arena_strdup(void **chain, const char *s)
{
    size_t n_bytes = strlen(s) + 1;
    char  *copy    = il__arena_alloc(chain, n_bytes);

    if (copy != NULL)
        memcpy(copy, s, n_bytes);
    return copy;
}

void *
il__arena_append(void **chain, void *array, size_t *n, size_t item_bytes)
{
    void *items;

    memcpy(&items, array, sizeof items);
    if ((*n & (*n - 1)) == 0) { /* full */
        void *grown = il__arena_alloc(chain, (*n == 0 ? 1 : *n * 2) * item_bytes);
        if (grown == NULL)
            return NULL;
        if (*n > 0)
            memcpy(grown, items, *n * item_bytes);
        items = grown;
        memcpy(array, &items, sizeof items);
    }
    return (char *)items + item_bytes * (*n)++;
}

size_t
il__arena_bytes(const void *chain)
{
    size_t n_bytes = 0;

    for (const struct block *b = chain; b != NULL; b = b->older)
        n_bytes += sizeof *b + b->capacity;
    return n_bytes;
}

static void
free_from(struct block *b)
{
    while (b != NULL) {
        struct block *older = b->older;
        il__free(b);
        b = older;
    }
}

void
il__arena_free(void **chain)
{
    free_from(*chain);
    *chain = NULL;
}

void
il__arena_clear(void **chain)
{
    struct block *b = *chain;

    if (b == NULL)
        return;
    free_from(b->older);
    b->older  = NULL;
    b->n_used = 0;
}
