/*
 * invariant.c: gathers what the query of an invariant finds, and compares it with the baseline.
 */
#include "apps/common/invariant.h"

#include <stdlib.h>

#include "base/parse.h"

const char *const il__invariant_severities[INVARIANT_SEVERITY_COUNT + 1] = { "info", "warning",
                                                                             "error" };

const char *
il__invariant_severity_name(enum invariant_severity severity)
{
    CHECK(severity < INVARIANT_SEVERITY_COUNT);
    return il__invariant_severities[severity];
}

/* ---- baseline -------------------------------------------------------------------------------- */

static int
by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

size_t
il__invariant_baseline_sort(const char **keys, size_t n)
{
    size_t n_kept = 0;

    if (n > 0)
        qsort(keys, n, sizeof *keys, by_text);
    for (size_t i = 0; i < n; i++) {
        if (n_kept == 0 || strcmp(keys[n_kept - 1], keys[i]) != 0)
            keys[n_kept++] = keys[i];
    }
    return n_kept;
}

/* The index of the key in the baseline; n_baseline: it is not in it. */
static size_t
baseline_index(const struct invariant_found *f, const char *key)
{
    size_t low = 0, high = f->n_baseline;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int    order  = strcmp(f->baseline[middle], key);
        if (order == 0)
            return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return f->n_baseline;
}

/* ---- what was found -------------------------------------------------------------------------- */

bool
il__invariant_found_init(struct invariant_found *f, const char *const *baseline, size_t n_baseline)
{
    *f     = (struct invariant_found){ .baseline = baseline, .n_baseline = n_baseline };
    f->met = il__calloc(n_baseline + 1, sizeof *f->met);
    return f->met != NULL;
}

void
il__invariant_found_release(struct invariant_found *f)
{
    for (size_t i = 0; i < f->n_offenders; i++) {
        il__free(f->offenders[i].key);
        il__free(f->offenders[i].text);
    }
    il__free(f->met);
    *f = (struct invariant_found){ 0 };
}

/* A copy of at most n_max bytes that ends with "…" if it was cut, never inside a character. */
static char *
copy_cut(const char *text, size_t n_max)
{
    static const char more[] = "…";
    size_t            n      = strnlen(text, n_max + 1);

    if (n <= n_max)
        return il__strndup(text, n);
    n          = il__utf8_cut(text, n_max - (sizeof more - 1));
    char *copy = il__alloc(n + sizeof more);
    if (copy != NULL) {
        memcpy(copy, text, n);
        memcpy(copy + n, more, sizeof more);
    }
    return copy;
}

void
il__invariant_found(struct invariant_found *found, const char *key, const char *text)
{
    size_t i = baseline_index(found, key);

    if (i < found->n_baseline) {
        found->met[i] = true;
        found->n_known++;
        return;
    }
    found->n_new++;
    if (found->n_offenders == INVARIANT_OFFENDERS_MAX)
        return;
    struct invariant_offender *o = &found->offenders[found->n_offenders++];
    o->key                       = copy_cut(key, INVARIANT_KEY_BYTES_MAX);
    o->text                      = text != NULL ? copy_cut(text, INVARIANT_TEXT_BYTES_MAX) : NULL;
    if (o->key == NULL || (text != NULL && o->text == NULL)) {
        il__free(o->key);
        il__free(o->text);
        found->n_offenders--;
        found->no_memory = true;
    }
}

size_t
il__invariant_not_needed(const struct invariant_found *f, const char **ret, size_t n_max)
{
    size_t n = 0;

    for (size_t i = 0; i < f->n_baseline; i++) {
        if (f->met[i])
            continue;
        if (n < n_max)
            ret[n] = f->baseline[i];
        n++;
    }
    return n;
}
