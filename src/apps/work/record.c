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
#include "apps/work/record.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"

#define NS_PER_S INT64_C(1000000000)
#define RECORDS_MAX 8192
#define BYTES_MAX ((size_t)64 << 20)
#define COMMIT_RECORDS_MAX 128
#define TRY_AGAIN_NS NS_PER_S
#define GATHER_NS (INT64_C(100) * IL__NS_PER_MS)
#define PURGE_NS (600 * NS_PER_S)

enum record_kind {
    RECORD_DETAIL,
    RECORD_STEP,
    RECORD_JOIN,
};
struct work_record {
    struct work_record *next;
    enum record_kind    kind;
    bool                is_news; /* something began */
    size_t              n_bytes;
    union {
        struct il__data_detail detail;
        struct il__data_step   step;
        struct il__data_join   join;
    } u;
    char text[]; /* all strings */
};

/* Callers check the clock themselves. */
static void
wait_for(pthread_cond_t *c, struct work_recorder *q, int64_t timeout_ns)
{
    (void)il__cond_wait(c, &q->mutex, timeout_ns);
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Allocate a record with room for its strings, which are then moved into it. */
static struct work_record *
make(enum record_kind kind, const char **const fields[], size_t n_fields)
{
    size_t n_bytes = 0;

    for (size_t i = 0; i < n_fields; i++)
        n_bytes += strlen(*fields[i] != NULL ? *fields[i] : "") + 1;
    struct work_record *rec = il__alloc(sizeof *rec + n_bytes);
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
drop(struct work_recorder *q, struct work_record **at)
{
    struct work_record *rec = *at;

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
shorten(struct work_recorder *q)
{
    while (q->n >= RECORDS_MAX || q->n_bytes > BYTES_MAX) {
        struct work_record **at = &q->first;
        while (*at != NULL && !(*at)->is_news)
            at = &(*at)->next;
        drop(q, *at != NULL ? at : &q->first);
    }
}

static void
add(struct work_recorder *q, struct work_record *rec)
{
    CHECK(q->data != NULL);
    il__mutex_lock(&q->mutex);
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
    il__mutex_unlock(&q->mutex);
}

void
work_record_detail(struct work_recorder *q, const struct il__data_detail *detail)
{
    struct il__data_detail d = *detail;
    const char **fields[] = { &d.tenant, &d.run, &d.pipeline, &d.version, &d.node, &d.parameters };
    struct work_record *rec = make(RECORD_DETAIL, fields, ARRAY_LEN(fields));

    if (rec != NULL)
        rec->u.detail = d;
    add(q, rec);
}

void
work_record_step(struct work_recorder *q, const struct il__data_step *step)
{
    struct il__data_step s        = *step;
    const char         **fields[] = { &s.tenant, &s.run, &s.step, &s.type,   &s.state,
                                      &s.error,  &s.out, &s.err,  &s.details };
    struct work_record  *rec      = make(RECORD_STEP, fields, ARRAY_LEN(fields));

    if (rec != NULL) {
        rec->u.step  = s;
        rec->is_news = s.ended_at_ms == 0 && s.attempt > 0;
    }
    add(q, rec);
}

void
work_record_join(struct work_recorder *q, const struct il__data_join *join)
{
    struct il__data_join j        = *join;
    const char         **fields[] = { &j.tenant, &j.run, &j.by, &j.trigger, &j.request_id };
    struct work_record  *rec      = make(RECORD_JOIN, fields, ARRAY_LEN(fields));

    if (rec != NULL)
        rec->u.join = j;
    add(q, rec);
}

void
work_record_wait(struct work_recorder *q, int64_t limit_ms)
{
    int64_t until_ns = il__clock_boot_ns() + limit_ms * IL__NS_PER_MS;

    il__mutex_lock(&q->mutex);
    uint64_t n  = q->n_added;
    q->n_wanted = n;
    if (q->n_written < n)
        CHECK(pthread_cond_signal(&q->wake) == 0);
    while (q->n_written < n) {
        int64_t left_ns = until_ns - il__clock_boot_ns();
        if (left_ns <= 0)
            break;
        wait_for(&q->written, q, left_ns);
    }
    il__mutex_unlock(&q->mutex);
}

uint64_t
work_records_dropped(struct work_recorder *q)
{
    il__mutex_lock(&q->mutex);
    uint64_t n = q->n_dropped;
    il__mutex_unlock(&q->mutex);
    return n;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Remove the first records from the queue. q->mutex is held. */
static struct work_record *
take(struct work_recorder *q, size_t *ret_n)
{
    struct work_record  *first = q->first;
    struct work_record **end   = &q->first;
    size_t               n     = 0;

    while (*end != NULL && n < COMMIT_RECORDS_MAX) {
        q->n_bytes -= (*end)->n_bytes;
        end = &(*end)->next;
        n++;
    }
    struct work_record *rest = *end;
    *end                     = NULL;
    q->first                 = rest;
    if (rest == NULL)
        q->last = &q->first;
    q->n -= n;
    *ret_n = n;
    return n > 0 ? first : NULL;
}

/* Does a later record supersede this one? */
static bool
is_outdated(const struct work_record *rec)
{
    for (const struct work_record *later = rec->next; later != NULL; later = later->next) {
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
write_records(struct work_recorder *q, const struct work_record *first, il_error *reterr)
{
    struct il__data_detail details[COMMIT_RECORDS_MAX];
    struct il__data_step   steps[COMMIT_RECORDS_MAX];
    struct il__data_join   joins[COMMIT_RECORDS_MAX];
    size_t                 n_details = 0, n_steps = 0, n_joins = 0;

    for (const struct work_record *rec = first; rec != NULL; rec = rec->next) {
        if (rec->kind != RECORD_JOIN && is_outdated(rec))
            continue;
        if (rec->kind == RECORD_DETAIL)
            details[n_details++] = rec->u.detail;
        else if (rec->kind == RECORD_STEP)
            steps[n_steps++] = rec->u.step;
        else
            joins[n_joins++] = rec->u.join;
    }
    return il__data_history_write(q->data, q->run_class, details, n_details, steps, n_steps, joins,
                                  n_joins, reterr);
}

static void
free_records(struct work_record *first)
{
    while (first != NULL) {
        struct work_record *next = first->next;
        il__free(first);
        first = next;
    }
}

/* Purge old history of the class, a thousand runs at a time. */
static void
purge(struct work_recorder *q)
{
    uint64_t n;

    /* on any error, try again in ten minutes */
    IGNORE(
        il__data_history_purge(q->data, q->run_class, il__clock_wall_ms() - q->keep_ms, &n, NULL));
}

/* Write the records, retrying while the data store is unreachable; not for long once the runner
 * is closing. q->mutex is not held. */
static bool
write_surely(struct work_recorder *q, const struct work_record *first)
{
    for (;;) {
        il_error  error = { .message = "" };
        il_status st    = write_records(q, first, &error);
        if (st == IL_OK)
            return true;
        q->trouble(q->cookie, "cannot write history", &error);
        bool again = st == IL_STORE || st == IL_FULL || st == IL_NOMEM;
        il__mutex_lock(&q->mutex);
        if (again)
            wait_for(&q->wake, q, q->closing ? TRY_AGAIN_NS / 10 : TRY_AGAIN_NS);
        bool over = q->closing && il__clock_boot_ns() >= q->close_ns;
        il__mutex_unlock(&q->mutex);
        if (!again || over)
            return false;
    }
}

static void *
recorder_main(void *arg)
{
    struct work_recorder *q        = arg;
    int64_t               purge_ns = 0;

    il__mutex_lock(&q->mutex);
    while (q->first != NULL || !q->closing) {
        int64_t left_ns = q->first_ns + GATHER_NS - il__clock_boot_ns();
        if (q->first != NULL && !q->closing && left_ns > 0 && q->n_wanted <= q->n_written &&
            q->n < COMMIT_RECORDS_MAX) {
            wait_for(&q->wake, q, left_ns);
            continue;
        }
        size_t              n;
        struct work_record *first  = take(q, &n);
        int64_t             now_ns = il__clock_boot_ns();
        if (first == NULL && now_ns < purge_ns) {
            wait_for(&q->wake, q, purge_ns - now_ns);
            continue;
        }
        il__mutex_unlock(&q->mutex);
        bool written = first == NULL || write_surely(q, first);
        free_records(first);
        if (now_ns >= purge_ns) {
            if (q->purges)
                purge(q);
            purge_ns = now_ns + PURGE_NS;
        }
        il__mutex_lock(&q->mutex);
        q->n_written += n;
        q->n_dropped += written ? 0 : n;
        CHECK(pthread_cond_broadcast(&q->written) == 0);
    }
    il__mutex_unlock(&q->mutex);
    return NULL;
}

il_status
work_recorder_start(struct work_recorder *q, il_error *reterr)
{
    q->last = &q->first;
    il__mutex_init(&q->mutex, IL__MUTEX_recorder);
    il__cond_init(&q->wake);
    il__cond_init(&q->written);
    q->ready = true;
    if (q->data == NULL)
        return IL_OK;
    int rc = il__thread_start(&q->thread, recorder_main, q);
    if (rc != 0)
        return il__error_set(reterr, IL_NOMEM, "cannot start the history thread: %s", strerror(rc));
    q->started = true;
    return IL_OK;
}

void
work_recorder_stop(struct work_recorder *q, int64_t limit_ms)
{
    if (!q->ready)
        return;
    il__mutex_lock(&q->mutex);
    q->closing  = true;
    q->close_ns = il__clock_boot_ns() + limit_ms * IL__NS_PER_MS;
    CHECK(pthread_cond_signal(&q->wake) == 0);
    il__mutex_unlock(&q->mutex);
    if (q->started)
        CHECK(pthread_join(q->thread, NULL) == 0);
    free_records(q->first);
    CHECK(pthread_cond_destroy(&q->wake) == 0);
    CHECK(pthread_cond_destroy(&q->written) == 0);
    il__mutex_destroy(&q->mutex);
}
