/*
 * suggest.c: "did you mean": the nearest name by edit distance.
 */
#include "base/suggest.h"

#define WORD_BYTES_MAX 64

/*
 * Number of edits (insert, delete, replace, swap neighbours) that turn a into b, or a number too
 * large to be a typo when one of them is too long to compare.
 */
static size_t
distance(const char *a, const char *b)
{
    size_t n_a = strlen(a);
    size_t n_b = strlen(b);
    size_t d[WORD_BYTES_MAX + 1][WORD_BYTES_MAX + 1];

    if (n_a > WORD_BYTES_MAX || n_b > WORD_BYTES_MAX)
        return WORD_BYTES_MAX;
    for (size_t i = 0; i <= n_a; i++)
        d[i][0] = i;
    for (size_t j = 0; j <= n_b; j++)
        d[0][j] = j;
    for (size_t i = 1; i <= n_a; i++) {
        for (size_t j = 1; j <= n_b; j++) {
            size_t replace = d[i - 1][j - 1] + (a[i - 1] != b[j - 1] ? 1 : 0);
            size_t best    = MIN(replace, MIN(d[i - 1][j], d[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = MIN(best, d[i - 2][j - 2] + 1);
            d[i][j] = best;
        }
    }
    return d[n_a][n_b];
}

const char *
il__suggest(const char *word, const char *(*next)(const void *cookie, size_t i), const void *cookie)
{
    const char *best   = NULL;
    size_t      least  = 3; /* more than two edits: another word */
    size_t      n_word = strlen(word);
    const char *name;

    for (size_t i = 0; n_word > 0 && (name = next(cookie, i)) != NULL; i++) {
        size_t edits = distance(word, name);
        /* A prefix counts as one typo; in a short word not every letter may be wrong. */
        if (n_word > 1 && strncmp(word, name, n_word) == 0)
            edits = MIN(edits, 1);
        if (edits < least && edits < strlen(name)) {
            least = edits;
            best  = name;
        }
    }
    return best;
}
