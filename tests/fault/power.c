/*
 * power.c: the power goes at the n-th sync, n = 1, 2, ... until all is done, before the sync or right after it. What was
 * acknowledged by then must be in the store that is found afterwards (G9).
 *
 * A child takes and gives back keys one at a time, and says each time that it was told OK; two are held at any time. It closes
 * the store now and then, so that checkpoints are cut short, too.
 */
#include <inttypes.h>
#include <unistd.h>

#include "fault/disk.h"
#include "fault/whole.h"
#include "harness/proc.h"
#include "harness/tmp.h"
#include "harness/unit.h"

#define N_KEYS 36
#define N_PER_OPEN 12 /* more than 40 frames: a close empties the WAL */
#define N_CUTS_MAX 1000
#define LOST 3 /* exit statuses of the judge */
#define DAMAGED 4

/* What was acknowledged. The op after the last line may have happened or not. */
struct told {
    uint64_t fence[N_KEYS]; /* 0 = no grant was acknowledged */
    bool     released[N_KEYS];
    unsigned n_acquired;
};

struct world {
    char            dir[T_PATH_BYTES];
    char            image[T_PATH_BYTES];
    char            url[T_PATH_BYTES];
    struct disk_cut cut;
    struct told     told;
};

static void
names(unsigned i, char key[16], char holder[16])
{
    (void)snprintf(key, 16, "key:%u", i);
    (void)snprintf(holder, 16, "holder-%u", i);
}

/* One op, and a line about it once it was acknowledged. */
static uint64_t
apply(il *h, il_op_type type, unsigned i, uint64_t fence)
{
    char  key[16];
    char  holder[16];
    il_op op = { .type = type, .key = key, .holder = holder, .fence = fence };

    names(i, key, holder);
    if (type == IL_OP_ACQUIRE)
        op.in.lock.ttl_ms = IL_TTL_MS_MAX;
    CHECK(il_apply(h, &op, 1, NULL) == IL_OK && op.status == IL_OK);
    if (type == IL_OP_ACQUIRE)
        fence = op.out.fence;
    il_op_release(&op);
    char line[64];
    int  n = snprintf(line, sizeof line, "%s %u %" PRIu64 "\n", il_op_name(type), i, fence);
    CHECK(write(STDOUT_FILENO, line, (size_t)n) == n);
    return fence;
}

static int
work(void *arg)
{
    struct world *w = arg;
    uint64_t      fences[N_KEYS];
    il           *h = NULL;

    disk_install(w->image, &w->cut);
    for (unsigned i = 0; i < N_KEYS; i++) {
        if (i % N_PER_OPEN == 0) {
            il_close(h);
            CHECK(il_open(w->url, NULL, &h, NULL) == IL_OK);
        }
        fences[i] = apply(h, IL_OP_ACQUIRE, i, 0);
        if (i >= 2)
            IGNORE(apply(h, IL_OP_RELEASE, i - 2, fences[i - 2]));
    }
    il_close(h);
    return 0;
}

static struct told
read_told(char *text)
{
    struct told t = { 0 };

    for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        char     what[16];
        unsigned i;
        uint64_t fence;
        T_EQ(sscanf(line, "%15s %u %" SCNu64, what, &i, &fence), 3);
        T_LESS(i, N_KEYS);
        if (strcmp(what, "acquire") == 0) {
            t.fence[i] = fence;
            t.n_acquired++;
        } else {
            t.released[i] = true;
        }
    }
    return t;
}

/* In a process of its own (so no T_…), for a process has one disk: is everything there that was told? Else says what is not. */
static int
judge(void *arg)
{
    struct world      *w    = arg;
    const struct told *told = &w->told;
    char               path[T_PATH_BYTES];
    char               key[16];
    char               holder[16];
    il                *h        = NULL;
    il_lease          *l        = NULL;
    il_error           err      = { 0 };
    uint64_t           greatest = 0;
    int                n_lost   = 0;

    t_path(path, "%s/x.db", w->image);
    t_path(w->url, "sqlite:%s", path);
    if ((t_file_exists(path) && !db_is_whole(path)) || il_open(w->url, NULL, &h, &err) != IL_OK) {
        (void)printf("it is damaged: %s\n", err.message);
        return DAMAGED;
    }
    for (unsigned i = 0; i < N_KEYS; i++) {
        names(i, key, holder);
        greatest = MAX(greatest, told->fence[i]);
        /* The op under way: the release of the oldest that is held. */
        bool uncertain = told->n_acquired > 2 && i == told->n_acquired - 3 && !told->released[i];
        if (told->fence[i] == 0 || uncertain)
            continue;
        il_status st = il_check_fence(h, key, told->fence[i], NULL);
        if ((st == IL_OK) != told->released[i])
            continue;
        (void)printf("%s: fence %" PRIu64 " is %s, but was %s\n", key, told->fence[i],
                     il_status_name(st), told->released[i] ? "given back" : "granted");
        n_lost++;
    }
    CHECK(il_acquire(h, "next", NULL, &l, NULL) == IL_OK);
    if (il_lease_fence(l) <= greatest)
        n_lost++;
    CHECK(il_lease_release(l, NULL) == IL_OK);
    il_lease_free(l);
    il_close(h);
    return n_lost > 0 ? LOST : 0;
}

/* One cut. *ret_kept: nothing was lost. False when the work was done before the power went. */
static bool
cut_once(struct disk_cut cut, bool *ret_kept)
{
    struct world  w = { .cut = cut };
    struct t_proc p;

    t_tmp_make(w.dir);
    t_tmp_make(w.image);
    t_path(w.url, "sqlite:%s/x.db", w.dir);
    t_proc_fork(&p, work, &w);
    int status = t_proc_exit(&p, 20000);
    if (status != DISK_CUT_STATUS && status != 0)
        T_FAIL("sync %u: the worker ended with %d:\n%s", cut.at, status, p.text);
    w.told = read_told(p.text);
    t_proc_release(&p);
    t_proc_fork(&p, judge, &w);
    int verdict = t_proc_exit(&p, 20000);
    *ret_kept   = verdict == 0;
    if (verdict != 0 && (verdict != LOST || cut.loss != DISK_LIES))
        T_FAIL("the power went %s sync %u (%s, seed %" PRIu64 "): %s", cut.before ? "before" : "after",
               cut.at, cut.loss == DISK_MIXES ? "mixed" : "dropped", cut.seed, p.text);
    t_proc_release(&p);
    t_tmp_remove(w.dir);
    t_tmp_remove(w.image);
    return status == DISK_CUT_STATUS;
}

/* Every sync, before and after; the number of cuts after which nothing was missing. */
static unsigned
cut_all(enum disk_loss loss, uint64_t seed, unsigned *ret_n)
{
    unsigned n_kept = 0;
    bool     more   = true;

    *ret_n = 0;
    for (unsigned at = 1; more; at++) {
        T_LESS(at, N_CUTS_MAX);
        for (int before = 0; before < 2 && more; before++) {
            bool kept;
            more = cut_once((struct disk_cut){ loss, at, before != 0, seed * 1000 + at }, &kept);
            *ret_n += more;
            n_kept += more && kept;
        }
    }
    return n_kept;
}

U_TEST(what_was_not_synced_is_gone)
{
    unsigned n;
    unsigned n_kept = cut_all(DISK_DROPS, 0, &n);

    T_EQ(n_kept, n);
    print_message("# %u power cuts\n", n);
    T_LESS(2 * N_KEYS, n);
}

U_TEST(some_of_it_is_there)
{
    for (uint64_t seed = 1; seed <= 2; seed++) {
        unsigned n;
        unsigned n_kept = cut_all(DISK_MIXES, seed, &n);
        T_EQ(n_kept, n);
    }
}

/* Or the others would prove nothing. */
U_TEST(a_disk_that_lies_is_found_out)
{
    unsigned n;
    unsigned n_kept = cut_all(DISK_LIES, 0, &n);

    T_LESS(n_kept, n / 2);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { U_ROW(what_was_not_synced_is_gone),
                                               U_ROW(some_of_it_is_there),
                                               U_ROW(a_disk_that_lies_is_found_out) };

    return cmocka_run_group_tests_name("power", tests, NULL, NULL);
}
