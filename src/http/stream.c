/*
 * stream.c: GET /stream: server-sent events. An event is a hint that something changed; the client
 * then reads the new state.
 *
 * Events come at once from ops applied by this server, and from the other servers on the same
 * store, which announce theirs every 100 ms. Anything that ends by itself (an expiring lease)
 * produces no event. A stream has a buffer of 256 KiB: a client that reads too slowly loses events,
 * and is told so by `gap`. A `gap` is also sent whenever else events may have been missed: when
 * another server had too many to announce, and after a reconnect (Last-Event-ID).
 *
 * A stream needs no thread: libmicrohttpd asks for bytes (read_stream()), and the connection is
 * suspended while there are none.
 *
 * Lifetimes. The stream belongs to its response, and libmicrohttpd decides when that is destroyed:
 * before the request ends (MHD_queue_response() refused it) or after it. So whichever of the two
 * goes first clears the other's pointer: free_stream() the request's, request_ended() the stream's.
 */
#include <stdatomic.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "http/auth.h"
#include "http/handler.h"
#include "http/limits.h"
#include "http/metrics.h"
#include "http/mhd.h"
#include "http/server.h"

#define BUFFER_BYTES_MAX 262144 /* that a client has not taken yet */
#define BEAT_MS 15000           /* a comment, so that both sides see that the other is alive */
#define LOOK_MS 400             /* check the key: it takes two calls of http_auth_alive() */
#define ANNOUNCE_MS 100         /* between two announcements to the other servers */
#define RETRY_MS 2000           /* reconnect delay for clients */
#define SEEN_MAX 64             /* events deduplicated within one announcement */
/* Events of one call times streams: beyond this a gap is sent, so that the loop is not blocked. */
#define TOLD_MAX 65536
#define CLAIMED_MAX 16 /* jobs of one claim reported individually */
#define ANNOUNCED_BYTES (IL__ANNOUNCE_BYTES_MAX - 256)

enum event_type {
    EVENT_LOCK,
    EVENT_RUN,
    EVENT_QUEUE,
    EVENT_JOB,
    EVENT_CACHE,
    EVENT_COUNT
};
const char *const http_event_types[EVENT_COUNT + 1] = { "lock", "run", "queue", "job", "cache" };

struct event {
    enum event_type type;
    const char     *tenant, *name, *what, *id; /* id: of the run or job; NULL = none */
};

struct stream {
    struct stream       *next, *prev;
    struct http_streams *all;
    struct http_request *r;      /* NULL once the request has ended; see the note on lifetimes */
    uint32_t             types;  /* 0 = all */
    const char          *prefix; /* "" = all */
    struct il__buf       out;
    size_t               n_sent; /* of out */
    uint64_t             n_events;
    int64_t              wrote_ns;
    bool                 gap;   /* events were lost, and the gap is not sent yet */
    bool                 ended; /* closed by us, or the client has gone; in no list any more */
};

struct http_streams {
    struct stream *first;
    size_t         n;
    atomic_bool    wanted; /* is there a stream? Read by threads that receive announcements */
    bool           ended;  /* shutdown: accept no more */
    bool           alone;  /* no other server can share this store */
    char           id[37]; /* of this server, to recognise its own announcements */
    int64_t        looked_ns;

    /* What to announce next. */
    struct il__buf events;
    bool           overflow;
    int64_t        announced_ns;
    uint64_t       seen[SEEN_MAX];
};

/* ---- one stream ------------------------------------------------------------------------------ */

static void
write_text(struct stream *st, const char *text, size_t n_bytes)
{
    il__buf_add(&st->out, text, n_bytes);
    st->wrote_ns = il__clock_boot_ns();
    http_resume(st->r);
}

/* Sent data is discarded once it is half of the buffer or all of it; the rest is moved to the
 * front. */
static void
forget_sent(struct stream *st)
{
    size_t n_rest = st->out.n_bytes - st->n_sent;

    if (st->n_sent == 0 || n_rest > st->n_sent)
        return;
    memmove(st->out.data, st->out.data + st->n_sent, n_rest + 1); /* and the terminating NUL */
    st->out.n_bytes = n_rest;
    st->n_sent      = 0;
}

static bool
has_room(const struct stream *st, size_t n_bytes)
{
    return st->out.n_bytes - st->n_sent + n_bytes <= BUFFER_BYTES_MAX;
}

static void
write_gap(struct stream *st)
{
    static const char text[] = "event: gap\ndata: {}\n\n";

    st->gap = !has_room(st, sizeof text);
    if (st->gap)
        return;
    write_text(st, text, sizeof text - 1);
    http_count(st->r->server, HTTP_COUNT_gaps_sent, 1);
}

static void
write_event(struct stream *st, const char *data, enum event_type type, size_t n_bytes)
{
    char head[64];

    if (st->gap)
        write_gap(st);
    if (st->gap || !has_room(st, n_bytes + sizeof head)) {
        st->gap = true;
        return;
    }
    int n = snprintf(head, sizeof head,
                     "id: %llu\nevent: %s\ndata: ", (unsigned long long)++st->n_events,
                     http_event_types[type]);
    write_text(st, head, (size_t)n);
    write_text(st, data, n_bytes);
    write_text(st, "\n\n", 2);
    http_count(st->r->server, HTTP_COUNT_events_sent, 1);
}

static void
unlink_stream(struct http_streams *h, struct stream *st)
{
    if (st->prev != NULL)
        st->prev->next = st->next;
    else
        h->first = st->next;
    if (st->next != NULL)
        st->next->prev = st->prev;
    h->n--;
    atomic_store(&h->wanted, h->n > 0);
}

static void
end_stream(struct http_streams *h, struct stream *st)
{
    if (st->ended)
        return;
    st->ended = true;
    unlink_stream(h, st);
    http_resume(st->r);
}

static ssize_t
read_stream(void *cookie, uint64_t at UNUSED, char *out, size_t n_max)
{
    struct stream *st = cookie;
    size_t         n  = MIN(st->out.n_bytes - st->n_sent, n_max);

    if (n == 0 && st->ended)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (n == 0) {
        http_suspend(st->r);
        return 0;
    }
    memcpy(out, st->out.data + st->n_sent, n);
    st->n_sent += n;
    forget_sent(st);
    return (ssize_t)n;
}

static void
free_stream(void *cookie)
{
    struct stream *st = cookie;

    if (!st->ended && st->all != NULL)
        unlink_stream(st->all, st);
#ifndef IL_MUTANT_stream_outlived
    if (st->r != NULL)
        st->r->state = NULL;
#endif
    il__buf_release(&st->out);
    il__free(st);
}

/* The client has gone. */
static void
stream_gone(struct http_request *r)
{
    struct stream *st = r->state;

    if (st != NULL)
        end_stream(r->server->streams, st);
}

static void
request_ended(struct http_request *r)
{
    struct stream *st = r->state;

    if (st == NULL)
        return;
    end_stream(r->server->streams, st);
    st->r = NULL;
}

static void
begin(struct http_request *r, struct stream *st, struct MHD_Response *response)
{
    struct http_streams *h = r->server->streams;
    char                 text[64];
    int                  n = snprintf(text, sizeof text, "retry: %d\n: interlock\n\n", RETRY_MS);

    il__buf_init(&st->out, (size_t)2 * BUFFER_BYTES_MAX + 4096);
    st->all  = h;
    st->r    = r;
    st->next = h->first;
    if (h->first != NULL)
        h->first->prev = st;
    h->first = st;
    h->n++;
    atomic_store(&h->wanted, true);
    r->state      = st;
    r->on_hang_up = stream_gone;
    r->ended      = request_ended;
    write_text(st, text, (size_t)n);
    if (http_request_header(r, "Last-Event-ID") != NULL)
        write_gap(st);
    r->close = true; /* nothing can follow it in good order when it is ended from here */
    http_answer_stream(r, response);
}

void
http_stream_get(struct http_request *r)
{
    struct http_stream_in in = { 0 };

    if (!http_take_query(r, &in))
        return;
    if (r->server->streams->ended) {
        http_retry_after(r, 1000);
        http_fail(r, 503, "SHUTTING_DOWN", "request", NULL, "the server is shutting down");
        return;
    }
    r->content_type = "text/event-stream";
    if (strcmp(r->method, "HEAD") == 0) {
        http_answer(r, 200);
        return;
    }
    if (!http_limits_stream(r))
        return;
    struct stream       *st       = il__calloc(1, sizeof *st);
    struct MHD_Response *response = NULL;
    if (st != NULL)
        response = il__mhd->MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, read_stream,
                                                              st, free_stream);
    if (response == NULL) {
        il__free(st);
        http_fail_nomem(r);
        return;
    }
    st->types  = in.types;
    st->prefix = in.prefix != NULL ? in.prefix : "";
    begin(r, st, response);
}

/* ---- events ---------------------------------------------------------------------------------- */

static bool
wants(const struct stream *st, const struct event *e)
{
    const struct http_caller *c = st->r->caller;

    return (st->types == 0 || (st->types & 1U << e->type) != 0) &&
           strcmp(c->tenant, e->tenant) == 0 && http_may_see(st->r, e->name) &&
           strncmp(e->name, st->prefix, strlen(st->prefix)) == 0;
}

static void
deliver(struct http_streams *h, const struct event *e)
{
    AUTO_BUF struct il__buf data = { 0 };

    for (struct stream *st = h->first; st != NULL; st = st->next) {
        if (!wants(st, e))
            continue;
        if (data.n_bytes == 0) {
            il__buf_init(&data, 8192);
            il__wire_open(&data, NULL);
            il__wire_put_text(&data, "type", http_event_types[e->type]);
            il__wire_put_text(&data, "name", e->name);
            il__wire_put_text(&data, "tenant", e->tenant);
            il__wire_put_text(&data, "what", e->what);
            if (e->id != NULL)
                il__wire_put_text(&data, "id", e->id);
            il__wire_close(&data);
        }
        if (data.failed)
            st->gap = true;
        else
            write_event(st, data.data, e->type, data.n_bytes);
    }
}

/* To the streams of a tenant; NULL: to all. */
static void
deliver_gap(struct http_streams *h, const char *tenant)
{
    for (struct stream *st = h->first; st != NULL; st = st->next) {
        if (tenant == NULL || strcmp(st->r->caller->tenant, tenant) == 0)
            write_gap(st);
    }
}

/* The same object may change repeatedly: one hint per 100 ms is enough. */
static bool
was_seen(struct http_streams *h, const struct event *e)
{
    uint64_t hash = il__hash_bytes(e->name, strlen(e->name));

    hash = il__hash_mix(hash, il__hash_bytes(e->tenant, strlen(e->tenant)));
    hash = il__hash_mix(hash, il__hash_bytes(e->what, strlen(e->what)) + (uint64_t)e->type);
    if (e->id != NULL)
        hash = il__hash_mix(hash, il__hash_bytes(e->id, strlen(e->id)));
    if (h->seen[hash % SEEN_MAX] == hash)
        return true;
    h->seen[hash % SEEN_MAX] = hash;
    return false;
}

/* ["tenant","type","name","what","id"], added to the next announcement. */
static void
note(struct http_streams *h, const struct event *e)
{
    size_t n_before = h->events.n_bytes;

    if (h->alone || h->overflow || was_seen(h, e))
        return;
    if (n_before > 0)
        il__buf_addc(&h->events, ',');
    il__buf_addf(&h->events, "[\"%s\",\"%s\",", e->tenant, http_event_types[e->type]);
    il__wire_print_text(&h->events, e->name);
    il__buf_addf(&h->events, ",\"%s\",", e->what);
    il__wire_print_text(&h->events, e->id);
    il__buf_addc(&h->events, ']');
    if (!h->events.failed && h->events.n_bytes <= ANNOUNCED_BYTES)
        return;
    h->overflow       = true;
    h->events.failed  = false;
    h->events.n_bytes = n_before; /* drop the incomplete rest */
}

static void
tell(struct http_streams *h, const struct event *e)
{
    if (e->name == NULL || e->tenant == NULL)
        return;
    if (h->n > 0)
        deliver(h, e);
    note(h, e);
}

/* ---- from ops to events ---------------------------------------------------------------------- */

static void
tell_runs(struct http_streams *h, const il_op *op, const char *what)
{
    for (size_t i = 0; i < op->out.n_runs; i++) {
        const il_run_info *run = &op->out.runs[i];
        tell(h, &(struct event){ EVENT_RUN, run->tenant, run->key, what, run->id });
    }
}

static void
tell_jobs(struct http_streams *h, const il_op *op, const char *what)
{
    if (op->out.n_jobs > CLAIMED_MAX) {
        tell(h, &(struct event){ EVENT_QUEUE, op->tenant, op->key, what, NULL });
        return;
    }
    for (size_t i = 0; i < op->out.n_jobs; i++) {
        const il_job_info *job = &op->out.jobs[i];
        tell(h, &(struct event){ EVENT_JOB, job->tenant, job->queue, what, job->id });
    }
}

/* What an op did, if that is worth a hint. Heartbeats are not. */
static const char *
what_of(const il_op *op)
{
    static const char *const names[IL_OP_COUNT] = {
        [IL_OP_ACQUIRE]       = "acquired",
        [IL_OP_RELEASE]       = "released",
        [IL_OP_BREAK]         = "broken",
        [IL_OP_RUN_START]     = "started",
        [IL_OP_RUN_STAGE]     = "stage",
        [IL_OP_RUN_FINISH]    = "finished",
        [IL_OP_RUN_CANCEL]    = "cancelled",
        [IL_OP_JOB_PUSH]      = "pushed",
        [IL_OP_JOB_CLAIM]     = "claimed",
        [IL_OP_JOB_FINISH]    = "finished",
        [IL_OP_JOB_FAIL]      = "failed",
        [IL_OP_JOB_SNOOZE]    = "snoozed",
        [IL_OP_JOB_CANCEL]    = "cancelled",
        [IL_OP_JOB_RETRY]     = "retried",
        [IL_OP_JOB_SEAL]      = "sealed",
        [IL_OP_JOB_PURGE]     = "purged",
        [IL_OP_QUEUE_SET]     = "set",
        [IL_OP_QUEUE_PAUSE]   = "paused",
        [IL_OP_CRON_SET]      = "scheduled",
        [IL_OP_CRON_REMOVE]   = "unscheduled",
        [IL_OP_CACHE_FILL]    = "filled",
        [IL_OP_CACHE_LOOKUP]  = "building",
        [IL_OP_CACHE_ABANDON] = "abandoned",
        [IL_OP_CACHE_DROP]    = "dropped",
        [IL_OP_JOB_HEARTBEAT] = "progress",
    };
    bool renewed = (op->out.flags & IL_OUT_RENEWED) != 0;

    switch (op->type) {
    case IL_OP_ACQUIRE:
        if (op->status == IL_QUEUED)
            return "queued";
        return op->status == IL_OK && !renewed ? names[op->type] : NULL;
    case IL_OP_RUN_START:
        if (op->status == IL_QUEUED || (op->status == IL_OK && (op->flags & IL_RUN_SLOT) != 0))
            return renewed ? NULL : "queued";
        return op->status == IL_OK && !renewed ? names[op->type] : NULL;
    case IL_OP_JOB_HEARTBEAT:
        return op->status == IL_OK && (op->in.job.progress >= 0 || op->in.job.text != NULL)
                   ? names[op->type]
                   : NULL;
    case IL_OP_CACHE_LOOKUP:
        return op->status == IL_LEAD && !renewed ? names[op->type] : NULL;
    case IL_OP_QUEUE_PAUSE:
        if (op->status == IL_OK && (op->flags & IL_RESUME) != 0)
            return "resumed";
        return op->status == IL_OK ? names[op->type] : NULL;
    default:
        return op->status == IL_OK && !renewed ? names[op->type] : NULL;
    }
}

static void
tell_op(struct http_streams *h, const il_op *op)
{
    const char *what = what_of(op);

    if (what == NULL)
        return;
    if (op->type <= IL_OP_SWEEP) {
        tell(h, &(struct event){ EVENT_LOCK, op->tenant, op->key, what, NULL });
    } else if (op->type <= IL_OP_RUN_LOG) {
        tell_runs(h, op, what);
    } else if (op->type >= IL_OP_CACHE_GET) {
        tell(h, &(struct event){ EVENT_CACHE, op->tenant, op->key, what, NULL });
    } else if (op->type == IL_OP_CRON_REMOVE) {
        tell(h, &(struct event){ EVENT_QUEUE, op->tenant, op->in.cron.name, what, NULL });
    } else if (op->type >= IL_OP_JOB_PURGE) {
        tell(h, &(struct event){ EVENT_QUEUE, op->tenant, op->key, what, NULL });
    } else {
        tell_jobs(h, op, what);
    }
}

void
http_stream_ops_done(struct http_server *s, const il_op *ops, size_t n)
{
    struct http_streams *h = s->streams;

    if (h->n == 0 && h->alone)
        return;
    if (n * h->n > TOLD_MAX) {
        deliver_gap(h, ops[0].tenant);
        h->overflow = true;
        return;
    }
    for (size_t i = 0; i < n; i++)
        tell_op(h, &ops[i]);
}

void
http_stream_run_event(struct http_server *s, const char *tenant, const char *key, const char *what,
                      const char *id)
{
    struct http_streams *h = s->streams;

    if (h != NULL && (h->n > 0 || !h->alone))
        tell(h, &(struct event){ EVENT_RUN, tenant, key, what, id });
}

/* ---- the other servers ----------------------------------------------------------------------- */

static void
announce(struct http_streams *h, struct il__async *async, int64_t now_ns)
{
    AUTO_BUF struct il__buf text = { 0 };

    il__buf_init(&text, IL__ANNOUNCE_BYTES_MAX);
    il__buf_addf(&text, "{\"server\":\"%s\",\"gap\":%s,\"events\":[", h->id,
                 h->overflow ? "true" : "false");
    il__buf_add(&text, il__buf_str(&h->events), h->events.n_bytes);
    il__buf_adds(&text, "]}");
    if (!text.failed)
        il__async_announce(async, il__buf_str(&text));
    il__buf_clear(&h->events);
    memset(h->seen, 0, sizeof h->seen);
    h->overflow     = false;
    h->announced_ns = now_ns;
}

static void
hear_event(struct http_streams *h, const json_t *row)
{
    const char  *type = json_string_value(json_array_get(row, 1));
    struct event e    = {
           .tenant = json_string_value(json_array_get(row, 0)),
           .name   = json_string_value(json_array_get(row, 2)),
           .what   = json_string_value(json_array_get(row, 3)),
           .id     = json_string_value(json_array_get(row, 4)),
    };

    if (type == NULL || e.tenant == NULL || e.name == NULL || e.what == NULL)
        return;
    for (unsigned i = 0; i < EVENT_COUNT; i++) {
        if (strcmp(type, http_event_types[i]) == 0) {
            e.type = (enum event_type)i;
            deliver(h, &e);
        }
    }
}

/* An announcement has reached the loop. */
static void
hear(struct http_server *s, void *cookie)
{
    AUTO_FREE char      *text = cookie;
    struct http_streams *h    = s->streams;
    json_t              *root = NULL;
    size_t               i;
    json_t              *row;

    if (h == NULL || h->n == 0)
        return;
    if (text[0] != '\0')
        root = json_loads(text, 0, NULL);
    const char *from = json_string_value(json_object_get(root, "server"));
    if (from == NULL || (strcmp(from, h->id) != 0 && json_is_true(json_object_get(root, "gap")))) {
        deliver_gap(h, NULL);
    }
    if (from != NULL && strcmp(from, h->id) != 0) {
        json_array_foreach(json_object_get(root, "events"), i, row)
        {
            hear_event(h, row);
        }
    }
    json_decref(root);
}

/* On a thread of the il__async. NULL: announcements may have been missed. */
static void
on_announcement(void *cookie, const char *text)
{
    struct http_server  *s = cookie;
    struct http_streams *h = s->streams;

    if (!atomic_load(&h->wanted))
        return;
    char *copy = il__strdup(text != NULL ? text : "");
    if (copy != NULL && !http_post(s, hear, copy))
        il__free(copy); /* a hint less */
}

/* ---- open and close -------------------------------------------------------------------------- */

static void
look_after(struct http_streams *h, int64_t now_ns)
{
    struct stream *next;

    h->looked_ns = now_ns;
    for (struct stream *st = h->first; st != NULL; st = next) {
        next = st->next;
        if (!http_auth_alive(st->r))
            end_stream(h, st);
        else if (st->gap)
            write_gap(st);
        else if (now_ns - st->wrote_ns >= BEAT_MS * (int64_t)IL__NS_PER_MS)
            write_text(st, ": \n\n", 4);
    }
}

int64_t
http_stream_tick(struct http_server *s)
{
    struct http_streams *h      = s->streams;
    int64_t              now_ns = s->now_ns;
    int64_t              due_ms = -1;

    if (h->n > 0) {
        if (now_ns - h->looked_ns >= LOOK_MS * (int64_t)IL__NS_PER_MS)
            look_after(h, now_ns);
        due_ms = LOOK_MS - (now_ns - h->looked_ns) / IL__NS_PER_MS;
    }
    if (h->events.n_bytes == 0 && !h->overflow)
        return due_ms;
    int64_t rest_ms = ANNOUNCE_MS - (now_ns - h->announced_ns) / IL__NS_PER_MS;
    if (rest_ms > 0)
        return due_ms < 0 ? rest_ms : MIN(due_ms, rest_ms);
    announce(h, s->async, now_ns);
    return due_ms;
}

il_status
http_streams_open(struct http_server *s, il_error *reterr)
{
    struct http_streams *h = il__calloc(1, sizeof *h);

    if (h == NULL)
        return il__error_nomem(reterr);
    il__hash_init();
    il__buf_init(&h->events, IL__ANNOUNCE_BYTES_MAX * 4);
    h->alone    = s->o->store_url == NULL || strncmp(s->o->store_url, "memory:", 7) == 0;
    s->streams  = h;
    s->began_ns = il__clock_boot_ns();
    if (il_uuid(h->id) != IL_OK)
        return il__error_set(reterr, IL_STORE, "cannot read random bytes");
    il__async_listen(s->async, on_announcement, s);
    return IL_OK;
}

void
http_streams_end(struct http_server *s)
{
    struct http_streams *h = s->streams;

    h->ended = true;
    while (h->first != NULL)
        end_stream(h, h->first);
}

void
http_streams_close(struct http_server *s)
{
    struct http_streams *h = TAKE(s->streams);

    if (h == NULL)
        return;
    CHECK(h->n == 0);
    il__buf_release(&h->events);
    il__free(h);
}
