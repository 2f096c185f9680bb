/*
 * build.c: builds one day, on a thread of its own. See usage.h.
 *
 *   take     look at marker and row; if the row is not fresh, ask the marker who builds:
 *              the leader   takes the lease, looks again, builds, writes, fills the marker
 *              the others   wait for the leader, and read the row
 *   force    take the lease, build unless a build has started since the call, replace the marker by
 *            an election, write, fill the marker
 *   refresh  the same if the lease is free and the row is still old
 *
 * Why it is free of races: a row is written only under the lease, with the lease's fence, and only
 * while its writer leads the election of the marker, which has no token then. So no copy of the old
 * row can be found once the new one is written, also if the writer dies before it fills the marker:
 * the election expires, and until then everybody reads the row. A leader that lost its lease, or
 * was stopped for a while, cannot write; one that lost the election drops the marker of the other.
 *
 * What may not change without tests/usage/cache.c and tests/usage/crash.c: the lease is taken
 * before the row is looked at again, and released after the marker; the row is written with the
 * fence; and when a build started is decided before the source is asked.
 *
 * A token is read before the row that it goes with. A row that is newer than its token is read
 * again once too often; one that is older is impossible.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

#include "apps/usage/usage_internal.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/parse.h"

#define SLICE_MS 1000        /* a wait is divided into these, to notice that the process stops */
#define ADVISORY_MS 50       /* to the second attempt at the advisory lock of older programs */
#define ADVISORY_MAX_MS 1000 /* between later ones: each one connects */
#define FAILED_TTL_MS 1      /* those who waited learn of a failure; the next caller tries again */
#define CONTENTION_MAX 2000  /* ten-thousandths: above this it is worth a warning */
#define WARN_NS (INT64_C(60000) * IL__NS_PER_MS) /* at most once in this time */
#define REPLACE_TRIES 100 /* to replace a marker; a try fails if somebody looks it up meanwhile */
#define MARKER_BYTES 128

struct build {
    struct usage        *u;
    struct usage_flight *f;
    char                 key[USAGE_KEY_BYTES];
    il_lease            *lease;
    il_advisory         *advisory;
    atomic_bool          lost;
    bool                 contended; /* counted: another process builds the day */
    bool                 damaged;   /* logged: its row cannot be read */
    uint64_t             failed;    /* the token of a failure from before this request */
    il_error             err;
};

static void
reach(const struct build *b, enum usage_phase phase)
{
    if (b->u->o.phase != NULL)
        b->u->o.phase(b->u->o.cookie, phase, b->f->way == USAGE_REFRESH);
}

/* ---- the row --------------------------------------------------------------------------------- */

/* Read the row that goes with a token, and replace *ret by it: NULL if there is no row, or only a
 * damaged one, which is built again. *ret_fresh: it is a hit. The flight remembers it for those who
 * give up waiting. */
static il_status
read_row(struct build *b, uint64_t token, struct usage_copy **ret, bool *ret_fresh)
{
    struct usage_row row;
    il_status        st = usage_row_get(b->u->o.tables, b->f->tenant, b->f->date, &row, &b->err);

    *ret_fresh = false;
    if (st == IL_CORRUPT && !b->damaged)
        usage_note(b->u, USAGE_EVENT_trouble, b->f, b->err.message, 0);
    b->damaged = b->damaged || st == IL_CORRUPT;
    if (st != IL_OK && st != IL_NOT_FOUND && st != IL_CORRUPT)
        return st;
    usage_copy_unref(TAKE(*ret));
    if (st != IL_OK)
        return IL_OK;
    *ret = usage_copy_new(b->f->tenant, &row, token);
    usage_row_release(&row);
    if (*ret == NULL)
        return il__error_nomem(&b->err);
    *ret_fresh = usage_copy_is_fresh(b->u, *ret);
    usage_flight_found(b->u, b->f, usage_copy_ref(*ret));
    return IL_OK;
}

/* ---- the marker ------------------------------------------------------------------------------ */

static size_t
print_marker(const struct usage_copy *c, char out[MARKER_BYTES])
{
    char time[IL__TIME_TEXT_BYTES];

    return (size_t)snprintf(out, MARKER_BYTES, "{\"updated_at\":\"%s\",\"is_complete\":%s}",
                            il__time_text(c->updated_ms, time), c->complete ? "true" : "false");
}

static int64_t
marker_ttl_ms(const struct usage *u, const struct usage_copy *c)
{
    return usage_life_left(&u->o.life, c->complete, c->updated_ms, usage_now_ms(u));
}

/* The token of the current marker; 0: none. */
static il_status
read_token(struct build *b, uint64_t *ret)
{
    il_op     op  = { .type = IL_OP_CACHE_GET, .tenant = b->f->tenant, .key = b->key };
    il_status st  = il_apply(b->u->o.h, &op, 1, &b->err);
    bool      hit = st == IL_OK && op.status == IL_HIT;
    bool      bad = hit && (op.out.flags & IL_OUT_NEGATIVE) != 0;

    *ret      = hit && !bad ? op.out.fence : 0;
    b->failed = bad ? op.out.fence : 0;
    il_op_release(&op);
    return st;
}

static void
drop_marker(struct build *b)
{
    il_op op = { .type = IL_OP_CACHE_DROP, .tenant = b->f->tenant, .key = b->key };

    IGNORE(il_apply(b->u->o.h, &op, 1, NULL)); /* then the lookup finds it again */
    il_op_release(&op);
}

/* Elect this build; *ret is NULL if another one is elected. wait_ms: for that one, at least 1. */
static il_status
look_up(struct build *b, int64_t wait_ms, il_build **ret, il_op *op)
{
    il_cache_opts o = IL_CACHE_OPTS_INIT;

    o.tenant      = b->f->tenant;
    o.lease_ms    = b->u->o.lease_ms;
    o.wait_ms     = wait_ms;
    o.never_early = 1;
    return il_cache_lookup(b->u->o.h, b->key, &o, ret, op, &b->err);
}

/* Fill the marker for *c, which gets its token. */
static void
fill_marker(struct build *b, il_build *elected, struct usage_copy *c)
{
    char   text[MARKER_BYTES];
    size_t n_bytes = print_marker(c, text);

    c->token = il_lease_fence(il_build_lease(elected));
    if (il_build_fill(elected, text, n_bytes, marker_ttl_ms(b->u, c), 0, 0, 0, NULL) != IL_OK)
        c->token = 0; /* void: the next caller reads the row */
}

/*
 * A fresh row without a marker: its marker was dropped, or expired. Fill it, unless somebody else
 * is elected. The row is read again after the election, since it may have changed before; until the
 * marker is filled, a builder that wants to change it makes this election void.
 */
static void
add_marker(struct build *b, struct usage_copy **c)
{
    il_build *elected = NULL;
    il_op     op;
    bool      fresh = false;
    il_status st    = look_up(b, 1, &elected, &op);

    il_op_release(&op);
    if (st != IL_LEAD)
        return;
    if (read_row(b, 0, c, &fresh) == IL_OK && fresh)
        fill_marker(b, elected, *c);
    else
        (void)il_build_abandon(elected, NULL); /* else its time runs out */
    il_build_free(elected);
}

/* With the lease: end the life of the marker and of all elections, and be elected. Others can only
 * come in between to wait for the lease, or to fill the marker for the row as it is: again. */
static il_status
replace_marker(struct build *b, il_build **ret)
{
    for (int i = 0; i < REPLACE_TRIES; i++) {
        il_op op;
        drop_marker(b);
        il_status st = look_up(b, 1, ret, &op);
        il_op_release(&op);
        if (st == IL_LEAD)
            return IL_OK;
        if (st != IL_HIT && st != IL_STALE_HIT && st != IL_WAIT)
            return st;
    }
    return il__error_set(&b->err, IL_TIMEOUT, "another process is building this day");
}

/* ---- the lease ------------------------------------------------------------------------------- */

static void
on_lost(void *cookie, il_lease *lease UNUSED, const char *why UNUSED)
{
    atomic_store(&((struct build *)cookie)->lost, true);
}

/* Another process has the day: counted once for a build. */
static void
count_contention(struct build *b)
{
    struct usage_counts counts;
    struct usage       *u      = b->u;
    int64_t             now_ns = il__clock_boot_ns(), at_ns = atomic_load(&u->warned_ns);
    char                text[96];

    if (b->contended)
        return;
    b->contended = true;
    usage_count(u, USAGE_COUNT_locks_held);
    usage_counts(u, &counts);
    int64_t rate = usage_rate(counts.locks_held, counts.locks);
    if (rate <= CONTENTION_MAX || (at_ns != 0 && now_ns - at_ns < WARN_NS) ||
        !atomic_compare_exchange_strong(&u->warned_ns, &at_ns, now_ns))
        return;
    (void)snprintf(text, sizeof text,
                   "%" PRId64 ".%02" PRId64
                   " %% of attempts to lease a day found it leased elsewhere",
                   rate / 100, rate % 100);
    usage_note(u, USAGE_EVENT_contention, b->f, text, 0);
}

/* Take the lease. `wait`: as long as the flight may wait. */
static il_status
take_lease(struct build *b, bool wait)
{
    il_acquire_opts o = IL_ACQUIRE_OPTS_INIT;
    il_status       st;

    atomic_store(&b->lost, false);
    o.tenant  = b->f->tenant;
    o.ttl_ms  = b->u->o.lease_ms;
    o.on_lost = on_lost;
    o.cookie  = b;
    do {
        st = il_acquire(b->u->o.h, b->key, &o, &b->lease, &b->err);
        if (st == IL_HELD)
            count_contention(b);
        o.wait_ms = MIN(usage_flight_left_ms(b->u, b->f), SLICE_MS);
    } while (st == IL_HELD && wait && o.wait_ms > 0);
    if (st == IL_OK)
        usage_count(b->u, USAGE_COUNT_locks);
    if (st == IL_HELD)
        st = il__error_set(&b->err, atomic_load(&b->u->stopping) ? IL_CANCELLED : IL_TIMEOUT,
                           "another process is building this day");
    return st;
}

/*
 * Programs of an older fleet exclude each other by the advisory lock of the date, without tenants.
 * It is held from before the build until after the write. Only in PostgreSQL, and for the tenant
 * `default`, whose days are theirs.
 */
static il_status
take_advisory(struct build *b, bool wait)
{
    il_status st = IL_OK;

#ifdef IL_MUTANT_usage_neighbour_ignored
    return IL_OK;
#endif
    if (strcmp(b->f->tenant, "default") != 0)
        return IL_OK;
    for (int64_t pause_ms = ADVISORY_MS;; pause_ms = MIN(2 * pause_ms, ADVISORY_MAX_MS)) {
        st = il_guard_advisory_take_id(b->u->o.tables, usage_date_id(b->f->date), &b->advisory,
                                       &b->err);
        if (st == IL_INVAL)
            return IL_OK; /* not PostgreSQL */
        int64_t left_ms = usage_flight_left_ms(b->u, b->f);
        if (st != IL_HELD || !wait || left_ms == 0 || atomic_load(&b->lost))
            break;
        (void)poll(NULL, 0, (int)MIN(pause_ms, left_ms));
    }
    return st != IL_HELD
               ? st
               : il__error_set(&b->err, IL_TIMEOUT, "another program is building this day");
}

static void
let_go(struct build *b)
{
    il_advisory_release(b->advisory);
    b->advisory = NULL;
    if (b->lease != NULL)
        (void)il_lease_release(b->lease, NULL); /* else it expires */
    il_lease_free(b->lease);
    b->lease = NULL;
}

/* ---- building -------------------------------------------------------------------------------- */

static bool
should_stop(void *cookie)
{
    const struct build *b = cookie;

    return atomic_load(&b->u->stopping) || atomic_load(&b->lost);
}

/* Fetch the day and read it. IL_STATE: the source failed. */
static il_status
fetch(struct build *b, struct il__buf *raw, struct usage_figures *ret)
{
    char               date[IL__DATE_TEXT_BYTES];
    struct usage_fetch f = { .tenant      = b->f->tenant,
                             .date        = il__date_text(b->f->date, date),
                             .should_stop = should_stop,
                             .cookie      = b };
    il_error           err;

    il__buf_init(raw, USAGE_RAW_BYTES_MAX);
    il_status st = usage_source_fetch(b->u->o.source, &f, raw, &err);
    if (st == IL_OK)
        st = usage_figures_read(il__buf_str(raw), raw->n_bytes, b->f->date, ret, &err);
    if (st == IL_OK)
        return IL_OK;
    if (st == IL_CANCELLED && atomic_load(&b->lost))
        return il__error_set(&b->err, IL_LOST, "lost the lease of the build");
    if (st == IL_CANCELLED)
        return il__error_set(&b->err, IL_CANCELLED, "the server is stopping");
    return il__error_set(&b->err, IL_STATE, "the source failed: %.400s", err.message);
}

static il_status
write_row(struct build *b, const struct usage_row *row, const char *raw)
{
    const il_guard_fence fence = { b->u->o.h, b->f->tenant, b->key, il_lease_fence(b->lease) };
    il_status            st = b->advisory != NULL ? il_advisory_check(b->advisory, &b->err) : IL_OK;

    return st == IL_OK ? usage_row_put(b->u->o.tables, &fence, row, raw, &b->err) : st;
}

/* Build and write the day, with the lease, and fill the marker. *elected: this build's election, or
 * NULL: then the marker is replaced when the figures are there, so that it serves until then. */
static il_status
build_row(struct build *b, il_build **elected, struct usage_copy **ret)
{
    AUTO_BUF struct il__buf                  raw      = { 0 };
    AUTO(usage_row_release) struct usage_row row      = { .date = b->f->date };
    int64_t                                  began_ns = il__clock_boot_ns();
    enum usage_keep                          keep;

    row.updated_ms = usage_now_ms(b->u);
    keep           = usage_keep(b->f->date, row.updated_ms, b->u->o.grace_minutes);
    row.complete   = keep == USAGE_KEEP_GOOD;
    if (keep == USAGE_KEEP_FUTURE)
        return il__error_set(&b->err, IL_INVAL, "the day is in the future");
    il_status st = fetch(b, &raw, &row.figures);
    reach(b, USAGE_PHASE_FETCHED);
    if (st == IL_OK && *elected == NULL)
        st = replace_marker(b, elected);
    if (st == IL_OK)
        st = write_row(b, &row, il__buf_str(&raw));
    if (st != IL_OK)
        return st;
    reach(b, USAGE_PHASE_WRITTEN);
    usage_count(b->u, USAGE_COUNT_rebuilds);
    if (keep == USAGE_KEEP_GRACE)
        usage_count(b->u, USAGE_COUNT_graces);
    usage_note(b->u, USAGE_EVENT_built, b->f, NULL,
               (il__clock_boot_ns() - began_ns) / IL__NS_PER_MS);
    usage_copy_unref(TAKE(*ret));
    *ret = usage_copy_new(b->f->tenant, &row, 0);
    return *ret != NULL ? IL_OK : il__error_nomem(&b->err);
}

/* End the election as the build ended; *elected may be NULL if it failed. */
static void
end_election(struct build *b, il_build *elected, il_status st, struct usage_copy *c)
{
    if (st == IL_OK) {
        CHECK(elected != NULL);
        CHECK(c != NULL);
        fill_marker(b, elected, c);
        if (c->token == 0)
            drop_marker(b); /* it may be for the row before */
        reach(b, USAGE_PHASE_FILLED);
    } else if (st == IL_STATE && elected != NULL) {
        IGNORE(il_build_fill(elected, b->err.message, strlen(b->err.message), FAILED_TTL_MS, 0,
                             IL_CACHE_NEGATIVE, IL_STATE, NULL)); /* then they try themselves */
    } else if (elected != NULL) {
        (void)il_build_abandon(elected, NULL); /* else its time runs out */
    }
    il_build_free(elected);
}

/* ---- the three ways -------------------------------------------------------------------------- */

/* The leader: *ret gets the day, or on failure the stored one. `elected` is consumed. */
static il_status
lead(struct build *b, il_build *elected, struct usage_copy **ret)
{
    bool fresh = false;

    reach(b, USAGE_PHASE_LEADS);
    il_status st = take_lease(b, true);
    if (st == IL_OK) {
        reach(b, USAGE_PHASE_LOCKED);
        st = take_advisory(b, true);
#ifndef IL_MUTANT_usage_no_second_look
        if (st == IL_OK || st == IL_TIMEOUT) {
            /* again: it may have been built while the lease or the lock was held elsewhere */
            il_error  why    = b->err;
            il_status looked = read_row(b, 0, ret, &fresh);
            if (looked != IL_OK || fresh)
                st = looked;
            else
                b->err = why;
        }
#endif
    }
    if (st == IL_OK && !fresh)
        st = build_row(b, &elected, ret);
    end_election(b, elected, st, *ret);
    let_go(b);
    return st;
}

/* Wait for the election. IL_LEAD: *ret_build; IL_HIT: read the row; IL_STATE: the leader failed. */
static il_status
elect(struct build *b, il_build **ret_build)
{
    il_op     op;
    il_status st;
    int64_t   left_ms, wait_ms = 1; /* first only look, to count who builds */

    for (;; wait_ms = MAX(MIN(left_ms, SLICE_MS), 1)) {
        left_ms = usage_flight_left_ms(b->u, b->f);
        st      = look_up(b, wait_ms, ret_build, &op);
        if (st == IL_STALE_HIT)
            st = IL_HIT;
        bool failed = st == IL_HIT && (op.out.flags & IL_OUT_NEGATIVE) != 0;
        if (failed && op.out.fence == b->failed) { /* that of others, before: try anew */
            il_op_release(&op);
            drop_marker(b);
            continue;
        }
        if (failed)
            st = il__error_set(&b->err, IL_STATE, "%.*s", (int)MIN(op.out.value_bytes, 500),
                               op.out.value != NULL ? (const char *)op.out.value : "");
        il_op_release(&op);
        if (st == IL_WAIT)
            count_contention(b);
        if (st != IL_WAIT || left_ms == 0)
            break;
    }
    if (st == IL_WAIT)
        st = il__error_set(&b->err, atomic_load(&b->u->stopping) ? IL_CANCELLED : IL_TIMEOUT,
                           "another process is still building this day");
    return st;
}

/* The marker's token, then the row that goes with it. */
static il_status
look(struct build *b, uint64_t *token, struct usage_copy **ret, bool *ret_fresh)
{
    il_status st = read_token(b, token);

    return st == IL_OK ? read_row(b, *token, ret, ret_fresh) : st;
}

/* A build that lost its lease says nothing about the day. True: try again. */
static bool
is_lost(struct build *b, il_status *st)
{
    if (*st != IL_LOST && *st != IL_STALE)
        return false;
    if (usage_flight_left_ms(b->u, b->f) > 0)
        return true;
    *st = il__error_set(&b->err, atomic_load(&b->u->stopping) ? IL_CANCELLED : IL_TIMEOUT,
                        "lost the lease of the build");
    return false;
}

static il_status
take(struct build *b, struct usage_copy **ret, bool *ret_hit)
{
    uint64_t  token = 0;
    bool      fresh = false;
    il_status st    = look(b, &token, ret, &fresh);

    if (st == IL_OK && fresh && token == 0)
        add_marker(b, ret);
    *ret_hit = st == IL_OK && fresh;
    if (st == IL_OK && !fresh && token != 0)
        drop_marker(b); /* it does not go with the row: other settings, or a row was deleted */
    while (st == IL_OK && !fresh) {
        il_build *elected = NULL;
        st                = elect(b, &elected);
        if (st == IL_LEAD) {
            st = lead(b, elected, ret);
            if (!is_lost(b, &st))
                break;
            st = look(b, &token, ret, &fresh); /* another process has built it, or will */
        } else if (st == IL_HIT) {
            /* What was waited for is good enough, even if it has a life of a second. */
            st    = look(b, &token, ret, &fresh);
            fresh = *ret != NULL;
            if (!fresh)
                drop_marker(b);
        }
    }
    return st;
}

/* Is the row new enough for a forced build, or for a refresh? */
static bool
is_enough(const struct build *b, const struct usage_copy *c, bool fresh)
{
#ifdef IL_MUTANT_usage_refreshed_again
    return false;
#endif
    if (c == NULL)
        return false;
    if (b->f->way == USAGE_FORCE)
        return c->updated_ms >= b->f->asked_ms;
    return fresh && !usage_is_ageing(&b->u->o.life, c->complete, c->updated_ms, usage_now_ms(b->u));
}

/* force and refresh: the lease alone decides. */
static il_status
renew(struct build *b, struct usage_copy **ret)
{
    bool      wait = b->f->way == USAGE_FORCE, fresh = false;
    il_status st;

    do {
        il_build *elected = NULL;
        st                = read_row(b, 0, ret, &fresh); /* for those who give up waiting */
        if (st == IL_OK)
            st = take_lease(b, wait);
        if (st == IL_OK) {
            reach(b, USAGE_PHASE_LOCKED);
            st = take_advisory(b, wait);
        }
        if (st == IL_OK || st == IL_TIMEOUT) { /* again: it may have been built meanwhile */
            il_error  why    = b->err;
            il_status looked = read_row(b, 0, ret, &fresh);
            if (looked != IL_OK || is_enough(b, *ret, fresh))
                st = looked;
            else
                b->err = why;
        }
        if (st == IL_OK && !is_enough(b, *ret, fresh)) {
            st = build_row(b, &elected, ret);
            end_election(b, elected, st, *ret);
        }
        let_go(b);
    } while (wait && is_lost(b, &st));
    return st;
}

void
usage_flight_make(struct usage *u, struct usage_flight *f, struct usage_result *ret)
{
    struct build       b    = { .u = u, .f = f };
    struct usage_copy *copy = NULL;
    bool               hit  = false;
    char               date[IL__DATE_TEXT_BYTES];

    (void)snprintf(b.key, sizeof b.key, USAGE_KEY "%s", il__date_text(f->date, date));
    il_status st = f->way == USAGE_TAKE ? take(&b, &copy, &hit) : renew(&b, &copy);
    *ret         = (struct usage_result){ .status = st, .copy = copy, .hit = hit };
    if (st == IL_OK)
        return;
    (void)snprintf(ret->text, sizeof ret->text, "%s", b.err.message);
    if (st == IL_STATE)
        usage_note(u, USAGE_EVENT_failed, f, ret->text, 0);
    else if (st != IL_TIMEOUT && st != IL_CANCELLED)
        usage_note(u, USAGE_EVENT_trouble, f, ret->text, 0);
}
