/*
 * metrics.c: the counters of a handle in the text format of Prometheus.
 */
#include <inttypes.h>
#include <stdio.h>

#include <interlock.h>

static void
print_metric(void *cookie, const char *name, const char *help, uint64_t value)
{
    fprintf(cookie, "# HELP %s %s\n# TYPE %s counter\n%s %" PRIu64 "\n", name, help, name, name,
            value);
}

int
main(int argc, char **argv)
{
    il       *store = NULL;
    il_lease *lease = NULL;
    il_error  err   = { .status = IL_OK };

    if (il_open(argc > 1 ? argv[1] : "sqlite:locks.db", NULL, &store, &err) != IL_OK ||
        il_acquire(store, "report", NULL, &lease, &err) != IL_OK) {
        fprintf(stderr, "%s\n", err.message);
        il_close(store);
        return il_status_exit(err.status);
    }
    il_metrics(store, print_metric, stdout);
    il_lease_release(lease, NULL);
    il_lease_free(lease);
    il_close(store);
    return 0;
}
