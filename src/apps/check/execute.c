/*
 * execute.c: runs invariants, each in a read-only transaction of its own, several at a time.
 *
 * Threads take one invariant after the other. The caller's thread watches them: it interrupts the
 * database handle of an invariant whose time is over, and reports those that have ended. So one
 * that hangs occupies one thread until its timeout, and delays no other that has a thread.
 */
#include "apps/check/check.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mutex.h"
#include "base/parse.h"
#include "guard/guard.h"

#define LOCK_MS_MIN 1000
#define CONNECT_MS_MAX 15000
#define COLUMNS_MAX 20 /* of a row, in the text of an offender */
#define NAME_BYTES_MAX 60
#define VALUE_BYTES_MAX 200
#define TEXT_BYTES_MAX 512 /* for the app */

struct worker {
    struct crew *crew;
    pthread_t    thread;
    il_guard    *guard;       /* in use; NULL: none */
    int64_t      deadline_ns; /* when to interrupt it */
};

/* Everything below the mutex is protected by it; the rest does not change while threads run.
 * results[i] belongs to the thread that has taken i, and after it was put into `ended` to the
 * caller's thread. */
struct crew {
    const struct check *const *checks;
    size_t                     n;
    const struct check_how    *how;
    struct check_result       *results;
    struct il__mutex           mutex;
    pthread_cond_t             changed; /* for the caller's thread */
    size_t                     next;    /* the next invariant to take */
    size_t                    *ended;   /* indexes, in the order of their ends */
    size_t                     n_ended;
    struct worker              workers[CHECK_THREADS_MAX];
    size_t                     n_workers;
};

const char *
il__check_outcome_name(enum check_outcome outcome)
{
    static const char *const names[] = { "not_run", "passed", "broken", "error", "skipped" };

    _Static_assert(ARRAY_LEN(names) == CHECK_OUTCOME_COUNT, "a name for each outcome");
    CHECK(outcome < CHECK_OUTCOME_COUNT);
    return names[outcome];
}

void
il__check_result_release(struct check_result *r)
{
    il__invariant_found_release(&r->found);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* "status=PROCESSING, age=3600" */
static void
describe(const il_guard_row *row, struct il__buf *out)
{
    for (size_t i = 1; i < row->n && i <= COLUMNS_MAX; i++) {
        const char *value = row->values[i].type != IL_GUARD_NULL ? row->values[i].data : "NULL";
        il__buf_addf(out, "%s%.*s=%.*s", i > 1 ? ", " : "",
                     (int)il__utf8_cut(row->names[i], NAME_BYTES_MAX), row->names[i],
                     (int)il__utf8_cut(value, VALUE_BYTES_MAX), value);
    }
}

static int
take_row(void *cookie, const il_guard_row *row)
{
    struct invariant_found *found   = cookie;
    bool                    has_key = row->n > 0 && row->values[0].type != IL_GUARD_NULL;
    const char             *key     = has_key ? row->values[0].data : "NULL";
    AUTO_BUF struct il__buf text    = { 0 };

    il__buf_init(&text, COLUMNS_MAX * (NAME_BYTES_MAX + VALUE_BYTES_MAX + 8));
    if (found->n_offenders < INVARIANT_OFFENDERS_MAX)
        describe(row, &text);
    il__invariant_found(found, key, text.n_bytes > 0 ? il__buf_str(&text) : NULL);
    return 1;
}

/* ---- one invariant --------------------------------------------------------------------------- */

/* il_guard_open() takes anything else for a path, and would create a missing file of SQLite. */
static il_status
check_url(const char *url, il_error *reterr)
{
    static const char sqlite[] = "sqlite:";

    if (strncmp(url, "postgres://", 11) == 0 || strncmp(url, "postgresql://", 13) == 0)
        return IL_OK;
    if (strncmp(url, sqlite, sizeof sqlite - 1) != 0) /* not shown: it may contain a password */
        return il__error_set(reterr, IL_INVAL,
                             "unsupported database URL: use sqlite:PATH or postgres://...");
    if (access(url + sizeof sqlite - 1, R_OK) == 0)
        return IL_OK;
    return il__error_set(reterr, IL_STORE, "cannot open database %.400s: %s",
                         url + sizeof sqlite - 1, strerror(errno));
}

static il_status
open_connection(const struct check_how *how, const struct check *c, il_guard **ret,
                il_error *reterr)
{
    il_guard_opts   o   = IL_GUARD_OPTS_INIT;
    AUTO_FREE char *url = NULL;
    il_status       st  = how->url(how->cookie, c->connection, &url, reterr);

    if (st != IL_OK)
        return st;
    CHECK(url != NULL);
    o.lock_timeout_ms      = MAX(c->timeout_ms, LOCK_MS_MIN);
    o.connect_timeout_ms   = MIN(MAX(c->timeout_ms, LOCK_MS_MIN), CONNECT_MS_MAX);
    o.statement_timeout_ms = c->timeout_ms; /* ends it on the server, too */
    o.conns_max            = 1;
    st                     = check_url(url, reterr);
    if (st == IL_OK)
        st = il_guard_open(url, &o, ret, reterr);
    explicit_bzero(url, strlen(url)); /* it may contain a password */
    return st;
}

static il_status
query(const struct check *c, il_guard *g, il_guard_tx *tx, struct invariant_found *found,
      il_error *reterr)
{
    il_guard_value tenant = il_guard_text(c->tenant);
    il_guard_query q      = { .flags = IL_GUARD_AS_TEXT, .each = take_row, .cookie = found };

    if (c->own != NULL) {
        q.sql      = il__guard_is_postgres(g) ? c->own->postgres : c->own->sqlite;
        q.values   = &tenant;
        q.n_values = 1;
    } else {
        q.sql = c->sql;
    }
    return il_guard_exec(tx, &q, NULL, reterr);
}

static il_status
look(const struct check *c, il_guard *g, struct invariant_found *found, il_error *reterr)
{
    il_guard_tx_opts o  = IL_GUARD_TX_OPTS_INIT;
    il_guard_tx     *tx = NULL;

#ifndef IL_MUTANT_check_may_write
    o.flags = IL_GUARD_READ_ONLY;
#endif
    o.caller     = "interlock check";
    il_status st = il_guard_begin(g, &o, &tx, reterr);
    if (st != IL_OK)
        return st;
    st = c->own != NULL && c->own->fn != NULL ? c->own->fn(tx, c->tenant, found, reterr)
                                              : query(c, g, tx, found, reterr);
    il_guard_rollback(tx);
    if (st == IL_OK && found->no_memory)
        return il__error_nomem(reterr);
    return st;
}

/* Let the caller's thread watch the handle, or no longer. */
static void
watch_worker(void *cookie, il_guard *g, int64_t deadline_ns)
{
    struct worker *w = cookie;

    il__mutex_lock(&w->crew->mutex);
    w->guard       = g;
    w->deadline_ns = deadline_ns;
    (void)pthread_cond_signal(&w->crew->changed); /* it has a new deadline to wait for */
    il__mutex_unlock(&w->crew->mutex);
}

/* Let the app record that its invariant is broken. */
static void
tell_app(const struct check *c, il_guard *g, const struct check_result *r)
{
    AUTO_BUF struct il__buf text = { 0 };

    if (c->app == NULL || c->app->broken == NULL || r->found.n_new == 0)
        return;
    il__buf_init(&text, TEXT_BYTES_MAX);
    il__buf_addf(&text, "%s: %" PRId64 " new offenders, first: %.*s", c->name, r->found.n_new,
                 INVARIANT_KEY_BYTES_MAX, r->found.offenders[0].key);
    c->app->broken(g, c->tenant, c->own, il__buf_str(&text));
}

/* *ret_skipped: the app has no tables. */
static il_status
run_guarded(const struct check *c, const struct check_how *how, const struct check_watch *w,
            struct check_result *r, int64_t deadline_ns, bool *ret_skipped)
{
    il_guard *g = NULL;
    il_status st;

    if (c->app != NULL)
        st = how->tables != NULL ? how->tables(how->cookie, c->app, &g, &r->error) : IL_NOT_FOUND;
    else
        st = open_connection(how, c, &g, &r->error);
    *ret_skipped = c->app != NULL && st == IL_NOT_FOUND;
    if (st != IL_OK)
        return st;
    /* The handle is watched only while it is open, so it is never interrupted after its close. */
    w->fn(w->cookie, g, deadline_ns);
    st = look(c, g, &r->found, &r->error);
    if (st == IL_OK)
        tell_app(c, g, r);
    w->fn(w->cookie, NULL, INT64_MAX);
    il_guard_close(g);
    return st;
}

void
il__check_run(const struct check *c, const struct check_how *how, const struct check_watch *w,
              struct check_result *r)
{
    int64_t   start_ns = il__clock_boot_ns();
    bool      skipped  = false;
    il_status st       = IL_OK;
    char      limit[IL__DURATION_TEXT_BYTES];

    *r = (struct check_result){ .check = c, .started_ms = il__clock_wall_ms() };
    if (c->fault != NULL)
        st = il__error_set(&r->error, IL_INVAL, "%s", c->fault);
    else if (!il__invariant_found_init(&r->found, c->baseline, c->n_baseline))
        st = il__error_nomem(&r->error);
    else
        st = run_guarded(c, how, w, r, start_ns + c->timeout_ms * IL__NS_PER_MS, &skipped);
    r->took_ms = (il__clock_boot_ns() - start_ns) / IL__NS_PER_MS;
    /* Only the end of its time interrupts it, and the database may be a moment ahead. */
    if (st == IL_CANCELLED || (st == IL_TIMEOUT && r->took_ms >= c->timeout_ms))
        (void)il__error_set(&r->error, IL_TIMEOUT, "timed out after %s",
                            il__duration_text(c->timeout_ms, limit));
#ifdef IL_MUTANT_check_error_passes
    st = IL_OK;
#endif
    if (st == IL_OK) {
        r->outcome = r->found.n_new > 0 ? CHECK_BROKEN : CHECK_PASSED;
        if (c->app != NULL) /* compiled in: nobody can remove a key that is no longer needed */
            r->found.n_baseline = 0;
        return;
    }
    il__invariant_found_release(&r->found); /* a part of the rows says nothing */
    r->outcome = skipped ? CHECK_SKIPPED : CHECK_ERROR;
}

/* ---- the threads ----------------------------------------------------------------------------- */

static void *
work(void *arg)
{
    struct worker     *w     = arg;
    struct crew       *crew  = w->crew;
    struct check_watch watch = { watch_worker, w };

    il__mutex_lock(&crew->mutex);
    while (crew->next < crew->n) {
        size_t i = crew->next++;
        il__mutex_unlock(&crew->mutex);
        il__check_run(crew->checks[i], crew->how, &watch, &crew->results[i]);
        il__mutex_lock(&crew->mutex);
        crew->ended[crew->n_ended++] = i;
        (void)pthread_cond_signal(&crew->changed);
    }
    il__mutex_unlock(&crew->mutex);
    return NULL;
}

/* Interrupt those whose time is over; returns how long until the next one (-1: none). */
static int64_t
interrupt_late(struct crew *crew)
{
    int64_t now_ns = il__clock_boot_ns(), next_ns = INT64_MAX;

    CHECK(il__mutex_held(&crew->mutex));
    for (size_t i = 0; i < crew->n_workers; i++) {
        struct worker *w = &crew->workers[i];
        if (w->guard != NULL && w->deadline_ns <= now_ns) {
            il_guard_interrupt(w->guard);
            w->deadline_ns = INT64_MAX; /* once is enough */
        }
        if (w->guard != NULL)
            next_ns = MIN(next_ns, w->deadline_ns);
    }
    return next_ns != INT64_MAX ? next_ns - now_ns : -1;
}

/* Until all have ended. */
static void
attend(struct crew *crew)
{
    size_t n_told = 0;

    il__mutex_lock(&crew->mutex);
    while (n_told < crew->n) {
        int64_t wait_ns = interrupt_late(crew);
        if (n_told == crew->n_ended) {
            (void)il__cond_wait(&crew->changed, &crew->mutex, wait_ns); /* looks again anyway */
            continue;
        }
        const struct check_result *r = &crew->results[crew->ended[n_told++]];
        il__mutex_unlock(&crew->mutex);
        if (crew->how->ended != NULL)
            crew->how->ended(crew->how->cookie, r, n_told, crew->n);
        il__mutex_lock(&crew->mutex);
    }
    il__mutex_unlock(&crew->mutex);
}

static void
start_workers(struct crew *crew)
{
    size_t n = MIN(crew->n, CHECK_THREADS_MAX);

    il__mutex_lock(&crew->mutex); /* threads that have started wait until n_workers is final */
    while (crew->n_workers < n) {
        struct worker *w = &crew->workers[crew->n_workers];
        *w               = (struct worker){ .crew = crew, .deadline_ns = INT64_MAX };
        if (pthread_create(&w->thread, NULL, work, w) != 0)
            break;
        crew->n_workers++;
    }
    il__mutex_unlock(&crew->mutex);
}

il_status
il__checks_run(const struct check *const *checks, size_t n, const struct check_how *how,
               struct check_result *results, il_error *reterr)
{
    AUTO_FREE size_t *ended = il__calloc(n + 1, sizeof *ended);
    struct crew       crew  = { .checks = checks, .n = n, .how = how, .results = results };
    il_status         st    = IL_OK;

    for (size_t i = 0; i < n; i++)
        results[i] = (struct check_result){ .check = checks[i] };
    if (ended == NULL)
        return il__error_nomem(reterr);
    crew.ended = ended;
    il__mutex_init(&crew.mutex, IL__MUTEX_checks);
    il__cond_init(&crew.changed);
    start_workers(&crew);
    if (crew.n_workers > 0)
        attend(&crew);
    else if (n > 0)
        st = il__error_set(reterr, IL_NOMEM, "cannot start a thread");
    for (size_t i = 0; i < crew.n_workers; i++)
        (void)pthread_join(crew.workers[i].thread, NULL);
    (void)pthread_cond_destroy(&crew.changed);
    il__mutex_destroy(&crew.mutex);
    return st;
}
