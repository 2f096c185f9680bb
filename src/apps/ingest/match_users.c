/*
 * match_users.c: matches the drivers of an event with the users of the tenant.
 *
 * Names are compared before the transaction: that is the long part (users times drivers), and needs
 * nothing that the transaction changes. A user who is renamed meanwhile is matched by the old name,
 * as if this ingestion had come first; users are never removed. In the transaction, entries get
 * their drivers, each transponder is looked up among those of the users, and the outcome is
 * written: one row of event_driver_links for each user and driver that match in this event, and one
 * of user_driver_links for each driver with a match. So its work grows with the entries and matches
 * of the event, not with the users. match.c has the rules for two of them; the upsert
 * (sql/links.sql) those for a link that exists.
 */
#include <stdlib.h>

#include "apps/ingest/persist_internal.h"
#include "base/arena.h"
#include "base/error.h"
#include "wire/wire.h"

#include "apps/ingest/ingest_sql.inc"

#define JSON_BYTES_MAX ((size_t)64 << 20)

struct person {
    const char *id, *match_name, *transponder; /* NULL = none */
};
struct people {
    struct person *items; /* sorted by id (strcmp) */
    size_t         n;
};

/* A user and a driver that match in this event. */
struct pair {
    const struct person   *user, *driver;
    struct liverc_likeness likeness;
    const char            *transponder; /* that both have; NULL = none */
    enum liverc_link       wanted;
    double                 score;
};
struct pairs {
    struct pair *items;
    size_t       n;
};

struct match {
    const char           *event_id;
    void                 *mem; /* of all of this */
    struct people         users, drivers;
    const struct person **by_transponder; /* the users who have one, sorted by it */
    size_t                n_by_transponder;
    struct pairs      by_name; /* as compared before the transaction, sorted by order_people() */
    struct pairs      pairs;   /* of this attempt */
    struct people    *into;    /* that is being read */
    size_t            i;       /* the next row to write */
    bool              no_memory;
    struct ingest_tx *t;
};

static il_status
no_memory(il_error *reterr)
{
    return il__error_set(reterr, IL_NOMEM, "out of memory for matching drivers");
}

/* ---- reading --------------------------------------------------------------------------------- */

static int
take_person(void *cookie, const il_guard_row *row)
{
    struct match  *m   = cookie;
    struct people *p   = m->into;
    struct person *one = il__arena_append(&m->mem, &p->items, &p->n, sizeof *one);

    if (one == NULL) {
        m->no_memory = true;
        return 0;
    }
    *one = (struct person){ .id         = il__arena_strdup(&m->mem, row->values[0].data),
                            .match_name = il__arena_strdup(&m->mem, row->values[1].data) };
    if (row->n > 2 && row->values[2].type != IL_GUARD_NULL) {
        one->transponder = il__arena_strdup(&m->mem, row->values[2].data);
        m->no_memory |= one->transponder == NULL;
    }
    m->no_memory |= one->id == NULL || one->match_name == NULL;
    return !m->no_memory;
}

static il_status
read_people(struct ingest_tx *t, void *cookie, il_error *reterr)
{
    static const struct app_statement users   = APP_STATEMENT(match_users);
    static const struct app_statement drivers = APP_STATEMENT(match_drivers);
    struct match                     *m       = cookie;
    const il_guard_value key[] = { il_guard_text(t->w->tenant), il_guard_text(m->event_id) };

    m->into      = &m->users;
    il_status st = il__ingest_run(t, &users, key, 1, take_person, m, NULL, reterr);
    m->into      = &m->drivers;
    if (st == IL_OK && m->users.n > 0)
        st = il__ingest_run(t, &drivers, key, 2, take_person, m, NULL, reterr);
    return st == IL_OK && m->no_memory ? no_memory(reterr) : st;
}

static const struct person *
find_person(const struct people *p, const char *id)
{
    size_t low = 0, high = p->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int    c      = strcmp(p->items[middle].id, id);
        if (c == 0)
            return &p->items[middle];
        if (c < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* ---- pairs ----------------------------------------------------------------------------------- */

static struct pair *
add_pair(struct match *m, struct pairs *to, const struct pair *p)
{
    struct pair *added = il__arena_append(&m->mem, &to->items, &to->n, sizeof *added);

    if (added != NULL)
        *added = *p;
    m->no_memory |= added == NULL;
    return added;
}

static il_status
compare_names(struct match *m, const struct ingest_write *w, il_error *reterr)
{
    for (size_t i = 0; i < m->drivers.n; i++) {
        if (w->go_on != NULL && !w->go_on(w->cookie))
            return il__error_set(reterr, IL_CANCELLED, "the ingestion was stopped");
        for (size_t k = 0; k < m->users.n; k++) {
            struct pair p = { .user = &m->users.items[k], .driver = &m->drivers.items[i] };
            p.likeness = il__liverc_compare(p.user->match_name, NULL, p.driver->match_name, NULL);
            if ((p.likeness.same_name || p.likeness.score >= LIVERC_SCORE_SUGGESTED) &&
                add_pair(m, &m->by_name, &p) == NULL)
                return no_memory(reterr);
        }
    }
    return IL_OK;
}

/* By driver and user: `drivers` and `users` are sorted, so that their addresses are, too. */
static int
order_people(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;

    if (x->driver != y->driver)
        return x->driver < y->driver ? -1 : 1;
    return (x->user > y->user) - (x->user < y->user);
}

/* Among the first n pairs, which are sorted by order_people(). */
static struct pair *
find_pair(struct match *m, size_t n, const struct person *user, const struct person *driver)
{
    const struct pair key = { .user = user, .driver = driver };

    return n == 0 ? NULL : bsearch(&key, m->pairs.items, n, sizeof key, order_people);
}

static int
order_transponders(const void *a, const void *b)
{
    const struct person *x = *(const struct person *const *)a;
    const struct person *y = *(const struct person *const *)b;

    return strcmp(x->transponder, y->transponder);
}

static il_status
sort_transponders(struct match *m, il_error *reterr)
{
    m->by_transponder = il__arena_alloc(&m->mem, (m->users.n + 1) * sizeof *m->by_transponder);
    if (m->by_transponder == NULL)
        return no_memory(reterr);
    for (size_t i = 0; i < m->users.n; i++) {
        const struct person *user = &m->users.items[i];
        if (user->transponder != NULL && user->transponder[0] != '\0')
            m->by_transponder[m->n_by_transponder++] = user;
    }
    if (m->n_by_transponder > 0)
        qsort(m->by_transponder, m->n_by_transponder, sizeof *m->by_transponder,
              order_transponders);
    return IL_OK;
}

/* The first user with this transponder, or one with a greater one. */
static size_t
first_with(const struct match *m, const char *transponder)
{
    size_t low = 0, high = m->n_by_transponder;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(m->by_transponder[middle]->transponder, transponder) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A driver with this transponder: which users have it? A user has one transponder, so that no pair
 * comes here twice. */
static int
take_transponder(void *cookie, const il_guard_row *row)
{
    struct match        *m      = cookie;
    const struct person *driver = find_person(&m->drivers, row->values[0].data);
    const char          *number = row->values[1].data;

    for (size_t i = first_with(m, number); driver != NULL && i < m->n_by_transponder; i++) {
        const struct person *user = m->by_transponder[i];
        if (strcmp(user->transponder, number) != 0)
            break;
        struct pair *p = find_pair(m, m->by_name.n, user, driver);
        if (p == NULL)
            p = add_pair(m, &m->pairs, &(struct pair){ .user = user, .driver = driver });
        if (p == NULL)
            return 0;
        p->likeness =
            il__liverc_compare(user->match_name, user->transponder, driver->match_name, number);
        p->transponder = user->transponder;
    }
    return 1;
}

static int
take_evidence(void *cookie, const il_guard_row *row)
{
    struct match        *m      = cookie;
    const struct person *user   = find_person(&m->users, row->values[0].data);
    const struct person *driver = find_person(&m->drivers, row->values[1].data);
    struct pair         *p      = NULL;

    if (user != NULL && driver != NULL)
        p = find_pair(m, m->pairs.n, user, driver);
    if (p != NULL && p->transponder != NULL)
        p->likeness.n_transponder_events += (unsigned)row->values[2].integer;
    return 1;
}

/* The best first, for each driver. */
static int
order_pairs(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    int                c = strcmp(x->driver->id, y->driver->id);

    if (c != 0)
        return c;
    if (x->wanted != y->wanted)
        return x->wanted == LIVERC_LINK_CONFIRMED ? -1 : 1;
    if (x->score > y->score || x->score < y->score)
        return x->score > y->score ? -1 : 1;
    return strcmp(x->user->id, y->user->id);
}

/* The drivers for whom links of other events are evidence. */
static il_status
lock_drivers(struct ingest_tx *t, const struct match *m, il_error *reterr)
{
    static const struct app_statement lock = APP_STATEMENT(match_drivers_lock);
    AUTO_BUF struct il__buf           json = { 0 };

#ifdef IL_MUTANT_ingest_drivers_unlocked
    return IL_OK;
#endif
    if (!il__guard_tx_is_postgres(t->tx))
        return IL_OK;
    il__buf_init(&json, JSON_BYTES_MAX);
    for (size_t i = 0; i < m->pairs.n; i++) {
        if (m->pairs.items[i].transponder != NULL)
            il__buf_addf(&json, "%s\"%s\"", json.n_bytes == 0 ? "[" : ",",
                         m->pairs.items[i].driver->id);
    }
    if (json.n_bytes == 0 && !json.failed)
        return IL_OK;
    il__buf_addc(&json, ']');
    if (json.failed)
        return no_memory(reterr);
    return il__ingest_run(
        t, &lock, APP_VALUES(il_guard_text(t->w->tenant), il_guard_json(il__buf_str(&json))), NULL,
        NULL, NULL, reterr);
}

/* All pairs of this event, with what each of them is worth. */
static il_status
find_pairs(struct ingest_tx *t, struct match *m, il_error *reterr)
{
    static const struct app_statement transponders = APP_STATEMENT(match_transponders);
    static const struct app_statement evidence     = APP_STATEMENT(match_evidence);
    const il_guard_value key[] = { il_guard_text(t->w->tenant), il_guard_text(m->event_id) };

    m->pairs.n = 0;
    for (size_t i = 0; i < m->by_name.n; i++) {
        if (add_pair(m, &m->pairs, &m->by_name.items[i]) == NULL)
            return no_memory(reterr);
    }
    il_status st =
        il__ingest_run(t, &transponders, key, ARRAY_LEN(key), take_transponder, m, NULL, reterr);
    if (m->pairs.n > 0)
        qsort(m->pairs.items, m->pairs.n, sizeof *m->pairs.items, order_people);
    if (st == IL_OK)
        st = lock_drivers(t, m, reterr);
    if (st == IL_OK)
        st = il__ingest_run(t, &evidence, key, ARRAY_LEN(key), take_evidence, m, NULL, reterr);
    if (st == IL_OK && m->no_memory)
        st = no_memory(reterr);
    for (size_t i = 0; i < m->pairs.n && st == IL_OK; i++) {
        struct pair *p = &m->pairs.items[i];
        p->wanted      = il__liverc_link(&p->likeness, &p->score);
    }
    if (st == IL_OK && m->pairs.n > 0)
        qsort(m->pairs.items, m->pairs.n, sizeof *m->pairs.items, order_pairs);
    return st;
}

/* ---- writing --------------------------------------------------------------------------------- */

static int64_t
milli(double score)
{
    return (int64_t)(MIN(MAX(score, 0), 1) * 1000 + 0.5);
}

static enum rows_next
next_event_link(void *cookie, il_guard_value *v)
{
    struct match *m = cookie;

    if (m->i == m->pairs.n)
        return ROWS_END;
    const struct pair *p = &m->pairs.items[m->i++];
    v[0]                 = il_guard_text(p->user->id);
    v[1]                 = il_guard_text(p->driver->id);
    v[2]                 = il_guard_text(p->likeness.same_name    ? "exact"
                                         : p->transponder != NULL ? "transponder"
                                                                  : "fuzzy");
    v[3]                 = il_guard_int(milli(p->score));
    v[4]                 = il_guard_text(p->transponder);
    return ROWS_MORE;
}

static il_status
prune_event_links(struct ingest_tx *t, const struct match *m, int64_t *ret_n, il_error *reterr)
{
    static const struct app_statement prune = APP_STATEMENT_EACH(event_link_prune);
    AUTO_BUF struct il__buf           json  = { 0 };

    il__buf_init(&json, JSON_BYTES_MAX);
    il__buf_addc(&json, '[');
    for (size_t i = 0; i < m->pairs.n; i++)
        il__buf_addf(&json, "%s[\"%s\",\"%s\"]", i == 0 ? "" : ",", m->pairs.items[i].user->id,
                     m->pairs.items[i].driver->id);
    il__buf_addc(&json, ']');
    if (json.failed)
        return no_memory(reterr);
    return il__ingest_run(t, &prune,
                          APP_VALUES(il_guard_text(t->w->tenant), il_guard_text(m->event_id),
                                     il_guard_json(il__buf_str(&json))),
                          NULL, NULL, ret_n, reterr);
}

static il_status
write_event_links(struct ingest_tx *t, struct match *m, il_error *reterr)
{
    static const struct app_statement count = APP_STATEMENT(event_link_count);
    static const struct app_statement write = APP_STATEMENT_EACH(event_link_write);
    static const char *const names[]        = { "user_id", "driver_id", "match_type", "score_milli",
                                                "transponder" };
    const il_guard_value     shared[] = { il_guard_text(t->w->tenant), il_guard_text(m->event_id),
                                          il_guard_int(t->now_ms) };
    struct rows              r        = { .statement = &write,
                                          .shared    = shared,
                                          .n_shared  = ARRAY_LEN(shared),
                                          .columns   = names,
                                          .n_columns = ARRAY_LEN(names),
                                          .next      = next_event_link,
                                          .cookie    = m };

    m->i = 0;
    il_status st =
        prune_event_links(t, m, &t->totals.of[INGEST_EVENT_DRIVER_LINKS].n_removed, reterr);
    return st == IL_OK ? il__ingest_rows(t, &r, INGEST_EVENT_DRIVER_LINKS, &count, reterr) : st;
}

/* The best match of the next driver. Another user who matches as well makes it a conflict. */
static enum rows_next
next_link(void *cookie, il_guard_value *v)
{
    struct match *m = cookie;

    if (m->i == m->pairs.n)
        return ROWS_END;
    const struct pair *best = &m->pairs.items[m->i++], *rival = NULL;
    if (m->i < m->pairs.n && m->pairs.items[m->i].driver == best->driver &&
        m->pairs.items[m->i].wanted == best->wanted)
        rival = &m->pairs.items[m->i];
    while (m->i < m->pairs.n && m->pairs.items[m->i].driver == best->driver)
        m->i++;
    const char *id = il__ingest_new_id(m->t, NULL);
    v[0]           = il_guard_text(id);
    v[1]           = il_guard_text(best->driver->id);
    v[2]           = il_guard_text(best->user->id);
    v[3] = il_guard_text(il__liverc_links[rival != NULL ? LIVERC_LINK_CONFLICT : best->wanted]);
    v[4] = il_guard_text(rival != NULL ? rival->user->id : NULL);
    v[5] = il_guard_int(milli(best->score));
    return id != NULL ? ROWS_MORE : ROWS_NO_MEMORY;
}

static il_status
write_links(struct ingest_tx *t, struct match *m, il_error *reterr)
{
    static const struct app_statement write   = APP_STATEMENT_EACH(link_write);
    static const char *const          names[] = { "id",    "driver_id", "user_id",
                                                  "state", "rival_id",  "score_milli" };
    const il_guard_value shared[] = { il_guard_text(t->w->tenant), il_guard_int(t->now_ms) };
    struct rows          r        = { .statement = &write,
                                      .shared    = shared,
                                      .n_shared  = ARRAY_LEN(shared),
                                      .columns   = names,
                                      .n_columns = ARRAY_LEN(names),
                                      .next      = next_link,
                                      .cookie    = m };

    m->i = 0;
    m->t = t;
    return il__ingest_rows(t, &r, INGEST_USER_DRIVER_LINKS, NULL, reterr);
}

static il_status
write_match(struct ingest_tx *t, void *cookie, il_error *reterr)
{
    static const struct app_statement drivers = APP_STATEMENT(entry_drivers);
    struct match                     *m       = cookie;
    struct ingest_head                head;

    il_status st = il__ingest_lock_event(t, m->event_id, &head, reterr);
    if (st == IL_OK)
        st = il__ingest_run(t, &drivers,
                            APP_VALUES(il_guard_text(t->w->tenant), il_guard_text(m->event_id),
                                       il_guard_int(t->now_ms)),
                            NULL, NULL, NULL, reterr);
    if (st == IL_OK)
        st = find_pairs(t, m, reterr);
    if (st == IL_OK)
        st = write_event_links(t, m, reterr);
    return st == IL_OK ? write_links(t, m, reterr) : st;
}

il_status
il__ingest_match(il_guard *g, const struct ingest_write *w, const char *event_id, il_error *reterr)
{
    struct match m  = { .event_id = event_id };
    il_status    st = il__ingest_read(g, w->tenant, read_people, &m, reterr);

    if (st == IL_OK)
        st = compare_names(&m, w, reterr);
    if (st == IL_OK)
        st = sort_transponders(&m, reterr);
    if (st == IL_OK)
        st = il__ingest_transact(g, w, "match", write_match, &m, reterr);
    il__arena_free(&m.mem);
    return st;
}
