/*
 * record.c: the recorder: one thread writes the history, committing what has accumulated in
 * batches.
 *
 * Callers hand over a copy and continue. Records that arrive within a tenth of a second form one
 * commit, sooner if a caller waits for it, so a short run is written once, when it ends. Of several
 * records about the same object only the last is written.
 *
 * While the data store is unreachable the queue grows up to its limits; then the oldest records
 * that something *began* are dropped first (the record of its end will say more), then the oldest
 * of all; both are counted. Writes are upserts, so a commit whose outcome is unknown is repeated.
 */
#include <errno.h>

#include "apps/runner/runner_internal.h"
#include "base/clock.h"
#include "base/error.h"

#define RECORDS_MAX 8192
#define BYTES_MAX ((size_t)64 << 20)
#define COMMIT_RECORDS_MAX 128
#define TRY_AGAIN_NS RUNNER_NS_PER_S
#define GATHER_NS (INT64_C(100) * IL__NS_PER_MS)
#define PURGE_NS (600 * RUNNER_NS_PER_S)

enum record_kind {
    RECORD_DETAIL,
    RECORD_STEP,
    RECORD_JOIN,
};
struct runner_record {
    struct runner_record *next;
    enum record_kind      kind;
    bool                  is_news; /* something began */
    size_t                n_bytes;
    union {
        struct il__data_detail detail;
        struct il__data_step   step;
        struct il__data_join   join;
    } u;
    char text[]; /* all strings */
};

/* ---- copies ---------------------------------------------------------------------------------- */

/* Allocate a record with room for its strings, which are then moved into it. */
static struct runner_record *
make(enum record_kind kind, const char **const fields[], size_t n_fields)
{
    size_t n_bytes = 0;

    for (size_t i = 0; i < n_fields; i++)
        n_bytes += strlen(*fields[i] != NULL ? *fields[i] : "") + 1;
    struct runner_record *rec = il__alloc(sizeof *rec + n_bytes);
    if (rec == NULL)
        return NULL;
    rec->next    = NULL;
    rec->kind    = kind;
    rec->is_news = false;
    rec->n_bytes = sizeof *rec + n_bytes;
    char *at     = rec->text;
    for (size_t i = 0; i < n_fields; i++) {
        const char *from = *fields[i] != NULL ? *fields[i] : "";
        *fields[i]       = il__put(&at, from, strlen(from) + 1);
    }
    return rec;
}

static void
drop(struct recorder *q, struct runner_record **at)
{
    struct runner_record *rec = *at;

    CHECK(rec != NULL);
    *at = rec->next;
    if (q->last == &rec->next)
        q->last = at;
    q->n--;
    q->n_bytes -= rec->n_bytes;
    q->n_written++;
    q->n_dropped++;
    il__free(rec);
}

/* Make room. q->mutex is held. */
static void
shorten(struct recorder *q)
{
    while (q->n >= RECORDS_MAX || q->n_bytes > BYTES_MAX) {
        struct runner_record **at = &q->first;
        while (*at != NULL && !(*at)->is_news)
            at = &(*at)->next;
        drop(q, *at != NULL ? at : &q->first);
    }
}

static void
add(struct runner *r, struct runner_record *rec)
{
    struct recorder *q = &r->recorder;

    runner_lock(&q->mutex);
    if (rec == NULL) {
        q->n_dropped++;
    } else {
        shorten(q);
        *q->last = rec;
        q->last  = &rec->next;
        q->n++;
        q->n_bytes += rec->n_bytes;
        q->n_added++;
        if (q->n == 1) {
            q->first_ns = il__clock_boot_ns();
            CHECK(pthread_cond_signal(&q->wake) == 0);
        }
    }
    runner_unlock(&q->mutex);
}

void
runner_record_detail(struct runner *r, const struct il__data_detail *detail)
{
    struct il__data_detail d = *detail;
    const char **fields[] = { &d.tenant, &d.run, &d.pipeline, &d.version, &d.node, &d.parameters };
    struct runner_record *rec = make(RECORD_DETAIL, fields, ARRAY_LEN(fields));

    if (rec != NULL)
        rec->u.detail = d;
    add(r, rec);
}

void
runner_record_step(struct runner *r, const struct il__data_step *step)
{
    struct il__data_step  s        = *step;
    const char          **fields[] = { &s.tenant, &s.run, &s.step, &s.type,   &s.state,
                                       &s.error,  &s.out, &s.err,  &s.details };
    struct runner_record *rec      = make(RECORD_STEP, fields, ARRAY_LEN(fields));

    if (rec != NULL) {
        rec->u.step  = s;
        rec->is_news = s.ended_at_ms == 0 && s.attempt > 0;
    }
    add(r, rec);
}

void
runner_record_join(struct runner *r, const struct il__data_join *join)
{
    struct il__data_join  j        = *join;
    const char          **fields[] = { &j.tenant, &j.run, &j.by, &j.trigger, &j.request_id };
    struct runner_record *rec      = make(RECORD_JOIN, fields, ARRAY_LEN(fields));

    if (rec != NULL)
        rec->u.join = j;
    add(r, rec);
}

void
runner_joined(struct runner *r, const struct il__data_join *join)
{
    runner_record_join(r, join);
}

void
runner_record_wait(struct runner *r, int64_t limit_ms)
{
    struct recorder *q        = &r->recorder;
    int64_t          until_ns = il__clock_boot_ns() + limit_ms * IL__NS_PER_MS;

    runner_lock(&q->mutex);
    uint64_t n  = q->n_added;
    q->n_wanted = n;
    if (q->n_written < n)
        CHECK(pthread_cond_signal(&q->wake) == 0);
    while (q->n_written < n) {
        int64_t left_ns = until_ns - il__clock_boot_ns();
        if (left_ns <= 0)
            break;
        runner_wait(&q->written, &q->mutex, left_ns);
    }
    runner_unlock(&q->mutex);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Remove the first records from the queue. q->mutex is held. */
static struct runner_record *
take(struct recorder *q, size_t *ret_n)
{
    struct runner_record  *first = q->first;
    struct runner_record **end   = &q->first;
    size_t                 n     = 0;

    while (*end != NULL && n < COMMIT_RECORDS_MAX) {
        q->n_bytes -= (*end)->n_bytes;
        end = &(*end)->next;
        n++;
    }
    struct runner_record *rest = *end;
    *end                       = NULL;
    q->first                   = rest;
    if (rest == NULL)
        q->last = &q->first;
    q->n -= n;
    *ret_n = n;
    return n > 0 ? first : NULL;
}

/* Does a later record supersede this one? */
static bool
is_outdated(const struct runner_record *rec)
{
    for (const struct runner_record *later = rec->next; later != NULL; later = later->next) {
        if (later->kind != rec->kind)
            continue;
        if (rec->kind == RECORD_DETAIL && strcmp(rec->u.detail.run, later->u.detail.run) == 0 &&
            strcmp(rec->u.detail.tenant, later->u.detail.tenant) == 0)
            return true;
        const struct il__data_step *a = &rec->u.step, *b = &later->u.step;
        if (rec->kind == RECORD_STEP && a->n == b->n && a->attempt == b->attempt &&
            strcmp(a->run, b->run) == 0 && strcmp(a->tenant, b->tenant) == 0)
            return true;
    }
    return false;
}

static il_status
write_records(struct runner *r, const struct runner_record *first, il_error *reterr)
{
    struct il__data_detail details[COMMIT_RECORDS_MAX];
    struct il__data_step   steps[COMMIT_RECORDS_MAX];
    struct il__data_join   joins[COMMIT_RECORDS_MAX];
    size_t                 n_details = 0, n_steps = 0, n_joins = 0;

    for (const struct runner_record *rec = first; rec != NULL; rec = rec->next) {
        if (rec->kind != RECORD_JOIN && is_outdated(rec))
            continue;
        if (rec->kind == RECORD_DETAIL)
            details[n_details++] = rec->u.detail;
        else if (rec->kind == RECORD_STEP)
            steps[n_steps++] = rec->u.step;
        else
            joins[n_joins++] = rec->u.join;
    }
    return il__data_history_write(r->o.data, details, n_details, steps, n_steps, joins, n_joins,
                                  reterr);
}

static void
free_records(struct runner_record *first)
{
    while (first != NULL) {
        struct runner_record *next = first->next;
        il__free(first);
        first = next;
    }
}

/* Purge old history, a thousand runs at a time. */
static void
purge(struct runner *r)
{
    uint64_t n;

    /* on any error, try again in ten minutes */
    IGNORE(il__data_history_purge(r->o.data, il__clock_wall_ms() - r->o.keep_ms, &n, NULL));
}

/* Write the records, retrying while the data store is unreachable; not for long once the runner
 * is closing. q->mutex is not held. */
static bool
write_surely(struct runner *r, const struct runner_record *first)
{
    struct recorder *q = &r->recorder;

    for (;;) {
        il_error  error = { .message = "" };
        il_status st    = write_records(r, first, &error);
        if (st == IL_OK)
            return true;
        runner_trouble(r, "cannot write history", &error);
        bool again = st == IL_STORE || st == IL_FULL || st == IL_NOMEM;
        runner_lock(&q->mutex);
        if (again)
            runner_wait(&q->wake, &q->mutex, q->closing ? TRY_AGAIN_NS / 10 : TRY_AGAIN_NS);
        bool over = q->closing && il__clock_boot_ns() >= q->close_ns;
        runner_unlock(&q->mutex);
        if (!again || over)
            return false;
    }
}

static void *
recorder_main(void *arg)
{
    struct runner   *r        = arg;
    struct recorder *q        = &r->recorder;
    int64_t          purge_ns = 0;

    runner_lock(&q->mutex);
    while (q->first != NULL || !q->closing) {
        int64_t left_ns = q->first_ns + GATHER_NS - il__clock_boot_ns();
        if (q->first != NULL && !q->closing && left_ns > 0 && q->n_wanted <= q->n_written &&
            q->n < COMMIT_RECORDS_MAX) {
            runner_wait(&q->wake, &q->mutex, left_ns);
            continue;
        }
        size_t                n;
        struct runner_record *first  = take(q, &n);
        int64_t               now_ns = il__clock_boot_ns();
        if (first == NULL && now_ns < purge_ns) {
            runner_wait(&q->wake, &q->mutex, purge_ns - now_ns);
            continue;
        }
        runner_unlock(&q->mutex);
        bool written = first == NULL || write_surely(r, first);
        free_records(first);
        if (now_ns >= purge_ns) {
            if (r->o.mode == RUNNER_SERVE)
                purge(r);
            purge_ns = now_ns + PURGE_NS;
        }
        runner_lock(&q->mutex);
        q->n_written += n;
        q->n_dropped += written ? 0 : n;
        CHECK(pthread_cond_broadcast(&q->written) == 0);
    }
    runner_unlock(&q->mutex);
    return NULL;
}

il_status
runner_recorder_start(struct runner *r, il_error *reterr)
{
    struct recorder *q = &r->recorder;

    q->r    = r;
    q->last = &q->first;
    il__mutex_init(&q->mutex, IL__MUTEX_recorder);
    il__cond_init(&q->wake);
    il__cond_init(&q->written);
    q->ready = true;
    int rc   = runner_thread(&q->thread, recorder_main, r);
    if (rc != 0)
        return il__error_set(reterr, IL_NOMEM, "cannot start the history thread: %s", strerror(rc));
    q->started = true;
    return IL_OK;
}

void
runner_recorder_stop(struct runner *r, int64_t limit_ms)
{
    struct recorder *q = &r->recorder;

    if (!q->ready)
        return;
    runner_lock(&q->mutex);
    q->closing  = true;
    q->close_ns = il__clock_boot_ns() + limit_ms * IL__NS_PER_MS;
    CHECK(pthread_cond_signal(&q->wake) == 0);
    runner_unlock(&q->mutex);
    if (q->started)
        CHECK(pthread_join(q->thread, NULL) == 0);
    free_records(q->first);
    CHECK(pthread_cond_destroy(&q->wake) == 0);
    CHECK(pthread_cond_destroy(&q->written) == 0);
    il__mutex_destroy(&q->mutex);
}
