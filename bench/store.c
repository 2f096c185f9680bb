/*
 * store.c: wrappers around the public library calls that die on any failure.
 */
#include "bench.h"

void
must(il_status st, const char *what, const il_error *err)
{
    if (st != IL_OK)
        die("%s: %s: %s", what, il_status_name(st), err->message);
}

il *
store_open(const char *url, const il_open_opts *opts)
{
    il_error err = { 0 };
    il      *h   = NULL;

    must(il_open(url, opts, &h, &err), url, &err);
    return h;
}

struct kept
store_open_kept(const char *url)
{
    struct kept s   = { .h = store_open(url, NULL) };
    il_error    err = { 0 };

    must(il_acquire(s.h, "bench-kept", NULL, &s.lease, &err), "il_acquire", &err);
    return s;
}

void
store_close_kept(struct kept *s)
{
    il_error err = { 0 };

    must(il_lease_release(s->lease, &err), "il_lease_release", &err);
    il_lease_free(s->lease);
    il_close(s->h);
}

void
store_apply(il *h, il_op *ops, size_t n, uint64_t *fences, il_error *err)
{
    must(il_apply(h, ops, n, err), "il_apply", err);
    for (size_t i = 0; i < n; i++) {
        if (ops[i].status != IL_OK)
            die("%s of %s by %s: %s", il_op_name(ops[i].type), ops[i].key, ops[i].holder,
                il_status_name(ops[i].status));
        if (fences != NULL)
            fences[i] = ops[i].out.fence;
        il_op_release(&ops[i]);
    }
}
