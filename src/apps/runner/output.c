/*
 * output.c: output of steps: kept tails, lines, the live log and the threads that write it.
 */
#include "apps/runner/output.h"

#include <stdio.h>

#include "apps/runner/runner_internal.h"
#include "base/clock.h"

#define FLUSH_NS (INT64_C(200) * IL__NS_PER_MS) /* output reaches the store within this time */
/* or this long after the previous write, if there is much of it */
#define FLUSH_EARLY_NS (INT64_C(100) * IL__NS_PER_MS)
#define FLUSH_BYTES ((size_t)32 << 10)
#define PENDING_BYTES_MAX ((size_t)256 << 10) /* bytes waiting, plus as many being written */
#define NOTE_BYTES 80
#define TRY_AGAIN_NS RUNNER_NS_PER_S /* the store could not be reached */

/* ---- text ------------------------------------------------------------------------------------ */

/* The length of the UTF-8 character at s, which has n bytes left; 0: invalid. */
static size_t
utf8_length(const unsigned char *s, size_t n)
{
    size_t need = s[0] < 0x80   ? 1
                  : s[0] < 0xC2 ? 0
                  : s[0] < 0xE0 ? 2
                  : s[0] < 0xF0 ? 3
                  : s[0] < 0xF5 ? 4
                                : 0;

    if (need == 0 || need > n || s[0] == '\0')
        return 0;
    for (size_t i = 1; i < need; i++) {
        if ((s[i] & 0xC0U) != 0x80)
            return 0;
    }
    /* overlong forms, surrogates, beyond U+10FFFF */
    if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F) ||
        (s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F))
        return 0;
    return need;
}

void
runner_text_clean(char *text, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes;) {
        size_t n = utf8_length((const unsigned char *)text + i, n_bytes - i);
        if (n == 0)
            text[i++] = '?';
        else
            i += n;
    }
}

/* ---- tails ----------------------------------------------------------------------------------- */

void
runner_tail_init(struct runner_tail *t)
{
    il__buf_init(&t->data, (size_t)2 * DATA_OUTPUT_BYTES_MAX);
    t->n_bytes = 0;
}

/* Keep only the last n_keep bytes. */
static void
cut_front(struct il__buf *b, size_t n_keep)
{
    if (b->n_bytes <= n_keep)
        return;
    memmove(b->data, b->data + (b->n_bytes - n_keep), n_keep);
    b->n_bytes      = n_keep;
    b->data[n_keep] = '\0';
}

void
runner_tail_add(struct runner_tail *t, const void *data, size_t n_bytes)
{
    const char *from = data;

    t->n_bytes += (int64_t)n_bytes;
    if (n_bytes > DATA_OUTPUT_BYTES_MAX) {
        from += n_bytes - DATA_OUTPUT_BYTES_MAX;
        n_bytes = DATA_OUTPUT_BYTES_MAX;
    }
    if (t->data.n_bytes + n_bytes > (size_t)2 * DATA_OUTPUT_BYTES_MAX)
        cut_front(&t->data, DATA_OUTPUT_BYTES_MAX);
    il__buf_add(&t->data, from, n_bytes); /* out of memory: keep less of it */
}

const char *
runner_tail_text(struct runner_tail *t)
{
    struct il__buf *b = &t->data;

    if (b->n_bytes == 0)
        return "";
    if (t->n_bytes > (int64_t)DATA_OUTPUT_BYTES_MAX) {
        cut_front(b, DATA_OUTPUT_BYTES_MAX);
        size_t n_part = 0; /* rest of a truncated character */
        while (n_part < 3 && n_part < b->n_bytes &&
               ((unsigned char)b->data[n_part] & 0xC0U) == 0x80)
            n_part++;
        cut_front(b, b->n_bytes - n_part);
    }
    runner_text_clean(b->data, b->n_bytes);
    return b->data;
}

void
runner_tail_release(struct runner_tail *t)
{
    il__buf_release(&t->data);
}

/* ---- the live log: adding output ------------------------------------------------------------- */

void
runner_live_init(struct runner_live *l, struct runner *r, il_run *run, uint64_t log_bytes,
                 _Atomic int64_t *sign_ns)
{
    *l = (struct runner_live){
        .r = r, .run = run, .sign_ns = sign_ns, .progress = -1, .n_logged = log_bytes
    };
    il__mutex_init(&l->mutex, IL__MUTEX_live_log);
    il__cond_init(&l->idle);
    il__buf_init(&l->pending, 2 * PENDING_BYTES_MAX);
}

/* Schedule it to be written. l->mutex is held. */
static void
list(struct runner_live *l)
{
    struct runner *r      = l->r;
    int64_t        now_ns = il__clock_boot_ns();
    bool           much   = l->pending.n_bytes >= FLUSH_BYTES;

    if (l->closed)
        return;
    atomic_store(l->sign_ns, now_ns);
    runner_lock(&r->live_mutex);
    int64_t due_ns = much ? MAX(now_ns, l->written_ns + FLUSH_EARLY_NS) : now_ns + FLUSH_NS;
    bool    wake   = !l->listed || (due_ns < l->due_ns && much);
    if (!l->listed) {
        l->next   = r->lives;
        r->lives  = l;
        l->listed = true;
        l->due_ns = due_ns;
    } else if (wake) {
        l->due_ns = due_ns;
    }
    if (wake)
        CHECK(pthread_cond_signal(&r->live_wake) == 0);
    runner_unlock(&r->live_mutex);
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
        runner_text_clean(b->data + at, b->n_bytes - at);
    il__buf_addc(b, '\n');
}

/* Too much is pending: drop the older half of the unsent output and insert a note in its place.
 * The newest lines are the most useful. */
static void
leave_out(struct runner_live *l)
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
runner_live_line(struct runner_live *l, const char *step, char mark, const char *text,
                 size_t n_bytes)
{
    size_t need = (step != NULL ? strlen(step) + 4 : 4) + n_bytes;

    runner_lock(&l->mutex);
    if (!l->closed) {
        if (l->pending.n_bytes - l->n_sent + need > PENDING_BYTES_MAX)
            leave_out(l);
        add_line(&l->pending, step, mark, text, n_bytes);
        l->pending.failed = false; /* out of memory: only a line is missing */
        list(l);
    }
    runner_unlock(&l->mutex);
}

void
runner_live_stage(struct runner_live *l, const char *stage, int32_t progress)
{
    runner_lock(&l->mutex);
    (void)snprintf(l->stage, sizeof l->stage, "%s", stage);
    l->progress      = progress;
    l->stage_changed = true;
    list(l);
    runner_unlock(&l->mutex);
}

void
runner_lines_add(struct runner_lines *s, struct runner_live *l, const char *step, char mark,
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
            runner_live_line(l, step, mark, s->data, sizeof s->data);
            s->n_bytes = 0;
            at += room;
            continue;
        }
        if (newline != NULL && s->n_bytes == 0) {
            runner_live_line(l, step, mark, at, n);
        } else {
            memcpy(s->data + s->n_bytes, at, n);
            s->n_bytes += n;
            if (newline != NULL)
                runner_lines_end(s, l, step, mark);
        }
        at += n + (newline != NULL);
    }
}

void
runner_lines_end(struct runner_lines *s, struct runner_live *l, const char *step, char mark)
{
    if (s->n_bytes > 0)
        runner_live_line(l, step, mark, s->data, s->n_bytes);
    s->n_bytes = 0;
}

/* ---- the live log: writer threads ------------------------------------------------------------ */

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
write_out(struct runner_live *l)
{
    AUTO_BUF struct il__buf text = { 0 };
    char                    stage[sizeof l->stage];

    il__buf_init(&text, 2 * PENDING_BYTES_MAX);
    runner_lock(&l->mutex);
    il__buf_add(&text, l->pending.data, MIN(l->pending.n_bytes, MAX(l->n_sent, PENDING_BYTES_MAX)));
    l->n_sent          = text.n_bytes;
    l->n_dropped       = 0;
    bool    with_stage = l->stage_changed;
    int32_t progress   = l->progress;
    memcpy(stage, l->stage, sizeof stage);
    l->stage_changed = false;
    runner_unlock(&l->mutex);
    if (text.n_bytes == 0 && !with_stage)
        return WRITTEN;
    il_status st    = il_run_stage(l->run, with_stage ? stage : NULL, with_stage ? progress : -1,
                                text.n_bytes > 0 ? text.data : NULL, text.n_bytes, NULL);
    bool      again = st == IL_STORE || st == IL_FULL || st == IL_NOMEM;
    runner_lock(&l->mutex);
    if (!again) { /* the store has it; or refuses it, because the run is no longer ours */
        cut_front(&l->pending, l->pending.n_bytes - text.n_bytes);
        l->n_logged += text.n_bytes;
        l->n_sent = 0;
    }
    l->stage_changed |= again && with_stage;
    bool more = l->pending.n_bytes > 0;
    runner_unlock(&l->mutex);
    return again ? UNWRITTEN : more ? WRITTEN_MORE : WRITTEN;
}

/* Remove the log that is due first from the list; NULL: none yet, *ret_next_ns says when.
 * r->live_mutex is held. */
static struct runner_live *
take_due(struct runner *r, int64_t now_ns, int64_t *ret_next_ns)
{
    struct runner_live **first = NULL;

    for (struct runner_live **p = &r->lives; *p != NULL; p = &(*p)->next) {
        if (!(*p)->writing && (first == NULL || (*p)->due_ns < (*first)->due_ns))
            first = p;
    }
    *ret_next_ns = first != NULL ? (*first)->due_ns : INT64_MAX;
    if (first == NULL || (*first)->due_ns > now_ns)
        return NULL;
    struct runner_live *l = *first;
    *first                = l->next;
    l->listed             = false;
    l->writing            = true;
    return l;
}

static void *
writer_main(void *arg)
{
    struct runner *r = arg;

    runner_lock(&r->live_mutex);
    while (!r->live_closing) {
        int64_t             now_ns = il__clock_boot_ns();
        int64_t             next_ns;
        struct runner_live *l = take_due(r, now_ns, &next_ns);
        if (l == NULL) {
            runner_wait(&r->live_wake, &r->live_mutex,
                        next_ns != INT64_MAX ? next_ns - now_ns : -1);
            continue;
        }
        runner_unlock(&r->live_mutex);
        enum written how = write_out(l);
        runner_lock(&r->live_mutex);
        l->writing    = false;
        l->written_ns = il__clock_boot_ns();
        if (how != WRITTEN && !l->listed) {
            l->next   = r->lives;
            r->lives  = l;
            l->listed = true;
        }
        if (how != WRITTEN)
            l->due_ns = l->written_ns + (how == UNWRITTEN ? TRY_AGAIN_NS : FLUSH_EARLY_NS);
        CHECK(pthread_cond_broadcast(&l->idle) == 0);
    }
    runner_unlock(&r->live_mutex);
    return NULL;
}

void
runner_live_close(struct runner_live *l, struct runner_live_rest *ret)
{
    struct runner *r = l->r;

    runner_lock(&l->mutex);
    l->closed = true;
    runner_unlock(&l->mutex);
    runner_lock(&r->live_mutex);
    while (l->writing)
        runner_wait(&l->idle, &r->live_mutex, -1);
    for (struct runner_live **p = &r->lives; l->listed && *p != NULL; p = &(*p)->next) {
        if (*p == l) {
            *p        = l->next;
            l->listed = false;
            break;
        }
    }
    runner_unlock(&r->live_mutex);
    /* no other thread uses it any more */
    *ret = (struct runner_live_rest){
        .log       = l->pending.n_bytes > 0 ? l->pending.data : NULL,
        .log_bytes = l->pending.n_bytes,
        .offset    = l->n_logged,
        .stage     = l->stage_changed ? l->stage : NULL,
        .progress  = l->stage_changed ? l->progress : -1,
    };
}

void
runner_live_release(struct runner_live *l)
{
    il__buf_release(&l->pending);
    CHECK(pthread_cond_destroy(&l->idle) == 0);
    il__mutex_destroy(&l->mutex);
}

int
runner_writers_start(struct runner *r)
{
    for (size_t i = 0; i < RUNNER_WRITERS; i++) {
        int rc = runner_thread(&r->writers[i], writer_main, r);
        if (rc != 0)
            return rc;
        r->n_writers++;
    }
    return 0;
}

void
runner_writers_stop(struct runner *r)
{
    runner_lock(&r->live_mutex);
    r->live_closing = true;
    CHECK(pthread_cond_broadcast(&r->live_wake) == 0);
    runner_unlock(&r->live_mutex);
    for (size_t i = 0; i < r->n_writers; i++)
        CHECK(pthread_join(r->writers[i], NULL) == 0);
}
