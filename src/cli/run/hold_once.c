/*
 * hold_once.c: `interlock once`: the command is run under the claim of an idempotency key; its output and exit status
 * are the answer that everybody gets who comes later.
 */
#include <errno.h>
#include <sys/wait.h>

#include "cli/run/run_state.h"
#include "proc/sys.h"
#include "cli/table.h"

static il_status
begin(struct il__run_state *r, void *cookie, il_error *reterr)
{
    const struct il__run_opts *o    = r->opts;
    il_once_opts               once = IL_ONCE_OPTS_INIT;

    once.fingerprint       = o->once.fingerprint;
    once.fingerprint_bytes = o->once.fingerprint_bytes;
    once.ttl_ms            = r->ttl_ms;
    once.keep_ms           = o->keep_ms;
    once.wait_ms           = o->wait_ms;
    once.meta              = r->meta;
    return il_once_begin(r->store, o->key, &once, &r->once, cookie, reterr);
}

/* Somebody has given the answer. */
static int
repeat(struct il__run_state *r, const il_op *op)
{
    r->outcome = "replayed";
    switch (il__capture_repeat(op->out.value, op->out.value_bytes)) {
    case IL__CAPTURE_UNWRITABLE:
        if (errno == EPIPE)
            break; /* who read it has gone: that is their business */
        r->outcome = "failed";
        il__run_tell(r, "%s: the output cannot be written: %s", r->opts->key, strerror(errno));
        return CLI_EXIT_IO;
    case IL__CAPTURE_PARTLY:
        il__run_tell(r, "%s: the output of the first time was too large and is not kept, or not all of it",
                     r->opts->key);
        break;
    case IL__CAPTURE_WHOLE:
        break;
    }
    return op->out.code & 0xFF;
}

static int
refused(struct il__run_state *r, il_status status, const il_error *error)
{
    r->outcome = status == IL_BUSY ? "busy" : status == IL_MISMATCH ? "mismatch" : "failed";
    if (status == IL_BUSY)
        il__run_tell(r, "%s: the first attempt is still running", r->opts->key);
    else if (status == IL_MISMATCH)
        il__run_tell(r, "%s: the key was used for another command, or with another fingerprint, before",
                     r->opts->key);
    else
        return il__run_give_up(r, error);
    return il_status_exit(status);
}

static int
take(struct il__run_state *r)
{
    il_op     op = { .type = IL_OP_NONE };
    il_error  error;
    int       sig;
    il_status status = il__run_signals_take(r, r->opts->wait_ms != 0, begin, &op, &sig, &error);
    int       result = IL__RUN_GO_ON;

    if (sig != 0)
        result = il__run_interrupted(r, sig);
    else if (status == IL_REPLAY)
        result = repeat(r, &op);
    else if (status != IL_OK)
        result = refused(r, status, &error);
    else
        r->lease = il_once_lease(r->once);
    il_op_release(&op);
    return result;
}

/* Is this how it ends for everybody? Not when the command was ended, or did not begin. */
static bool
is_answer(const struct il__run_state *r, const struct il__reaper_report *report, int status)
{
    if (report->end != IL__END_EXITED || report->wait_status < 0 || WIFSIGNALED(report->wait_status))
        return false;
    return status == 0 || (!r->reaper.asked_to_end && !r->opts->once.only_success);
}

static int
give(struct il__run_state *r, const struct il__reaper_report *report, int status)
{
    size_t      n_bytes;
    const void *answer = il__capture_answer(&r->capture, &n_bytes);
    il_status   kept;
    il_error    error;

    if (!is_answer(r, report, status))
        return status; /* drop() gives the claim back */
    if (r->capture.overflow)
        il__run_say("%s: the output is larger than 1 MiB: only the exit status is kept", r->opts->key);
    do
        kept = il_once_finish(r->once, status, answer, n_bytes, &error);
    while (il__run_try_again(r, kept));
    r->released = true; /* or it is not known: then the claim runs out, if it is still there */
    if (kept == IL_OK)
        return status;
    if (kept == IL_STALE || kept == IL_LOST)
        return il__run_was_lost(r);
    il__run_say("%s: the answer was not kept, and the command may be run again: %s", r->opts->key,
                error.message);
    return status != 0 ? status : il_status_exit(kept);
}

static void
drop(struct il__run_state *r)
{
    if (r->once != NULL && !r->released)
        (void)il_once_abandon(r->once, NULL); /* at worst the claim runs out */
    il_once_free(r->once);
    il__capture_release(&r->capture);
}

static bool
add(void *cookie, uint32_t stream, const void *data, size_t n_bytes)
{
    struct il__run_state *r = cookie;

    il__capture_add(&r->capture, stream, data, n_bytes);
    return true;
}

static void
incomplete(void *cookie)
{
    struct il__run_state *r = cookie;

    il__capture_incomplete(&r->capture);
}

const struct il__run_hold il__run_hold_once = {
    .take = take,
    .give = give,
    .drop = drop,
    .sink = { add, incomplete },
};
