/*
 * power.c: the power fails at each sync of some work, before the sync or right after it. Everything
 * acknowledged by then must be in the store afterwards. The work is done once, and leaves what each
 * cut would leave (disk.h). The work itself is in power_locks.c and power_jobs.c.
 */
#include "fault/power.h"

#include <inttypes.h>

#include "fault/integrity.h"
#include "harness/proc.h"
#include "harness/unit.h"

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

/* Judge the i-th cut, with what was said before it. True: nothing was lost. */
static bool
is_kept(const struct kind *kind, const struct power *w, unsigned i, const char *said)
{
    struct power  left = *w;
    struct t_proc p;

    disk_cut_dir(w->image, i, left.image);
    left.said = said;
    t_proc_fork(&p, kind->judge, &left);
    int verdict = t_proc_exit(&p, 20000);
    if (verdict != 0 && (verdict != POWER_LOST || w->plan.loss != DISK_LIES))
        T_FAIL("the power went %s sync %u (%s, seed %" PRIu64 "): %s",
               i % 2 == 0 ? "before" : "after", i / 2 + 1,
               w->plan.loss == DISK_MIXES ? "mixed" : "dropped", w->plan.seed, p.text);
    t_proc_release(&p);
    t_tmp_remove(left.image);
    return verdict == 0;
}

/* Every sync, before and after; the number of cuts after which nothing was missing. */
static unsigned
cut_all(const struct kind *kind, struct disk_plan plan, unsigned *ret_n)
{
    struct power  w = { .plan = plan };
    struct t_proc worker;
    char          said[T_PROC_OUT_BYTES] = "";
    size_t        n_said                 = 0;
    unsigned      n                      = 0;
    unsigned      n_kept                 = 0;

    t_tmp_make(w.dir);
    t_tmp_make(w.image);
    t_path(w.url, "sqlite:%s/x.db", w.dir);
    t_proc_fork(&worker, kind->work, &w);
    int status = t_proc_exit(&worker, 20000);
    if (status != 0)
        T_FAIL("the worker ended with %d:\n%s", status, worker.text);
    for (const char *line = worker.text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        size_t n_line = (size_t)(end - line) + 1;
        if (strncmp(line, DISK_CUT_LINE "\n", n_line) == 0) {
            n_kept += is_kept(kind, &w, n++, said);
        } else {
            memcpy(said + n_said, line, n_line);
            n_said += n_line;
            said[n_said] = '\0';
        }
    }
    t_proc_release(&worker);
    t_tmp_remove(w.dir);
    t_tmp_remove(w.image);
    *ret_n = n;
    return n_kept;
}

static void
keeps_all(const struct kind *kind, enum disk_loss loss, uint64_t seed)
{
    unsigned n;
    unsigned n_kept = cut_all(kind, (struct disk_plan){ loss, seed }, &n);

    T_EQ(n_kept, n);
    print_message("# %u power cuts\n", n);
    T_LESS(60, n);
}

static void
is_found_out(const struct kind *kind)
{
    unsigned n;
    unsigned n_kept = cut_all(kind, (struct disk_plan){ DISK_LIES, 0 }, &n);

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
