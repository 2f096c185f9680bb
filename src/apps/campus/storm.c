/*
 * storm.c: runs mixed operations in several processes at once; see storm.h.
 *
 * What they have in common is a page of counters in shared memory, which survives a killed process.
 * The parent opens nothing before the last process has ended.
 */
#include "apps/campus/storm.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/campus/operations.h"
#include "apps/campus/seed.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"

#define LIVE 4         /* tournaments of the storm that are under way */
#define PLAYERS_MAX 12 /* of each */
#define COST 10
#define BOOKINGS 128 /* that everybody knows */
#define CALL_MS 2000 /* a call waits this long for others; a killed one leaves its lease */
#define LOOK_MS 20
#define OPEN_FOR 8 /* of so many attempts to close enrollment one does */

/* Times in steps of a quarter of a power of two. */
#define STEPS 4
#define BUCKETS (40 * STEPS)

const char *const campus_act_names[CAMPUS_ACT_COUNT] = {
#define X(name) #name,
    CAMPUS_STORM_ACTS(X)
#undef X
};
const char *const campus_storm_pipelines[CAMPUS_STORM_PIPELINES] = { "enrollment", "booking",
                                                                     "reward", "skill" };

struct times {
    atomic_uint counts[BUCKETS];
};

struct shared {
    atomic_ulong n_calls, n_failed, n_races, n_killed;
    atomic_ulong n_done[CAMPUS_ACT_COUNT], n_refused[CAMPUS_ACT_COUNT];
    int64_t      began_ms;    /* makes the ids of its tournaments unique */
    atomic_uint  round[LIVE]; /* of each tournament that is under way */
    struct times wait[CAMPUS_STORM_PIPELINES], hold[CAMPUS_STORM_PIPELINES];
    atomic_ulong n_conflicts[CAMPUS_STORM_PIPELINES];
    /* Ids that somebody has booked. One that is read half written is of no booking, and refused. */
    char        bookings[BOOKINGS][40];
    atomic_flag has_failure;
    char        failure[256];
};

/* A process of the storm. */
struct storming {
    const struct campus_storm *s;
    struct shared             *shared;
    struct campus_call         c;
    uint64_t                   random;
    int64_t                    until_ns;
    unsigned                   slot, round; /* of the tournament that was drawn */
    char                       user[CAMPUS_ID_BYTES_MAX + 1], tournament[CAMPUS_ID_BYTES_MAX + 1];
    char                       session[CAMPUS_ID_BYTES_MAX + 1], license[CAMPUS_ID_BYTES_MAX + 1];
    char                       booking[40];
};

/* ---- times ----------------------------------------------------------------------------------- */

static void
times_add(struct times *t, int64_t ns)
{
    uint64_t us = (uint64_t)(ns > 0 ? ns / 1000 : 0) + 1;
    unsigned power =
        63 - (unsigned)__builtin_clzll(us); /* the rest in quarters of the way to the next */
    unsigned step = (unsigned)((us - (UINT64_C(1) << power)) * STEPS >> power);

    atomic_fetch_add(&t->counts[MIN(power * STEPS + step, (unsigned)BUCKETS - 1)], 1);
}

/* The upper end of the step below which 95 % are. */
static int64_t
times_p95(const struct times *t)
{
    uint64_t n = 0, seen = 0;
    unsigned i = 0;

    for (unsigned k = 0; k < BUCKETS; k++)
        n += atomic_load(&t->counts[k]);
    for (; i < BUCKETS - 1 && n > 0; i++) {
        seen += atomic_load(&t->counts[i]);
        if (seen * 100 >= n * 95)
            break;
    }
    uint64_t base = UINT64_C(1) << (i / STEPS);
    return n > 0 ? (int64_t)(base + base * (i % STEPS + 1) / STEPS) : 0;
}

static void
observe(void *cookie, const il_guard_event *event)
{
    struct shared *shared = cookie;

    for (size_t i = 0; i < CAMPUS_STORM_PIPELINES; i++) {
        if (strcmp(event->pipeline, campus_storm_pipelines[i]) == 0) {
            times_add(&shared->wait[i], event->wait_ns);
            times_add(&shared->hold[i], event->hold_ns);
            atomic_fetch_add(&shared->n_conflicts[i], event->outcome == IL_GUARD_CONFLICT);
        }
    }
}

/* ---- acts ------------------------------------------------------------------------------------ */

static void
name_tournament(struct storming *g, unsigned slot)
{
    g->slot  = slot;
    g->round = atomic_load(&g->shared->round[slot]);
    (void)snprintf(g->tournament, sizeof g->tournament, "storm-%" PRIx64 "-%u-%u",
                   (uint64_t)g->shared->began_ms, slot, g->round);
}

/* Draw who and what. */
static void
draw(struct storming *g, struct campus_in *in)
{
    int64_t user = 1 + (int64_t)campus_random(&g->random, (uint64_t)g->s->n_users);

    campus_seed_id(g->user, "user", user);
    campus_seed_id(g->license, "license", user);
    campus_seed_id(g->session, "session",
                   1 + (int64_t)campus_random(&g->random, (uint64_t)g->s->n_sessions));
    name_tournament(g, (unsigned)campus_random(&g->random, LIVE));
    memcpy(g->booking, g->shared->bookings[campus_random(&g->random, BOOKINGS)],
           sizeof g->booking - 1);
    *in = (struct campus_in){ .user       = g->user,
                              .license    = g->license,
                              .session    = g->session,
                              .tournament = g->tournament,
                              .booking    = g->booking,
                              .skill =
                                  campus_seed_skills[campus_random(&g->random, CAMPUS_SEED_SKILLS)],
                              .value_1 = 400 + (int64_t)campus_random(&g->random, 590) };
}

static il_status
create_tournament(struct storming *g, il_error *reterr)
{
    struct campus_tournament t;
    struct campus_in         in = {
                .code = g->tournament, .campus = "storm", .max_players = PLAYERS_MAX, .cost = COST
    };

    g->c.id = g->tournament;
    return campus_tournament_create(&g->c, &in, &t, reterr);
}

/* Take the next edge. A tournament that is over makes room for another one; a process that looks
 * for one that does not exist yet creates it. Enrollment stays open for a while. */
static il_status
move(struct storming *g, struct campus_in *in, il_error *reterr)
{
    struct campus_tournament t;
    il_status                st = campus_tournament_get(&g->c, in, &t, reterr);

    if (g->c.code == CAMPUS_E_TOURNAMENT_NOT_FOUND) {
        g->c.code = CAMPUS_OK;
        return create_tournament(g, reterr);
    }
    if (st != IL_OK)
        return st;
    enum campus_state state = campus_state_named(t.state);
    if (state == CAMPUS_ENROLLMENT_OPEN && campus_random(&g->random, OPEN_FOR) != 0)
        return IL_OK;
    if (state >= CAMPUS_REWARDS_DISTRIBUTED)
        IGNORE(atomic_compare_exchange_strong(&g->shared->round[g->slot], &g->round, g->round + 1));
    in->state = campus_state_name(state == CAMPUS_DRAFT        ? CAMPUS_ENROLLMENT_OPEN
                                  : state < CAMPUS_IN_PROGRESS ? state + 1
                                                               : CAMPUS_ARCHIVED);
    return campus_transition(&g->c, in, &t, reterr);
}

static il_status
act(struct storming *g, enum campus_act what, struct campus_in *in, il_error *reterr)
{
    union campus_out out;
    il_status        st;

    switch (what) {
    case CAMPUS_ACT_enroll:
        return campus_enroll(&g->c, in, &out, reterr);
    case CAMPUS_ACT_unenroll:
        return campus_unenroll(&g->c, in, &out, reterr);
    case CAMPUS_ACT_book:
        st = campus_book(&g->c, in, &out, reterr);
        if (st == IL_OK)
            (void)snprintf(g->shared->bookings[campus_random(&g->random, BOOKINGS)],
                           sizeof g->shared->bookings[0], "%s", g->c.id);
        return st;
    case CAMPUS_ACT_cancel:
        return campus_cancel(&g->c, in, &out, reterr);
    case CAMPUS_ACT_confirm:
        return campus_confirm(&g->c, in, &out, reterr);
    case CAMPUS_ACT_attend:
        return campus_attend(&g->c, in, &out, reterr);
    case CAMPUS_ACT_assess:
        return campus_license_assess(&g->c, in, &out, reterr);
    case CAMPUS_ACT_move:
        return move(g, in, reterr);
    case CAMPUS_ACT_finalize:
        return campus_finalize(&g->c, in, &out, reterr);
    default:
        in->state = campus_state_name(CAMPUS_CANCELLED);
        return campus_transition(&g->c, in, &out, reterr);
    }
}

/* How often each is drawn, of 200. */
static const unsigned shares[CAMPUS_ACT_COUNT] = {
    [CAMPUS_ACT_enroll] = 56,  [CAMPUS_ACT_unenroll] = 18, [CAMPUS_ACT_book] = 46,
    [CAMPUS_ACT_cancel] = 34,  [CAMPUS_ACT_confirm] = 6,   [CAMPUS_ACT_attend] = 6,
    [CAMPUS_ACT_assess] = 16,  [CAMPUS_ACT_move] = 12,     [CAMPUS_ACT_finalize] = 5,
    [CAMPUS_ACT_call_off] = 1,
};

/* Count a failure; the first one is reported. */
static void PRINTF_LIKE(2, 3) fail(struct shared *shared, const char *fmt, ...)
{
    va_list args;

    atomic_fetch_add(&shared->n_failed, 1);
    if (atomic_flag_test_and_set(&shared->has_failure))
        return;
    va_start(args, fmt);
    (void)vsnprintf(shared->failure, sizeof shared->failure, fmt, args);
    va_end(args);
}

static void
note(struct storming *g, enum campus_act what, il_status st, const il_error *err)
{
    struct shared *shared = g->shared;

    atomic_fetch_add(&shared->n_calls, 1);
    for (size_t i = 0; i < CAMPUS_RACE_COUNT; i++)
        atomic_fetch_add(&shared->n_races, g->c.n_races[i]);
    if (st == IL_OK) {
        atomic_fetch_add(&shared->n_done[what], 1);
    } else if (g->c.code != CAMPUS_OK || st == IL_TIMEOUT) {
        /* A call that ran out of time was rolled back: a slow machine is no failure. */
        atomic_fetch_add(&shared->n_refused[what], 1);
    } else {
        fail(shared, "%s: %.200s", campus_act_names[what], err->message);
    }
}

/* A fast machine makes all calls before the first process is to be killed: that is waited for. */
static bool
is_over(const struct storming *g)
{
    return il__clock_boot_ns() >= g->until_ns ||
           (g->s->n_calls_max > 0 && atomic_load(&g->shared->n_calls) >= g->s->n_calls_max &&
            (g->s->kill_ms == 0 || atomic_load(&g->shared->n_killed) > 0));
}

static il_status
storm_on(struct storming *g, il_error *reterr)
{
    char id[37];

    while (!is_over(g)) {
        struct campus_in in;
        uint64_t         drawn = campus_random(&g->random, 200);
        unsigned         what  = 0;
        il_error         err   = { .message = "" };
        while (what + 1 < CAMPUS_ACT_COUNT && drawn >= shares[what])
            drawn -= shares[what++];
        draw(g, &in);
        if (il_uuid(id) != IL_OK)
            return il__error_set(reterr, IL_STORE, "cannot read random bytes");
        g->c.id          = id;
        g->c.now_ms      = il__clock_wall_ms();
        g->c.code        = CAMPUS_OK;
        g->c.deadline_ms = campus_deadline(CALL_MS);
        memset(g->c.n_races, 0, sizeof g->c.n_races);
        note(g, what, act(g, what, &in, &err), &err);
        il__arena_clear(&g->c.mem);
    }
    return IL_OK;
}

/* ---- processes ------------------------------------------------------------------------------- */

static il_status
open_all(struct storming *g, struct tables_place **place, il_error *reterr)
{
    struct tables_opts tables = { .observe = observe, .cookie = g->shared, .conns_max = 1 };
    il_status st = il__tables_place_open(g->s->store_url, g->s->data_url, false, place, reterr);

    if (st == IL_OK)
        st = il__tables_open(&campus_tables, *place, &tables, &g->c.db, reterr);
    return st == IL_OK ? il_open(g->s->store_url, NULL, &g->c.store, reterr) : st;
}

static void
close_all(struct storming *g, struct tables_place *place)
{
    il_guard_close(g->c.db);
    il_close(g->c.store);
    il__tables_place_close(place);
    il__arena_free(&g->c.mem);
}

static il_status
run_process(struct storming *g, il_error *reterr)
{
    struct tables_place *place = NULL;
    il_status            st    = open_all(g, &place, reterr);

    g->c.tenant = g->s->tenant;
    if (st == IL_OK)
        st = storm_on(g, reterr);
    close_all(g, place);
    return st;
}

static pid_t
start(struct storming *g, uint64_t n)
{
    pid_t parent = getpid(), pid = fork();

    if (pid != 0)
        return pid;
    IGNORE(prctl(PR_SET_PDEATHSIG, SIGKILL) != 0);
    if (getppid() != parent)
        _exit(1);
    il_error err = { .message = "" };
    g->random    = g->s->seed * 1000003 + n * 2 + 1;
    if (run_process(g, &err) != IL_OK)
        fail(g->shared, "%.250s", err.message);
    _exit(0);
}

/* Wait for a process to exit; it may have been killed on purpose. Any other signal, or an exit
 * status other than 0, is a failure. */
static void
reap(struct shared *shared, pid_t pid, bool killed)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
        fail(shared, "a process exited with status %d", WEXITSTATUS(status));
    if (WIFSIGNALED(status) && !(killed && WTERMSIG(status) == SIGKILL))
        fail(shared, "a process was killed by signal %d", WTERMSIG(status));
}

/* Start the processes, kill one now and then, and wait for the end. */
static il_status
run_all(struct storming *g, il_error *reterr)
{
    pid_t    pids[CAMPUS_STORM_PROCESSES_MAX];
    uint64_t n_started = 0, random = g->s->seed * 2 + 1;
    int64_t  kill_ns = il__clock_boot_ns() + g->s->kill_ms * IL__NS_PER_MS;
    bool     failed  = false;

    for (unsigned i = 0; i < g->s->n_processes; i++) {
        pids[i] = start(g, n_started++);
        failed  = failed || pids[i] < 0;
    }
    while (!failed && !is_over(g)) {
        IGNORE(poll(NULL, 0, LOOK_MS) < 0);
        if (g->s->progress != NULL)
            g->s->progress(g->s->cookie, atomic_load(&g->shared->n_calls));
        if (g->s->kill_ms == 0 || il__clock_boot_ns() < kill_ns)
            continue;
        uint64_t i = campus_random(&random, g->s->n_processes);
        IGNORE(kill(pids[i], SIGKILL) != 0); /* it may have ended */
        reap(g->shared, pids[i], true);
        atomic_fetch_add(&g->shared->n_killed, 1);
        pids[i] = start(g, n_started++);
        failed  = pids[i] < 0;
        kill_ns = il__clock_boot_ns() + g->s->kill_ms * IL__NS_PER_MS;
    }
    for (unsigned i = 0; i < g->s->n_processes; i++) {
        if (failed && pids[i] > 0)
            IGNORE(kill(pids[i], SIGKILL) != 0);
        if (pids[i] > 0)
            reap(g->shared, pids[i], failed);
    }
    return failed ? il__error_set(reterr, IL_STORE, "cannot start a process: %s", strerror(errno))
                  : IL_OK;
}

static void
add_up(const struct shared *shared, struct campus_storm_result *ret)
{
    ret->n_calls  = atomic_load(&shared->n_calls);
    ret->n_failed = atomic_load(&shared->n_failed);
    ret->n_races  = atomic_load(&shared->n_races);
    ret->n_killed = atomic_load(&shared->n_killed);
    for (size_t i = 0; i < CAMPUS_ACT_COUNT; i++) {
        ret->n_done[i]    = atomic_load(&shared->n_done[i]);
        ret->n_refused[i] = atomic_load(&shared->n_refused[i]);
    }
    for (size_t i = 0; i < CAMPUS_STORM_PIPELINES; i++) {
        ret->wait_p95_us[i] = times_p95(&shared->wait[i]);
        ret->hold_p95_us[i] = times_p95(&shared->hold[i]);
        ret->n_conflicts[i] = atomic_load(&shared->n_conflicts[i]);
    }
    (void)snprintf(ret->failure, sizeof ret->failure, "%s", shared->failure);
}

il_status
campus_storm(const struct campus_storm *s, struct campus_storm_result *ret, il_error *reterr)
{
    struct shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int64_t began_ns = il__clock_boot_ns();

    CHECK(s->n_processes >= 1 && s->n_processes <= CAMPUS_STORM_PROCESSES_MAX);
    if (shared == MAP_FAILED)
        return il__error_set(reterr, IL_NOMEM, "campus: out of memory");
    struct storming      g     = { .s        = s,
                                   .shared   = shared,
                                   .until_ns = began_ns + s->time_ms * IL__NS_PER_MS };
    struct tables_place *place = NULL;
    shared->began_ms           = il__clock_wall_ms();
    *ret                       = (struct campus_storm_result){ .took_ms = 0 };
    il_status st               = run_all(&g, reterr);
    ret->took_ms               = (il__clock_boot_ns() - began_ns) / IL__NS_PER_MS;
    if (st == IL_OK)
        st = open_all(&g, &place, reterr);
    if (st == IL_OK)
        st = campus_verify(g.c.db, s->tenant, s->broken, s->cookie, &ret->n_broken, reterr);
    close_all(&g, place);
    add_up(shared, ret);
    IGNORE(munmap(shared, sizeof *shared) != 0);
    return st;
}
