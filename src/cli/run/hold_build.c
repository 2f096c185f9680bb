/*
 * hold_build.c: `interlock cache get KEY -- COMMAND`: the command builds the value. What it prints is held back until it
 * has ended well: then it is the value, for us and for all that wait for it.
 */
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/run/run_state.h"
#include "proc/sys.h"
#include "cli/table.h"

static int
print(const void *data, size_t n_bytes, int status)
{
    if (il__run_write_all(STDOUT_FILENO, data, n_bytes) || errno == EPIPE)
        return status;
    il__run_say("the value cannot be written: %s", strerror(errno));
    return status != 0 ? status : CLI_EXIT_IO;
}

int
il__run_print_value(const il_op *op)
{
    bool negative = (op->out.flags & IL_OUT_NEGATIVE) != 0;

    return print(op->out.value, op->out.value_bytes, negative ? op->out.code & 0xFF : 0);
}

static il_status
look_up(struct il__run_state *r, void *cookie, il_error *reterr)
{
    il_cache_opts cache = IL_CACHE_OPTS_INIT;

    cache.lease_ms = r->ttl_ms;
    cache.wait_ms  = r->opts->wait_ms != 0 ? r->opts->wait_ms : 1; /* 0 would be the default */
    return il_cache_lookup(r->store, r->opts->key, &cache, &r->build, cookie, reterr);
}

/* The value before may be wanted if this build fails. */
static void
keep_stale(struct il__run_state *r, const il_op *op)
{
    if (!r->opts->build.stale_if_error || op->out.value == NULL ||
        (op->out.flags & IL_OUT_NEGATIVE) != 0)
        return;
    il__buf_init(&r->stale, IL_BLOB_BYTES_MAX);
    il__buf_add(&r->stale, op->out.value, op->out.value_bytes);
    r->has_stale = !r->stale.failed;
}

static int
take(struct il__run_state *r)
{
    il_op     op = { .type = IL_OP_NONE };
    il_error  error;
    int       sig;
    il_status status = il__run_signals_take(r, true, look_up, &op, &sig, &error);
    int       result = IL__RUN_GO_ON;

    il__buf_init(&r->capture.b, IL__CAPTURE_VALUE_BYTES_MAX);
    if (sig != 0) {
        result = il__run_interrupted(r, sig);
    } else if (status == IL_HIT || status == IL_STALE_HIT) {
        r->outcome = status == IL_HIT ? "hit" : "stale";
        result     = il__run_print_value(&op);
    } else if (status == IL_WAIT) {
        r->outcome = "busy";
        il__run_tell(r, "%s: somebody else is building the value", r->opts->key);
        result = il_status_exit(status);
    } else if (status != IL_LEAD) {
        result = il__run_give_up(r, &error);
    } else {
        r->lease = il_build_lease(r->build);
        keep_stale(r, &op);
    }
    il_op_release(&op);
    return result;
}

/* Keep what was printed, as the value or as a negative one. Not kept is no failure: the value is there to be printed. */
static void
fill(struct il__run_state *r, int64_t fresh_ms, uint32_t flags, int status)
{
    const struct il__buf *value = &r->capture.b;
    il_error              error;

    if (value->n_bytes > IL_BLOB_BYTES_MAX) {
        il__run_say("%s: the value is larger than 1 MiB and is not kept", r->opts->key);
        return;
    }
    il_status kept = il_build_fill(r->build, il__buf_str(value), value->n_bytes, fresh_ms,
                                   flags == 0 ? r->opts->build.stale_ms : 0, flags, status, &error);
    r->released    = kept == IL_OK;
    if (kept == IL_STALE || kept == IL_LOST)
        il__run_say(
            "%s: the value was dropped, or the build took longer than its lease: it is not kept",
            r->opts->key);
    else if (kept != IL_OK)
        il__run_say("%s: the value is not kept: %s", r->opts->key, error.message);
}

/* Nothing was kept: somebody else may build. */
static void
abandon(struct il__run_state *r)
{
    if (r->build != NULL && !r->released)
        (void)il_build_abandon(r->build, NULL); /* at worst its time runs out */
    r->released = true;
}

/* The build is over before anything is printed: those who wait for it do not wait for whoever reads our output. */
static int
give(struct il__run_state *r, const struct il__reaper_report *report, int status)
{
    const struct il__run_opts *o     = r->opts;
    bool                       ended = report->end == IL__END_EXITED && report->wait_status >= 0 &&
                 !WIFSIGNALED(report->wait_status);

    if (r->capture.overflow) {
        r->outcome = "failed";
        il__run_tell(r, "%s: the command has printed more than %zu MiB", o->key,
                     IL__CAPTURE_VALUE_BYTES_MAX >> 20);
        return il_status_exit(IL_MISMATCH);
    }
    bool built  = ended && status == 0;
    bool failed = ended && status != 0 && o->build.negative_ms > 0; /* a failure to be kept */
    if (built)
        fill(r, o->build.fresh_ms, 0, 0);
    if (failed)
        fill(r, o->build.negative_ms, IL_CACHE_NEGATIVE, status);
    abandon(r);
    if (!built && !failed && r->has_stale && !r->reaper.asked_to_end) {
        r->outcome = "stale";
        il__run_tell(r, "%s: the command has failed (%d); this is the value before", o->key, status);
        return print(il__buf_str(&r->stale), r->stale.n_bytes, 0);
    }
    return print(il__buf_str(&r->capture.b), r->capture.b.n_bytes, status);
}

static void
drop(struct il__run_state *r)
{
    abandon(r);
    il_build_free(r->build);
    il__capture_release(&r->capture);
    il__buf_release(&r->stale);
}

static bool
add(void *cookie, uint32_t stream, const void *data, size_t n_bytes)
{
    struct il__run_state *r = cookie;

    if (stream != STDOUT_FILENO)
        return true;
    il__buf_add(&r->capture.b, data, n_bytes);
    if (!r->capture.overflow && r->capture.b.failed) {
        r->capture.overflow = true;
        il__reaper_order(&r->reaper, IL__ORDER_SIGNAL, SIGPIPE); /* nobody will read it */
    }
    return false;
}

const struct il__run_hold il__run_hold_build = {
    .take = take,
    .give = give,
    .drop = drop,
    .sink = { add, NULL },
};
