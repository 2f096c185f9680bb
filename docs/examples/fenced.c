/*
 * fenced.c: a write that a holder without a lease cannot do.
 *
 * A holder can lose its lease without noticing: it was paused between two instructions. So the
 * resource itself remembers the greatest fence that it was shown, and refuses a smaller one.
 * il_check_fence() is the early look: it saves work that would be refused, but between the look and
 * the write time can pass, so it does not replace the comparison.
 */
#include <inttypes.h>
#include <stdio.h>

#include <interlock.h>

/* What is protected: a row, a file, a device. The comparison and the write must be one atomic step
 * of it. */
struct resource {
    uint64_t fence; /* the greatest one that was shown */
    int      value;
};

static int
resource_write(struct resource *r, uint64_t fence, int value)
{
    if (fence < r->fence)
        return 0;
    r->fence = fence;
    r->value = value;
    return 1;
}

/* Acquire without renewals: this holder sleeps through its lease. */
static il_status
acquire(il *store, il_lease **ret, il_error *err)
{
    il_acquire_opts opts = IL_ACQUIRE_OPTS_INIT;

    opts.flags = IL_NO_RENEW;
    return il_acquire(store, "account:7", &opts, ret, err);
}

static int
demonstrate(il *store, il_error *err)
{
    struct resource balance = { 0 };
    il_lease       *old     = NULL;
    il_lease       *next    = NULL;

    if (acquire(store, &old, err) != IL_OK)
        return 0;
    uint64_t fence = il_lease_fence(old);
    int      ok    = resource_write(&balance, fence, 100);

    /* The holder stands still, an operator opens the key at once, and somebody else goes on. */
    ok = ok && il_break(store, "account:7", fence, "host is gone", IL_BREAK_NOW, err) == IL_OK &&
         acquire(store, &next, err) == IL_OK && resource_write(&balance, il_lease_fence(next), 150);

    /* The old holder wakes up. */
    il_status check = il_check_fence(store, "account:7", fence, err);
    int       wrote = resource_write(&balance, fence, 90);
    printf("the old holder's fence is %s, its write was %s, the balance is %d\n",
           il_status_name(check), wrote ? "accepted" : "refused", balance.value);
    ok = ok && check == IL_STALE && err->fence == il_lease_fence(next) && !wrote &&
         balance.value == 150;

    if (next != NULL)
        il_lease_release(next, NULL);
    il_lease_free(next);
    il_lease_free(old);
    return ok;
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
    int ok = demonstrate(store, &err);
    il_close(store);
    return ok ? 0 : 1;
}
