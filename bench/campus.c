/*
 * campus.c: the campus on SQLite and on PostgreSQL: enrollments in one tournament by 8 processes,
 * against the same writes by hand; and how long a finalization of 64 players holds the lock of a
 * license.
 */
#include "campus.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/campus/campus.h"
#include "base/arena.h"
#include "load.h"

#define N_PROCESSES 8
#define N_PLAYERS 64
#define HOLD_NS_MAX 1e7
#define TENANT "bench"
#define SKILLS "{\"passing\": 60, \"vision\": 55, \"pace\": 70}"

/* ---- a side ---------------------------------------------------------------------------------- */

static void
site_make(struct campus_site *s, struct bench *b, bool is_postgres, unsigned i)
{
    char name[32];

    *s = (struct campus_site){ .b = b, .is_postgres = is_postgres };
    (void)snprintf(name, sizeof name, "campus%u.db", i);
    (void)temp_path(b, name, s->store_path);
    (void)snprintf(name, sizeof name, "campus%u-campus.db", i);
    (void)temp_path(b, name, s->path);
    (void)snprintf(s->store_url, sizeof s->store_url, "sqlite:%s", s->store_path);
    (void)snprintf(s->data_url, sizeof s->data_url, "%s", s->store_url);
    if (is_postgres) {
        s->database = postgres_database(b, i);
        (void)snprintf(s->data_url, sizeof s->data_url, "postgres://postgres@/%s?host=%s",
                       s->database.name, postgres_dir(b));
        PGconn *c = postgres_connect(b, s->database.name);
        postgres_exec(c, "DROP SCHEMA IF EXISTS interlock_campus CASCADE");
        PQfinish(c);
    }
}

static void
site_remove(struct campus_site *s)
{
    temp_remove_database(s->store_path);
    temp_remove_database(s->path);
    if (s->is_postgres)
        postgres_drop(s->b, &s->database);
}

/* The tables of a side, open in this process. */
struct ground {
    struct tables_place *place;
    il                  *store;
    struct campus_call   call;
};

static void
ground_open(struct ground *g, const struct campus_site *s, const struct tables_opts *o)
{
    il_error err = { 0 };

    *g = (struct ground){ .call = { .tenant = TENANT, .now_ms = il__clock_wall_ms() } };
    must(il__tables_place_open(s->store_url, s->data_url, false, &g->place, &err), "tables", &err);
    must(il__tables_open(&campus_tables, g->place, o, &g->call.db, &err), "tables", &err);
    g->store = g->call.store = store_open(s->store_url, NULL);
}

static void
ground_close(struct ground *g)
{
    il_guard_close(g->call.db);
    il_close(g->store);
    il__tables_place_close(g->place);
    il__arena_free(&g->call.mem);
}

static void
call(struct ground *g, campus_fn *fn, const char *id, const struct campus_in *in, void *out)
{
    il_error err = { 0 };

    g->call.id = id;
    must(fn(&g->call, in, out, &err), "campus", &err);
    il__arena_free(&g->call.mem);
}

/* ---- processes that enroll ------------------------------------------------------------------- */

/* Each process enrolls the next user for as long as it is told to, and answers how many. */
struct crew {
    const struct campus_site *site;
    bool                      by_hand;
    pid_t                     pids[N_PROCESSES];
    int                       fds[N_PROCESSES];
    atomic_uint              *i_user; /* the next one; shared by all */
};

struct worker {
    struct ground       ground;
    struct campus_hand *hand; /* NULL: ours */
    atomic_uint        *i_user;
};

static void
enroll_next(struct worker *w)
{
    char                     user[16], id[16];
    struct campus_enrollment out;

    unsigned i = atomic_fetch_add(w->i_user, 1);
    if (i >= CAMPUS_USERS)
        die("campus: there are too few users");
    (void)snprintf(user, sizeof user, "u%06u", i);
    (void)snprintf(id, sizeof id, "e%06u", i);
    if (w->hand != NULL)
        campus_hand_enroll(w->hand, user, id);
    else
        call(&w->ground, campus_enroll, id, &(struct campus_in){ .tournament = "t", .user = user },
             &out);
}

static _Noreturn void
work(const struct crew *c, int fd)
{
    struct worker w = { .i_user = c->i_user };
    int64_t       for_ns;

    CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
    if (c->by_hand)
        w.hand = campus_hand_open(c->site);
    else
        ground_open(&w.ground, c->site, NULL);
    while (read(fd, &for_ns, sizeof for_ns) == (ssize_t)sizeof for_ns && for_ns > 0) {
        uint64_t n      = 0;
        int64_t  end_ns = il__clock_boot_ns() + for_ns;
        for (; il__clock_boot_ns() < end_ns; n++)
            enroll_next(&w);
        if (write(fd, &n, sizeof n) != (ssize_t)sizeof n)
            break; /* the parent is gone */
    }
    if (w.hand != NULL)
        campus_hand_close(w.hand);
    else
        ground_close(&w.ground);
    _exit(0);
}

static void
crew_start(struct crew *c)
{
    c->i_user =
        mmap(NULL, sizeof *c->i_user, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (c->i_user == MAP_FAILED)
        die("no shared memory: %s", strerror(errno));
    for (unsigned i = 0; i < N_PROCESSES; i++) {
        int fds[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
            die("no socket pair: %s", strerror(errno));
        c->pids[i] = fork();
        if (c->pids[i] < 0)
            die("cannot start a process: %s", strerror(errno));
        if (c->pids[i] == 0)
            work(c, fds[1]);
        (void)close(fds[1]);
        c->fds[i] = fds[0];
    }
}

static void
crew_tell(struct crew *c, int64_t for_ns)
{
    for (unsigned i = 0; i < N_PROCESSES; i++) {
        if (write(c->fds[i], &for_ns, sizeof for_ns) != (ssize_t)sizeof for_ns)
            die("campus: a process has ended");
    }
}

static double
crew_round(void *cookie)
{
    struct crew *c = cookie;
    uint64_t     n, n_all = 0;
    int64_t      start_ns = il__clock_boot_ns();

    crew_tell(c, c->site->b->round_ns);
    for (unsigned i = 0; i < N_PROCESSES; i++) {
        if (read(c->fds[i], &n, sizeof n) != (ssize_t)sizeof n)
            die("campus: a process has ended");
        n_all += n;
    }
    return (double)n_all * 1e9 / (double)(il__clock_boot_ns() - start_ns);
}

static void
crew_stop(struct crew *c)
{
    int status;

    crew_tell(c, 0);
    for (unsigned i = 0; i < N_PROCESSES; i++) {
        while (waitpid(c->pids[i], &status, 0) < 0)
            CHECK(errno == EINTR);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            die("campus: a process failed");
        (void)close(c->fds[i]);
    }
    CHECK(munmap(c->i_user, sizeof *c->i_user) == 0);
}

static void
measure_enroll(struct bench *b, bool is_postgres, struct result *r)
{
    struct campus_site sites[2];
    struct crew        crews[2];

    for (unsigned i = 0; i < 2; i++) {
        struct ground g;
        site_make(&sites[i], b, is_postgres, i);
        ground_open(&g, &sites[i], NULL); /* creates the tables */
        ground_close(&g);
        campus_hand_fill(&sites[i]);
        crews[i] = (struct crew){ .site = &sites[i], .by_hand = i == 1 };
        crew_start(&crews[i]);
    }
    compare(r, b->n_rounds, (struct side){ crew_round, &crews[0] },
            (struct side){ crew_round, &crews[1] });
    for (unsigned i = 0; i < 2; i++) {
        crew_stop(&crews[i]);
        site_remove(&sites[i]);
    }
}

/* ---- the lock of a license ------------------------------------------------------------------- */

static void
keep_hold(void *cookie, const il_guard_event *event)
{
    if (strcmp(event->entity, "UserLicense") == 0)
        samples_add(cookie, event->hold_ns);
}

/* A tournament of 64 players, who are those of the tournaments before: histories grow. */
static void
finalize(struct ground *g, unsigned i_round)
{
    static const char *const states[] = { "ENROLLMENT_OPEN", "ENROLLMENT_CLOSED", "CHECK_IN_OPEN",
                                          "IN_PROGRESS" };
    char                     t[16], id[40], user[16];
    struct campus_tournament shown;
    struct campus_enrollment enrolled;
    struct campus_finalized  done;

    (void)snprintf(t, sizeof t, "t%u", i_round);
    call(g, campus_tournament_create, t,
         &(struct campus_in){ .code = t, .campus = "north", .max_players = N_PLAYERS }, &shown);
    for (unsigned i = 0; i < ARRAY_LEN(states); i++) {
        (void)snprintf(id, sizeof id, "%s-%u", t, i);
        call(g, campus_transition, id, &(struct campus_in){ .tournament = t, .state = states[i] },
             &shown);
        for (unsigned k = 0; i == 0 && k < N_PLAYERS; k++) {
            (void)snprintf(user, sizeof user, "u%u", k);
            (void)snprintf(id, sizeof id, "%s-%s", t, user);
            call(g, campus_enroll, id, &(struct campus_in){ .tournament = t, .user = user },
                 &enrolled);
        }
    }
    (void)snprintf(id, sizeof id, "%s-final", t);
    call(g, campus_finalize, id, &(struct campus_in){ .tournament = t }, &done);
    CHECK(done.n_paid == N_PLAYERS);
}

static void
add_players(struct ground *g)
{
    struct campus_user    user;
    struct campus_license license;

    for (unsigned i = 0; i < N_PLAYERS; i++) {
        char id[16], l[16];
        (void)snprintf(id, sizeof id, "u%u", i);
        (void)snprintf(l, sizeof l, "l%u", i);
        call(g, campus_user_create, id, &(struct campus_in){ .email = id }, &user);
        call(g, campus_license_create, l, &(struct campus_in){ .user = id, .skills = SKILLS },
             &license);
    }
}

static void
measure_hold(struct bench *b, bool is_postgres, struct result *r)
{
    struct samples           holds = { 0 };
    const struct tables_opts o     = { .observe = keep_hold, .cookie = &holds };
    struct campus_site       s;
    struct ground            g;

    site_make(&s, b, is_postgres, 0);
    ground_open(&g, &s, &o);
    add_players(&g);
    for (unsigned i = 0; i < b->n_rounds; i++)
        finalize(&g, i);
    CHECK(holds.n == (size_t)b->n_rounds * N_PLAYERS);
    r->ours_latency = samples_quantiles(&holds); /* sorts them */
    r->n_rounds     = 1;
    r->ours[0]      = (double)holds.ns[(holds.n * 95 + 99) / 100 - 1];
    samples_release(&holds);
    ground_close(&g);
    site_remove(&s);
}

/* ---- rows ------------------------------------------------------------------------------------ */

void
bench_campus(struct bench *b, unsigned row)
{
    bool          is_postgres = (row & CAMPUS_ROW_POSTGRES) != 0;
    bool          is_hold     = (row & CAMPUS_ROW_HOLD) != 0;
    const char   *why;
    struct result r = { .name    = is_postgres ? "campus-enroll-postgres" : "campus-enroll-sqlite",
                        .what    = "enrollments in one tournament, 8 processes",
                        .against = "the same writes by hand, 8 processes",
                        .durability   = is_postgres ? BENCH_POSTGRES : BENCH_FULL,
                        .unit         = UNIT_OPS_PER_S,
                        .wanted       = WANTED_RATIO_AT_LEAST,
                        .wanted_value = 0.70 };

    if (is_hold) {
        r.name         = is_postgres ? "campus-hold-postgres" : "campus-hold-sqlite";
        r.what         = "p95 of the lock of a license in a finalization of 64 players";
        r.against      = NULL;
        r.unit         = UNIT_NS;
        r.wanted       = WANTED_TIME_AT_MOST;
        r.wanted_value = HOLD_NS_MAX;
    }
    if (is_postgres && !postgres_ready(b, &why)) {
        report_leave_out(&b->report, r.name, why);
        return;
    }
    (is_hold ? measure_hold : measure_enroll)(b, is_postgres, &r);
    report_add(&b->report, &r);
}
