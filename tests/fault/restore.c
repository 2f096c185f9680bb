/*
 * restore.c: a backup is taken while processes draw fences and tokens, they draw thousands more,
 * and the backup is restored. Whatever is drawn from then on is greater than anything that was
 * drawn before, so that a guarded database accepts the new holder and refuses the old one.
 *
 * An engine is a row of `engines`: where its store is, how it is dumped and how the dump is
 * restored.
 */
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "guard/guard.h"
#include "guard/open.h"
#include "harness/clock.h"
#include "harness/proc.h"
#include "harness/tmp.h"
#include "harness/unit.h"

#define N_WORKERS 3
#define N_BEFORE 500 /* numbers drawn before the backup */
#define N_AFTER 5000 /* and after it */
#define CLAIM_JOBS 3
#define LIMIT_MS 120000
#define GUARDED "guarded"

struct engine {
    const char *name;
    void (*make)(void); /* sets `url` */
    void (*dump)(void);
    void (*restore)(void); /* nobody has the store open */
};

/* What the workers have drawn, in memory that they share with this process. */
struct drawn {
    _Atomic uint64_t greatest;
    _Atomic uint32_t n;
};

static char          dir[T_PATH_BYTES];
static char          url[T_PATH_BYTES];
static struct drawn *drawn;

/* ---- SQLite -------------------------------------------------------------------------------- */

static char path[T_PATH_BYTES];
static char copy[T_PATH_BYTES];

static void
sqlite_make(void)
{
    t_path(path, "%s/x.db", dir);
    t_path(copy, "%s/copy.db", dir);
    t_path(url, "sqlite:%s", path);
}

/* As `sqlite3 x.db ".backup copy.db"`, under load. */
static void
sqlite_dump(void)
{
    sqlite3 *from = NULL;
    sqlite3 *to   = NULL;

    T_EQ(sqlite3_open_v2(path, &from, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    T_EQ(sqlite3_busy_timeout(from, LIMIT_MS), SQLITE_OK);
    T_EQ(sqlite3_open(copy, &to), SQLITE_OK);
    sqlite3_backup *b = sqlite3_backup_init(to, "main", from, "main");
    T_TRUE(b != NULL);
    T_EQ(sqlite3_backup_step(b, -1), SQLITE_DONE);
    T_EQ(sqlite3_backup_finish(b), SQLITE_OK);
    T_EQ(sqlite3_close(to), SQLITE_OK);
    T_EQ(sqlite3_close(from), SQLITE_OK);
}

/* The WAL belongs to the database that is replaced. */
static void
sqlite_restore(void)
{
    static const char *const beside[] = { "-wal", "-shm" };
    char                     name[T_PATH_BYTES];
    size_t                   n;

    for (size_t i = 0; i < ARRAY_LEN(beside); i++) {
        t_path(name, "%s%s", path, beside[i]);
        T_TRUE(!t_file_exists(name) || unlink(name) == 0);
    }
    char *data = t_file_read(copy, &n);
    t_file_write(path, data, n);
    free(data);
}

static const struct engine engines[] = {
    { "sqlite", sqlite_make, sqlite_dump, sqlite_restore },
};

/* ---- drawing ------------------------------------------------------------------------------- */

static il *
open_store(void)
{
    il      *h   = NULL;
    il_error err = { 0 };

    if (il_open(url, NULL, &h, &err) != IL_OK) {
        (void)fprintf(stderr, "%s\n", err.message);
        abort();
    }
    return h;
}

static void
apply(il *h, il_op *ops, size_t n, il_status expected)
{
    il_error err = { 0 };

    il_status st = il_apply(h, ops, n, &err);
    for (size_t i = 0; i < n; i++) {
        if (st != IL_OK || ops[i].status != expected) {
            (void)fprintf(stderr, "op %d: %s %s\n", (int)ops[i].type, il_status_name(ops[i].status),
                          err.message);
            abort();
        }
    }
}

/* One number of each kind; the smallest and the greatest of them. */
struct range {
    uint64_t min, max;
};

static void
widen(struct range *r, uint64_t number)
{
    r->min = MIN(r->min, number);
    r->max = MAX(r->max, number);
}

/* Names have a part of their own, so that a restored store does not know them. */
static void
draw_lease(il *h, const char *name, struct range *r)
{
    il_op op = { .type = IL_OP_ACQUIRE, .key = name, .holder = name };

    apply(h, &op, 1, IL_OK);
    widen(r, op.out.fence);
    il_op_release(&op);
    op       = (il_op){ .type = IL_OP_RELEASE, .key = name, .holder = name };
    op.fence = r->max;
    apply(h, &op, 1, IL_OK);
    il_op_release(&op);
}

static void
draw_jobs(il *h, const char *name, struct range *r)
{
    il_op push[CLAIM_JOBS];
    char  ids[CLAIM_JOBS][48];
    il_op claim = { .type = IL_OP_JOB_CLAIM, .key = name, .holder = name };

    for (unsigned i = 0; i < CLAIM_JOBS; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "%s-%u", name, i);
        push[i]           = (il_op){ .type = IL_OP_JOB_PUSH, .key = name };
        push[i].in.job.id = ids[i];
    }
    apply(h, push, CLAIM_JOBS, IL_OK);
    claim.in.job.id    = name;
    claim.in.job.limit = CLAIM_JOBS;
    apply(h, &claim, 1, IL_OK);
    CHECK(claim.out.n_jobs == CLAIM_JOBS);
    for (unsigned i = 0; i < CLAIM_JOBS; i++) {
        CHECK(i == 0 || claim.out.jobs[i].token > claim.out.jobs[i - 1].token);
        widen(r, claim.out.jobs[i].token);
        il_op_release(&push[i]);
    }
    il_op_release(&claim);
}

static void
draw_others(il *h, const char *name, struct range *r)
{
    il_op once  = { .type = IL_OP_ONCE_BEGIN, .key = name, .holder = name };
    il_op build = { .type = IL_OP_CACHE_LOOKUP, .key = name, .holder = name };

    apply(h, &once, 1, IL_OK);
    widen(r, once.out.fence);
    il_op_release(&once);
    apply(h, &build, 1, IL_LEAD);
    widen(r, build.out.fence);
    il_op_release(&build);
}

static struct range
draw(il *h, const char *who, unsigned i)
{
    struct range r = { UINT64_MAX, 0 };
    char         name[40];

    (void)snprintf(name, sizeof name, "%s-%u", who, i);
    draw_lease(h, name, &r);
    draw_jobs(h, name, &r);
    draw_others(h, name, &r);
    return r;
}

/* Until it is killed. */
static int
work(void *arg)
{
    il *h = open_store();

    for (unsigned i = 0; i < UINT32_MAX; i++) {
        uint64_t max  = draw(h, arg, i).max;
        uint64_t seen = atomic_load(&drawn->greatest);
        while (seen < max && !atomic_compare_exchange_weak(&drawn->greatest, &seen, max))
            ;
        (void)atomic_fetch_add(&drawn->n, CLAIM_JOBS + 3);
    }
    return 0;
}

static void
await_drawn(uint32_t n)
{
    int64_t until = t_real_ms() + LIMIT_MS;

    while (atomic_load(&drawn->n) < n) {
        T_LESS(t_real_ms(), until);
        (void)usleep(1000);
    }
}

/* ---- a guarded database -------------------------------------------------------------------- */

static uint64_t
take_guarded(il *h, const char *holder)
{
    il_op op = { .type = IL_OP_ACQUIRE, .key = GUARDED, .holder = holder };

    apply(h, &op, 1, IL_OK);
    uint64_t fence = op.out.fence;
    il_op_release(&op);
    return fence;
}

/* Show the fence in a transaction, as a sql step of a pipeline does. */
static il_status
write_guarded(il *h, uint64_t fence)
{
    char           base[T_PATH_BYTES];
    il_guard      *c   = NULL;
    il_guard_tx   *tx  = NULL;
    il_error       err = { 0 };
    il_guard_fence f   = { .h = h, .key = GUARDED, .fence = fence };

    t_path(base, "sqlite:%s/guarded.db", dir);
    T_EQ(t_guard_open(base, LIMIT_MS, &c, &err), IL_OK);
    il_status st = t_guard_begin(c, &f, false, &tx, &err);
    if (st == IL_OK) {
        T_EQ(t_guard_exec(tx, "CREATE TABLE IF NOT EXISTS t (x TEXT)", NULL, 0, NULL, NULL, NULL,
                          &err),
             IL_OK);
        st = il_guard_commit(tx, &err);
    }
    il_guard_close(c);
    return st;
}

/* ---- the test ------------------------------------------------------------------------------ */

static void
restore_under_load(const struct engine *e)
{
    static char   names[N_WORKERS][8] = { "a", "b", "c" };
    struct t_proc workers[N_WORKERS];

    e->make();
    il_close(open_store());
    for (unsigned i = 0; i < N_WORKERS; i++)
        t_proc_fork(&workers[i], work, names[i]);
    await_drawn(N_BEFORE);
    e->dump();
    await_drawn(atomic_load(&drawn->n) + N_AFTER);
    for (unsigned i = 0; i < N_WORKERS; i++) {
        t_proc_signal(&workers[i], SIGKILL);
        int status = t_proc_exit(&workers[i], LIMIT_MS);
        if (status != 128 + SIGKILL)
            T_FAIL("a worker ended with %d: %s", status, workers[i].text);
        t_proc_release(&workers[i]);
    }
    il      *h   = open_store();
    uint64_t old = take_guarded(h, "old");
    T_EQ(write_guarded(h, old), IL_OK);
    il_close(h);

    e->restore();
    h                   = open_store();
    uint64_t     before = MAX(old, atomic_load(&drawn->greatest));
    struct range r      = draw(h, "new", 0);
    print_message("# %u numbers, up to %llu; after the restore from %llu\n", atomic_load(&drawn->n),
                  (unsigned long long)before, (unsigned long long)r.min);
    T_LESS(before, r.min);
    uint64_t new = take_guarded(h, "new"); /* the backup knows of no holder */
    T_EQ(write_guarded(h, new), IL_OK);
    T_EQ(write_guarded(h, old), IL_STALE);
    T_EQ(write_guarded(h, new), IL_OK);
    il_close(h);
}

U_TEST(numbers_grow_over_a_restore)
{
    const char *name = getenv("IL_TEST_STORE");

    t_tmp_make(dir);
    drawn = mmap(NULL, sizeof *drawn, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    T_TRUE(drawn != MAP_FAILED);
    bool found = false;
    for (size_t i = 0; i < ARRAY_LEN(engines); i++) {
        if (name != NULL && strcmp(name, engines[i].name) != 0)
            continue;
        atomic_store(&drawn->n, 0);
        atomic_store(&drawn->greatest, 0);
        restore_under_load(&engines[i]);
        found = true;
    }
    T_TRUE(found);
    T_EQ(munmap(drawn, sizeof *drawn), 0);
    t_tmp_remove(dir);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { U_ROW(numbers_grow_over_a_restore) };

    return cmocka_run_group_tests_name("restore", tests, NULL, NULL);
}
