/*
 * lease.c: hold a key while working, and stop when it is lost.
 *
 * The lease is renewed by a thread of the library, and a second one, the watchdog, calls on_lost. A
 * program that sleeps in poll() would rather add il_lease_fd() to it: it polls readable once the
 * lease is lost.
 */
#define _POSIX_C_SOURCE 200809L /* nanosleep() */

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include <interlock.h>

struct work {
    atomic_int stop; /* set when the lease is lost */
    int        n_steps;
};

/* On the watchdog's thread: note it and return. It must not block, and must not free the lease. */
static void
on_lost(void *cookie, il_lease *lease, const char *why)
{
    struct work *w = cookie;

    fprintf(stderr, "%s: lost: %s\n", il_lease_key(lease), why);
    atomic_store(&w->stop, 1);
}

/* The work, in steps of 20 ms. IL_LOST as soon as the lease is. */
static il_status
do_work(const struct work *w, const il_lease *lease)
{
    const struct timespec step = { .tv_nsec = 20000000 };

    for (int i = 0; i < w->n_steps; i++) {
        if (atomic_load(&w->stop))
            return IL_LOST;
        nanosleep(&step, NULL);
    }
    printf("done, %lld ms before the lease would have run out\n",
           (long long)il_lease_remaining_ms(lease));
    return IL_OK;
}

/* Take the key and work. With `broken`, an operator takes it away at the start. */
static il_status
run(il *store, int broken, il_error *err)
{
    struct work     w     = { .n_steps = broken ? 1000 : 5 };
    il_acquire_opts opts  = IL_ACQUIRE_OPTS_INIT;
    il_lease       *lease = NULL;

    opts.ttl_ms  = 10000;         /* a dead holder frees the key after 10 s */
    opts.stop_ms = 1000;          /* this program needs up to 1 s to stop its work */
    opts.meta    = "example";     /* shown by `interlock why` */
    opts.place   = "lease.c:run"; /* named when the lock order is wrong */
    opts.on_lost = on_lost;
    opts.cookie  = &w;
    il_status st = il_acquire(store, "import:customers", &opts, &lease, err);
    if (st != IL_OK)
        return st;

    if (broken)
        st = il_break(store, "import:customers", il_lease_fence(lease), "it hangs", 0, err);
    if (st == IL_OK)
        st = do_work(&w, lease);
    /* After a break the key stays closed until its holder lets go: here. */
    il_lease_release(lease, NULL);
    il_lease_free(lease);
    return st;
}

int
main(int argc, char **argv)
{
    il      *store = NULL;
    il_error err   = { .status = IL_OK };

    if (il_open(argc > 1 ? argv[1] : "sqlite:locks.db", NULL, &store, &err) != IL_OK) {
        fprintf(stderr, "%s\n", err.message);
        return il_status_exit(err.status);
    }
    il_status undisturbed = run(store, 0, &err);
    il_status broken      = run(store, 1, &err);
    printf("undisturbed: %s, broken: %s\n", il_status_name(undisturbed), il_status_name(broken));
    il_close(store);
    return undisturbed == IL_OK && broken == IL_LOST ? 0 : 1;
}
