/*
 * decode_job.c: decodes the jobs, queues and schedules in a reply.
 */
#include "base/arena.h"
#include "core/job.h"
#include "core/op.h"
#include "store/remote/remote.h"

static struct il__job
job_of(const json_t *row)
{
    return (struct il__job){
        .seq          = (uint64_t)il__remote_number(row, "seq"),
        .state        = (il_job_state)il__remote_number(row, "state"),
        .last         = (enum il__job_last)il__remote_number(row, "last"),
        .priority     = (int32_t)il__remote_number(row, "priority"),
        .attempt      = (uint32_t)il__remote_number(row, "attempt"),
        .max_attempts = (uint32_t)il__remote_number(row, "max_attempts"),
        .progress     = (int32_t)il__remote_number(row, "progress"),
        .token        = (uint64_t)il__remote_number(row, "token"),
        .is_parent    = il__remote_number(row, "is_parent") != 0,
        .cancelled    = il__remote_number(row, "cancelled") != 0,
        .expires_ms   = il__remote_number(row, "expires_ms"),
        .run_at_ms    = il__remote_number(row, "run_at_ms"),
        .created_ms   = il__remote_number(row, "created_at_ms"),
        .started_ms   = il__remote_number(row, "started_at_ms"),
        .updated_ms   = il__remote_number(row, "updated_at_ms"),
        .completed_ms = il__remote_number(row, "completed_at_ms"),
    };
}

/* Copy the strings of a row into the op's memory. False: no memory. */
static bool
copy_texts(il_op *op, const json_t *row, il_job_info *info)
{
    const char *const  names[]  = { "queue",      "id",     "parent", "group",
                                    "unique_key", "worker", "error",  "message" };
    const char **const fields[] = {
        &info->queue,      &info->id,     &info->parent, &info->group,
        &info->unique_key, &info->worker, &info->error,  &info->message
    };

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        *fields[i] = il__op_strdup(op, il__remote_text(row, names[i]));
        if (*fields[i] == NULL)
            return false;
    }
    info->tenant = il__op_strdup(op, op->tenant);
    return info->tenant != NULL;
}

/* A payload or result that is shown or, if it is too long for that, its size. */
static bool
copy_blob(il_op *op, const struct remote_blob *blob, const json_t *row, const char *size_name,
          const void **ret, size_t *ret_bytes)
{
    *ret_bytes = blob->data != NULL ? blob->n_bytes : (size_t)il__remote_number(row, size_name);
    if (blob->data != NULL)
        *ret = il__op_blob(op, blob->data, blob->n_bytes);
    return blob->data == NULL || *ret != NULL;
}

/* What the op itself says about its first job. */
static void
say_first(il_op *op)
{
    op->out.fence        = op->out.jobs[0].token;
    op->out.remaining_ms = op->out.jobs[0].remaining_ms;
}

static bool
show_job(il_op *op, const struct remote_part *part, int64_t now_ms, int64_t wall_ms, bool is_late)
{
    const json_t       *row      = part->json;
    struct il__job      job      = job_of(row);
    il_job_info         info     = { 0 };
    struct il__children children = {
        .n           = (uint64_t)il__remote_number(row, "n_children"),
        .n_completed = (uint64_t)il__remote_number(row, "n_children_completed"),
        .n_failed    = (uint64_t)il__remote_number(row, "n_children_failed"),
    };

    if (job.state == IL_JOB_NONE || (unsigned)job.state >= IL_JOB_STATE_COUNT)
        return false;
    il__job_show(&job, &children, now_ms, wall_ms, &info);
    if (!copy_texts(op, row, &info) ||
        !copy_blob(op, &part->blob, row, "payload_bytes", &info.payload, &info.payload_bytes) ||
        (info.state == IL_JOB_COMPLETED &&
         !copy_blob(op, &part->blob2, row, "result_bytes", &info.result, &info.result_bytes)))
        return false;
    il_job_info *slot = il__arena_append(&op->mem, &op->out.jobs, &op->out.n_jobs, sizeof *slot);
    if (slot == NULL)
        return false;
    *slot = info;
    if (op->out.n_jobs == 1 && op->type != IL_OP_JOB_LIST)
        say_first(op);
    if (is_late)
        il__job_say_stale(op, &job, info.worker);
    return true;
}

static int
by_token(const void *a, const void *b)
{
    uint64_t x = ((const il_job_info *)a)->token, y = ((const il_job_info *)b)->token;

    return (x > y) - (x < y);
}

/*
 * Tokens are drawn in claiming order, but a server may return rows in another one: usually they
 * come as found, but not with a plan made for nearly empty tables.
 */
static void
order_jobs(il_op *op)
{
    union {
        const il_job_info *shown;
        il_job_info       *ours; /* in the op's own memory */
    } jobs = { .shown = op->out.jobs };

    for (size_t i = 1; i < op->out.n_jobs; i++) {
        if (jobs.shown[i - 1].token < jobs.shown[i].token)
            continue;
        qsort(jobs.ours, op->out.n_jobs, sizeof *jobs.ours, by_token);
        return;
    }
}

bool
il__remote_decode_jobs(il_op *op, const struct remote_reply *reply)
{
    int64_t now_ms  = il__remote_number(reply->head, "now_ms");
    int64_t wall_ms = il__remote_number(reply->head, "wall_ms");
    bool    is_late = strcmp(il__remote_text(reply->head, "say"), "late") == 0;

    for (size_t i = 0; i < reply->n_parts; i++) {
        if (!show_job(op, &reply->parts[i], now_ms, wall_ms, is_late))
            return false;
    }
    if (op->type == IL_OP_JOB_CLAIM && op->out.n_jobs > 0) {
        order_jobs(op);
        say_first(op);
    } else if (reply->taken) {
        say_first(op);
    }
    return true;
}

/* ---- jobs that came as rows ------------------------------------------------------------------ */

/* A string of a row, or the default if it has none; empty ones are not copied. */
static const char *
row_text(il_op *op, const char *text, const char *other)
{
    if (text == NULL)
        text = other;
    return text != NULL && text[0] != '\0' ? il__op_strdup(op, text) : "";
}

/* Strings that the jobs of one claim share are stored once. */
static bool
row_texts(il_op *op, const struct remote_job *row, il_job_info *info)
{
    const il_job_info *first = op->out.n_jobs > 0 ? &op->out.jobs[0] : NULL;

    info->tenant     = first != NULL ? first->tenant : il__op_strdup(op, op->tenant);
    info->queue      = first != NULL ? first->queue : row_text(op, row->queue, op->key);
    info->worker     = first != NULL ? first->worker : row_text(op, row->worker, op->holder);
    info->id         = row_text(op, row->id, op->in.job.id);
    info->parent     = row_text(op, row->parent, "");
    info->group      = row_text(op, row->group, "");
    info->unique_key = row_text(op, row->unique_key, "");
    info->error      = row_text(op, row->error, "");
    info->message    = row_text(op, row->message, "");
    return info->tenant != NULL && info->queue != NULL && info->worker != NULL &&
           info->id != NULL && info->parent != NULL && info->group != NULL &&
           info->unique_key != NULL && info->error != NULL && info->message != NULL;
}

bool
il__remote_show_row(il_op *op, const struct remote_job *row, int64_t remaining_ms, int64_t wall_ms)
{
    bool        claimed = op->type == IL_OP_JOB_CLAIM;
    il_job_info info    = {
           .payload_bytes   = row->payload.n_bytes,
           .state           = claimed ? IL_JOB_RUNNING : IL_JOB_COMPLETED,
           .priority        = row->priority,
           .attempt         = row->attempt,
           .max_attempts    = row->max_attempts,
           .progress        = row->progress,
           .cancelled       = row->cancelled,
           .token           = row->token != 0 ? row->token : op->fence,
           .seq             = row->seq,
           .remaining_ms    = remaining_ms,
           .run_at_ms       = row->run_at_ms,
           .created_at_ms   = row->created_ms,
           .started_at_ms   = claimed ? wall_ms : row->started_ms,
           .updated_at_ms   = wall_ms,
           .completed_at_ms = claimed ? 0 : wall_ms,
    };

    if (!row_texts(op, row, &info))
        return false;
    if (row->payload.data != NULL)
        info.payload = il__op_blob(op, row->payload.data, row->payload.n_bytes);
    il_job_info *slot = il__arena_append(&op->mem, &op->out.jobs, &op->out.n_jobs, sizeof *slot);
    if (slot == NULL || (row->payload.data != NULL && info.payload == NULL))
        return false;
    *slot = info;
    if (!claimed) { /* a claim has a head, which says it */
        op->status = IL_OK;
        say_first(op);
    }
    return true;
}

/* ---- queues ---------------------------------------------------------------------------------- */

static il_queue_opts
opts_of(const json_t *row)
{
    return (il_queue_opts){
        .strategy              = (int32_t)il__remote_number(row, "strategy"),
        .max_attempts          = (int32_t)il__remote_number(row, "max_attempts"),
        .lease_ms              = il__remote_number(row, "lease_ms"),
        .backoff_ms            = il__remote_number(row, "backoff_ms"),
        .backoff_max_ms        = il__remote_number(row, "backoff_max_ms"),
        .group_limit           = (int32_t)il__remote_number(row, "group_limit"),
        .rate_n                = (int32_t)il__remote_number(row, "rate_n"),
        .rate_ms               = il__remote_number(row, "rate_ms"),
        .keep_ms               = il__remote_number(row, "keep_ms"),
        .keep_failed_ms        = il__remote_number(row, "keep_failed_ms"),
        .processing_timeout_ms = il__remote_number(row, "processing_timeout_ms"),
        .executing_timeout_ms  = il__remote_number(row, "executing_timeout_ms"),
    };
}

static void
count(const json_t *row, il_queue_info *info)
{
    info->n_workers   = (uint32_t)il__remote_number(row, "n_workers");
    info->n_scheduled = (uint64_t)il__remote_number(row, "n_scheduled");
    info->n_ready     = (uint64_t)il__remote_number(row, "n_ready");
    info->n_running   = (uint64_t)il__remote_number(row, "n_running");
    info->n_failed    = (uint64_t)il__remote_number(row, "n_failed");
    info->oldest_ms   = il__remote_number(row, "oldest_ms");
#define X(name, total) info->total = (uint64_t)il__remote_number(row, #total);
#include "core/totals.def"
#undef X
}

bool
il__remote_decode_queues(il_op *op, const json_t *head)
{
    const json_t *queues = json_object_get(head, "queues");

    for (size_t i = 0; i < json_array_size(queues); i++) {
        const json_t *row  = json_array_get(queues, i);
        il_queue_info info = {
            .tenant = il__op_strdup(op, op->tenant),
            .name   = il__op_strdup(op, il__remote_text(row, "name")),
            .reason = il__op_strdup(op, il__remote_text(row, "reason")),
            .paused = (uint32_t)il__remote_number(row, "paused"),
            .opts   = opts_of(row),
        };
        count(row, &info);
        il_queue_info *slot =
            il__arena_append(&op->mem, &op->out.queues, &op->out.n_queues, sizeof *slot);
        if (slot == NULL || info.tenant == NULL || info.name == NULL || info.reason == NULL)
            return false;
        *slot = info;
    }
    return true;
}

/* ---- schedules ------------------------------------------------------------------------------- */

bool
il__remote_decode_crons(il_op *op, const struct remote_reply *reply)
{
    for (size_t i = 0; i < reply->n_parts; i++) {
        const struct remote_part *part = &reply->parts[i];
        const json_t             *row  = part->json;
        il_cron_info              info = {
                         .tenant        = il__op_strdup(op, op->tenant),
                         .name          = il__op_strdup(op, il__remote_text(row, "name")),
                         .queue         = il__op_strdup(op, il__remote_text(row, "queue")),
                         .schedule      = il__op_strdup(op, il__remote_text(row, "schedule")),
                         .payload       = il__op_blob(op, part->blob.data, part->blob.n_bytes),
                         .payload_bytes = part->blob.n_bytes,
                         .missed        = (il_missed)il__remote_number(row, "missed"),
                         .priority      = (int32_t)il__remote_number(row, "priority"),
                         .max_attempts  = (uint32_t)il__remote_number(row, "max_attempts"),
                         .n_ticks       = (uint64_t)il__remote_number(row, "n_ticks"),
                         .next_at_ms    = il__remote_number(row, "next_at_ms"),
                         .last_at_ms    = il__remote_number(row, "last_at_ms"),
        };
        il_cron_info *slot =
            il__arena_append(&op->mem, &op->out.crons, &op->out.n_crons, sizeof *slot);
        if (slot == NULL || info.tenant == NULL || info.name == NULL || info.queue == NULL ||
            info.schedule == NULL || info.payload == NULL)
            return false;
        *slot = info;
    }
    return true;
}
