/*
 * power_locks.c: a child acquires and releases keys one at a time, and reports each OK it gets; two
 * are held at any time. It closes the store now and then, so that checkpoints are interrupted, too.
 */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "fault/power.h"

#define N_KEYS 36
#define N_PER_OPEN 12 /* more than 40 frames: a close empties the WAL */

/* What was acknowledged. The op after the last line may have happened or not. */
struct told {
    uint64_t fence[N_KEYS]; /* 0 = no grant was acknowledged */
    bool     released[N_KEYS];
    unsigned n_acquired;
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

int
power_lock_work(void *arg)
{
    struct power *w = arg;
    uint64_t      fences[N_KEYS];
    il           *h = NULL;

    disk_install(w->image, &w->plan);
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
read_told(const char *text)
{
    struct told t = { 0 };

    for (const char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        char     what[16];
        unsigned i;
        uint64_t fence;
        CHECK(sscanf(line, "%15s %u %" SCNu64, what, &i, &fence) == 3 && i < N_KEYS);
        if (strcmp(what, "acquire") == 0) {
            t.fence[i] = fence;
            t.n_acquired++;
        } else {
            t.released[i] = true;
        }
    }
    return t;
}

int
power_lock_judge(void *arg)
{
    struct power *w    = arg;
    struct told   told = read_told(w->said);
    il           *h    = power_open_image(w);
    il_lease     *l    = NULL;
    char          key[16];
    char          holder[16];
    uint64_t      greatest = 0;
    int           n_lost   = 0;

    if (h == NULL)
        return POWER_DAMAGED;
    for (unsigned i = 0; i < N_KEYS; i++) {
        names(i, key, holder);
        greatest = MAX(greatest, told.fence[i]);
        /* The op under way: the release of the oldest that is held. */
        bool uncertain = told.n_acquired > 2 && i == told.n_acquired - 3 && !told.released[i];
        if (told.fence[i] == 0 || uncertain)
            continue;
        il_status st = il_check_fence(h, key, told.fence[i], NULL);
        if ((st == IL_OK) != told.released[i])
            continue;
        (void)printf("%s: fence %" PRIu64 " is %s, but was %s\n", key, told.fence[i],
                     il_status_name(st), told.released[i] ? "given back" : "granted");
        n_lost++;
    }
    CHECK(il_acquire(h, "next", NULL, &l, NULL) == IL_OK);
    if (il_lease_fence(l) <= greatest)
        n_lost++;
    CHECK(il_lease_release(l, NULL) == IL_OK);
    il_lease_free(l);
    il_close(h);
    return n_lost > 0 ? POWER_LOST : 0;
}
