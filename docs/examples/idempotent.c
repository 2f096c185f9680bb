/*
 * idempotent.c: a request that may come twice has one effect, and every copy of it gets the same
 * answer.
 *
 * The client sends a key with its request, and the same key when it repeats it. The fingerprint
 * tells a repetition from another request that uses the same key by mistake.
 */
#include <stdio.h>
#include <string.h>

#include <interlock.h>

static int n_orders;

/* The effect: make an order. Returns its number. */
static int
make_order(const char *what)
{
    n_orders++;
    printf("order %d: %s\n", n_orders, what);
    return n_orders;
}

/* Handle one request: an HTTP status, and the answer in `answer`. */
static int
handle(il *store, const char *key, const char *what, char *answer, size_t answer_bytes)
{
    il_once_opts opts = IL_ONCE_OPTS_INIT;
    il_once     *once = NULL;
    il_op        op   = { .type = IL_OP_NONE };
    il_error     err  = { .status = IL_OK };
    int          code;

    opts.fingerprint       = what; /* usually a hash of method, path and body; at most 64 bytes */
    opts.fingerprint_bytes = strlen(what);
    opts.wait_ms           = 5000; /* if the first attempt is still running, wait for its answer */

    switch (il_once_begin(store, key, &opts, &once, &op, &err)) {
    /* ours to do. op.out.flags has IL_OUT_TAKEOVER if an earlier attempt died on the way */
    case IL_OK:
        snprintf(answer, answer_bytes, "order %d", make_order(what));
        code = 201;
        if (il_once_finish(once, code, answer, strlen(answer), &err) != IL_OK)
            code = 503; /* not stored: the client repeats its request */
        break;
    case IL_REPLAY: /* it was done: the same answer, byte for byte */
        snprintf(answer, answer_bytes, "%s", (const char *)op.out.value);
        code = op.out.code;
        break;
    case IL_MISMATCH: /* 422 */
    case IL_BUSY:     /* 409 */
    default:          /* 503 and kin: whether it has happened is unknown; the client repeats it */
        snprintf(answer, answer_bytes, "%s", err.message);
        code = il_status_http(err.status);
    }
    il_op_release(&op);
    il_once_free(once);
    return code;
}

int
main(int argc, char **argv)
{
    il      *store = NULL;
    il_error err   = { .status = IL_OK };
    char     first[600], again[600], other[600];

    if (il_open(argc > 1 ? argv[1] : "sqlite:locks.db", NULL, &store, &err) != IL_OK) {
        fprintf(stderr, "%s\n", err.message);
        return il_status_exit(err.status);
    }
    int a = handle(store, "3f2b", "two chairs", first, sizeof first);
    int b = handle(store, "3f2b", "two chairs", again, sizeof again);
    int c = handle(store, "3f2b", "a table", other, sizeof other);
    printf("%d %s\n%d %s\n%d %s\n", a, first, b, again, c, other);
    il_close(store);
    return a == 201 && b == 201 && c == 422 && n_orders == 1 && strcmp(first, again) == 0 ? 0 : 1;
}
