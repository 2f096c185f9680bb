/*
 * list_stream.c: lists that are sent while they are produced. See list_stream.h.
 *
 * There are two buffers. The producer, on a thread of the pool, prints into `own`; once that has
 * CHUNK_BYTES it waits until `ready` was sent, swaps the two, and tells the loop. libmicrohttpd
 * asks for bytes on the loop (read_list()); the connection is suspended while `ready` is empty. So
 * a list takes the memory of two chunks, and a slow client slows the producer down. If the whole
 * list fits into the first chunk it becomes an ordinary answer.
 *
 * Lifetimes. A list belongs to its request and, once that exists, to its response, which
 * libmicrohttpd may destroy after the request has ended. The request stays until the producer has
 * returned (http_request.left), even if its connection is closed before.
 */
#include "http/list_stream.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mutex.h"
#include "http/mhd.h"
#include "http/server.h"

#define CHUNK_BYTES ((size_t)64 * 1024)
#define ITEM_BYTES_MAX ((size_t)16 << 20)
#define BLOCK_BYTES 32768 /* that libmicrohttpd asks for at once */

struct http_list {
    struct http_request      *r; /* NULL once it has ended */
    const struct wire_object *o;
    http_list_fn             *produce;
    http_fn                  *failed;
    unsigned                  n_refs; /* the request, the response: the loop's */
    struct http_item          item;   /* for the inbox */

    /* The producer's; the loop's after it has returned. */
    struct il__buf own;
    size_t         n_items;
    char          *next;
    bool           handed; /* a chunk was handed over */
    il_status      status;

    struct il__mutex mutex; /* protects what follows */
    pthread_cond_t   taken;
    struct il__buf   ready;
    size_t           n_sent; /* of ready */
    bool             posted; /* `item` is in the inbox */
    bool             broken; /* nobody reads it any more */

    /* The loop's: */
    bool begun; /* the response exists */
    bool over;  /* the producer has returned */
};

static void
unref(struct http_list *l)
{
    if (--l->n_refs > 0)
        return;
    il__buf_release(&l->own);
    il__buf_release(&l->ready);
    il__free(l->next);
    il__mutex_destroy(&l->mutex);
    (void)pthread_cond_destroy(&l->taken); /* no one is waiting any more */
    il__free(l);
}

/* ---- sending: on the loop -------------------------------------------------------------------- */

/*
 * libmicrohttpd 0.9.75 closes the connection, but frees it only when it looks at it again, and then
 * forgets to do so. It looks at connections with a timeout of their own each time it is run.
 */
static ssize_t
break_off(struct http_request *r)
{
    (void)il__mhd->MHD_set_connection_option(r->c->mhd, MHD_CONNECTION_OPTION_TIMEOUT, 3600U);
    r->server->run_mhd = true;
    return MHD_CONTENT_READER_END_WITH_ERROR;
}

static ssize_t
read_list(void *cookie, uint64_t at UNUSED, char *out, size_t n_max)
{
    struct http_list *l = cookie;

    il__mutex_lock(&l->mutex);
    size_t n      = MIN(l->ready.n_bytes - l->n_sent, n_max);
    bool   broken = l->broken;
    if (n > 0)
        memcpy(out, l->ready.data + l->n_sent, n);
    l->n_sent += n;
    bool empty = l->n_sent == l->ready.n_bytes;
    il__mutex_unlock(&l->mutex);
    if (broken)
        return break_off(l->r);
    if (n > 0) {
        l->r->bytes_out += n;
        if (empty)
            CHECK(pthread_cond_signal(&l->taken) == 0);
        return (ssize_t)n;
    }
    if (l->over)
        return l->status == IL_OK ? MHD_CONTENT_READER_END_OF_STREAM : break_off(l->r);
    http_suspend(l->r);
    return 0;
}

static void
free_list(void *cookie)
{
    unref(cookie);
}

/* A chunk is ready. */
static void
arrived(struct http_item *item)
{
    struct http_list    *l = container_of(item, struct http_list, item);
    struct http_request *r = l->r;

    il__mutex_lock(&l->mutex);
    l->posted = false;
    il__mutex_unlock(&l->mutex);
    if (l->begun || r->answered || http_request_is_cut_off(r)) {
        http_resume(r);
        return;
    }
    struct MHD_Response *response = il__mhd->MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, BLOCK_BYTES, read_list, l, free_list);
    if (response == NULL) {
        http_list_client_left(r); /* stops the producer; answer_short() follows */
        return;
    }
    l->n_refs++;
    l->begun = true;
    http_answer_stream(r, response);
}

void
http_list_client_left(struct http_request *r)
{
    struct http_list *l = r->list;

    il__mutex_lock(&l->mutex);
    l->broken = true;
    il__mutex_unlock(&l->mutex);
    CHECK(pthread_cond_signal(&l->taken) == 0);
}

void
http_list_end(struct http_request *r)
{
    struct http_list *l = TAKE(r->list);

    l->r = NULL;
    unref(l);
}

/* ---- producing: on a thread of the pool ------------------------------------------------------ */

/* Wait until the previous chunk was sent, and hand over the next. The item is in the inbox at most
 * once: `posted` is set and cleared under the mutex, and an item that is already there makes the
 * loop look at this chunk, too. */
static bool
hand_over(struct http_list *l)
{
    bool post = false;

    il__mutex_lock(&l->mutex);
    while (l->n_sent < l->ready.n_bytes && !l->broken) {
        int64_t left_ns = http_request_deadline_ns(l->r) - il__clock_boot_ns();
        if (left_ns <= 0 || !il__cond_wait(&l->taken, &l->mutex, left_ns))
            l->broken = true;
    }
    bool ok = !l->broken;
    if (ok) {
        struct il__buf sent = l->ready;
        l->ready            = l->own;
        l->own              = sent;
        l->n_sent           = 0;
        post                = !l->posted;
        l->posted           = true;
        l->handed           = true;
    }
    il__mutex_unlock(&l->mutex);
    il__buf_clear(&l->own);
    if (post)
        http_inbox_put(l->r->server, &l->item);
    return ok;
}

/* Is it still wanted? */
static bool
may_go_on(struct http_list *l)
{
    il__mutex_lock(&l->mutex);
    if (http_request_deadline_ns(l->r) <= il__clock_boot_ns())
        l->broken = true;
    bool ok = !l->broken;
    il__mutex_unlock(&l->mutex);
    return ok;
}

bool
http_list_add(struct http_list *l, const void *item)
{
    if (l->n_items++ > 0)
        il__buf_addc(&l->own, ',');
    il__wire_print(&l->own, l->o, item, 0);
    if (l->own.failed)
        return false;
    return l->own.n_bytes < CHUNK_BYTES ? may_go_on(l) : hand_over(l);
}

void
http_list_next(struct http_list *l, const char *cursor)
{
    il__free(l->next);
    l->next = il__strdup(cursor);
    if (l->next == NULL)
        l->own.failed = true; /* a list without its cursor would look like the last page */
}

static void
produce(struct http_request *r)
{
    struct http_list *l = r->list;

    il__buf_adds(&l->own, "{\"items\":[");
    l->status = l->produce(r, l);
    il__buf_adds(&l->own, "],\"next\":");
    il__wire_print_text(&l->own, l->next);
    il__buf_addc(&l->own, '}');
    if (l->status == IL_OK && l->own.failed)
        l->status = IL_NOMEM;
    if (l->status == IL_OK && l->handed && !hand_over(l))
        l->status = IL_CANCELLED;
}

/* ---- on the loop ----------------------------------------------------------------------------- */

/* Nothing was sent: `own` has the whole list, unless the producer failed or (`handed`) there was no
 * memory for the response. */
static void
answer_short(struct http_request *r, struct http_list *l)
{
    if (l->handed || l->own.failed) {
        http_fail_nomem(r);
    } else if (l->status != IL_OK) {
        l->failed(r);
    } else {
        il__buf_add(&r->out, l->own.data, l->own.n_bytes);
        http_answer(r, 200);
    }
}

/* The producer has returned. */
static void
produced(struct http_request *r)
{
    struct http_list *l = r->list;

    l->over = true;
    if (!l->begun) {
        answer_short(r, l);
        return;
    }
    http_conn_phase(r->server, r->c, HTTP_PHASE_ANSWER);
    if (l->status != IL_OK)
        http_conn_cut(r->c);
    http_resume(r);
}

void
http_say_list(struct http_request *r, const struct wire_object *o, http_list_fn *fn,
              http_fn *failed)
{
    CHECK(r->list == NULL && r->once == NULL); /* only an answer in memory can be stored */
    if (strcmp(r->method, "HEAD") == 0) {
        r->content_type = "application/json";
        http_answer(r, 200);
        return;
    }
    struct http_list *l = il__calloc(1, sizeof *l);
    if (l == NULL) {
        http_fail_nomem(r);
        return;
    }
    *l = (struct http_list){
        .r = r, .o = o, .produce = fn, .failed = failed, .n_refs = 1, .item = { .fn = arrived }
    };
    il__buf_init(&l->own, ITEM_BYTES_MAX);
    il__buf_init(&l->ready, ITEM_BYTES_MAX);
    il__mutex_init(&l->mutex, IL__MUTEX_list);
    il__cond_init(&l->taken);
    r->list = l;
    http_pool(r, produce, produced);
}
