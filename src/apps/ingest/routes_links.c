/*
 * routes_links.c: routes of users and of their links with drivers.
 */
#include "apps/ingest/routes_read.h"

#include <stdio.h>

#include "apps/ingest/serve.h"
#include "base/arena.h"
#include "http/list_stream.h"
#include "http/server.h"

/* A request on its way through the pool. */
struct linking {
    struct ingest_links_in in;
    struct ingest_link_in  one;
    struct ingest_users_in users;
    enum liverc_link       to;
    struct ingest_link     link; /* as it is now, in r->mem */
    struct ingest_totals   totals;
    struct http_list      *list;
    size_t                 n, limit;
    char                   last[INGEST_EVENT_ID_BYTES_MAX + 1];
    bool                   no_memory, gone;
    il_status              status;
    il_error               error;
};

/* NULL: answered. */
static struct linking *
begin(struct http_request *r)
{
    r->state = http_calloc(r, sizeof(struct linking));
    return r->state;
}

static void
failed(struct http_request *r)
{
    const struct linking *w = r->state;

    il__ingest_fail(r, &w->error);
}

/* ---- the list -------------------------------------------------------------------------------- */

static bool
add_link(void *cookie, const struct ingest_link *link)
{
    struct linking *w = cookie;

    if (w->n++ == w->limit) { /* one more than wanted: another page follows */
        http_list_next(w->list, w->last);
        return false;
    }
    (void)snprintf(w->last, sizeof w->last, "%s", link->id);
    w->gone = !http_list_add(w->list, link);
    return !w->gone;
}

static il_status
produce_links(struct http_request *r, struct http_list *list)
{
    struct linking *w = r->state;

    w->list   = list;
    w->limit  = w->in.limit != 0 ? w->in.limit : INGEST_PAGE_DEFAULT;
    w->status = il__ingest_links_list(il__ingest_app_of(r)->tables, r->caller->tenant, w->in.state,
                                      w->in.cursor, w->limit + 1, add_link, w, &w->error);
    return w->status == IL_OK && w->gone ? IL_CANCELLED : w->status;
}

void
il__ingest_http_links_list(struct http_request *r)
{
    struct linking *w = begin(r);

    if (w != NULL && http_take_query(r, &w->in))
        http_say_list(r, &il__ingest_link_out, produce_links, failed);
}

/* ---- decisions ------------------------------------------------------------------------------- */

/* Keep the link for the answer. */
static bool
keep_link(void *cookie, const struct ingest_link *link)
{
    struct http_request *r       = cookie;
    struct linking      *w       = r->state;
    struct ingest_link  *l       = &w->link;
    const char         **texts[] = { &l->id,          &l->state,     &l->email,
                                     &l->user_name,   &l->driver_id, &l->source_driver_id,
                                     &l->driver_name, &l->rival };

    *l = *link;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        *texts[i] = il__arena_strdup(&r->mem, *texts[i]);
        w->no_memory |= *texts[i] == NULL;
    }
    return true;
}

static struct ingest_write
how(const struct http_request *r, struct linking *w)
{
    return (struct ingest_write){ .tenant     = r->caller->tenant,
                                  .timeout_ms = http_request_left_ms(r),
                                  .totals     = &w->totals };
}

static void
set_link(struct http_request *r)
{
    struct linking     *w  = r->state;
    struct ingest_write to = how(r, w);

    w->status = il__ingest_link_set(il__ingest_app_of(r)->tables, &to, r->args[0], w->to,
                                    w->one.email, keep_link, r, &w->error);
}

static void
say_link(struct http_request *r)
{
    const struct linking *w = r->state;

    if (w->status == IL_OK && w->no_memory)
        http_fail_nomem(r);
    else if (w->status == IL_OK)
        http_say(r, 200, &il__ingest_link_out, &w->link);
    else
        failed(r);
}

void
il__ingest_http_link_confirm(struct http_request *r)
{
    struct linking *w = begin(r);

    if (w == NULL || !http_take_body(r, &w->one))
        return;
    w->to = LIVERC_LINK_CONFIRMED;
    http_pool(r, set_link, say_link);
}

void
il__ingest_http_link_reject(struct http_request *r)
{
    struct linking *w = begin(r);

    if (w == NULL)
        return;
    w->to = LIVERC_LINK_REJECTED;
    http_pool(r, set_link, say_link);
}

/* ---- users ----------------------------------------------------------------------------------- */

static void
write_users(struct http_request *r)
{
    struct linking     *w  = r->state;
    struct ingest_write to = how(r, w);

    w->status = il__ingest_users_write(il__ingest_app_of(r)->tables, &to, w->users.users,
                                       w->users.n, &w->error);
}

static void
say_users(struct http_request *r)
{
    const struct linking *w = r->state;

    if (w->status == IL_OK)
        http_say(r, 200, &il__ingest_users_out, &w->totals.of[INGEST_USERS]);
    else
        failed(r);
}

void
il__ingest_http_users_import(struct http_request *r)
{
    struct linking *w = begin(r);

    if (w != NULL && http_take_body(r, &w->users))
        http_pool(r, write_users, say_users);
}
