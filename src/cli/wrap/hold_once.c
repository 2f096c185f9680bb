/*
 * hold_once.c: `interlock once`: runs the command under the claim of an idempotency key; its output
 * and exit status are the answer that later callers get.
 */
#include <errno.h>
#include <sys/wait.h>

#include "cli/defs.h"
#include "cli/wrap/wrap_internal.h"
#include "proc/sys.h"

static il_status
begin(struct wrap *r, void *cookie, il_error *reterr)
{
    const struct wrap_opts *o    = r->opts;
    il_once_opts            once = IL_ONCE_OPTS_INIT;

    once.fingerprint       = o->once.fingerprint;
    once.fingerprint_bytes = o->once.fingerprint_bytes;
    once.lease_ms          = r->ttl_ms;
    once.keep_ms           = o->keep_ms;
    once.wait_ms           = o->wait_ms;
    once.meta              = r->meta;
    return il_once_begin(r->store, o->key, &once, &r->once, cookie, reterr);
}

/* The answer already exists. */
static int
repeat(struct wrap *r, const il_op *op)
{
    r->outcome = "replayed";
    switch (il__capture_repeat(op->out.value, op->out.value_bytes)) {
    case IL__CAPTURE_UNWRITABLE:
        if (errno == EPIPE)
            break; /* a missing reader is not an error here */
        r->outcome = "failed";
        wrap_tell(r, "%s: cannot write the output: %s", r->opts->key, strerror(errno));
        return CLI_EXIT_IO;
    case IL__CAPTURE_PARTLY:
        wrap_tell(r, "%s: the output of the first run was too large and is missing or incomplete",
                  r->opts->key);
        break;
    case IL__CAPTURE_WHOLE:
        break;
    }
    return op->out.code & 0xFF;
}

static int
refused(struct wrap *r, il_status status, const il_error *error)
{
    r->outcome = status == IL_BUSY ? "busy" : status == IL_MISMATCH ? "mismatch" : "failed";
    if (status == IL_BUSY)
        wrap_tell(r, "%s: the first attempt is still running", r->opts->key);
    else if (status == IL_MISMATCH)
        wrap_tell(r, "%s: key already used for another command or fingerprint", r->opts->key);
    else
        return wrap_give_up(r, error);
    return il_status_exit(status);
}

static int
take(struct wrap *r)
{
    il_op     op = { .type = IL_OP_NONE };
    il_error  error;
    int       sig;
    il_status status = wrap_signals_take(r, r->opts->wait_ms != 0, begin, &op, &sig, &error);
    int       result = WRAP_GO_ON;

    if (sig != 0)
        result = wrap_interrupted(r, sig);
    else if (status == IL_REPLAY)
        result = repeat(r, &op);
    else if (status != IL_OK)
        result = refused(r, status, &error);
    else
        r->lease = il_once_lease(r->once);
    if (sig == 0 && status == IL_BUSY)
        wrap_report_refusal_once(r, op.out.meta, op.out.age_ms);
    il_op_release(&op);
    return result;
}

/* Is this the final answer for all callers? Not if the command was stopped or never started. */
static bool
is_answer(const struct wrap *r, const struct il__reaper_report *report, int status)
{
    if (report->end != IL__END_EXITED || report->wait_status < 0 ||
        WIFSIGNALED(report->wait_status))
        return false;
    return status == 0 || (!r->reaper.asked_to_end && !r->opts->once.only_success);
}

static il_status
finish_now(struct wrap *r, void *cookie, il_error *reterr)
{
    const int  *status = cookie;
    size_t      n_bytes;
    const void *answer = il__capture_answer(&r->capture, &n_bytes);

    return il_once_finish(r->once, *status, answer, n_bytes, reterr);
}

static int
give(struct wrap *r, const struct il__reaper_report *report, int status)
{
    static int code; /* wrap_bounded_call() */
    il_status  kept;
    il_error   error;

    if (!is_answer(r, report, status))
        return status; /* drop() gives the claim back */
    if (r->capture.overflow)
        il__proc_say("%s: output larger than 1 MiB; only the exit status is kept", r->opts->key);
    code = status;
    do
        kept = wrap_bounded_call(r, finish_now, &code, &error);
    while (wrap_try_again(r, kept, &error));
    r->released = true; /* or unknown: then the claim expires, if it still exists */
    if (kept == IL_OK)
        return status;
    if (kept == IL_STALE || kept == IL_LOST)
        return wrap_report_lost(r);
    il__proc_say("%s: result not stored, so the command may run again: %s", r->opts->key,
                 error.message);
    return status != 0 ? status : il_status_exit(kept);
}

static void
drop(struct wrap *r)
{
    if (r->once != NULL && !r->released)
        (void)il_once_abandon(r->once, NULL); /* at worst the claim expires */
    il_once_free(r->once);
    il__capture_release(&r->capture);
}

static bool
add(void *cookie, uint32_t stream, const void *data, size_t n_bytes)
{
    struct wrap *r = cookie;

    il__capture_add(&r->capture, stream, data, n_bytes);
    return true;
}

static void
incomplete(void *cookie)
{
    struct wrap *r = cookie;

    il__capture_mark_incomplete(&r->capture);
}

const struct wrap_hold wrap_hold_once = {
    .take = take,
    .give = give,
    .drop = drop,
    .sink = { add, incomplete },
};
