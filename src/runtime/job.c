/*
 * job.c: il_push(), il_claim() and the jobs it returns. The rules are in core/queue.md.
 *
 * The jobs of one claim share its answer, which contains their payloads; freeing the last job frees
 * it.
 */
#include <inttypes.h>

#include "base/clock.h"
#include "base/error.h"
#include "core/limits.h"
#include "runtime/handle.h"

/* The answer to a claim. */
struct claim {
    il_op       op;
    atomic_uint n_refs;
};

struct il_job {
    il_lease           lease; /* its key is the job's id, its holder the worker */
    struct claim      *claim;
    const il_job_info *info;
    il_claim_opts      opts;   /* the callbacks; its strings are not used */
    int64_t            due_ms; /* after it was given back: when it is due again; -1 = unknown */
};

static il_job *
job_of(il_lease *lease)
{
    return container_of(lease, il_job, lease);
}

static void
claim_unref(struct claim *claim)
{
    if (atomic_fetch_sub(&claim->n_refs, 1) > 1)
        return;
    il_op_release(&claim->op);
    il__free(claim);
}
DEFINE_AUTO(struct claim, claim_unref)

/* ---- renewal --------------------------------------------------------------------------------- */

static il_op
job_op(const il_lease *lease, il_op_type type)
{
    il_op op = { .type = type, .fence = lease->fence };

    op.in.job.id = lease->key;
    return op;
}

static il_op
job_renewal(il_lease *lease)
{
    il_op op = job_op(lease, IL_OP_JOB_HEARTBEAT);

    op.in.job.progress = -1;
    return op;
}

static void
job_lost(il_lease *lease, const char *why)
{
    il_job *job = job_of(lease);

    if (job->opts.on_lost != NULL)
        job->opts.on_lost(job->opts.cookie, job, why);
}

static void
job_cancelled(il_lease *lease, const char *reason)
{
    il_job *job = job_of(lease);

    if (job->opts.on_cancel != NULL)
        job->opts.on_cancel(job->opts.cookie, job, reason);
}

static const struct il__lease_kind job_kind = {
    .renewal   = job_renewal,
    .on_lost   = job_lost,
    .on_cancel = job_cancelled,
};

void
il_job_free(il_job *job)
{
    if (job == NULL)
        return;
    il__lease_release(&job->lease);
    if (job->claim != NULL)
        claim_unref(job->claim);
    il__free(job);
}
DEFINE_AUTO(il_job, il_job_free)

static il_job *
job_new(il *h, struct claim *claim, const il_job_info *info, const char *worker,
        const il_claim_opts *opts)
{
    AUTO(il_job_freep) il_job *job = il__calloc(1, sizeof *job);

    if (job == NULL ||
        !il__lease_init(&job->lease, h, &job_kind, info->id, worker, info->remaining_ms))
        return NULL;
    atomic_fetch_add(&claim->n_refs, 1);
    job->claim         = claim;
    job->due_ms        = -1;
    job->info          = info;
    job->opts          = *opts;
    job->lease.fence   = info->token;
    job->lease.renewed = (opts->flags & IL_CLAIM_SILENT) == 0;
    return TAKE(job);
}

/* ---- pushing --------------------------------------------------------------------------------- */

static il_op
push_op(const char *queue, const char *id, const il_push_opts *opts)
{
    il_op op = { .type = IL_OP_JOB_PUSH, .key = queue, .flags = opts->flags };

    op.in.job = (il_job_in){
        .id            = id,
        .group         = opts->group,
        .unique_key    = opts->unique_key,
        .unique_for_ms = opts->unique_for_ms,
        .parent        = opts->parent,
        .n_children    = opts->n_children,
        .priority      = opts->priority,
        .delay_ms      = opts->delay_ms,
        .run_at_ms     = opts->run_at_ms,
        .max_attempts  = opts->max_attempts,
    };
    return op;
}

il_status
il_push(il *h, const char *queue, const void *payload, size_t payload_bytes,
        const il_push_opts *opts, char ret_id[IL_ID_BYTES_MAX + 1], il_error *reterr)
{
    static const il_push_opts defaults = IL_PUSH_OPTS_INIT;
    char                      made[37];

    if (opts == NULL)
        opts = &defaults;
    if (opts->struct_size != sizeof *opts)
        return il__error_set(reterr, IL_INVAL,
                             "il_push_opts was not initialized with IL_PUSH_OPTS_INIT");
    if (opts->id == NULL && il_uuid(made) != IL_OK)
        return il__error_set(reterr, IL_STORE, "cannot read random bytes");
    il_op op             = push_op(queue, opts->id != NULL ? opts->id : made, opts);
    op.in.job.data       = payload;
    op.in.job.data_bytes = payload_bytes;
    il_status st         = il__apply_sure(h, &op, reterr);
    if (st == IL_OK)
        st = il__error_of_op(&op, reterr);
    if ((st == IL_OK || st == IL_DUPLICATE) && ret_id != NULL && op.out.n_jobs > 0)
        (void)snprintf(ret_id, IL_ID_BYTES_MAX + 1, "%s", op.out.jobs->id); /* fits: limits agree */
    il_op_release(&op);
    return st;
}

/* ---- claiming -------------------------------------------------------------------------------- */

/*
 * Repeat the claim until it returns a job or the wait is over. All attempts are one claim with one
 * id: if it has already claimed jobs, because an answer was lost or a server waited on our behalf
 * (il_wait()), repeating it returns those; otherwise it tries again.
 */
static il_status
claim_loop(il *h, il_op *op, int64_t until_ns, int64_t *ret_sent_ns, il_error *reterr)
{
    char      id[37];
    il_status st;

    if (il_uuid(id) != IL_OK)
        return il__error_set(reterr, IL_STORE, "cannot read random bytes");
    op->in.job.id = id;
    for (;;) {
        *ret_sent_ns = il__clock_boot_ns();
        st           = il__apply_sure(h, op, reterr);
        if (st != IL_OK)
            break; /* jobs it may have claimed are recovered when they expire */
        int64_t left_ms = il__wait_left_ms(until_ns);
        if (op->status != IL_EMPTY || left_ms == 0) {
            st = il__error_of_op(op, reterr);
            break;
        }
        st = il_wait(h, op, left_ms);
        if (st != IL_OK && st != IL_TIMEOUT) {
            st = il__gave_up(op->key, st, reterr);
            break;
        }
    }
    op->in.job.id = NULL;
    return st;
}

/* A job that cannot be kept becomes ready again, as if it had not been claimed. */
static void
give_back(il *h, const il_job_info *info)
{
    il_op op = { .type = IL_OP_JOB_SNOOZE, .fence = info->token };

    op.in.job.id = info->id;
    IGNORE(il_apply(h, &op, 1, NULL)); /* else its claim expires */
    il_op_release(&op);
}

/* Keep the jobs of a claim sent at sent_ns, as many as memory allows; give the others back. */
static il_status
keep_jobs(struct claim *claim, il *h, const il_claim_opts *opts, int64_t sent_ns, il_job **ret,
          size_t *ret_n, il_error *reterr)
{
    il_status st = il__keeper_start(h, true, reterr);
    size_t    n  = 0;

    for (size_t i = 0; i < claim->op.out.n_jobs; i++) {
        const il_job_info *info = &claim->op.out.jobs[i];
        il_job *job = st == IL_OK ? job_new(h, claim, info, claim->op.holder, opts) : NULL;
        if (job == NULL) {
            give_back(h, info);
            continue;
        }
        il__lease_extended(&job->lease, sent_ns, info->remaining_ms);
        il__keeper_add(h, &job->lease);
        ret[n++] = job;
    }
    if (n == 0)
        return st != IL_OK
                   ? st
                   : il__error_set(reterr, IL_NOMEM, "out of memory or descriptors for a job");
    *ret_n = n;
    return IL_OK;
}

static il_status
check_claim_opts(const il_claim_opts *opts, il_error *reterr)
{
    if (opts->struct_size != sizeof *opts)
        return il__error_set(reterr, IL_INVAL,
                             "il_claim_opts was not initialized with IL_CLAIM_OPTS_INIT");
    return il__check_wait(opts->wait_ms, reterr);
}

il_status
il_claim(il *h, const char *queue, const il_claim_opts *opts, il_job **ret, size_t *ret_n,
         il_error *reterr)
{
    static const il_claim_opts defaults = IL_CLAIM_OPTS_INIT;
    char                       made[37];
    int64_t                    sent_ns = 0;

    if (opts == NULL)
        opts = &defaults;
    if (h == NULL || ret == NULL || ret_n == NULL)
        return il__error_set(reterr, IL_INVAL, "h, ret and ret_n must not be NULL");
    if (check_claim_opts(opts, reterr) != IL_OK)
        return IL_INVAL;
    if (opts->worker == NULL && il_uuid(made) != IL_OK)
        return il__error_set(reterr, IL_STORE, "cannot read random bytes");
    AUTO(claim_unrefp) struct claim *claim = il__calloc(1, sizeof *claim);
    if (claim == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a claim");
    atomic_init(&claim->n_refs, 1);
    claim->op                 = (il_op){ .type   = IL_OP_JOB_CLAIM,
                                         .key    = queue,
                                         .holder = opts->worker != NULL ? opts->worker : made,
                                         .flags  = opts->flags & IL_CLAIM_SILENT };
    claim->op.in.job.limit    = opts->limit;
    claim->op.in.job.lease_ms = opts->lease_ms;
    il_status st = claim_loop(h, &claim->op, il__wait_until_ns(opts->wait_ms), &sent_ns, reterr);
    if (st == IL_OK)
        st = keep_jobs(claim, h, opts, sent_ns, ret, ret_n, reterr);
    claim->op.key    = NULL; /* the caller's */
    claim->op.holder = NULL;
    return st;
}

/* ---- with a job ------------------------------------------------------------------------------ */

const il_job_info *
il_job_look(const il_job *job)
{
    return job != NULL ? job->info : NULL;
}

const il_lease *
il_job_lease(const il_job *job)
{
    return job != NULL ? &job->lease : NULL;
}

il_status
il_job_progress(il_job *job, int32_t percent, const char *message, il_error *reterr)
{
    if (job == NULL)
        return il__error_set(reterr, IL_INVAL, "no job given");
    il_op   op         = job_op(&job->lease, IL_OP_JOB_HEARTBEAT);
    int64_t sent_ns    = il__clock_boot_ns();
    op.in.job.progress = percent;
    op.in.job.text     = message;
    il_status st       = il__apply_one(job->lease.h, &op, reterr);
    if (st == IL_OK)
        il__lease_extended(&job->lease, sent_ns, op.out.remaining_ms);
    il__lease_answered(&job->lease, st, &op);
    il_op_release(&op);
    return st;
}

/* End the claim with an op of this type and these inputs, plus the id. */
static il_status
job_end(il_job *job, il_op_type type, uint32_t flags, il_job_in in, il_error *reterr)
{
    if (job == NULL)
        return il__error_set(reterr, IL_INVAL, "no job given");
    il_op op     = job_op(&job->lease, type);
    op.flags     = flags;
    op.in.job    = in;
    op.in.job.id = job->lease.key;
    il_status st = il__lease_end(&job->lease, &op, reterr);
    if (st == IL_OK && op.out.n_jobs > 0 &&
        (op.out.jobs[0].state == IL_JOB_SCHEDULED || op.out.jobs[0].state == IL_JOB_READY))
        job->due_ms = MAX(op.out.jobs[0].run_at_ms - op.out.jobs[0].updated_at_ms, 0);
    il_op_release(&op);
    return st;
}

int64_t
il__job_due_ms(const il_job *job)
{
    return job->due_ms;
}

il_status
il_job_finish(il_job *job, const void *result, size_t result_bytes, il_error *reterr)
{
    il_job_in in = { .data = result, .data_bytes = result_bytes };

    return job_end(job, IL_OP_JOB_FINISH, 0, in, reterr);
}

il_status
il_job_fail(il_job *job, const char *error, uint32_t flags, int64_t delay_ms, il_error *reterr)
{
    il_job_in in = { .text = error, .delay_ms = delay_ms };

    return job_end(job, IL_OP_JOB_FAIL, flags, in, reterr);
}

il_status
il_job_snooze(il_job *job, int64_t delay_ms, il_error *reterr)
{
    il_job_in in = { .delay_ms = delay_ms };

    return job_end(job, IL_OP_JOB_SNOOZE, 0, in, reterr);
}
