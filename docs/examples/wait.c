/*
 * wait.c: waiting for a key with a deadline: in one call, and step by step.
 */
#include <inttypes.h>
#include <stdio.h>

#include <interlock.h>

/* A new name for each unit of work: one that has ended is refused for a minute. */
static char first[37], second[37];

/* In one call: IL_HELD when the wait ran out; err.holder says who has it. */
static il_status
wait_in_one_call(il *store, int64_t wait_ms, il_error *err)
{
    il_acquire_opts opts  = IL_ACQUIRE_OPTS_INIT;
    il_lease       *lease = NULL;

    opts.wait_ms = wait_ms;
    il_status st = il_acquire(store, "printer", &opts, &lease, err);
    if (st == IL_OK)
        il_lease_release(lease, NULL);
    il_lease_free(lease);
    return st;
}

/* Give the key back; IL_OK also when repeated. */
static il_status
let_go(il *store, const char *holder, uint64_t fence, il_error *err)
{
    il_op     op = { .type = IL_OP_RELEASE, .key = "printer", .holder = holder, .fence = fence };
    il_status st = il_apply(store, &op, 1, err);

    if (st == IL_OK)
        st = op.status;
    il_op_release(&op);
    return st;
}

/*
 * Step by step, for a program that has something else to do meanwhile. An acquire that must wait
 * answers IL_QUEUED at once; il_wait() sleeps until it is worth repeating; the repeated acquire
 * keeps its place in the queue, and confirms the turn when it has come.
 */
static il_status
wait_step_by_step(il *store, uint64_t fence_of_first, il_error *err)
{
    il_op     ask  = { .type = IL_OP_ACQUIRE, .key = "printer", .holder = second };
    il_status st   = IL_OK;
    il_status wait = IL_OK;

    ask.in.lock.wait_ms = 10000;
    while (st == IL_OK && (wait == IL_OK || wait == IL_TIMEOUT)) {
        if (wait == IL_TIMEOUT) /* nothing has happened for 50 ms: here, the first one lets go */
            st = let_go(store, first, fence_of_first, err);
        if (st == IL_OK)
            st = il_apply(store, &ask, 1, err);
        if (st != IL_OK || ask.status != IL_QUEUED)
            break;
        printf("number %u in the queue\n", ask.out.position);
        wait = il_wait(store, &ask, 50);
    }
    if (st == IL_OK)
        st = ask.status;
    printf("%s with fence %" PRIu64 "\n", il_status_name(st), ask.out.fence);
    if (st == IL_OK)
        st = let_go(store, second, ask.out.fence, err);
    il_op_release(&ask);
    return st;
}

int
main(int argc, char **argv)
{
    il      *store = NULL;
    il_op    held  = { .type = IL_OP_ACQUIRE, .key = "printer", .holder = first };
    il_error err   = { .status = IL_OK };

    if (il_uuid(first) != IL_OK || il_uuid(second) != IL_OK)
        return 1;
    if (il_open(argc > 1 ? argv[1] : "sqlite:locks.db", NULL, &store, &err) != IL_OK ||
        il_apply(store, &held, 1, &err) != IL_OK) {
        fprintf(stderr, "%s\n", err.message);
        il_close(store);
        return il_status_exit(err.status);
    }
    il_status in_vain = wait_in_one_call(store, 200, &err);
    printf("200 ms in vain: %s, %s\n", il_status_name(in_vain), err.message);
    il_status served = wait_step_by_step(store, held.out.fence, &err);
    il_op_release(&held);
    il_close(store);
    return in_vain == IL_HELD && served == IL_OK ? 0 : 1;
}
