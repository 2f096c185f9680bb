/*
 * run.c: il_run_start() and the run it returns; showing runs, cancelling them and waiting for their
 * end.
 *
 * A run is kept like a lock, by renewing the lease of its key. The rules are in core/runs.md.
 */
#include <inttypes.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "core/limits.h"
#include "runtime/handle.h"

struct il_run {
    il_lease         lease;
    char            *id;
    il_run_opts      opts;     /* the callbacks; its strings are not used */
    struct il__mutex log_lock; /* one writer at a time; protects: */
    uint64_t         n_logged; /* bytes of the log known to be in the store */
    size_t           n_unsure; /* size of the output after these, which may or may not be stored */
    uint64_t         unsure;   /* hash of that output */
};

static il_run *
run_of(il_lease *lease)
{
    return container_of(lease, il_run, lease);
}

/* ---- renewal --------------------------------------------------------------------------------- */

static void
run_renewed(il_lease *lease, int64_t deadline_ns)
{
    il_run *run = run_of(lease);

    if (run->opts.on_renewed != NULL)
        run->opts.on_renewed(run->opts.cookie, run, deadline_ns);
}

static void
run_lost(il_lease *lease, const char *why)
{
    il_run *run = run_of(lease);

    if (run->opts.on_lost != NULL)
        run->opts.on_lost(run->opts.cookie, run, why);
}

static void
run_cancelled(il_lease *lease, const char *reason)
{
    il_run *run = run_of(lease);

    if (run->opts.on_cancel != NULL)
        run->opts.on_cancel(run->opts.cookie, run, reason);
}

static const struct il__lease_kind run_kind = {
    .renewal    = il__lock_renewal,
    .on_renewed = run_renewed,
    .on_lost    = run_lost,
    .on_cancel  = run_cancelled,
};

void
il_run_free(il_run *run)
{
    if (run == NULL)
        return;
    il__lease_release(&run->lease);
    il__mutex_destroy(&run->log_lock);
    il__free(run->id);
    il__free(run);
}
DEFINE_AUTO(il_run, il_run_free)

static il_run *
run_new(il *h, const char *key, const char *id, const il_run_opts *opts)
{
    AUTO(il_run_freep) il_run *run = il__calloc(1, sizeof *run);

    if (run == NULL)
        return NULL;
    il__mutex_init(&run->log_lock, IL__MUTEX_run);
    if (!il__lease_init(&run->lease, h, &run_kind, key, opts->holder != NULL ? opts->holder : id,
                        opts->ttl_ms != 0 ? opts->ttl_ms : IL_TTL_MS_DEFAULT))
        return NULL;
    if (opts->tenant != NULL && (run->lease.tenant = il__strdup(opts->tenant)) == NULL)
        return NULL;
    run->id            = il__strdup(id);
    run->opts          = *opts;
    run->lease.stop_ms = opts->stop_ms;
    return run->id != NULL ? TAKE(run) : NULL;
}

/* ---- starting -------------------------------------------------------------------------------- */

static il_op
start_op(const il_run *run, const il_run_opts *opts)
{
    il_op op = { .type   = IL_OP_RUN_START,
                 .tenant = run->lease.tenant,
                 .key    = run->lease.key,
                 .holder = run->lease.holder };

    op.in.run = (il_run_in){
        .id        = run->id,
        .policy    = opts->policy,
        .queue_max = opts->queue_max,
        .ttl_ms    = run->lease.ttl_ms,
        .wait_ms   = opts->wait_ms,
        .settle_ms = opts->settle_ms,
        .keep_ms   = opts->keep_ms,
        .trigger   = opts->trigger,
        .by        = opts->by,
        .meta      = opts->meta,
        .place     = opts->place,
    };
    return op;
}

/* Initialise an op on the run, for its tenant. */
static il_op
run_op(const il_run *run, il_op_type type)
{
    il_op op = { .type   = type,
                 .tenant = run->lease.tenant,
                 .holder = run->lease.holder,
                 .fence  = run->lease.fence };

    op.in.run.id = run->id;
    return op;
}

/* Look at it. */
static il_status
look_at(const il_run *run, il_op *op, il_error *reterr)
{
    *op = run_op(run, IL_OP_RUN_GET);
    return il__apply_one(run->lease.h, op, reterr);
}

/*
 * Undo the start, whatever its outcome. Another caller may have started a run with the same id,
 * which must not be touched; `ours` rules that out. If the store is unreachable, the run's lease or
 * its place in the queue expires.
 */
static void
withdraw(const il_run *run, bool ours, const char *reason)
{
    il   *h    = run->lease.h;
    il_op look = { .type = IL_OP_NONE };
    il_op end  = run_op(run, IL_OP_RUN_CANCEL);

    end.in.run.error = reason;
    if (look_at(run, &look, NULL) == IL_OK && look.out.n_runs > 0) {
        const il_run_info *r = look.out.runs;
        if (r->state == IL_RUN_RUNNING) { /* a cancel would only ask us to stop */
            end.type         = IL_OP_RUN_FINISH;
            end.fence        = r->fence;
            end.in.run.state = IL_RUN_CANCELLED;
        }
        if (ours || strcmp(r->holder, run->lease.holder) == 0)
            IGNORE(il_apply(h, &end, 1, NULL));
    }
    il_op_release(&look);
    il_op_release(&end);
}

/* It was pending and ended before it began: the status for the caller. */
static il_status
ended_pending(const il_op *op, bool waited_out, il_error *reterr)
{
    const il_run_info *r = op->out.runs;

    if (waited_out)
        return il__error_set(reterr, IL_HELD, "'%s': run %s timed out while waiting", op->key,
                             op->in.run.id);
    if (op->out.n_runs > 0 && r->state == IL_RUN_CANCELLED)
        return il__error_set(reterr, IL_CANCELLED, "'%s': run %s was cancelled: %s", op->key, r->id,
                             r->error);
    return il__error_set(reterr, IL_LOST, "'%s': run %s lost its place in the queue", op->key,
                         op->in.run.id);
}

/* Repeat the start until it is granted or refused, like il_acquire(). `ours`: no other caller can
 * know the id. */
static il_status
start_loop(const il_run *run, il_op *op, bool ours, int64_t *ret_sent_ns, il_error *reterr)
{
    il     *h        = run->lease.h;
    int64_t until_ns = il__wait_until_ns(op->in.run.wait_ms != 0 ? op->in.run.wait_ms : IL_FOREVER);
    bool    queued   = false;

    for (;;) {
        *ret_sent_ns   = il__clock_boot_ns();
        il_status st   = il__apply_sure(h, op, reterr);
        int64_t   left = il__wait_left_ms(until_ns);
        if (st != IL_OK) {
            withdraw(run, ours || queued, "cannot start the run");
            return st;
        }
        if (op->status == IL_STATE && queued)
            return ended_pending(op, left == 0, reterr);
        if (op->status == IL_NOMEM && queued)
            withdraw(run, true, "cannot start the run");
        if (op->status != IL_QUEUED)
            return il__error_of_op(op, reterr);
        queued = true;
        st     = left != 0 ? il_wait(h, op, left) : IL_HELD; /* that was the last try */
        if (st != IL_OK && st != IL_TIMEOUT) {
            withdraw(run, true, st == IL_HELD ? "timed out while waiting" : "gave up waiting");
            return st == IL_HELD ? ended_pending(op, true, reterr)
                                 : il__gave_up(op->key, st, reterr);
        }
        left = il__wait_left_ms(until_ns);
        if (left != IL_FOREVER)
            op->in.run.wait_ms = MAX(left, 1); /* 0 would mean forever */
    }
}

static il_status
check_run_opts(il *h, const char *key, const il_run_opts *opts, il_error *reterr)
{
    if (opts->struct_size != sizeof *opts)
        return il__error_set(reterr, IL_INVAL,
                             "il_run_opts was not initialized with IL_RUN_OPTS_INIT");
    if (h == NULL)
        return il__error_set(reterr, IL_INVAL, "h must not be NULL");
    if (il_check_key(key, reterr) != IL_OK || il__check_wait(opts->wait_ms, reterr) != IL_OK ||
        (opts->tenant != NULL && il_check_tenant(opts->tenant, reterr) != IL_OK))
        return IL_INVAL;
    return il__check_stop(opts->stop_ms, opts->ttl_ms != 0 ? opts->ttl_ms : IL_TTL_MS_DEFAULT,
                          reterr);
}

il_status
il_run_start(il *h, const char *key, const il_run_opts *opts, il_run **ret, il_op *op,
             il_error *reterr)
{
    static const il_run_opts defaults = IL_RUN_OPTS_INIT;
    char                     made[37];
    int64_t                  sent_ns = 0;

    if (opts == NULL)
        opts = &defaults;
    if (op != NULL)
        *op = (il_op){ .type = IL_OP_RUN_START };
    if (ret == NULL)
        return il__error_set(reterr, IL_INVAL, "ret must not be NULL");
    if (check_run_opts(h, key, opts, reterr) != IL_OK)
        return IL_INVAL;
    if (opts->id == NULL && il_uuid(made) != IL_OK)
        return il__error_set(reterr, IL_STORE, "cannot read random bytes");
    AUTO(il_run_freep) il_run *run = run_new(h, key, opts->id != NULL ? opts->id : made, opts);
    if (run == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory or descriptors for a run");

    il_op     start = start_op(run, opts);
    il_status st    = start_loop(run, &start, opts->id == NULL, &sent_ns, reterr);
    if (st == IL_OK) {
        run->lease.fence = start.out.fence;
        run->n_logged    = start.out.n_runs > 0 ? start.out.runs[0].log_bytes : 0;
        st               = il__lease_keep(&run->lease, &start, sent_ns, reterr);
        if (st != IL_OK)
            withdraw(run, true, "cannot keep the run alive");
    }
    il__op_give(&start, key, op);
    if (st == IL_OK)
        *ret = TAKE(run);
    return st;
}

/* ---- while it runs --------------------------------------------------------------------------- */

/* Find out how much of the log is in the store, if unknown and the output to write is not a
 * repetition. */
static il_status
log_look(il_run *run, const void *log, size_t log_bytes, il_error *reterr)
{
    il_op look = { .type = IL_OP_NONE };

    if (run->n_unsure == 0 ||
        (log_bytes >= run->n_unsure && il__hash_bytes(log, run->n_unsure) == run->unsure))
        return IL_OK;
    il_status st = look_at(run, &look, reterr);
    if (st == IL_OK && look.out.n_runs > 0) {
        run->n_logged = look.out.runs[0].log_bytes;
        run->n_unsure = 0;
    }
    il_op_release(&look);
    return st;
}

/* A stage with output, which is written right after the previous output. */
static il_status
stage_with_log(il_run *run, il_op *op, il_error *reterr)
{
    const il_run_in *in = &op->in.run;

    il__mutex_lock(&run->log_lock);
    il_status st = log_look(run, in->log, in->log_bytes, reterr);
    if (st == IL_OK) {
        op->flags |= IL_LOG_AT;
        op->in.run.offset = run->n_logged;
        st                = il_apply(run->lease.h, op, 1, reterr);
        if (st != IL_OK) {
            run->n_unsure = in->log_bytes;
            run->unsure   = il__hash_bytes(in->log, in->log_bytes);
        } else if (op->out.n_runs > 0) {
            run->n_unsure = 0;
            run->n_logged = op->out.runs[0].log_bytes;
        }
        if (st == IL_OK)
            st = il__error_of_op(op, reterr);
    }
    il__mutex_unlock(&run->log_lock);
    return st;
}

il_status
il_run_stage(il_run *run, const char *stage, int32_t progress, const void *log, size_t log_bytes,
             il_error *reterr)
{
    if (run == NULL)
        return il__error_set(reterr, IL_INVAL, "no run given");
    il_op op            = run_op(run, IL_OP_RUN_STAGE);
    op.in.run.stage     = stage;
    op.in.run.progress  = progress;
    op.in.run.log       = log;
    op.in.run.log_bytes = log_bytes;
    il_status st        = log != NULL && log_bytes > 0 ? stage_with_log(run, &op, reterr)
                                                       : il__apply_one(run->lease.h, &op, reterr);
    il__lease_answered(&run->lease, st, &op);
    il_op_release(&op);
    return st;
}

il_status
il_run_finish(il_run *run, il_run_state state, const char *error, il_error *reterr)
{
    if (run == NULL)
        return il__error_set(reterr, IL_INVAL, "no run given");
    il_op op        = run_op(run, IL_OP_RUN_FINISH);
    op.in.run.state = state;
    op.in.run.error = error;
    il_status st    = il__lease_end(&run->lease, &op, reterr);
    il_op_release(&op);
    return st;
}

const char *
il_run_id(const il_run *run)
{
    return run != NULL ? run->id : NULL;
}

const il_lease *
il_run_lease(const il_run *run)
{
    return run != NULL ? &run->lease : NULL;
}

/* ---- from outside ---------------------------------------------------------------------------- */

il_status
il_run_cancel(il *h, const char *id, const char *reason, il_error *reterr)
{
    il_op op = { .type = IL_OP_RUN_CANCEL };

    op.in.run.id    = id;
    op.in.run.error = reason;
    il_status st    = il__apply_one(h, &op, reterr);
    il_op_release(&op);
    return st;
}

il_status
il_run_get(il *h, const char *id, il_op *op, il_error *reterr)
{
    if (op == NULL)
        return il__error_set(reterr, IL_INVAL, "op must not be NULL");
    *op           = (il_op){ .type = IL_OP_RUN_GET };
    op->in.run.id = id;
    return il__apply_one(h, op, reterr);
}

il_status
il_run_wait(il *h, const char *id, int64_t timeout_ms, il_op *op, il_error *reterr)
{
    if (il__check_wait(timeout_ms, reterr) != IL_OK)
        return IL_INVAL;
    int64_t   until_ns = il__wait_until_ns(timeout_ms);
    il_status st       = il_run_get(h, id, op, reterr);

    while (st == IL_OK && op->out.n_runs > 0 && op->out.runs->state <= IL_RUN_RUNNING) {
        int64_t left = il__wait_left_ms(until_ns);
        st           = left != 0 ? il_wait(h, op, left) : IL_TIMEOUT;
        if (st == IL_TIMEOUT && left != 0)
            st = IL_OK; /* one last look */
        if (st != IL_OK)
            return il__gave_up(id, st, reterr);
        st = il__apply_one(h, op, reterr);
    }
    return st;
}
