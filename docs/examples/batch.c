/*
 * batch.c: many operations in one call.
 *
 * Each op has its own answer; one that is refused does not disturb the others. The store is
 * written, and on SQLite synced to the disk, once for all of them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <interlock.h>

#define N 100

static char names[N][32];

/* Acquire every name as `holder`. How many were granted, or -1: then nothing is known about any of
 * them. */
static int
acquire_all(il *store, const char *holder, il_op ops[N], il_error *err)
{
    int n_granted = 0;

    memset(ops, 0, N * sizeof *ops);
    for (int i = 0; i < N; i++) {
        ops[i].type           = IL_OP_ACQUIRE;
        ops[i].key            = names[i];
        ops[i].holder         = holder;
        ops[i].in.lock.ttl_ms = 5000;
    }
    if (il_apply(store, ops, N, err) != IL_OK)
        return -1; /* repeating the same ops is safe */
    for (int i = 0; i < N; i++) {
        if (ops[i].status == IL_OK)
            n_granted++;
        else if (ops[i].status == IL_HELD)
            printf("%s is held by %s\n", ops[i].key, ops[i].out.items[0].holder);
    }
    return n_granted;
}

/* Give back what was granted. An op can be applied again with other inputs. */
static il_status
release_all(il *store, il_op ops[N], il_error *err)
{
    for (int i = 0; i < N; i++) {
        uint64_t fence = ops[i].status == IL_OK ? ops[i].out.fence : 0;
        il_op_release(&ops[i]);
        /* One that was not granted has no fence and is answered IL_INVAL; the others are not
         * disturbed. */
        ops[i].type  = IL_OP_RELEASE;
        ops[i].fence = fence;
    }
    il_status st = il_apply(store, ops, N, err);
    for (int i = 0; i < N; i++)
        il_op_release(&ops[i]);
    return st;
}

int
main(int argc, char **argv)
{
    static il_op ops[N];
    char         holder[37]; /* a new name for each attempt: an old one is refused for a minute */
    il          *store = NULL;
    il_lease    *other = NULL;
    il_error     err   = { .status = IL_OK };

    for (int i = 0; i < N; i++)
        snprintf(names[i], sizeof names[i], "event:%d", i);
    if (il_uuid(holder) != IL_OK)
        return 1;
    if (il_open(argc > 1 ? argv[1] : "sqlite:locks.db", NULL, &store, &err) != IL_OK ||
        il_acquire(store, "event:42", NULL, &other, &err) != IL_OK) {
        fprintf(stderr, "%s\n", err.message);
        il_close(store);
        return il_status_exit(err.status);
    }
    int       n_granted = acquire_all(store, holder, ops, &err);
    il_status released  = release_all(store, ops, &err);
    printf("%d of %d granted in one call\n", n_granted, N);

    il_lease_release(other, NULL);
    il_lease_free(other);
    il_close(store);
    return n_granted == N - 1 && released == IL_OK ? 0 : 1;
}
