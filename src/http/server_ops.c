/* server_ops.c: ops of the server itself. See server_ops.h. */
#include "http/server_ops.h"

#include "base/arena.h"
#include "http/server.h"

static void
came_back(struct http_item *item)
{
    struct http_server_call *own = container_of(item, struct http_server_call, item);

    own->then(own);
}

/* On any thread, including the loop within the submit. The inbox defers it in each case. */
static void
on_done(struct il__call *call)
{
    struct http_server_call *own = container_of(call, struct http_server_call, call);

    own->item.fn = came_back;
    http_inbox_put(own->server, &own->item);
}

bool
http_server_apply(struct http_server *s, struct http_server_call *own, il_op *ops, size_t n,
                  void (*then)(struct http_server_call *own))
{
    if (s->async == NULL)
        return false;
    own->server = s;
    own->then   = then;
    own->call   = (struct il__call){ .ops = ops, .n = n, .done = on_done };
    il__async_submit(s->async, &own->call);
    return true;
}

/* Keep listings with another page; drop the others. */
static void
turn_pages(struct http_listings *l)
{
    size_t n = 0;

    for (size_t i = 0; i < l->n; i++) {
        bool more = l->take(l, l->places[i], &l->ops[i]) && l->ops[i].out.next != NULL &&
                    l->n_pages < l->pages_max;
        char *cursor = more ? il__arena_strdup(&l->mem, l->ops[i].out.next) : NULL;
        il_op_release(&l->ops[i]);
        if (cursor == NULL)
            continue;
        l->ops[n]                = l->ops[i];
        l->ops[n].in.list.cursor = cursor;
        l->places[n++]           = l->places[i];
    }
    l->n = n;
}

static void
pages_came(struct http_server_call *own)
{
    struct http_listings *l  = container_of(own, struct http_listings, own);
    il_status             st = own->call.status;

    l->n_pages++;
    if (st == IL_OK)
        turn_pages(l);
    else
        http_listings_release(l);
    if (st == IL_OK && l->n > 0 && http_server_apply(own->server, own, l->ops, l->n, pages_came))
        return;
    l->then(l, l->n > 0 && st == IL_OK ? IL_CANCELLED : st);
}

bool
http_listings_send(struct http_server *s, struct http_listings *l)
{
    CHECK(l->n > 0 && l->n <= HTTP_LISTINGS_MAX);
    l->n_pages = 0;
    for (size_t i = 0; i < l->n; i++)
        l->places[i] = i;
    return http_server_apply(s, &l->own, l->ops, l->n, pages_came);
}

void
http_listings_release(struct http_listings *l)
{
    for (size_t i = 0; i < l->n; i++)
        il_op_release(&l->ops[i]);
    l->n = 0;
    il__arena_free(&l->mem);
}
