/*
 * day_copies.c: a per-process cache of days in response form. A slot is chosen by the hash of
 * tenant and date; a newer copy, or another day, replaces what it holds.
 */
#include <stdio.h>

#include "apps/usage/usage_internal.h"
#include "base/clock.h"
#include "base/hash.h"

#define BODY_BYTES_MAX (4 * USAGE_RAW_BYTES_MAX)

struct usage_copy *
usage_copy_ref(struct usage_copy *c)
{
    atomic_fetch_add(&c->n_refs, 1);
    return c;
}

void
usage_copy_unref(struct usage_copy *c)
{
    if (c == NULL || atomic_fetch_sub(&c->n_refs, 1) != 1)
        return;
    il__free(c->body);
    il__free(c);
}

/* ---- the answer ------------------------------------------------------------------------------ */

static void
print_day(struct il__buf *b, const struct usage_row *row)
{
    char date[IL__DATE_TEXT_BYTES], name[16];

    il__wire_open(b, NULL);
    il__wire_put_text(b, "date", il__date_text(row->date, date));
    il__wire_put_bool(b, "is_complete", row->complete);
    il__wire_put_time(b, "updated_at", row->updated_ms);
    il__wire_put_object(b, "metrics", &usage_wire_metrics, &row->figures.total, 0);
    for (enum usage_by by = 0; by < USAGE_BY_COUNT; by++) {
        const struct usage_parts *parts = &row->figures.by[by];
        (void)snprintf(name, sizeof name, "by_%s", usage_by_names[by]);
        il__wire_put_objects(b, name, &usage_wire_part, parts->items, sizeof *parts->items,
                             parts->n, 0);
    }
}

void
usage_copy_print(struct il__buf *b, const struct usage_copy *c, bool stale, const char *why)
{
    il__buf_add(b, c->body, c->n_bytes);
    il__wire_put_bool(b, "stale", stale);
    if (stale)
        il__wire_put_text(b, "error", why);
    il__wire_close(b);
}

struct usage_copy *
usage_copy_new(const char *tenant, const struct usage_row *row, uint64_t token)
{
    AUTO_BUF struct il__buf b = { 0 };
    struct usage_copy      *c = il__calloc(1, sizeof *c);

    il__buf_init(&b, BODY_BYTES_MAX);
    print_day(&b, row);
    if (c == NULL || b.failed) {
        il__free(c);
        return NULL;
    }
    atomic_init(&c->n_refs, 1);
    (void)snprintf(c->tenant, sizeof c->tenant, "%s", tenant);
    c->date       = row->date;
    c->token      = token;
    c->updated_ms = row->updated_ms;
    c->complete   = row->complete;
    c->n_bytes    = b.n_bytes;
    c->body       = il__buf_take(&b);
    return c;
}

/* ---- the copies that are kept ---------------------------------------------------------------- */

static struct usage_copy **
slot_of(struct usage *u, const char *tenant, usage_date date)
{
    uint64_t hash = il__hash_mix(il__hash_bytes(tenant, strlen(tenant)), (uint64_t)date);

    return &u->copies[hash % USAGE_COPIES];
}

static struct usage_copy *
take_out(struct usage *u, struct usage_copy **slot)
{
    struct usage_copy *c = TAKE(*slot);

    u->copies_bytes -= c != NULL ? c->n_bytes : 0;
    return c;
}

void
usage_copy_keep(struct usage *u, struct usage_copy *c)
{
    if (c->token == 0 || c->n_bytes > USAGE_COPIES_BYTES / 8)
        return;
    il__mutex_lock(&u->copies_mutex);
    struct usage_copy **slot = slot_of(u, c->tenant, c->date);
    usage_copy_unref(take_out(u, slot));
    for (size_t i = 0; i < USAGE_COPIES && u->copies_bytes + c->n_bytes > USAGE_COPIES_BYTES; i++)
        usage_copy_unref(take_out(u, &u->copies[i]));
    *slot = usage_copy_ref(c);
    u->copies_bytes += c->n_bytes;
    il__mutex_unlock(&u->copies_mutex);
}

struct usage_copy *
usage_copy_find(struct usage *u, const char *tenant, usage_date date, uint64_t token)
{
    il__mutex_lock(&u->copies_mutex);
    struct usage_copy *c    = *slot_of(u, tenant, date);
    bool               same = c != NULL && token != 0 && c->token == token && c->date == date &&
                strcmp(c->tenant, tenant) == 0;
    c = same ? usage_copy_ref(c) : NULL;
    il__mutex_unlock(&u->copies_mutex);
    return c;
}

void
usage_copies_release(struct usage *u)
{
    for (size_t i = 0; i < USAGE_COPIES; i++)
        usage_copy_unref(take_out(u, &u->copies[i]));
}

bool
usage_copy_is_fresh(const struct usage *u, const struct usage_copy *c)
{
    return usage_is_fresh(&u->o.life, c->complete, c->updated_ms, usage_now_ms(u));
}

void
usage_copy_hit(struct usage *u, struct usage_copy *c)
{
    int64_t now_ns = il__clock_boot_ns(), at_ns = atomic_load(&c->refresh_ns);

    usage_count(u, USAGE_COUNT_hits);
    if (!usage_is_ageing(&u->o.life, c->complete, c->updated_ms, usage_now_ms(u)) || now_ns < at_ns)
        return;
    /* One of those who see it at the same time starts the refresh; if it fails, or another process
     * is refreshing the day, the next one is tried after the time of a lease. */
    if (atomic_compare_exchange_strong(&c->refresh_ns, &at_ns,
                                       now_ns + u->o.lease_ms * IL__NS_PER_MS))
        IGNORE(usage_join(u, c->tenant, c->date, USAGE_REFRESH, NULL, NULL)); /* then later */
}
