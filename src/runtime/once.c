/*
 * once.c: il_once_begin() and the claim it returns. The rules are in core/once.md.
 *
 * A claim is renewed by repeating its begin with the same inputs.
 */
#include <inttypes.h>

#include "base/clock.h"
#include "base/error.h"
#include "core/limits.h"
#include "runtime/handle.h"

struct il_once {
    il_lease      lease; /* its holder is the attempt */
    int64_t       keep_ms;
    char         *meta;
    unsigned char fingerprint[IL_FINGERPRINT_BYTES_MAX];
    size_t        fingerprint_bytes;
};

static il_op
begin_op(il_lease *lease)
{
    const il_once *once = container_of(lease, il_once, lease);
    il_op          op   = { .type = IL_OP_ONCE_BEGIN, .key = lease->key, .holder = lease->holder };

    op.in.once = (il_once_in){
        .fingerprint       = once->fingerprint,
        .fingerprint_bytes = once->fingerprint_bytes,
        .lease_ms          = lease->ttl_ms,
        .keep_ms           = once->keep_ms,
        .meta              = once->meta,
    };
    return op;
}

/*
 * Another token means that the claim had expired and this begin created a new one, under which no
 * one works. It is left to expire: a later takeover then learns of the earlier attempt, which
 * abandoning the claim would hide.
 */
static bool
once_extended(const il_lease *lease, const il_op *op)
{
    return op->status == IL_OK && op->out.fence == lease->fence;
}

static const struct il__lease_kind once_kind = {
    .renewal   = begin_op,
    .extended  = once_extended,
    .lost_text = "the claim of the idempotency key has expired",
};

void
il_once_free(il_once *once)
{
    if (once == NULL)
        return;
    il__lease_release(&once->lease);
    il__free(once->meta);
    il__free(once);
}
DEFINE_AUTO(il_once, il_once_free)

static il_once *
once_new(il *h, const char *key, const char *attempt, const il_once_opts *opts)
{
    AUTO(il_once_freep) il_once *once = il__calloc(1, sizeof *once);

    if (once == NULL || !il__lease_init(&once->lease, h, &once_kind, key, attempt,
                                        opts->lease_ms != 0 ? opts->lease_ms : IL__ONCE_TTL_MS))
        return NULL;
    once->keep_ms           = opts->keep_ms;
    once->fingerprint_bytes = opts->fingerprint_bytes;
    if (opts->fingerprint_bytes > 0)
        memcpy(once->fingerprint, opts->fingerprint, opts->fingerprint_bytes);
    if (opts->meta == NULL)
        return TAKE(once);
    once->meta = il__strdup(opts->meta);
    return once->meta != NULL ? TAKE(once) : NULL;
}

/* Repeat the begin while another attempt runs and there is time to wait for its answer. */
static il_status
begin_loop(il *h, il_op *op, int64_t until_ns, int64_t *ret_sent_ns, il_error *reterr)
{
    for (;;) {
        *ret_sent_ns = il__clock_boot_ns();
        il_status st = il__apply_sure(h, op, reterr);
        if (st != IL_OK)
            return st; /* if it was executed, the claim expires */
        int64_t left_ms = il__wait_left_ms(until_ns);
        if (op->status != IL_BUSY || left_ms == 0)
            return il__error_of_op(op, reterr);
        st = il_wait(h, op, left_ms);
        if (st != IL_OK && st != IL_TIMEOUT)
            return il__gave_up(op->key, st, reterr);
    }
}

static il_status
check_once_opts(const char *key, const il_once_opts *opts, il_error *reterr)
{
    if (opts->struct_size != sizeof *opts)
        return il__error_set(reterr, IL_INVAL,
                             "il_once_opts was not initialized with IL_ONCE_OPTS_INIT");
    if (key == NULL)
        return il__error_set(reterr, IL_INVAL, "no key given");
    if (opts->fingerprint_bytes > IL_FINGERPRINT_BYTES_MAX ||
        (opts->fingerprint == NULL && opts->fingerprint_bytes > 0))
        return il__error_set(reterr, IL_INVAL,
                             "'%s': the fingerprint must have 0..%d bytes, not %zu", key,
                             IL_FINGERPRINT_BYTES_MAX, opts->fingerprint_bytes);
    return il__check_wait(opts->wait_ms, reterr);
}

il_status
il_once_begin(il *h, const char *key, const il_once_opts *opts, il_once **ret, il_op *op,
              il_error *reterr)
{
    static const il_once_opts defaults = IL_ONCE_OPTS_INIT;
    char                      attempt[37];
    int64_t                   sent_ns = 0;

    if (opts == NULL)
        opts = &defaults;
    if (op != NULL)
        *op = (il_op){ .type = IL_OP_ONCE_BEGIN };
    if (h == NULL || ret == NULL || op == NULL)
        return il__error_set(reterr, IL_INVAL, "h, ret and op must not be NULL");
    if (check_once_opts(key, opts, reterr) != IL_OK)
        return IL_INVAL;
    if (il_uuid(attempt) != IL_OK)
        return il__error_set(reterr, IL_STORE, "cannot read random bytes");
    AUTO(il_once_freep) il_once *once = once_new(h, key, attempt, opts);
    if (once == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory or descriptors for a claim");

    il_op     begin = begin_op(&once->lease);
    il_status st    = begin_loop(h, &begin, il__wait_until_ns(opts->wait_ms), &sent_ns, reterr);
    if (st == IL_OK) {
        once->lease.fence = begin.out.fence;
        st                = il__lease_keep(&once->lease, &begin, sent_ns, reterr);
        if (st != IL_OK)
            (void)il_once_abandon(once, NULL); /* else it runs out */
    }
    il__op_give(&begin, key, op);
    if (st == IL_OK)
        *ret = TAKE(once);
    return st;
}

/* End the claim with an op of this type; *in has its inputs, if any. */
static il_status
once_end(il_once *once, il_op_type type, const il_once_in *in, il_error *reterr)
{
    if (once == NULL)
        return il__error_set(reterr, IL_INVAL, "no claim given");
    il_op op = { .type   = type,
                 .key    = once->lease.key,
                 .holder = once->lease.holder,
                 .fence  = once->lease.fence };
    if (in != NULL)
        op.in.once = *in;
    il_status st = il__lease_end(&once->lease, &op, reterr);
    il_op_release(&op);
    return st;
}

il_status
il_once_finish(il_once *once, int32_t code, const void *response, size_t response_bytes,
               il_error *reterr)
{
    il_once_in in = { .response = response, .response_bytes = response_bytes, .code = code };

    return once_end(once, IL_OP_ONCE_FINISH, &in, reterr);
}

il_status
il_once_abandon(il_once *once, il_error *reterr)
{
    return once_end(once, IL_OP_ONCE_ABANDON, NULL, reterr);
}

const il_lease *
il_once_lease(const il_once *once)
{
    return once != NULL ? &once->lease : NULL;
}
