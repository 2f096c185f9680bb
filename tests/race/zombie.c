/*
 * zombie.c: holders that are stopped for longer than their lease, wake up and write what they had
 * computed. If the fence is checked with the store first, the write is refused and no update is
 * lost; without that check updates are lost, otherwise this would prove nothing.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#include "race/race.h"

#define ZOMBIES 12 /* at once, each with a key and a register of its own */
#define LIMIT_MS 30000

struct pair {
    char          key[32];
    char          file[T_PATH_BYTES];
    struct t_proc zombie;
    struct t_proc next;
    uint64_t      fence;
};

/* It has the key, and has read what it will write to: from here on it can be stopped. */
static uint64_t
await_held(struct t_proc *p)
{
    char line[T_PROC_LINE_BYTES];

    T_LINE(p, "held ", LIMIT_MS, line);
    T_LINE(p, "read 0", LIMIT_MS, NULL);
    return strtoull(line + 5, NULL, 10);
}

static long
number_in(const char *path)
{
    char *text = t_file_read(path, NULL);
    long  n    = strtol(text, NULL, 10);

    free(text);
    return n;
}

/* The zombie reads and is stopped; the next holder reads, adds one and gives the key back. */
static void
pass_by(struct race *r, struct pair *pairs)
{
    for (unsigned i = 0; i < ZOMBIES; i++) {
        struct pair *p = &pairs[i];
        (void)snprintf(p->key, sizeof p->key, "zombie:%u", i);
        t_path(p->file, "%s/register-%u", r->dir, i);
        t_file_write(p->file, "0\n", 2);
        RACE_WORKER(r, &p->zombie, "zombie", r->url, p->key, p->file);
        p->fence = await_held(&p->zombie);
        t_proc_stop_outside(&p->zombie, r->url, LIMIT_MS);
        RACE_WORKER(r, &p->next, "zombie", r->url, p->key, p->file);
    }
    for (unsigned i = 0; i < ZOMBIES; i++) {
        struct pair *p = &pairs[i];
        T_LESS(p->fence, await_held(&p->next));
        t_proc_say(&p->next, "fenced");
        T_LINE(&p->next, "written 1", LIMIT_MS, NULL);
        T_LINE(&p->next, "release OK", LIMIT_MS, NULL);
        T_EQ(t_proc_exit(&p->next, LIMIT_MS), 0);
        t_proc_release(&p->next);
    }
}

/* The zombies wake up. Returns the number of updates that are lost. */
static long
wake_up(struct pair *pairs, const char *how, bool refused)
{
    long n_lost = 0;

    for (unsigned i = 0; i < ZOMBIES; i++) {
        struct pair *p         = &pairs[i];
        long         n_written = 1;
        char         line[T_PROC_LINE_BYTES];
        t_proc_signal(&p->zombie, SIGCONT);
        t_proc_say(&p->zombie, how);
        if (refused) {
            T_LINE(&p->zombie, "refused FENCE_STALE", LIMIT_MS, NULL);
        } else {
            T_LINE(&p->zombie, "written ", LIMIT_MS, line);
            n_written++;
        }
        /* Nor can it renew or release what is no longer its own. */
        T_LINE(&p->zombie, "renew LEASE_LOST", LIMIT_MS, NULL);
        T_LINE(&p->zombie, "release LEASE_LOST", LIMIT_MS, NULL);
        T_EQ(t_proc_exit(&p->zombie, LIMIT_MS), 0);
        t_proc_release(&p->zombie);
        n_lost += n_written - number_in(p->file);
    }
    return n_lost;
}

static long
play(const char *how, bool refused)
{
    struct race  r;
    struct pair *pairs = calloc(ZOMBIES, sizeof *pairs);

    race_init(&r);
    pass_by(&r, pairs);
    long n_lost = wake_up(pairs, how, refused);
    free(pairs);
    race_release(&r);
    return n_lost;
}

U_TEST(with_the_fence_nothing_is_lost)
{
    T_EQ(play("fenced", true), 0);
}

U_TEST(without_it_updates_are_lost)
{
    long n_lost = play("unfenced", false);

    print_message("# without the fence, %ld of %d updates were lost\n", n_lost, 2 * ZOMBIES);
    T_EQ(n_lost, ZOMBIES);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(with_the_fence_nothing_is_lost),
        U_ROW(without_it_updates_are_lost),
    };

    return cmocka_run_group_tests_name("zombie", tests, NULL, NULL);
}
