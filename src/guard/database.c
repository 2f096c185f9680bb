/*
 * database.c: handles of databases: options, ranks, the pool of connections, interrupting.
 *
 * Connections are opened when they are needed, at most conns_max, and kept. A transaction takes one
 * and gives it back; when all are in use, it waits. A handle on the caller's own connection has
 * just that one.
 */
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "guard/guard_internal.h"

#define LOCK_TIMEOUT_MS 5000
#define STATEMENT_TIMEOUT_MS 30000
#define CONNECT_TIMEOUT_MS 5000
#define CONNS 8
#define TIMEOUT_MS_MAX 86400000
#define RANK_MAX 1000000

/* ---- options --------------------------------------------------------------------------------- */

static bool
is_name(const char *name)
{
    return name != NULL && name[0] != '\0' && strlen(name) <= IL_GUARD_NAME_BYTES_MAX;
}

static il_status
take_ranks(il_guard *g, const il_guard_opts *o, il_error *reterr)
{
    if (o->n_ranks > IL_GUARD_RANKS_MAX)
        return il__error_set(reterr, IL_INVAL, "too many ranks: %zu (maximum %d)", o->n_ranks,
                             IL_GUARD_RANKS_MAX);
    if (o->ranks == NULL && o->n_ranks > 0)
        return il__error_set(reterr, IL_INVAL, "ranks is NULL but n_ranks is not 0");
    for (size_t i = 0; i < o->n_ranks; i++) {
        const il_guard_rank *r = &o->ranks[i];
        if (!is_name(r->entity))
            return il__error_set(reterr, IL_INVAL,
                                 "rank %zu: the class needs a name of 1 to %d bytes", i,
                                 IL_GUARD_NAME_BYTES_MAX);
        if (r->rank < 0 || r->rank > RANK_MAX)
            return il__error_set(reterr, IL_INVAL, "class %s: rank %d must be from 0 to %d",
                                 r->entity, r->rank, RANK_MAX);
        if (il__guard_class(g, r->entity) != NULL)
            return il__error_set(reterr, IL_INVAL, "class %s has two ranks", r->entity);
        struct guard_class *c = &g->classes[g->n_classes++];
        (void)snprintf(c->name, sizeof c->name, "%s", r->entity);
        c->rank = r->rank;
    }
    return IL_OK;
}

static il_status
take_timeouts(il_guard *g, const il_guard_opts *o, il_error *reterr)
{
    const struct {
        const char *name;
        int64_t     given_ms, default_ms, most_ms;
        bool        may_be_forever;
        int64_t    *at;
    } rows[] = {
        { "lock_timeout_ms", o->lock_timeout_ms, LOCK_TIMEOUT_MS, TIMEOUT_MS_MAX, false,
          &g->lock_timeout_ms },
        { "statement_timeout_ms", o->statement_timeout_ms, STATEMENT_TIMEOUT_MS, TIMEOUT_MS_MAX,
          true, &g->statement_timeout_ms },
        { "connect_timeout_ms", o->connect_timeout_ms, CONNECT_TIMEOUT_MS, GUARD_ANSWER_MS_MAX,
          false, &g->connect_timeout_ms },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t ms = rows[i].given_ms;
        if (ms > rows[i].most_ms || (ms < 0 && !(rows[i].may_be_forever && ms == IL_FOREVER)))
            return il__error_set(reterr, IL_INVAL, "%s is %lld, must be from 1 to %lld",
                                 rows[i].name, (long long)ms, (long long)rows[i].most_ms);
        *rows[i].at = ms != 0 ? ms : rows[i].default_ms;
    }
    return IL_OK;
}

static il_status
take_options(il_guard *g, const il_guard_opts *o, il_error *reterr)
{
    if (o->struct_size != sizeof *o)
        return il__error_set(reterr, IL_INVAL,
                             "il_guard_opts was not initialized with IL_GUARD_OPTS_INIT");
    if (o->conns_max > IL_GUARD_CONNS_MAX)
        return il__error_set(reterr, IL_INVAL, "conns_max is %u; the limit is %d",
                             (unsigned)o->conns_max, IL_GUARD_CONNS_MAX);
    if ((o->flags & ~(uint32_t)IL_GUARD_OWN_FILE) != 0)
        return il__error_set(reterr, IL_INVAL, "unknown flags 0x%x", (unsigned)o->flags);
    g->conns_max = o->conns_max != 0 ? o->conns_max : CONNS;
    g->flags     = o->flags;
    g->observe   = o->observe;
    g->cookie    = o->cookie;
    il_status st = take_timeouts(g, o, reterr);
    if (st == IL_OK)
        st = take_ranks(g, o, reterr);
    if (st == IL_OK && o->search_path != NULL) {
        st = il__guard_check_path(o->search_path, reterr);
        if (st == IL_OK && (g->search_path = il__strdup(o->search_path)) == NULL)
            st = il__error_set(reterr, IL_NOMEM, "out of memory for a database handle");
    }
    return st;
}

const struct guard_class *
il__guard_class(const il_guard *g, const char *name)
{
    for (size_t i = 0; i < g->n_classes; i++) {
        if (strcmp(g->classes[i].name, name) == 0)
            return &g->classes[i];
    }
    return NULL;
}

/* ---- opening and closing --------------------------------------------------------------------- */

bool
il__guard_is_postgres(const il_guard *g)
{
    return strncmp(g->url, "postgres://", 11) == 0 || strncmp(g->url, "postgresql://", 13) == 0;
}

static il_status
conn_new(il_guard *g, struct guard_conn **ret, il_error *reterr)
{
    static const char sqlite[] = "sqlite:";
    const char       *url      = g->url;

    if (il__guard_is_postgres(g))
        return il__guard_postgres_new(g, url, ret, reterr);
    if (strncmp(url, sqlite, sizeof sqlite - 1) == 0)
        url += sizeof sqlite - 1;
    else if (strstr(url, "://") != NULL) /* not shown: it may contain a password */
        return il__error_set(reterr, IL_INVAL,
                             "unsupported database URL: use sqlite:PATH or postgres://...");
    return il__guard_sqlite_new(g, url, ret, reterr);
}

void
il_guard_close(il_guard *g)
{
    if (g == NULL)
        return;
    while (g->txs != NULL) /* no other thread uses them */
        il_guard_rollback(g->txs);
    for (struct guard_conn *c = g->idle, *next; c != NULL; c = next) {
        next = c->next;
        il__guard_names_release(c);
        c->ops->free(c);
        g->n_conns--;
    }
    CHECK(g->n_conns == 0);
    if (g->stop_fd >= 0)
        (void)close(g->stop_fd);
    CHECK(pthread_cond_destroy(&g->freed) == 0);
    il__mutex_destroy(&g->mutex);
    il__free(g->url);
    il__free(g->search_path);
    il__free(g);
}
DEFINE_AUTO(il_guard, il_guard_close)

static il_status
guard_new(const il_guard_opts *opts, il_guard **ret, il_error *reterr)
{
    static const il_guard_opts defaults = IL_GUARD_OPTS_INIT;
    il_guard                  *g        = il__calloc(1, sizeof *g);

    if (g == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a database handle");
    il__mutex_init(&g->mutex, IL__MUTEX_guard);
    il__cond_init(&g->freed);
    g->stop_fd   = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    il_status st = g->stop_fd >= 0 ? take_options(g, opts != NULL ? opts : &defaults, reterr)
                                   : il__error_set(reterr, IL_NOMEM,
                                                   "out of descriptors for a database handle");
    if (st == IL_OK)
        *ret = g;
    else
        il_guard_close(g);
    return st;
}

static void
add_idle(il_guard *g, struct guard_conn *c)
{
    c->next = g->idle;
    g->idle = c;
}

il_status
il_guard_open(const char *url, const il_guard_opts *opts, il_guard **ret, il_error *reterr)
{
    AUTO(il_guard_closep) il_guard *g = NULL;
    struct guard_conn              *c = NULL;

    if (url == NULL || ret == NULL)
        return il__error_set(reterr, IL_INVAL, "url and ret must not be NULL");
    il_status st = guard_new(opts, &g, reterr);
    if (st != IL_OK)
        return st;
    CHECK(g != NULL);
    g->url = il__strdup(url);
    if (g->url == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a database handle");
    st = conn_new(g, &c, reterr); /* checks the URL */
    if (st != IL_OK)
        return st;
    CHECK(c != NULL);
    add_idle(g, c);
    g->n_conns = 1;
    *ret       = TAKE(g);
    return IL_OK;
}

/* A handle on one connection of the caller's. */
static il_status
adopt(il_guard *g, struct guard_conn *c, il_guard **ret)
{
    CHECK(g != NULL && c != NULL);
    g->conns_max = 1;
    g->n_conns   = 1;
    add_idle(g, c);
    *ret = g;
    return IL_OK;
}

il_status
il_guard_open_sqlite(struct sqlite3 *db, const il_guard_opts *opts, il_guard **ret,
                     il_error *reterr)
{
    AUTO(il_guard_closep) il_guard *g = NULL;
    struct guard_conn              *c = NULL;

    if (db == NULL || ret == NULL)
        return il__error_set(reterr, IL_INVAL, "the connection and ret must not be NULL");
    if (opts != NULL && (opts->flags & IL_GUARD_OWN_FILE) != 0)
        return il__error_set(reterr, IL_INVAL,
                             "IL_GUARD_OWN_FILE cannot be used with a borrowed connection");
    il_status st = guard_new(opts, &g, reterr);
    if (st == IL_OK)
        st = il__guard_sqlite_borrow(g, db, &c, reterr);
    return st == IL_OK ? adopt(TAKE(g), c, ret) : st;
}

il_status
il_guard_open_postgres(struct pg_conn *conn, const il_guard_opts *opts, il_guard **ret,
                       il_error *reterr)
{
    AUTO(il_guard_closep) il_guard *g = NULL;
    struct guard_conn              *c = NULL;

    if (conn == NULL || ret == NULL)
        return il__error_set(reterr, IL_INVAL, "the connection and ret must not be NULL");
    il_status st = guard_new(opts, &g, reterr);
    if (st == IL_OK)
        st = il__guard_postgres_borrow(g, conn, &c, reterr);
    return st == IL_OK ? adopt(TAKE(g), c, ret) : st;
}

/* ---- the pool -------------------------------------------------------------------------------- */

/* An idle connection, or the right to open one (NULL), or IL_TIMEOUT. */
static il_status
wait_for_one(il_guard *g, struct guard_limit limit, struct guard_conn **ret, il_error *reterr)
{
    int64_t   until_ns = il__clock_boot_ns() + g->lock_timeout_ms * IL__NS_PER_MS;
    il_status st       = IL_OK;

    if (limit.until_ns != 0)
        until_ns = MIN(until_ns, limit.until_ns);
    *ret = NULL;
    il__mutex_lock(&g->mutex);
    while (st == IL_OK && g->idle == NULL && g->n_conns == g->conns_max) {
        int64_t left_ns = until_ns - il__clock_boot_ns();
        if (il__guard_is_stopped(g, limit))
            st = il__guard_cancelled(reterr);
        else if (left_ns <= 0)
            st = il__error_set(reterr, IL_TIMEOUT, "all %u connections are in use; raise conns_max",
                               (unsigned)g->conns_max);
        else
            IGNORE(il__cond_wait(&g->freed, &g->mutex, left_ns));
    }
    if (st == IL_OK && g->idle != NULL) {
        *ret    = g->idle;
        g->idle = g->idle->next;
    } else if (st == IL_OK) {
        g->n_conns++;
    }
    il__mutex_unlock(&g->mutex);
    return st;
}

void
il__guard_conn_give(struct guard_conn *c)
{
    il_guard *g = c->g;

    c->limit = (struct guard_limit){ 0 };
    il__mutex_lock(&g->mutex);
    add_idle(g, c);
    CHECK(pthread_cond_signal(&g->freed) == 0);
    il__mutex_unlock(&g->mutex);
}

void
il__guard_tx_add(il_guard_tx *tx)
{
    il__mutex_lock(&tx->g->mutex);
    tx->next   = tx->g->txs;
    tx->g->txs = tx;
    il__mutex_unlock(&tx->g->mutex);
}

void
il__guard_tx_remove(il_guard_tx *tx)
{
    il__mutex_lock(&tx->g->mutex);
    il_guard_tx **at = &tx->g->txs;
    while (*at != NULL && *at != tx)
        at = &(*at)->next;
    if (*at == tx)
        *at = tx->next;
    il__mutex_unlock(&tx->g->mutex);
}

il_status
il__guard_conn_take(il_guard *g, struct guard_limit limit, struct guard_conn **ret,
                    il_error *reterr)
{
    struct guard_conn *c = NULL;

    if (il__guard_is_stopped(g, limit))
        return il__guard_cancelled(reterr);
    il_status st = wait_for_one(g, limit, &c, reterr);
    if (st != IL_OK)
        return st;
    if (c == NULL) {
        st = conn_new(g, &c, reterr);
        if (st != IL_OK) {
            il__mutex_lock(&g->mutex);
            g->n_conns--;
            CHECK(pthread_cond_signal(&g->freed) == 0);
            il__mutex_unlock(&g->mutex);
            return st;
        }
    }
    CHECK(c != NULL);
    c->limit = limit;
    st       = c->ops->connect(c, reterr);
    if (st != IL_OK)
        il__guard_conn_give(c);
    else
        *ret = c;
    return st;
}

il_status
il_guard_connect(il_guard *g, il_error *reterr)
{
    struct guard_conn *c = NULL;

    if (g == NULL)
        return il__error_set(reterr, IL_INVAL, "no database handle given");
    il_status st = il__guard_conn_take(g, (struct guard_limit){ 0 }, &c, reterr);
    if (st != IL_OK)
        return st;
    CHECK(c != NULL);
    il__guard_conn_give(c);
    return IL_OK;
}

/* ---- interrupting ---------------------------------------------------------------------------- */

static void
make_readable(int fd)
{
    uint64_t one = 1;

    /* it can only fail if full, and then it is readable already */
    IGNORE(write(fd, &one, sizeof one) < 0);
}

void
il_guard_interrupt(il_guard *g)
{
    if (g == NULL)
        return;
    atomic_store(&g->interrupted, true);
    make_readable(g->stop_fd);
    il__mutex_lock(&g->mutex); /* for a moment only */
    /* A transaction waits on the descriptor of its switch only. A switch that is created later
     * finds the flag. */
    for (il_guard_stop *stop = g->stops; stop != NULL; stop = stop->next)
        make_readable(stop->fd);
    CHECK(pthread_cond_broadcast(&g->freed) == 0);
    il__mutex_unlock(&g->mutex);
}

il_status
il_guard_stop_new(il_guard *g, il_guard_stop **ret, il_error *reterr)
{
    if (g == NULL || ret == NULL)
        return il__error_set(reterr, IL_INVAL, "the handle and ret must not be NULL");
    il_guard_stop *stop = il__calloc(1, sizeof *stop);
    if (stop == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a switch");
    stop->g  = g;
    stop->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (stop->fd < 0) {
        il__free(stop);
        return il__error_set(reterr, IL_NOMEM, "out of descriptors for a switch");
    }
    il__mutex_lock(&g->mutex);
    stop->next = g->stops;
    g->stops   = stop;
    if (atomic_load(&g->interrupted))
        make_readable(stop->fd);
    il__mutex_unlock(&g->mutex);
    *ret = stop;
    return IL_OK;
}

/* Waits on the descriptor end by it, those for a connection by the broadcast: one that has looked
 * at the flag before it was set, under the mutex, sleeps when the broadcast comes. */
void
il_guard_stop_set(il_guard_stop *stop)
{
    if (stop == NULL)
        return;
    atomic_store(&stop->set, true);
    make_readable(stop->fd);
    il__mutex_lock(&stop->g->mutex); /* for a moment only */
    CHECK(pthread_cond_broadcast(&stop->g->freed) == 0);
    il__mutex_unlock(&stop->g->mutex);
}

void
il_guard_stop_free(il_guard_stop *stop)
{
    if (stop == NULL)
        return;
    il__mutex_lock(&stop->g->mutex);
    il_guard_stop **at = &stop->g->stops;
    while (*at != stop)
        at = &(*at)->next;
    *at = stop->next;
    il__mutex_unlock(&stop->g->mutex);
    (void)close(stop->fd);
    il__free(stop);
}

bool
il__guard_is_stopped(const il_guard *g, struct guard_limit limit)
{
    return atomic_load(&g->interrupted) || (limit.stop != NULL && atomic_load(&limit.stop->set));
}

int
il__guard_stop_fd(const il_guard *g, struct guard_limit limit)
{
    return limit.stop != NULL ? limit.stop->fd : g->stop_fd;
}

il_status
il__guard_cancelled(il_error *reterr)
{
    return il__error_set(reterr, IL_CANCELLED, "the transaction was interrupted");
}

bool
il__guard_is_late(const struct guard_conn *c)
{
    return c->limit.until_ns != 0 && il__clock_boot_ns() >= c->limit.until_ns;
}

il_status
il__guard_check_deadline(const struct guard_conn *c, il_error *reterr)
{
    if (il__guard_is_stopped(c->g, c->limit))
        return il__guard_cancelled(reterr);
    if (il__guard_is_late(c))
        return il__error_set(reterr, IL_TIMEOUT, "the transaction exceeded its timeout");
    return IL_OK;
}
