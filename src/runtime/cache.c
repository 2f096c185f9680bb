/*
 * cache.c: il_cache_lookup() and the build it hands to one of its callers. The rules are in
 * core/cache.md.
 *
 * A lookup reads first (CACHE_GET), so that a hit takes no store lock. Only if nobody builds a
 * missing or stale value, or if the read says that an early refresh is due, does it request the
 * right to build (CACHE_LOOKUP), with the same random number. A build is renewed by repeating that
 * lookup.
 */
#include <inttypes.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/error.h"
#include "core/limits.h"
#include "runtime/handle.h"

#define LOOKUP_WAIT_MS 30000 /* for another holder's build, by default */

struct il_build {
    il_lease lease; /* its holder is the builder */
};

/* ---- renewal --------------------------------------------------------------------------------- */

static il_op
lookup_op(il_lease *lease)
{
    il_op op = { .type   = IL_OP_CACHE_LOOKUP,
                 .tenant = lease->tenant,
                 .key    = lease->key,
                 .holder = lease->holder };

    op.in.cache.lease_ms = lease->ttl_ms;
    return op;
}

static bool
build_extended(const il_lease *lease, const il_op *op)
{
    return op->status == IL_LEAD && op->out.fence == lease->fence;
}

/* The build is void, and the renewal has begun a new one that no caller works on: abandon it. */
static void
build_refused(il_lease *lease, const il_op *op)
{
    if (op->status != IL_LEAD)
        return;
    il_op end = { .type   = IL_OP_CACHE_ABANDON,
                  .tenant = lease->tenant,
                  .key    = lease->key,
                  .holder = lease->holder,
                  .fence  = op->out.fence };
    IGNORE(il_apply(lease->h, &end, 1, NULL)); /* else its time runs out */
    il_op_release(&end);
}

static const struct il__lease_kind build_kind = {
    .renewal   = lookup_op,
    .extended  = build_extended,
    .refused   = build_refused,
    .lost_text = "the value was dropped, or the build outlived its lease",
};

void
il_build_free(il_build *build)
{
    if (build == NULL)
        return;
    il__lease_release(&build->lease);
    il__free(build);
}
DEFINE_AUTO(il_build, il_build_free)

/* ---- looking up ------------------------------------------------------------------------------ */

/* A random number other than 0. */
static uint32_t
draw_chance(void)
{
    uint32_t chance = 0;

    if (getrandom(&chance, sizeof chance, 0) != (ssize_t)sizeof chance)
        return 0; /* no early refresh */
    return MAX(chance, 1);
}

/* Would a lookup lead, given the answer of a get? */
static bool
nobody_builds(const il_op *op)
{
    if (op->status == IL_HIT)
        return (op->out.flags & IL_OUT_EARLY) != 0;
    return op->status == IL_NOT_FOUND || (op->status == IL_STALE_HIT && op->out.fence == 0);
}

/* A build object for the caller, in case it leads. */
static il_status
build_new(il *h, const char *key, const il_cache_opts *opts, il_build **ret, il_error *reterr)
{
    AUTO(il_build_freep) il_build *build = il__calloc(1, sizeof *build);
    char                           holder[37];

    if (il_uuid(holder) != IL_OK)
        return il__error_set(reterr, IL_STORE, "cannot read random bytes");
    if (build == NULL ||
        !il__lease_init(&build->lease, h, &build_kind, key, holder,
                        opts->lease_ms != 0 ? opts->lease_ms : IL_TTL_MS_DEFAULT) ||
        (opts->tenant != NULL && (build->lease.tenant = il__strdup(opts->tenant)) == NULL))
        return il__error_set(reterr, IL_NOMEM, "out of memory or descriptors for a build");
    *ret = TAKE(build);
    return IL_OK;
}

/* Request the right to build. LEAD: *ret is the build. *op has the answer in any case. */
static il_status
ask_to_build(il *h, const char *key, const il_cache_opts *opts, il_op *op, il_build **ret,
             il_error *reterr)
{
    AUTO(il_build_freep) il_build *build  = NULL;
    uint64_t                       token  = op->fence;
    uint32_t                       chance = op->in.cache.chance;
    il_status                      st     = build_new(h, key, opts, &build, reterr);

    if (st != IL_OK)
        return st;
    CHECK(build != NULL);
    il_op_release(op);
    *op                 = lookup_op(&build->lease);
    op->fence           = token;
    op->in.cache.chance = chance;
    int64_t sent_ns     = il__clock_boot_ns();
    st                  = il__apply_sure(h, op, reterr);
    op->tenant          = opts->tenant; /* these names outlive the build */
    op->key             = key;
    op->holder          = NULL;
    if (st != IL_OK || op->status != IL_LEAD)
        return st;
    build->lease.fence = op->out.fence;
    st                 = il__lease_keep(&build->lease, op, sent_ns, reterr);
    if (st == IL_OK)
        *ret = TAKE(build);
    else
        (void)il_build_abandon(build, NULL); /* else its time runs out */
    return st;
}

/* Read once, and request the right to build if wanted and no one else builds. */
static il_status
look(il *h, const char *key, const il_cache_opts *opts, uint64_t token, il_op *op, il_build **ret,
     il_error *reterr)
{
    il_op_release(op);
    *op = (il_op){ .type = IL_OP_CACHE_GET, .tenant = opts->tenant, .key = key, .fence = token };
    if (ret != NULL && !opts->never_early)
        op->in.cache.chance = draw_chance();
    il_status st = il_apply(h, op, 1, reterr);
    if (st == IL_OK && ret != NULL && nobody_builds(op))
        st = ask_to_build(h, key, opts, op, ret, reterr);
    return st;
}

static il_status
check_cache_opts(const char *key, const il_cache_opts *opts, il_error *reterr)
{
    if (opts->struct_size != sizeof *opts)
        return il__error_set(reterr, IL_INVAL,
                             "il_cache_opts was not initialized with IL_CACHE_OPTS_INIT");
    if (key == NULL)
        return il__error_set(reterr, IL_INVAL, "no key given");
    if (opts->tenant != NULL && il_check_tenant(opts->tenant, reterr) != IL_OK)
        return IL_INVAL;
    return il__check_wait(opts->wait_ms, reterr);
}

il_status
il_cache_lookup(il *h, const char *key, const il_cache_opts *opts, il_build **ret, il_op *op,
                il_error *reterr)
{
    static const il_cache_opts defaults = IL_CACHE_OPTS_INIT;
    uint64_t                   token    = 0; /* of the awaited build */

    if (opts == NULL)
        opts = &defaults;
    if (op != NULL)
        *op = (il_op){ .type = IL_OP_CACHE_GET };
    if (h == NULL || op == NULL)
        return il__error_set(reterr, IL_INVAL, "h and op must not be NULL");
    if (check_cache_opts(key, opts, reterr) != IL_OK)
        return IL_INVAL;
    int64_t until_ns = il__wait_until_ns(opts->wait_ms != 0 ? opts->wait_ms : LOOKUP_WAIT_MS);
    for (;;) {
        il_status st      = look(h, key, opts, token, op, ret, reterr);
        int64_t   left_ms = il__wait_left_ms(until_ns);
        if (st != IL_OK)
            return st;
        if (op->status == IL_HIT || op->status == IL_STALE_HIT || op->status == IL_LEAD)
            return op->status; /* not a failure, so no message */
        if (op->status != IL_WAIT || left_ms == 0)
            return il__error_of_op(op, reterr);
        if (token == 0)
            token = op->out.fence; /* the value of this build or of a later one will do */
        st = il_wait(h, op, left_ms);
        if (st != IL_OK && st != IL_TIMEOUT)
            return il__gave_up(key, st, reterr);
    }
}

/* ---- ending a build, dropping a value -------------------------------------------------------- */

static il_status
build_end(il_build *build, il_op_type type, uint32_t flags, const il_cache_in *in, il_error *reterr)
{
    if (build == NULL)
        return il__error_set(reterr, IL_INVAL, "no build given");
    il_op op = { .type   = type,
                 .flags  = flags,
                 .tenant = build->lease.tenant,
                 .key    = build->lease.key,
                 .holder = build->lease.holder,
                 .fence  = build->lease.fence };
    if (in != NULL)
        op.in.cache = *in;
    il_status st = il__lease_end(&build->lease, &op, reterr);
    il_op_release(&op);
    return st;
}

il_status
il_build_fill(il_build *build, const void *value, size_t value_bytes, int64_t ttl_ms,
              int64_t grace_ms, uint32_t flags, int32_t code, il_error *reterr)
{
    il_cache_in in = { .value       = value,
                       .value_bytes = value_bytes,
                       .ttl_ms      = ttl_ms,
                       .grace_ms    = grace_ms,
                       .code        = code };

    return build_end(build, IL_OP_CACHE_FILL, flags, &in, reterr);
}

il_status
il_build_abandon(il_build *build, il_error *reterr)
{
    return build_end(build, IL_OP_CACHE_ABANDON, 0, NULL, reterr);
}

const il_lease *
il_build_lease(const il_build *build)
{
    return build != NULL ? &build->lease : NULL;
}

il_status
il_cache_drop(il *h, const char *key, uint32_t flags, il_error *reterr)
{
    il_op     op = { .type = IL_OP_CACHE_DROP, .key = key, .flags = flags };
    il_status st = il__apply_one(h, &op, reterr);

    il_op_release(&op);
    return st;
}
