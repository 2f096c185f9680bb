/*
 * live_log.c: the live log of a run and the threads that write it; live_log.h is the contract.
 */
#include "apps/work/live_log.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/parse.h"
#include "base/thread.h"

#define FLUSH_NS (INT64_C(200) * IL__NS_PER_MS) /* output reaches the store within this time */
/* or this long after the previous write, if there is much of it */
#define FLUSH_EARLY_NS (INT64_C(100) * IL__NS_PER_MS)
#define FLUSH_BYTES ((size_t)32 << 10)
#define PENDING_BYTES_MAX ((size_t)256 << 10) /* bytes waiting, plus as many being written */
#define NOTE_BYTES 80
#define TRY_AGAIN_NS INT64_C(1000000000) /* the store could not be reached */

/* ---- adding output --------------------------------------------------------------------------- */

void
work_live_init(struct work_live *l, struct work_writers *w, il_run *run, uint64_t log_bytes,
               _Atomic int64_t *sign_ns)
{
    *l = (struct work_live){
        .writers = w, .run = run, .sign_ns = sign_ns, .progress = -1, .n_logged = log_bytes
    };
    il__mutex_init(&l->mutex, IL__MUTEX_live_log);
    il__cond_init(&l->idle);
    il__buf_init(&l->pending, 2 * PENDING_BYTES_MAX);
}

/* The store refuses a stage that is not one line of UTF-8, and the log that comes with it. */
static void
set_stage(struct work_live *l, const char *stage)
{
    size_t n = il__utf8_cut(stage, sizeof l->stage - 1);

    (void)snprintf(l->stage, sizeof l->stage, "%.*s", (int)n, stage);
    il__utf8_clean(l->stage, n);
    for (size_t i = 0; i < n; i++) { /* control characters: also U+0080 to U+009F */
        bool is_pair = (unsigned char)l->stage[i] == 0xC2 && (unsigned char)l->stage[i + 1] <= 0x9F;
        if (is_pair)
            l->stage[i + 1] = ' ';
        if (is_pair || (unsigned char)l->stage[i] < ' ' || l->stage[i] == 0x7F)
            l->stage[i] = ' ';
    }
}

/* Schedule it to be written. l->mutex is held. */
static void
list(struct work_live *l)
{
    struct work_writers *w      = l->writers;
    int64_t              now_ns = il__clock_boot_ns();
    bool                 much   = l->pending.n_bytes >= FLUSH_BYTES;

    if (l->closed)
        return;
    atomic_store(l->sign_ns, now_ns);
    il__mutex_lock(&w->mutex);
    int64_t due_ns = much ? MAX(now_ns, l->written_ns + FLUSH_EARLY_NS) : now_ns + FLUSH_NS;
    bool    wakes  = !l->listed || (due_ns < l->due_ns && much);
    if (!l->listed) {
        l->next   = w->first;
        w->first  = l;
        l->listed = true;
        l->due_ns = due_ns;
    } else if (wakes) {
        l->due_ns = due_ns;
    }
    if (wakes)
        CHECK(pthread_cond_signal(&w->wake) == 0);
    il__mutex_unlock(&w->mutex);
}

static void
add_line(struct il__buf *b, const char *step, char mark, const char *text, size_t n_bytes)
{
    if (step != NULL)
        il__buf_addf(b, "%s %c ", step, mark);
    else
        il__buf_adds(b, "== ");
    size_t at = b->n_bytes;
    il__buf_add(b, text, n_bytes);
    if (b->n_bytes > at)
        il__utf8_clean(b->data + at, b->n_bytes - at);
    il__buf_addc(b, '\n');
}

/* Too much is pending: drop the older half of the unsent output and insert a note in its place.
 * The newest lines are the most useful. */
static void
leave_out(struct work_live *l)
{
    struct il__buf *b   = &l->pending;
    size_t          at  = l->n_sent + (b->n_bytes - l->n_sent) / 2;
    const char     *end = memchr(b->data + at, '\n', b->n_bytes - at);
    size_t          cut = end != NULL ? (size_t)(end - b->data) + 1 : b->n_bytes;
    char            note[NOTE_BYTES];

    l->n_dropped += cut - l->n_sent;
    int    n      = snprintf(note, sizeof note, "== %llu bytes of output omitted\n",
                             (unsigned long long)l->n_dropped);
    size_t n_note = (size_t)n;
    CHECK(n_note < cut - l->n_sent); /* far less than half of the buffer */
    memmove(b->data + l->n_sent + n_note, b->data + cut, b->n_bytes - cut);
    memcpy(b->data + l->n_sent, note, n_note);
    b->n_bytes -= cut - l->n_sent - n_note;
    b->data[b->n_bytes] = '\0';
}

void
work_live_line(struct work_live *l, const char *step, char mark, const char *text, size_t n_bytes)
{
    size_t need = (step != NULL ? strlen(step) + 4 : 4) + n_bytes;

    il__mutex_lock(&l->mutex);
    if (!l->closed) {
        if (l->pending.n_bytes - l->n_sent + need > PENDING_BYTES_MAX)
            leave_out(l);
        add_line(&l->pending, step, mark, text, n_bytes);
        l->pending.failed = false; /* out of memory: only a line is missing */
        list(l);
    }
    il__mutex_unlock(&l->mutex);
}

void
work_live_stage(struct work_live *l, const char *stage, int32_t progress)
{
    il__mutex_lock(&l->mutex);
    set_stage(l, stage);
    l->progress      = progress >= 0 ? progress : MAX(l->progress, 0);
    l->stage_changed = true;
    list(l);
    il__mutex_unlock(&l->mutex);
}

void
work_lines_add(struct work_lines *s, struct work_live *l, const char *step, char mark,
               const void *data, size_t n_bytes)
{
    const char *at  = data;
    const char *end = at + n_bytes;

    atomic_store(l->sign_ns, il__clock_boot_ns()); /* even if the line continues */
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t      n       = (size_t)((newline != NULL ? newline : end) - at);
        size_t      room    = sizeof s->data - s->n_bytes;
        if (n > room) { /* a very long line is shown in parts */
            memcpy(s->data + s->n_bytes, at, room);
            work_live_line(l, step, mark, s->data, sizeof s->data);
            s->n_bytes = 0;
            at += room;
            continue;
        }
        if (newline != NULL && s->n_bytes == 0) {
            work_live_line(l, step, mark, at, n);
        } else {
            memcpy(s->data + s->n_bytes, at, n);
            s->n_bytes += n;
            if (newline != NULL)
                work_lines_end(s, l, step, mark);
        }
        at += n + (newline != NULL);
    }
}

void
work_lines_end(struct work_lines *s, struct work_live *l, const char *step, char mark)
{
    if (s->n_bytes > 0)
        work_live_line(l, step, mark, s->data, s->n_bytes);
    s->n_bytes = 0;
}

/* ---- writer threads -------------------------------------------------------------------------- */

/*
 * Write what is pending. Only one thread at a time does so for a run. Sent bytes stay at the front
 * of the buffer until the store has them: a retry must begin with the same bytes (il_run_stage()).
 */
enum written {
    WRITTEN,
    WRITTEN_MORE, /* more is pending */
    UNWRITTEN,    /* the store is unreachable */
};
static enum written
write_out(struct work_live *l)
{
    AUTO_BUF struct il__buf text = { 0 };
    char                    stage[sizeof l->stage];

    il__buf_init(&text, 2 * PENDING_BYTES_MAX);
    il__mutex_lock(&l->mutex);
    il__buf_add(&text, l->pending.data, MIN(l->pending.n_bytes, MAX(l->n_sent, PENDING_BYTES_MAX)));
    l->n_sent          = text.n_bytes;
    l->n_dropped       = 0;
    bool    with_stage = l->stage_changed;
    int32_t progress   = l->progress;
    memcpy(stage, l->stage, sizeof stage);
    l->stage_changed = false;
    il__mutex_unlock(&l->mutex);
    if (text.n_bytes == 0 && !with_stage)
        return WRITTEN;
    il_status st    = il_run_stage(l->run, with_stage ? stage : NULL, with_stage ? progress : -1,
                                text.n_bytes > 0 ? text.data : NULL, text.n_bytes, NULL);
    bool      again = st == IL_STORE || st == IL_FULL || st == IL_NOMEM;
    il__mutex_lock(&l->mutex);
    if (!again) { /* the store has it; or refuses it, because the run is no longer ours */
        il__buf_keep_last(&l->pending, l->pending.n_bytes - text.n_bytes);
        l->n_logged += text.n_bytes;
        l->n_sent = 0;
    }
    l->stage_changed |= again && with_stage;
    bool more = l->pending.n_bytes > 0;
    il__mutex_unlock(&l->mutex);
    return again ? UNWRITTEN : more ? WRITTEN_MORE : WRITTEN;
}

/* Remove the log that is due first from the list; NULL: none yet, *ret_next_ns says when.
 * w->mutex is held. */
static struct work_live *
take_due(struct work_writers *w, int64_t now_ns, int64_t *ret_next_ns)
{
    struct work_live **first = NULL;

    for (struct work_live **p = &w->first; *p != NULL; p = &(*p)->next) {
        if (!(*p)->writing && (first == NULL || (*p)->due_ns < (*first)->due_ns))
            first = p;
    }
    *ret_next_ns = first != NULL ? (*first)->due_ns : INT64_MAX;
    if (first == NULL || (*first)->due_ns > now_ns)
        return NULL;
    struct work_live *l = *first;
    *first              = l->next;
    l->listed           = false;
    l->writing          = true;
    return l;
}

static void *
writer_main(void *arg)
{
    struct work_writers *w = arg;

    il__mutex_lock(&w->mutex);
    while (!w->closing) {
        int64_t           now_ns = il__clock_boot_ns();
        int64_t           next_ns;
        struct work_live *l = take_due(w, now_ns, &next_ns);
        if (l == NULL) {
            (void)il__cond_wait(&w->wake, &w->mutex, next_ns != INT64_MAX ? next_ns - now_ns : -1);
            continue;
        }
        il__mutex_unlock(&w->mutex);
        enum written how = write_out(l);
        il__mutex_lock(&w->mutex);
        l->writing    = false;
        l->written_ns = il__clock_boot_ns();
        if (how != WRITTEN && !l->listed) {
            l->next   = w->first;
            w->first  = l;
            l->listed = true;
        }
        if (how != WRITTEN)
            l->due_ns = l->written_ns + (how == UNWRITTEN ? TRY_AGAIN_NS : FLUSH_EARLY_NS);
        CHECK(pthread_cond_broadcast(&l->idle) == 0);
    }
    il__mutex_unlock(&w->mutex);
    return NULL;
}

void
work_live_close(struct work_live *l, struct work_live_rest *ret)
{
    struct work_writers *w = l->writers;

    il__mutex_lock(&l->mutex);
    l->closed = true;
    il__mutex_unlock(&l->mutex);
    il__mutex_lock(&w->mutex);
    while (l->writing)
        (void)il__cond_wait(&l->idle, &w->mutex, -1);
    for (struct work_live **p = &w->first; l->listed && *p != NULL; p = &(*p)->next) {
        if (*p == l) {
            *p        = l->next;
            l->listed = false;
            break;
        }
    }
    il__mutex_unlock(&w->mutex);
    /* no other thread uses it any more */
    *ret = (struct work_live_rest){
        .log       = l->pending.n_bytes > 0 ? l->pending.data : NULL,
        .log_bytes = l->pending.n_bytes,
        .offset    = l->n_logged,
        .stage     = l->stage_changed ? l->stage : NULL,
        .progress  = l->stage_changed ? l->progress : -1,
    };
}

void
work_live_release(struct work_live *l)
{
    il__buf_release(&l->pending);
    CHECK(pthread_cond_destroy(&l->idle) == 0);
    il__mutex_destroy(&l->mutex);
}

int
work_writers_start(struct work_writers *w)
{
    il__mutex_init(&w->mutex, IL__MUTEX_live_list);
    il__cond_init(&w->wake);
    w->ready = true;
    for (size_t i = 0; i < WORK_WRITERS; i++) {
        int rc = il__thread_start(&w->threads[i], writer_main, w);
        if (rc != 0)
            return rc;
        w->n_threads++;
    }
    return 0;
}

void
work_writers_stop(struct work_writers *w)
{
    if (!w->ready)
        return;
    il__mutex_lock(&w->mutex);
    w->closing = true;
    CHECK(pthread_cond_broadcast(&w->wake) == 0);
    il__mutex_unlock(&w->mutex);
    for (size_t i = 0; i < w->n_threads; i++)
        CHECK(pthread_join(w->threads[i], NULL) == 0);
    CHECK(pthread_cond_destroy(&w->wake) == 0);
    il__mutex_destroy(&w->mutex);
}
