/*
 * waiters.c: rows of il_waiter: reads the queue of a key, and makes single changes; no decisions.
 *
 * A queue may have thousands of waiters, but an op only looks at the first ones, its own, and the
 * count. So a key is loaded with the first part of its queue, and more is read only when an op gets
 * that far. Race-free because all of it happens inside one BEGIN IMMEDIATE transaction.
 */
#include "base/arena.h"
#include "core/key.h"
#include "store/sqlite/run.h"

#define FIRST_WAITERS 4 /* waiters read at once; twice as many each time */

/* ---- reading --------------------------------------------------------------------------------- */

bool
il__sq_waiter_row(void **arena, sqlite3_stmt *row, struct sq_hold *h)
{
    il_mode mode = il__sq_mode(row, 2);

    *h = (struct sq_hold){
        .number      = il__sq_fence(row, 0),
        .holder      = il__arena_strdup(arena, il__sq_text(row, 1)),
        .mode        = mode,
        .permits     = il__sq_permits(row, 3, mode),
        .state       = IL_LEASE_WAITING,
        .ttl_ms      = sqlite3_column_int64(row, 4),
        .settle_ms   = sqlite3_column_int64(row, 5),
        .since_ms    = sqlite3_column_int64(row, 6),
        .renewed_ms  = sqlite3_column_int64(row, 7),
        .deadline_ms = sqlite3_column_int64(row, 8),
        .due_ms      = sqlite3_column_int64(row, 9),
        .meta        = il__arena_strdup(arena, il__sq_text(row, 10)),
        .place       = il__arena_strdup(arena, il__sq_text(row, 11)),
        .reason      = "",
        .verdict     = il__arena_strdup(arena, il__sq_text(row, 12)),
        .run         = (uint64_t)sqlite3_column_int64(row, 13),
    };
    return h->holder != NULL && h->meta != NULL && h->place != NULL && h->verdict != NULL;
}

/* Read more of the queue, up to `n` waiters. */
static bool
read_next(struct sq_store *s, struct sq_key *k, size_t n)
{
    struct sq_conn *c     = &s->conn;
    sqlite3_stmt   *row   = il__sq_use(c, SQ_waiter_of_key);
    size_t          n_was = k->waiters.n;
    int             rc;

    if (!il__sq_bind_text(c, row, 1, k->tenant) || !il__sq_bind_text(c, row, 2, k->key) ||
        !il__sq_bind_int(c, row, 3, (int64_t)k->read_to) || !il__sq_bind_int(c, row, 4, (int64_t)n))
        return false;
    while ((rc = il__sq_step(c, row)) == SQLITE_ROW) {
        struct sq_hold h;
        if (!il__sq_waiter_row(&s->scratch, row, &h) ||
            !il__sq_holds_add(&s->scratch, &k->waiters, &h)) {
            (void)sqlite3_reset(row); /* report the lack of memory */
            return il__sq_no_memory(c);
        }
        k->read_to = h.number;
    }
    k->more = k->waiters.n - n_was == n;
    return rc == SQLITE_DONE;
}

bool
il__sq_waiters_begin(struct sq_store *s, struct sq_key *k)
{
    return !s->has_waiters || read_next(s, k, FIRST_WAITERS);
}

bool
il__sq_waiters_next(struct sq_store *s, struct sq_key *k)
{
    return read_next(s, k, MAX(k->waiters.n, FIRST_WAITERS));
}

bool
il__sq_waiters_all(struct sq_store *s, struct sq_key *k)
{
    return !k->more || read_next(s, k, SIZE_MAX / 2);
}

/* A waiter that was not read yet, by its holder. */
static bool
read_holder(struct sq_store *s, const struct sq_key *k, const char *holder, struct sq_hold **ret)
{
    struct sq_conn *c   = &s->conn;
    sqlite3_stmt   *row = il__sq_use(c, SQ_waiter_of_holder);

    if (!il__sq_bind_text(c, row, 1, k->tenant) || !il__sq_bind_text(c, row, 2, k->key) ||
        !il__sq_bind_text(c, row, 3, holder))
        return false;
    int rc = il__sq_step(c, row);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE;
    *ret = il__arena_alloc(&s->scratch, sizeof **ret);
    if (*ret == NULL || !il__sq_waiter_row(&s->scratch, row, *ret)) {
        (void)sqlite3_reset(row);
        return il__sq_no_memory(c);
    }
    return il__sq_stmt_run(c, row);
}

bool
il__sq_waiters_find(struct sq_store *s, const struct sq_key *k, const char *holder,
                    struct sq_hold **ret)
{
    *ret = il__sq_find_holder(&k->waiters, holder);
    if (*ret != NULL || !k->more)
        return true;
    if (k->added != NULL && !k->added->gone && strcmp(k->added->holder, holder) == 0) {
        *ret = k->added;
        return true;
    }
    return read_holder(s, k, holder, ret);
}

bool
il__sq_waiters_overdue(struct sq_store *s, const struct sq_key *k, bool *ret)
{
    struct sq_conn *c   = &s->conn;
    sqlite3_stmt   *row = il__sq_use(c, SQ_waiter_overdue);

    *ret = !k->more; /* then they are read one by one */
    return *ret || (il__sq_bind_text(c, row, 1, k->tenant) && il__sq_bind_text(c, row, 2, k->key) &&
                    il__sq_bind_int(c, row, 3, s->state.now_ms) && il__sq_ask(c, row, ret));
}

/* ---- places ---------------------------------------------------------------------------------- */

/* How many waiters, without cancelled ones, have tickets from `from` up to, but excluding, `to`. */
static bool
count_between(struct sq_store *s, const char *tenant, const char *key, uint64_t from, uint64_t to,
              uint32_t *ret)
{
    struct sq_conn *c   = &s->conn;
    sqlite3_stmt   *row = il__sq_use(c, SQ_waiter_between);

    if (!il__sq_bind_text(c, row, 1, tenant) || !il__sq_bind_text(c, row, 2, key) ||
        !il__sq_bind_int(c, row, 3, (int64_t)from) || !il__sq_bind_int(c, row, 4, (int64_t)to) ||
        il__sq_step(c, row) != SQLITE_ROW)
        return false;
    *ret = (uint32_t)il__sq_number(row, 0, 0, UINT32_MAX);
    return il__sq_stmt_run(c, row);
}

/*
 * Counted from the last place counted in this transaction, if it was in the same queue: in a batch
 * of many who join or poll one queue, each is next to the one before.
 */
bool
il__sq_waiters_before(struct sq_store *s, const char *tenant, const char *key, uint64_t ticket,
                      uint32_t *ret)
{
    struct sq_place *p = &s->place;
    uint32_t         n;

    if (p->known && strcmp(p->tenant, tenant) == 0 && strcmp(p->key, key) == 0) {
        bool behind = ticket >= p->ticket;
        if (!count_between(s, tenant, key, MIN(ticket, p->ticket), MAX(ticket, p->ticket), &n))
            return false;
        p->n_before = behind ? p->n_before + n : p->n_before - n;
    } else {
        if (!count_between(s, tenant, key, 0, ticket, &p->n_before))
            return false;
        (void)snprintf(p->tenant, sizeof p->tenant, "%s", tenant);
        (void)snprintf(p->key, sizeof p->key, "%s", key);
    }
    p->known  = true;
    p->ticket = ticket;
    *ret      = p->n_before;
    return true;
}

bool
il__sq_waiters_count(struct sq_store *s, const struct sq_key *k, uint32_t *ret)
{
    *ret = 0;
    if (k->more)
        return il__sq_waiters_before(s, k->tenant, k->key, INT64_MAX, ret);
    for (size_t i = 0; i < k->waiters.n; i++)
        *ret += !k->waiters.items[i].gone && k->waiters.items[i].verdict[0] == '\0';
    return true;
}

/* ---- changing -------------------------------------------------------------------------------- */

bool
il__sq_waiter_add(struct sq_store *s, struct sq_key *k, const struct sq_hold *h)
{
    struct sq_conn *c    = &s->conn;
    sqlite3_stmt   *stmt = il__sq_use(c, SQ_waiter_add);

    s->has_waiters = true;
    if (s->place.ticket > h->number) /* the place behind all of them */
        s->place.known = false;
    if (k->more) { /* there are others between those read and this one */
        k->added = il__arena_alloc(&s->scratch, sizeof *k->added);
        if (k->added == NULL)
            return il__sq_no_memory(c);
        *k->added = *h;
    } else if (!il__sq_holds_add(&s->scratch, &k->waiters, h)) {
        return il__sq_no_memory(c);
    }
    return il__sq_bind_int(c, stmt, 1, (int64_t)h->number) &&
           il__sq_bind_text(c, stmt, 2, k->tenant) && il__sq_bind_text(c, stmt, 3, k->key) &&
           il__sq_bind_text(c, stmt, 4, h->holder) &&
           il__sq_bind_bytes(c, stmt, 5, h->holder, il__holder_root_bytes(h->holder)) &&
           il__sq_bind_int(c, stmt, 6, (int64_t)h->mode) &&
           il__sq_bind_int(c, stmt, 7, h->permits) && il__sq_bind_int(c, stmt, 8, h->ttl_ms) &&
           il__sq_bind_int(c, stmt, 9, h->settle_ms) && il__sq_bind_int(c, stmt, 10, h->since_ms) &&
           il__sq_bind_int(c, stmt, 11, h->deadline_ms) &&
           il__sq_bind_int(c, stmt, 12, h->due_ms) && il__sq_bind_text(c, stmt, 13, h->meta) &&
           il__sq_bind_text(c, stmt, 14, h->place) &&
           il__sq_bind_int(c, stmt, 15, (int64_t)h->run) && il__sq_stmt_run(c, stmt);
}

bool
il__sq_waiter_refresh(struct sq_store *s, const struct sq_hold *h)
{
    struct sq_conn *c    = &s->conn;
    sqlite3_stmt   *stmt = il__sq_use(c, SQ_waiter_refresh);

    return il__sq_bind_int(c, stmt, 1, (int64_t)h->number) &&
           il__sq_bind_int(c, stmt, 2, h->renewed_ms) &&
           il__sq_bind_int(c, stmt, 3, h->deadline_ms) && il__sq_bind_int(c, stmt, 4, h->due_ms) &&
           il__sq_stmt_run(c, stmt);
}

bool
il__sq_waiter_end(struct sq_store *s, struct sq_key *k, struct sq_hold *h)
{
    struct sq_conn *c    = &s->conn;
    sqlite3_stmt   *stmt = il__sq_use(c, SQ_waiter_remove);

    h->gone        = true;
    s->place.known = false;
    if (k->added != NULL && k->added->number == h->number)
        k->added->gone = true; /* it may have been read once more since */
    return il__sq_bind_int(c, stmt, 1, (int64_t)h->number) && il__sq_stmt_run(c, stmt);
}

bool
il__sq_waiter_leave(struct sq_store *s, struct sq_key *k, struct sq_hold *h)
{
    if (h->run != 0 && !il__sq_run_lost(s, k, h, IL_LEASE_EXPIRED))
        return false;
    return il__sq_waiter_end(s, k, h);
}
