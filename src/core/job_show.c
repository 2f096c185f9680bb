/*
 * job_show.c: the displayed numbers of jobs and queues, the same on every engine.
 */
#include "core/job.h"

void
il__job_show(const struct il__job *j, const struct il__children *children, int64_t now_ms,
             int64_t wall_ms, il_job_info *info)
{
    info->state                = il__job_view(j, wall_ms);
    info->priority             = j->priority;
    info->attempt              = j->attempt;
    info->max_attempts         = j->max_attempts;
    info->progress             = j->progress;
    info->cancelled            = j->cancelled;
    info->is_parent            = j->is_parent;
    info->n_children           = (uint32_t)children->n;
    info->n_children_completed = (uint32_t)children->n_completed;
    info->n_children_failed    = (uint32_t)children->n_failed;
    info->token                = j->token;
    info->seq                  = j->seq;
    info->remaining_ms         = il__job_remaining_ms(j, now_ms);
    info->run_at_ms            = j->run_at_ms;
    info->created_at_ms        = j->created_ms;
    info->started_at_ms        = j->started_ms;
    info->updated_at_ms        = j->updated_ms;
    info->completed_at_ms      = j->completed_ms;
}

void
il__totals_show(const struct il__totals *t, il_queue_info *info)
{
#define X(name, total) info->total = t->total;
#include "core/totals.def"
#undef X
}
