/*
 * once.c: the shortest useful program: do something only if nobody else is doing it.
 */
#include <stdio.h>

#include <interlock.h>

int
main(int argc, char **argv)
{
    const char *url   = argc > 1 ? argv[1] : "sqlite:locks.db";
    il         *store = NULL;
    il_lease   *lease = NULL;
    il_error    err;

    if (il_open(url, NULL, &store, &err) != IL_OK ||
        il_acquire(store, "nightly-report", NULL, &lease, &err) != IL_OK) {
        fprintf(stderr, "%s\n", err.message); /* such as: 'nightly-report' is held by ... */
        il_close(store);
        return il_status_exit(err.status); /* 75 when it is held */
    }
    printf("writing the report; my fence is %llu\n", (unsigned long long)il_lease_fence(lease));
    il_lease_release(lease, NULL);
    il_lease_free(lease);
    il_close(store);
    return 0;
}
