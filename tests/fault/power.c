/*
 * power.c: the power fails at the n-th sync, n = 1, 2, ... until all work is done, before the sync
 * or right after it. Everything acknowledged by then must be in the store afterwards. The work
 * itself is in power_locks.c and power_jobs.c.
 */
#include "fault/power.h"

#include <inttypes.h>

#include "fault/whole.h"
#include "harness/proc.h"
#include "harness/unit.h"

#define N_CUTS_MAX 1000

struct kind {
    int (*work)(void *arg);
    int (*judge)(void *arg);
};

static const struct kind locks = { power_lock_work, power_lock_judge };
static const struct kind jobs  = { power_job_work, power_job_judge };

il *
power_open_image(struct power *w)
{
    char     path[T_PATH_BYTES];
    il      *h   = NULL;
    il_error err = { 0 };

    t_path(path, "%s/x.db", w->image);
    t_path(w->url, "sqlite:%s", path);
    if ((t_file_exists(path) && !db_is_whole(path)) || il_open(w->url, NULL, &h, &err) != IL_OK) {
        (void)printf("it is damaged: %s\n", err.message);
        return NULL;
    }
    return h;
}

/* One cut. *ret_kept: nothing was lost. False when the work was done before the power went. */
static bool
cut_once(const struct kind *kind, struct disk_cut cut, bool *ret_kept)
{
    struct power  w = { .cut = cut };
    struct t_proc p;

    t_tmp_make(w.dir);
    t_tmp_make(w.image);
    t_path(w.url, "sqlite:%s/x.db", w.dir);
    t_proc_fork(&p, kind->work, &w);
    int status = t_proc_exit(&p, 20000);
    if (status != DISK_CUT_STATUS && status != 0)
        T_FAIL("sync %u: the worker ended with %d:\n%s", cut.at, status, p.text);
    w.said = strdup(p.text);
    CHECK(w.said != NULL);
    t_proc_release(&p);
    t_proc_fork(&p, kind->judge, &w);
    int verdict = t_proc_exit(&p, 20000);
    *ret_kept   = verdict == 0;
    if (verdict != 0 && (verdict != POWER_LOST || cut.loss != DISK_LIES))
        T_FAIL("the power went %s sync %u (%s, seed %" PRIu64 "): %s",
               cut.before ? "before" : "after", cut.at,
               cut.loss == DISK_MIXES ? "mixed" : "dropped", cut.seed, p.text);
    t_proc_release(&p);
    free(w.said);
    t_tmp_remove(w.dir);
    t_tmp_remove(w.image);
    return status == DISK_CUT_STATUS;
}

/* Every sync, before and after; the number of cuts after which nothing was missing. */
static unsigned
cut_all(const struct kind *kind, enum disk_loss loss, uint64_t seed, unsigned *ret_n)
{
    unsigned n_kept = 0;
    bool     more   = true;

    *ret_n = 0;
    for (unsigned at = 1; more; at++) {
        T_LESS(at, N_CUTS_MAX);
        for (int before = 0; before < 2 && more; before++) {
            bool kept;
            more =
                cut_once(kind, (struct disk_cut){ loss, at, before != 0, seed * 1000 + at }, &kept);
            *ret_n += more;
            n_kept += more && kept;
        }
    }
    return n_kept;
}

static void
keeps_all(const struct kind *kind, enum disk_loss loss, uint64_t seed)
{
    unsigned n;
    unsigned n_kept = cut_all(kind, loss, seed, &n);

    T_EQ(n_kept, n);
    print_message("# %u power cuts\n", n);
    T_LESS(60, n);
}

static void
is_found_out(const struct kind *kind)
{
    unsigned n;
    unsigned n_kept = cut_all(kind, DISK_LIES, 0, &n);

    T_LESS(n_kept, n / 2);
}

U_TEST(what_was_not_synced_is_gone)
{
    keeps_all(&locks, DISK_DROPS, 0);
    keeps_all(&jobs, DISK_DROPS, 0);
}

U_TEST(some_of_it_is_there)
{
    keeps_all(&locks, DISK_MIXES, 1);
    keeps_all(&locks, DISK_MIXES, 2);
    keeps_all(&jobs, DISK_MIXES, 1);
}

/* Or the others would prove nothing. */
U_TEST(a_disk_that_lies_is_found_out)
{
    is_found_out(&locks);
    is_found_out(&jobs);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { U_ROW(what_was_not_synced_is_gone),
                                               U_ROW(some_of_it_is_there),
                                               U_ROW(a_disk_that_lies_is_found_out) };

    return cmocka_run_group_tests_name("power", tests, NULL, NULL);
}
