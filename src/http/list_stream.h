/*
 * list_stream.h: long lists, {"items":[…],"next":…}, that are sent while they are produced, so that
 * memory does not grow with their length.
 */
#ifndef IL_HTTP_LIST_STREAM_H
#define IL_HTTP_LIST_STREAM_H

#include "http/http.h"

struct http_list;

/*
 * Produces a list on a thread of the pool: http_list_add() for each item, http_list_next() if there
 * is another page. IL_OK: the list is complete.
 */
typedef il_status http_list_fn(struct http_request *r, struct http_list *list);

/*
 * Answer with a list of objects printed by a table. If fn() fails before anything was sent,
 * failed(r) follows on the loop and answers; later, the connection is broken, so that a client
 * never takes half a list for all of it. A short list is sent as an ordinary answer. Waits for a
 * thread as http_pool() does; the deadline of the request is also that of its client for taking the
 * list.
 */
void http_say_list(struct http_request *r, const struct wire_object *o, http_list_fn *fn,
                   http_fn *failed);

/* For fn(). Blocks while the client is slow. False: stop, and return an error; the client has
 * gone, the deadline has passed, or memory is short. */
bool http_list_add(struct http_list *list, const void *item) MUST_USE;
/* Set the cursor of the next page. A list without one is the last. Copied. */
void http_list_next(struct http_list *list, const char *cursor);

/* For request.c, on the loop: the client has gone; the request ends. */
void http_list_client_left(struct http_request *r);
void http_list_end(struct http_request *r);

#endif
