/*
 * hold_build.c: `interlock cache get KEY -- COMMAND`: the command builds the value. Its output is
 * held back until it has succeeded; then it is the value, for us and for all waiters.
 *
 * A drop or a fill by another client makes the build void. The command continues: its caller gets
 * the fresh value if there is one, otherwise the command's output, which is not kept. If a fresh
 * value exists, a failing command is not a failure.
 */
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/defs.h"
#include "cli/wrap/wrap_internal.h"
#include "proc/sys.h"

static int
print(const void *data, size_t n_bytes, int status)
{
    if (il__proc_write_all(STDOUT_FILENO, data, n_bytes) || errno == EPIPE)
        return status;
    il__proc_say("cannot write the value: %s", strerror(errno));
    return status != 0 ? status : CLI_EXIT_IO;
}

int
wrap_print_value(const il_op *op)
{
    bool negative = (op->out.flags & IL_OUT_NEGATIVE) != 0;

    return print(op->out.value, op->out.value_bytes, negative ? op->out.code & 0xFF : 0);
}

static il_status
look_up(struct wrap *r, void *cookie, il_error *reterr)
{
    il_cache_opts cache = IL_CACHE_OPTS_INIT;

    cache.lease_ms = r->ttl_ms;
    cache.wait_ms  = r->opts->wait_ms != 0 ? r->opts->wait_ms : 1; /* 0 would be the default */
    return il_cache_lookup(r->store, r->opts->key, &cache, &r->build, cookie, reterr);
}

/* The previous value may be needed if this build fails. */
static void
keep_stale(struct wrap *r, const il_op *op)
{
    if (!r->opts->build.stale_if_error || op->out.value == NULL ||
        (op->out.flags & IL_OUT_NEGATIVE) != 0)
        return;
    il__buf_init(&r->stale, IL_BLOB_BYTES_MAX);
    il__buf_add(&r->stale, op->out.value, op->out.value_bytes);
    r->has_stale = !r->stale.failed;
}

static int
take(struct wrap *r)
{
    il_op     op = { .type = IL_OP_NONE };
    il_error  error;
    int       sig;
    il_status status = wrap_signals_take(r, true, look_up, &op, &sig, &error);
    int       result = WRAP_GO_ON;

    il__buf_init(&r->capture.b, IL__CAPTURE_VALUE_BYTES_MAX);
    if (sig != 0) {
        result = wrap_interrupted(r, sig);
    } else if (status == IL_HIT || status == IL_STALE_HIT) {
        r->outcome = status == IL_HIT ? "hit" : "stale";
        result     = wrap_print_value(&op);
    } else if (status == IL_WAIT) {
        r->outcome = "busy";
        wrap_tell(r, "%s: another process is building the value", r->opts->key);
        result = il_status_exit(status);
    } else if (status != IL_LEAD) {
        result = wrap_give_up(r, &error);
    } else {
        r->lease = il_build_lease(r->build);
        keep_stale(r, &op);
    }
    il_op_release(&op);
    return result;
}

struct filling {
    int64_t  fresh_ms;
    uint32_t flags;
    int      status;
};

static il_status
fill_now(struct wrap *r, void *cookie, il_error *reterr)
{
    const struct filling *f     = cookie;
    const struct il__buf *value = &r->capture.b;

    return il_build_fill(r->build, il__buf_str(value), value->n_bytes, f->fresh_ms,
                         f->flags == 0 ? r->opts->build.stale_ms : 0, f->flags, f->status, reterr);
}

/* Store the output, as the value or as a negative one. Failing to store it is no failure: the
 * value can still be printed. */
static void
fill(struct wrap *r, int64_t fresh_ms, uint32_t flags, int status)
{
    static struct filling f; /* wrap_bounded_call() */
    il_error              error;

    if (r->capture.b.n_bytes > IL_BLOB_BYTES_MAX) {
        il__proc_say("%s: value larger than 1 MiB, not cached", r->opts->key);
        return;
    }
    f              = (struct filling){ fresh_ms, flags, status };
    il_status kept = wrap_bounded_call(r, fill_now, &f, &error);
    r->released    = kept == IL_OK;
    r->is_void |= kept == IL_STALE || kept == IL_LOST;
    if (kept != IL_OK && !r->is_void)
        il__proc_say("%s: value not cached: %s", r->opts->key, error.message);
}

static il_status
abandon_now(struct wrap *r, void *cookie UNUSED, il_error *reterr)
{
    return il_build_abandon(r->build, reterr);
}

static il_status
get_now(struct wrap *r, void *cookie, il_error *reterr)
{
    return il_apply(r->store, cookie, 1, reterr);
}

/* Another client's value, if there is a fresh one: *ret is the exit status. */
static bool
print_fresh(struct wrap *r, int *ret)
{
    static il_op op; /* wrap_bounded_call() */
    il_error     error;

    op = (il_op){ .type = IL_OP_CACHE_GET, .key = r->opts->key };
    if (wrap_bounded_call(r, get_now, &op, &error) != IL_OK)
        return false;
    bool fresh = op.status == IL_HIT;
    if (fresh) {
        r->outcome = "hit";
        *ret       = wrap_print_value(&op);
    }
    il_op_release(&op);
    return fresh;
}

/* The build ends before anything is printed, so that waiters do not depend on the reader of our
 * output. */
static int
give(struct wrap *r, const struct il__reaper_report *report, int status)
{
    const struct wrap_opts *o     = r->opts;
    bool                    ended = report->end == IL__END_EXITED && report->wait_status >= 0 &&
                 !WIFSIGNALED(report->wait_status);
    il_error error;

    if (r->capture.overflow) {
        r->outcome = "failed";
        wrap_tell(r, "%s: the command printed more than %zu MiB", o->key,
                  IL__CAPTURE_VALUE_BYTES_MAX >> 20);
        return il_status_exit(IL_MISMATCH);
    }
    bool built  = ended && status == 0;
    bool failed = ended && status != 0 && o->build.negative_ms > 0; /* a failure to be kept */
    if (built)
        fill(r, o->build.fresh_ms, 0, 0);
    if (failed)
        fill(r, o->build.negative_ms, IL_CACHE_NEGATIVE, status);
    bool kept = r->released;
    if (!kept) /* another client may build; at worst the build times out */
        (void)wrap_bounded_call(r, abandon_now, NULL, &error);
    r->released = true;
    /* It was filled meanwhile, or this was an early refresh of a value that is still fresh. */
    bool wanted = !kept && (r->is_void || status != 0) && !r->reaper.asked_to_end;
    if (wanted && print_fresh(r, &status))
        return status;
    if (r->is_void)
        il__proc_say("%s: value not cached: it was dropped or filled during the build", o->key);
    if (!built && !failed && r->has_stale && !r->is_void && !r->reaper.asked_to_end) {
        r->outcome = "stale";
        wrap_tell(r, "%s: the command failed (%d); printing the previous value", o->key, status);
        return print(il__buf_str(&r->stale), r->stale.n_bytes, 0);
    }
    return print(il__buf_str(&r->capture.b), r->capture.b.n_bytes, status);
}

static void
drop(struct wrap *r)
{
    if (r->build != NULL && !r->released)
        (void)il_build_abandon(r->build, NULL); /* at worst it times out */
    il_build_free(r->build);
    il__capture_release(&r->capture);
    il__buf_release(&r->stale);
}

static bool
add(void *cookie, uint32_t stream, const void *data, size_t n_bytes)
{
    struct wrap *r = cookie;

    if (stream != STDOUT_FILENO)
        return true;
    il__buf_add(&r->capture.b, data, n_bytes);
    if (!r->capture.overflow && r->capture.b.failed) {
        r->capture.overflow = true;
        il__reaper_order(&r->reaper, IL__ORDER_SIGNAL, SIGPIPE); /* it will not be read */
    }
    return false;
}

const struct wrap_hold wrap_hold_build = {
    .take    = take,
    .give    = give,
    .drop    = drop,
    .sink    = { add, NULL },
    .goes_on = true,
};
