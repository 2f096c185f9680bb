/*
 * flight.c: requested days: all callers that want one day share one flight: one look at the row,
 * one build, one result. A few threads make the flights; they are started when there is work for
 * them.
 *
 * The next flight is one of the tenant that has the fewest under way, so that a range of one tenant
 * does not hold up the others; among those, one that somebody waits for, then the oldest.
 */
#include <stdio.h>

#include "apps/usage/usage_internal.h"
#include "base/clock.h"
#include "base/error.h"

#define STOP_NS (INT64_C(100) * IL__NS_PER_MS) /* between two looks at should_stop */

/* ---- making flights -------------------------------------------------------------------------- */

static size_t
n_active_of(const struct usage *u, const char *tenant)
{
    size_t n = 0;

    for (const struct usage_flight *f = u->flights; f != NULL; f = f->next)
        n += f->active && strcmp(f->tenant, tenant) == 0;
    return n;
}

/* NULL: none waits. O(n * active), with n below USAGE_FLIGHTS_MAX. */
static struct usage_flight *
choose(const struct usage *u)
{
    struct usage_flight *best   = NULL;
    size_t               n_best = 0;

    for (struct usage_flight *f = u->flights; f != NULL; f = f->next) {
        if (f->active)
            continue;
        size_t n = best != NULL && strcmp(f->tenant, best->tenant) == 0 ? n_best
                                                                        : n_active_of(u, f->tenant);
        if (best != NULL && (n > n_best || (n == n_best && f->urgent <= best->urgent)))
            continue;
        best   = f;
        n_best = n;
    }
    return best;
}

/* From here on its waiters cannot leave it: they are notified. */
static void
remove_flight(struct usage *u, struct usage_flight *f)
{
    struct usage_flight **at = &u->flights;

    while (*at != f)
        at = &(*at)->next;
    *at = f->next;
    u->n_flights--;
    u->n_active -= f->active;
    for (struct usage_waiter *w = f->waiters; w != NULL; w = w->next)
        w->flight = NULL;
}

/* Give the result to those who wait. Nobody can join any more: the flight was removed. */
static void
land(struct usage *u, struct usage_flight *f, struct usage_result *result)
{
    struct usage_waiter *w = f->waiters;

    if (result->status == IL_OK)
        usage_copy_keep(u, result->copy);
    while (w != NULL) {
        struct usage_waiter *next = w->next; /* it belongs to its owner once notified */
        struct usage_result  mine = *result;
        if (mine.copy != NULL)
            usage_copy_ref(mine.copy);
        if (!w->silent && result->hit)
            usage_copy_hit(u, result->copy);
        else if (!w->silent)
            usage_count(u, USAGE_COUNT_misses);
        w->done(w, &mine);
        w = next;
    }
    usage_copy_unref(result->copy);
    usage_copy_unref(f->old);
    il__free(f);
}

static void *
thread_main(void *arg)
{
    struct usage *u = arg;

    il__mutex_lock(&u->mutex);
    for (;;) {
        struct usage_flight *f = choose(u);
        if (f == NULL && atomic_load(&u->stopping))
            break;
        if (f == NULL) {
            (void)il__cond_wait(&u->work, &u->mutex, -1);
            continue;
        }
        struct usage_result result = { .status = IL_CANCELLED, .text = "the server is stopping" };
        f->active                  = true;
        f->until_ns                = il__clock_boot_ns() + u->o.wait_ms * IL__NS_PER_MS;
        u->n_active++;
        il__mutex_unlock(&u->mutex);
        if (!atomic_load(&u->stopping))
            usage_flight_make(u, f, &result);
        il__mutex_lock(&u->mutex);
        remove_flight(u, f);
        il__mutex_unlock(&u->mutex);
        land(u, f, &result);
        il__mutex_lock(&u->mutex);
    }
    il__mutex_unlock(&u->mutex);
    return NULL;
}

/* Called with the mutex. A thread for a new flight, if all are busy. */
static bool
add_thread(struct usage *u)
{
    size_t n_waiting = u->n_flights - u->n_active;

    if (u->n_threads == u->o.n_threads || u->n_threads >= u->n_active + n_waiting)
        return true;
    if (pthread_create(&u->threads[u->n_threads], NULL, thread_main, u) != 0)
        return u->n_threads > 0;
    u->n_threads++;
    return true;
}

void
usage_threads_end(struct usage *u)
{
    CHECK(atomic_load(&u->stopping));
    for (size_t i = 0; i < u->n_threads; i++)
        CHECK(pthread_join(u->threads[i], NULL) == 0);
}

/* ---- for the thread that makes one ----------------------------------------------------------- */

void
usage_flight_found(struct usage *u, struct usage_flight *f, struct usage_copy *old)
{
    il__mutex_lock(&u->mutex);
    struct usage_copy *before = f->old;
    f->old                    = old;
    il__mutex_unlock(&u->mutex);
    usage_copy_unref(before);
}

int64_t
usage_flight_left_ms(struct usage *u, struct usage_flight *f)
{
    il__mutex_lock(&u->mutex);
    int64_t left_ns = f->until_ns - il__clock_boot_ns(); /* joins move it */
    il__mutex_unlock(&u->mutex);
    return atomic_load(&u->stopping) || left_ns <= 0 ? 0 : left_ns / IL__NS_PER_MS + 1;
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* One that can be joined. A build that must not be older than the call cannot be one that is under
 * way. */
static struct usage_flight *
find_flight(struct usage *u, const char *tenant, usage_date date, enum usage_way way)
{
    for (struct usage_flight *f = u->flights; f != NULL; f = f->next) {
        if (f->date == date && f->way == way && !(way == USAGE_FORCE && f->active) &&
            strcmp(f->tenant, tenant) == 0)
            return f;
    }
    return NULL;
}

static struct usage_flight *
new_flight(struct usage *u, const char *tenant, usage_date date, enum usage_way way)
{
    struct usage_flight *f = il__calloc(1, sizeof *f);

    if (f == NULL)
        return NULL;
    (void)snprintf(f->tenant, sizeof f->tenant, "%s", tenant);
    f->date                  = date;
    f->way                   = way;
    struct usage_flight **at = &u->flights;
    while (*at != NULL)
        at = &(*at)->next;
    *at = f;
    u->n_flights++;
    return f;
}

static il_status
join(struct usage *u, const char *tenant, usage_date date, enum usage_way way,
     struct usage_waiter *w, il_error *reterr)
{
    struct usage_flight *f      = find_flight(u, tenant, date, way);
    bool                 is_new = f == NULL;

    if (atomic_load(&u->stopping))
        return il__error_set(reterr, IL_CANCELLED, "the server is stopping");
    if (is_new && u->n_flights >= USAGE_FLIGHTS_MAX)
        return il__error_set(reterr, IL_LIMIT,
                             "too many days are being built (maximum %d); try again later",
                             USAGE_FLIGHTS_MAX);
    if (is_new)
        f = new_flight(u, tenant, date, way);
    if (f == NULL)
        return il__error_nomem(reterr);
    f->until_ns = il__clock_boot_ns() + u->o.wait_ms * IL__NS_PER_MS;
    if (!f->active)
        f->asked_ms = usage_now_ms(u);
    if (w != NULL) {
        f->urgent  = f->urgent || w->urgent;
        w->flight  = f;
        w->next    = f->waiters;
        f->waiters = w;
    }
    if (!is_new)
        return IL_OK;
    if (!add_thread(u)) {
        remove_flight(u, f);
        il__free(f);
        return il__error_set(reterr, IL_NOMEM, "cannot start a thread");
    }
    (void)pthread_cond_signal(&u->work); /* cannot fail on a valid object */
    return IL_OK;
}

il_status
usage_join(struct usage *u, const char *tenant, usage_date date, enum usage_way way,
           struct usage_waiter *w, il_error *reterr)
{
    il__mutex_lock(&u->mutex);
    il_status st = join(u, tenant, date, way, w, reterr);
    il__mutex_unlock(&u->mutex);
    return st;
}

/* A flight that has landed notifies its waiters without the mutex: then this one, too. */
bool
usage_leave(struct usage *u, struct usage_waiter *w, struct usage_copy **ret_old)
{
    il__mutex_lock(&u->mutex);
    struct usage_flight *f = w->flight;
    if (f != NULL) {
        struct usage_waiter **at = &f->waiters;
        while (*at != w)
            at = &(*at)->next;
        *at       = w->next;
        w->flight = NULL;
        if (ret_old != NULL)
            *ret_old = f->old != NULL ? usage_copy_ref(f->old) : NULL;
    }
    il__mutex_unlock(&u->mutex);
    if (f != NULL && !w->silent)
        usage_count(u, USAGE_COUNT_misses);
    return f != NULL;
}

/* ---- several days ---------------------------------------------------------------------------- */

struct many;

struct many_one {
    struct usage_waiter waiter;
    struct many        *many;
    struct usage_result result;
    enum {
        IDLE,
        JOINED,
        DONE,
        REPORTED
    } state;
};

struct many {
    struct usage            *u;
    const struct usage_many *m;
    struct many_one         *all;
    struct il__mutex         mutex; /* protects `all` */
    pthread_cond_t           changed;
    size_t                   n_joined, n_reported;
};

static void
one_done(struct usage_waiter *w, struct usage_result *result)
{
    struct many_one *one  = container_of(w, struct many_one, waiter);
    struct many     *many = one->many;

    il__mutex_lock(&many->mutex);
    one->result = *result;
    one->state  = DONE;
    /* with the mutex: the owner may free both as soon as it has seen the state */
    (void)pthread_cond_signal(&many->changed);
    il__mutex_unlock(&many->mutex);
}

static void
report(struct many *many, size_t i)
{
    struct many_one *one = &many->all[i];

    many->n_reported++;
    if (many->m->each != NULL)
        many->m->each(many->m->cookie, i, &one->result, many->n_reported);
    usage_copy_unref(one->result.copy);
    one->result.copy = NULL;
}

static void
join_one(struct many *many, size_t i)
{
    const struct usage_many *m   = many->m;
    struct many_one         *one = &many->all[i];
    il_error                 err;

    one->many   = many;
    one->waiter = (struct usage_waiter){ .done = one_done, .silent = m->silent };
    one->state  = JOINED; /* before it can be done */
    if (usage_join(many->u, m->tenant, m->dates[i], m->way, &one->waiter, &err) == IL_OK) {
        many->n_joined++;
        return;
    }
    one->state         = REPORTED;
    one->result.status = err.status;
    (void)snprintf(one->result.text, sizeof one->result.text, "%s", err.message);
    report(many, i);
}

static bool
is_over(const struct many *many)
{
    const struct usage_many *m = many->m;

    return il__clock_boot_ns() >= m->until_ns ||
           (m->should_stop != NULL && m->should_stop(m->cookie));
}

/* Report those that are done; the mutex is not held while the caller is notified. */
static void
report_done(struct many *many)
{
    for (size_t i = 0; i < many->m->n; i++) {
        il__mutex_lock(&many->mutex);
        bool done = many->all[i].state == DONE;
        if (done)
            many->all[i].state = REPORTED;
        il__mutex_unlock(&many->mutex);
        if (!done)
            continue;
        many->n_joined--;
        if (many->m->patient && many->all[i].result.status == IL_TIMEOUT && !is_over(many)) {
            usage_copy_unref(TAKE(many->all[i].result.copy));
            join_one(many, i);
            continue;
        }
        report(many, i);
    }
}

/* Wait until one is done, at most until the next look at should_stop. */
static void
wait_for_one(struct many *many)
{
    bool done = false;

    il__mutex_lock(&many->mutex);
    for (size_t i = 0; i < many->m->n && !done; i++)
        done = many->all[i].state == DONE;
    int64_t left_ns = many->m->until_ns - il__clock_boot_ns();
    if (!done && left_ns > 0)
        (void)il__cond_wait(&many->changed, &many->mutex, MIN(left_ns, STOP_NS));
    il__mutex_unlock(&many->mutex);
}

/* Leave those that are not done; wait for those that are being notified. */
static void
leave_all(struct many *many)
{
    for (size_t i = 0; i < many->m->n; i++) {
        struct many_one *one = &many->all[i];
        il__mutex_lock(&many->mutex);
        bool joined = one->state == JOINED;
        il__mutex_unlock(&many->mutex);
        bool left = joined && usage_leave(many->u, &one->waiter, NULL);
        il__mutex_lock(&many->mutex);
        if (left)
            one->state = REPORTED;
        while (one->state == JOINED)
            (void)il__cond_wait(&many->changed, &many->mutex, -1);
        il__mutex_unlock(&many->mutex);
    }
    report_done(many);
}

size_t
usage_join_many(struct usage *u, const struct usage_many *m)
{
    struct many many = { .u = u, .m = m, .all = il__calloc(m->n + 1, sizeof *many.all) };
    size_t      next = 0, window = m->window != 0 ? m->window : m->n;

    if (many.all == NULL)
        return 0;
    il__mutex_init(&many.mutex, IL__MUTEX_usage_many);
    il__cond_init(&many.changed);
    while (many.n_reported < m->n && !is_over(&many)) {
        while (next < m->n && many.n_joined < window)
            join_one(&many, next++);
        wait_for_one(&many);
        report_done(&many);
    }
    leave_all(&many);
    (void)pthread_cond_destroy(&many.changed);
    il__mutex_destroy(&many.mutex);
    il__free(many.all);
    return many.n_reported;
}
