/*
 * seen.c: a hash table of observed values; see seen.h.
 */
#include "harness/seen.h"

#include <string.h>

uint64_t
t_sum_number(uint64_t sum, uint64_t number)
{
    sum = (sum ^ number) * UINT64_C(0x9e3779b97f4a7c15);
    return sum ^ (sum >> 29);
}

uint64_t
t_sum_text(uint64_t sum, const char *text)
{
    for (const char *c = text; *c != '\0'; c++)
        sum = t_sum_number(sum, (unsigned char)*c);
    return sum;
}

void
t_seen_release(struct t_seen_map *m)
{
    for (size_t i = 0; i < m->capacity; i++) {
        free(m->items[i].tenant);
        free(m->items[i].name);
        free(m->items[i].times);
    }
    free(m->items);
    *m = (struct t_seen_map){ 0 };
}

/* Its place, or the free one where it belongs. */
static struct t_seen *
place_of(const struct t_seen_map *m, char kind, const char *tenant, const char *name)
{
    uint64_t i = t_sum_text(t_sum_text(t_sum_number(1, (unsigned char)kind), tenant), name);

    for (;; i++) {
        struct t_seen *s = &m->items[i & (m->capacity - 1)];
        if (s->name == NULL)
            return s;
        if (s->kind == kind && strcmp(s->name, name) == 0 && strcmp(s->tenant, tenant) == 0)
            return s;
    }
}

static void
grow(struct t_seen_map *m)
{
    struct t_seen_map larger = { .n = m->n, .capacity = MAX(m->capacity * 2, 64) };

    larger.items = calloc(larger.capacity, sizeof *larger.items);
    CHECK(larger.items != NULL);
    for (size_t i = 0; i < m->capacity; i++) {
        const struct t_seen *s = &m->items[i];
        if (s->name != NULL)
            *place_of(&larger, s->kind, s->tenant, s->name) = *s;
    }
    free(m->items);
    *m = larger;
}

struct t_seen *
t_seen_find(struct t_seen_map *m, char kind, const char *tenant, const char *name)
{
    if (m->n * 2 >= m->capacity)
        grow(m);
    struct t_seen *s = place_of(m, kind, tenant, name);
    if (s->name == NULL) {
        *s = (struct t_seen){ .kind = kind, .tenant = strdup(tenant), .name = strdup(name) };
        CHECK(s->tenant != NULL && s->name != NULL);
        m->n++;
    }
    return s;
}

void
t_seen_add_time(struct t_seen *s, int64_t time_ms)
{
    int64_t *times = realloc(s->times, (s->n_times + 1) * sizeof *times);

    CHECK(times != NULL);
    s->times               = times;
    s->times[s->n_times++] = time_ms;
}
