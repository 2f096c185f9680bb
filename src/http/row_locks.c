/*
 * row_locks.c: row locks that apps report. See row_locks.h.
 *
 * The thread that ended the transaction prints the event as a line of JSON and posts it; everything
 * else happens on the loop, so that nothing here needs a lock. When lines arrive faster than the
 * loop takes them, the newest are dropped and counted.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/parse.h"
#include "http/app.h"
#include "http/handler.h"
#include "http/log.h"
#include "http/metrics_internal.h"
#include "http/row_locks.h"
#include "http/server.h"
#include "wire/table.h"

#define POSTED_MAX 4096
#define SLOW_NS (INT64_C(2000) * IL__NS_PER_MS) /* a wait or hold that is worth a warning */
#define PAGE_MAX 1000

/* An event on its way to the loop; its texts follow. */
struct posted {
    int64_t          wait_ns, hold_ns;
    il_guard_outcome outcome;
    const char      *pipeline, *entity;
    const char      *line;
};

struct http_row_locks {
    atomic_size_t          n_posted; /* on their way */
    atomic_size_t          n_dropped;
    uint64_t               n_seen;                     /* so far */
    char                  *lines[HTTP_ROW_LOCKS_KEPT]; /* a ring: number i is at i % KEPT */
    struct http_row_series series[HTTP_ROW_LOCK_SERIES_MAX + 1]; /* and one for the others */
    size_t                 n_series;
};

il_status
http_row_locks_open(struct http_server *s, il_error *reterr)
{
    s->row_locks = il__calloc(1, sizeof *s->row_locks);
    return s->row_locks != NULL ? IL_OK : il__error_nomem(reterr);
}

void
http_row_locks_close(struct http_server *s)
{
    struct http_row_locks *locks = s->row_locks;

    if (locks == NULL)
        return;
    for (size_t i = 0; i < HTTP_ROW_LOCKS_KEPT; i++)
        il__free(locks->lines[i]);
    for (size_t i = 0; i < locks->n_series; i++) {
        il__free(locks->series[i].pipeline);
        il__free(locks->series[i].entity);
    }
    il__free(locks);
    s->row_locks = NULL;
}

size_t
http_row_series_count(const struct http_server *s)
{
    return s->row_locks->n_series;
}

const struct http_row_series *
http_row_series(const struct http_server *s, size_t i)
{
    return &s->row_locks->series[i];
}

/* ---- on the loop ----------------------------------------------------------------------------- */

/* NULL: out of memory. */
static struct http_row_series *
find_series(struct http_row_locks *locks, const char *pipeline, const char *entity)
{
    for (size_t i = 0; i < locks->n_series; i++) {
        struct http_row_series *it = &locks->series[i];
        if ((strcmp(it->pipeline, pipeline) == 0 && strcmp(it->entity, entity) == 0) ||
            i == HTTP_ROW_LOCK_SERIES_MAX)
            return it;
    }
    bool is_last                = locks->n_series == HTTP_ROW_LOCK_SERIES_MAX;
    struct http_row_series *new = &locks->series[locks->n_series];
    new->pipeline               = il__strdup(is_last ? "other" : pipeline);
    new->entity                 = il__strdup(is_last ? "other" : entity);
    if (new->pipeline != NULL &&new->entity != NULL) {
        locks->n_series++;
        return new;
    }
    il__free(new->pipeline);
    il__free(new->entity);
    *new = (struct http_row_series){ .pipeline = NULL };
    return NULL;
}

static void
count(struct http_row_locks *locks, const struct posted *p)
{
    struct http_row_series *series = find_series(locks, p->pipeline, p->entity);

    if (series == NULL)
        return;
    http_histogram_add(&series->wait, http_lock_bounds, (double)p->wait_ns / 1e9);
    http_histogram_add(&series->hold, http_lock_bounds, (double)p->hold_ns / 1e9);
    series->n_violations += p->outcome == IL_GUARD_VIOLATION;
}

static void
arrived(struct http_server *s, void *cookie)
{
    AUTO_FREE struct posted *p     = cookie;
    struct http_row_locks   *locks = s->row_locks;
    char                   **place = &locks->lines[locks->n_seen % HTTP_ROW_LOCKS_KEPT];
    bool                     slow  = p->wait_ns >= SLOW_NS || p->hold_ns >= SLOW_NS;

    (void)atomic_fetch_sub(&locks->n_posted, 1);
    count(locks, p);
    if (http_log_begin(s, slow ? HTTP_EVENT_row_lock_slow : HTTP_EVENT_row_lock)) {
        http_log_text(s, "pipeline", p->pipeline);
        http_log_text(s, "entity", p->entity);
        http_log_ms(s, "lock_wait_ms", p->wait_ns);
        http_log_ms(s, "lock_hold_ms", p->hold_ns);
        http_log_text(s, "outcome", il_guard_outcome_name(p->outcome));
        http_log_end(s);
    }
    char *line = il__strdup(p->line);
    if (line == NULL)
        return; /* one less to report */
    il__free(*place);
    *place = line;
    locks->n_seen++;
}

/* ---- from any thread ------------------------------------------------------------------------- */

static struct posted *
pack(const il_guard_event *e)
{
    AUTO_FREE char *line = il__alloc(IL_GUARD_EVENT_BYTES_MAX);

    if (line == NULL ||
        il_guard_event_json(e, il__clock_wall_ms(), line, IL_GUARD_EVENT_BYTES_MAX, NULL) != IL_OK)
        return NULL;
    size_t n_line = strlen(line) + 1, n_pipeline = strlen(e->pipeline) + 1,
           n_entity  = strlen(e->entity) + 1;
    struct posted *p = il__alloc(sizeof *p + n_line + n_pipeline + n_entity);
    if (p == NULL)
        return NULL;
    char *at    = (char *)(p + 1);
    *p          = (struct posted){ .wait_ns = e->wait_ns, .hold_ns = e->hold_ns };
    p->outcome  = e->outcome;
    p->line     = il__put(&at, line, n_line);
    p->pipeline = il__put(&at, e->pipeline, n_pipeline);
    p->entity   = il__put(&at, e->entity, n_entity);
    return p;
}

void
http_row_lock(void *cookie, const il_guard_event *event)
{
    struct http_server    *s     = cookie;
    struct http_row_locks *locks = s->row_locks;
    struct posted         *p     = NULL;

    if (atomic_fetch_add(&locks->n_posted, 1) < POSTED_MAX)
        p = pack(event);
    if (p != NULL && http_post(s, arrived, p))
        return;
    il__free(p);
    (void)atomic_fetch_sub(&locks->n_posted, 1);
    (void)atomic_fetch_add(&locks->n_dropped, 1);
}

uint64_t
http_row_locks_dropped(const struct http_server *s)
{
    return atomic_load(&s->row_locks->n_dropped);
}

/* ---- GET /admin/row-locks -------------------------------------------------------------------- */

struct query {
    const char *cursor;
    uint32_t    limit; /* 0 = all that a page can have */
};
struct item {
    uint64_t    seq;
    const char *lock;
};

#define STRUCT struct query
static const struct wire_field query_fields[] = {
    BOUNDED("limit", limit, UINT32, 0, 0, PAGE_MAX, "maximum number of items; default 1,000"),
    BOUNDED("cursor", cursor, TEXT, 0, 0, 24, "`next` of the previous page"),
};
OBJECT(http_in_row_locks, "RowLockQuery", query_fields, 0, "Row locks to list, newest first");
#undef STRUCT

#define STRUCT struct item
static const struct wire_field item_fields[] = {
    F("seq", seq, UINT64, WIRE_NOT_NULL, "sequence number on this server"),
    F("lock", lock, META, 0, "the row lock, as docs/guard-event.schema.json describes it"),
};
OBJECT(http_out_row_lock, "RowLock", item_fields, WIRE_ANSWER,
       "A row lock of an app's transaction");
#undef STRUCT

/* Sequence numbers begin with 1; the cursor is that of the last item shown. */
void
http_admin_row_locks(struct http_request *r)
{
    const struct http_row_locks *locks = r->server->row_locks;
    struct query                 q     = { 0 };
    uint64_t                     seq   = locks->n_seen;

    if (!http_take_query(r, &q))
        return;
    if (q.cursor != NULL) {
        uint64_t last;
        if (!il__parse_u64(q.cursor, UINT64_MAX, &last) || last == 0) {
            http_fail(r, 400, il_status_name(IL_INVAL), "request", NULL, "invalid cursor");
            return;
        }
        seq = MIN(seq, last - 1);
    }
    size_t       n_max = q.limit != 0 ? q.limit : PAGE_MAX, n = 0;
    struct item *items = http_calloc(r, n_max * sizeof *items);
    char         next[24];
    if (items == NULL)
        return;
    uint64_t oldest =
        locks->n_seen > HTTP_ROW_LOCKS_KEPT ? locks->n_seen - HTTP_ROW_LOCKS_KEPT + 1 : 1;
    for (; n < n_max && seq >= oldest; seq--)
        items[n++] = (struct item){ seq, locks->lines[(seq - 1) % HTTP_ROW_LOCKS_KEPT] };
    bool more = n > 0 && seq >= oldest;
    if (more)
        (void)snprintf(next, sizeof next, "%" PRIu64, seq + 1);
    http_say_page(r, &http_out_row_lock, items, sizeof *items, n, more ? next : NULL);
}
