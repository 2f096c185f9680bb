/*
 * cache.c: a value that is expensive to make is made by one process at a time; the others wait for
 * it, or use the old one.
 */
#include <stdio.h>
#include <string.h>

#include <interlock.h>

static int n_builds;

/* What is expensive. 0, or -1 when the source does not answer. */
static int
build(char *value, size_t value_bytes, int works)
{
    if (!works)
        return -1;
    snprintf(value, value_bytes, "figures, edition %d", ++n_builds);
    return 0;
}

/* The value of `key` into `value`. Its status: HIT, STALE_HIT, or LEAD when it was built here. */
static il_status
get(il *store, const char *key, int works, char *value, size_t value_bytes)
{
    il_cache_opts opts = IL_CACHE_OPTS_INIT;
    il_build     *lead = NULL;
    il_op         op   = { .type = IL_OP_NONE };
    il_status     st;

    opts.wait_ms = 10000; /* for another caller's build */
    st           = il_cache_lookup(store, key, &opts, &lead, &op, NULL);
    if (st == IL_HIT || st == IL_STALE_HIT) {
        snprintf(value, value_bytes, "%s", (const char *)op.out.value);
    } else if (st == IL_LEAD && build(value, value_bytes, works) == 0) {
        /* Fresh for a minute from when the build began, usable for an hour after that. */
        if (il_build_fill(lead, value, strlen(value), 60000, 3600000, 0, 0, NULL) == IL_STALE)
            printf("dropped while it was built: not stored\n");
    } else if (st == IL_LEAD) {
        /* It failed: let the next one try, and use the old value if there is one. */
        il_build_abandon(lead, NULL);
        st = op.out.value != NULL ? IL_STALE_HIT : IL_NOT_FOUND;
        if (op.out.value != NULL)
            snprintf(value, value_bytes, "%s", (const char *)op.out.value);
    }
    il_op_release(&op);
    il_build_free(lead);
    return st;
}

int
main(int argc, char **argv)
{
    il      *store = NULL;
    il_error err   = { .status = IL_OK };
    char     built[64], hit[64], stale[64];

    if (il_open(argc > 1 ? argv[1] : "sqlite:locks.db", NULL, &store, &err) != IL_OK) {
        fprintf(stderr, "%s\n", err.message);
        return il_status_exit(err.status);
    }
    il_status a = get(store, "usage:2026-01-31", 1, built, sizeof built);
    il_status b = get(store, "usage:2026-01-31", 1, hit, sizeof hit);
    /* Something has changed: the value counts as old from now on, but may be used until there is a
     * new one. */
    il_status dropped = il_cache_drop(store, "usage:2026-01-31", IL_DROP_STALE, &err);
    il_status c       = get(store, "usage:2026-01-31", 0, stale, sizeof stale);
    printf("%s: %s\n%s: %s\n%s: %s\n", il_status_name(a), built, il_status_name(b), hit,
           il_status_name(c), stale);
    il_close(store);
    return a == IL_LEAD && b == IL_HIT && dropped == IL_OK && c == IL_STALE_HIT && n_builds == 1 &&
                   strcmp(built, hit) == 0 && strcmp(built, stale) == 0
               ? 0
               : 1;
}
