/*
 * links.c: lists links, and lets an operator decide about one; see links.h.
 */
#include "apps/ingest/links.h"

#include "apps/ingest/persist_internal.h"
#include "base/error.h"

#include "apps/ingest/ingest_sql.inc"

struct link_read {
    const char     *state, *after;
    size_t          limit;
    ingest_link_fn *each;
    void           *cookie;
};

static const char *
text(const il_guard_value *v)
{
    return v->type == IL_GUARD_NULL ? "" : v->data;
}

static int
take_link(void *cookie, const il_guard_row *row)
{
    const struct link_read *r = cookie;
    const il_guard_value   *v = row->values;

    CHECK(row->n == 11);
    return r->each(r->cookie, &(struct ingest_link){ .id               = text(&v[0]),
                                                     .state            = text(&v[1]),
                                                     .score_milli      = v[2].integer,
                                                     .email            = text(&v[3]),
                                                     .user_name        = text(&v[4]),
                                                     .source_driver_id = text(&v[5]),
                                                     .driver_name      = text(&v[6]),
                                                     .rival            = text(&v[7]),
                                                     .n_events         = v[8].integer,
                                                     .updated_ms       = v[9].integer,
                                                     .driver_id        = text(&v[10]) });
}

static il_status
read_links(struct ingest_tx *t, void *cookie, il_error *reterr)
{
    static const struct app_statement list = APP_STATEMENT(link_list);
    struct link_read                 *r    = cookie;

    return il__ingest_run(t, &list,
                          APP_VALUES(il_guard_text(t->w->tenant), il_guard_text(r->state),
                                     il_guard_text(r->after), il_guard_int((int64_t)r->limit)),
                          take_link, r, NULL, reterr);
}

il_status
il__ingest_links_list(il_guard *g, const char *tenant, const char *state, const char *after,
                      size_t limit, ingest_link_fn *each, void *cookie, il_error *reterr)
{
    struct link_read r = { state != NULL ? state : "", after != NULL ? after : "", limit, each,
                           cookie };

    return il__ingest_read(g, tenant, read_links, &r, reterr);
}

/* ---- decisions ------------------------------------------------------------------------------- */

struct link_set {
    const char      *id, *email;
    enum liverc_link to;
    struct link_read shows;
};

/* Is there such a user? `email` is in lower case. */
static il_status
require_user(struct ingest_tx *t, const char *email, il_error *reterr)
{
    static const struct app_statement exists = APP_STATEMENT(user_exists);
    int64_t                           n      = 0;

    il_status st = il__ingest_count(
        t, &exists, APP_VALUES(il_guard_text(t->w->tenant), il_guard_text(email)), &n, reterr);
    if (st == IL_OK && n == 0)
        st = il__error_set(reterr, IL_NOT_FOUND, "user %.254s not found", email);
    return st;
}

/* The row is locked, so that an ingestion that matches the same driver waits, and then finds a link
 * that is decided. */
static il_status
set_link(struct ingest_tx *t, void *cookie, il_error *reterr)
{
    static const struct app_statement set   = APP_STATEMENT(link_set);
    static const struct app_statement get   = APP_STATEMENT(link_get);
    struct link_set                  *s     = cookie;
    const il_guard_column             key[] = { { "tenant", il_guard_text(t->w->tenant) },
                                                { "id", il_guard_text(s->id) } };
    const char                       *email = il__ingest_email(&t->mem, s->email);
    const il_guard_target row = { "driver_link", "user_driver_links", key, ARRAY_LEN(key),
                                  IL_GUARD_PLACE };

    if (email == NULL)
        return il__error_nomem(reterr);
    il_status st = il_guard_lock(t->tx, &row, NULL, reterr);
    if (st == IL_NOT_FOUND)
        return il__error_set(reterr, IL_NOT_FOUND, "link %.64s not found", s->id);
    if (st == IL_OK && email[0] != '\0')
        st = require_user(t, email, reterr);
    if (st == IL_OK)
        st =
            il__ingest_run(t, &set,
                           APP_VALUES(key[0].value, key[1].value, il_guard_int(t->now_ms),
                                      il_guard_text(il__liverc_links[s->to]), il_guard_text(email)),
                           NULL, NULL, NULL, reterr);
    if (st == IL_OK)
        st = il__ingest_run(t, &get, APP_VALUES(key[0].value, key[1].value), take_link, &s->shows,
                            NULL, reterr);
    return st;
}

il_status
il__ingest_link_set(il_guard *g, const struct ingest_write *w, const char *id, enum liverc_link to,
                    const char *email, ingest_link_fn *each, void *cookie, il_error *reterr)
{
    struct link_set s = { .id    = id,
                          .email = email != NULL ? email : "",
                          .to    = to,
                          .shows = { .each = each, .cookie = cookie } };

    CHECK(to == LIVERC_LINK_CONFIRMED || to == LIVERC_LINK_REJECTED);
    return il__ingest_transact(g, w, "link_set", set_link, &s, reterr);
}
