/*
 * say.c: prints an order as one line; README.md explains how to read it.
 */
#include <stdarg.h>
#include <stdio.h>

#include "spec/play_internal.h"

void
play_say(struct play *p, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(p->out + p->n_out, p->n_out_max - p->n_out, fmt, ap);
    va_end(ap);
    CHECK(n >= 0);
    p->n_out = MIN(p->n_out + (size_t)n, p->n_out_max - 1);
}

void
play_say_where(struct play *p, const struct player *pl, char mark)
{
    if (mark == ',' && p->speaker == pl)
        play_say(p, ",");
    else
        play_say(p, "%s%s%c", p->n_out > 0 ? " " : "", pl->session->steps[pl->i_step].name,
                 mark == ',' ? '+' : mark);
    p->speaker = pl;
}

static unsigned
rank_of(struct play *p, uint64_t fence)
{
    for (size_t i = 0; i < p->n_fences; i++) {
        if (p->fences[i] == fence)
            return (unsigned)i + 1;
    }
    CHECK(p->n_fences < FENCES_MAX);
    p->fences[p->n_fences++] = fence;
    return (unsigned)p->n_fences;
}

void
play_say_lease(struct play *p, const il_lease_info *it)
{
    static const char marks[IL_LEASE_STATE_COUNT] = {
        [IL_LEASE_OFFERED] = '?', [IL_LEASE_CLOSING] = 'x'
    };

    play_say(p, "%s#%u", it->holder, rank_of(p, it->fence));
    if (marks[it->state] != '\0')
        play_say(p, "%c", marks[it->state]);
}

/* A value, as far as it is a word. */
static void
say_value(struct play *p, const il_op *op)
{
    if (op->out.value != NULL)
        play_say(p, ":%s", (const char *)op->out.value);
    if ((op->out.flags & IL_OUT_NEGATIVE) != 0 || op->out.code != 0)
        play_say(p, "/%d", op->out.code);
}

void
play_say_run(struct play *p, const il_run_info *run)
{
    play_say(p, "%s", il_run_state_name(run->state));
    if (run->fence != 0)
        play_say(p, "#%u", rank_of(p, run->fence));
    if (run->cancelled != 0 && run->state == IL_RUN_RUNNING)
        play_say(p, "c");
    if (run->error[0] != '\0')
        play_say(p, "(%s)", run->error);
}

void
play_say_job(struct play *p, const il_job_info *job)
{
    play_say(p, "%s", il_job_state_name(job->state));
    if (job->is_parent != 0)
        play_say(p, "[%u+%u/%u]", job->n_children_completed, job->n_children_failed,
                 job->n_children);
    else if (job->token != 0)
        play_say(p, "#%u*%u", rank_of(p, job->token), job->attempt);
    if (job->cancelled != 0 && job->state == IL_JOB_RUNNING)
        play_say(p, "c");
}

static void
say_flags(struct play *p, const il_op *op)
{
    static const struct {
        uint32_t flag;
        char     mark;
    } marks[] = {
        { IL_OUT_RENEWED, '~' },   { IL_OUT_ORDER_WARNING, '!' }, { IL_OUT_CANCEL, 'c' },
        { IL_OUT_SKIPPED, 's' },   { IL_OUT_PAUSED, 'p' },        { IL_OUT_LIMITED, 'l' },
        { IL_OUT_TAKEOVER, 't' },  { IL_OUT_EARLY, 'e' },         { IL_OUT_LIVE_LIMIT, 'l' },
        { IL_OUT_DAY_LIMIT, 'd' },
    };

    for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
        if ((op->out.flags & marks[i].flag) != 0)
            play_say(p, "%c", marks[i].mark);
    }
}

/* The leases that were asked for, instead of a status. */
static void
say_leases(struct play *p, const il_op *op)
{
    for (size_t i = 0; i < op->out.n_items; i++) {
        play_say(p, "%s", i > 0 ? "+" : "");
        if (op->type == IL_OP_LIST)
            play_say(p, "%s:", op->out.items[i].key);
        play_say_lease(p, &op->out.items[i]);
    }
    if (op->type == IL_OP_LIST && op->out.n_items == 0)
        play_say(p, "none");
}

/* The id of a tick's job is made of hashes. */
static const char *
job_name(const il_job_info *job)
{
    return strncmp(job->id, "cron-", 5) == 0 ? "tick" : job->id;
}

/* What was claimed, instead of a status. */
static void
say_claimed(struct play *p, const il_op *op)
{
    for (size_t i = 0; i < op->out.n_jobs; i++)
        play_say(p, "%s%s#%u", i > 0 ? "+" : "", job_name(&op->out.jobs[i]),
                 rank_of(p, op->out.jobs[i].token));
}

/* Who or what is in the way, or was meant. */
static void
say_other(struct play *p, const il_op *op)
{
    if (op->type == IL_OP_RUN_GET && op->out.n_runs > 0)
        play_say_run(p, &op->out.runs[0]);
    else if (op->type == IL_OP_JOB_GET && op->out.n_jobs > 0)
        play_say_job(p, &op->out.jobs[0]);
    else if (op->status == IL_HELD && op->out.n_items > 0)
        play_say(p, ":%s", op->out.items[0].holder);
    else if (op->status != IL_OK && op->out.n_runs > 0)
        play_say(p, ":%s", op->out.runs[0].id);
    else if (op->status == IL_DUPLICATE && op->out.n_jobs > 0)
        play_say(p, ":%s", op->out.jobs[0].id);
    say_value(p, op);
}

static bool
shows_instead(const il_op *op)
{
    return op->status == IL_OK &&
           (op->type == IL_OP_GET || op->type == IL_OP_LIST || op->type == IL_OP_JOB_CLAIM ||
            op->type == IL_OP_RUN_GET || op->type == IL_OP_JOB_GET);
}

static bool
grants(const il_op *op)
{
    bool granted = op->type == IL_OP_ACQUIRE || op->type == IL_OP_ONCE_BEGIN ||
                   (op->type == IL_OP_RUN_START && (op->flags & IL_RUN_SLOT) == 0);

    return (op->status == IL_OK && granted) || op->status == IL_LEAD;
}

void
play_say_result(struct play *p, const il_op *op, bool waits)
{
    if (waits)
        play_say(p, "<waiting>");
    else if (!shows_instead(op))
        play_say(p, "%s", il_status_name(op->status));
    if (op->status == IL_QUEUED)
        play_say(p, "@%u", op->out.position);
    if (grants(op))
        play_say(p, "#%u", rank_of(p, op->out.fence));
    if (op->status == IL_OK && (op->type == IL_OP_GET || op->type == IL_OP_LIST))
        say_leases(p, op);
    if (op->status == IL_OK && op->type == IL_OP_JOB_CLAIM)
        say_claimed(p, op);
    say_flags(p, op);
    if (!waits || op->status == IL_QUEUED)
        say_other(p, op);
}

/* ---- what is left ---------------------------------------------------------------------------- */

static void
say_left_leases(struct play *p, bool waiters)
{
    il_op op = { .type = IL_OP_LIST, .flags = waiters ? IL_LIST_WAITERS : 0 };

    play_apply(p, p->players[0].h, &op);
    for (size_t i = 0; i < op.out.n_items; i++) {
        play_say(p, " %s%c", op.out.items[i].key, waiters ? '<' : '=');
        if (waiters)
            play_say(p, "%s", op.out.items[i].holder);
        else
            play_say_lease(p, &op.out.items[i]);
    }
    il_op_release(&op);
}

/* Oldest first. */
static void
say_left_runs(struct play *p)
{
    il_op op = { .type = IL_OP_RUN_LIST };

    play_apply(p, p->players[0].h, &op);
    for (size_t i = op.out.n_runs; i-- > 0;) {
        play_say(p, " %s=", op.out.runs[i].id);
        play_say_run(p, &op.out.runs[i]);
    }
    il_op_release(&op);
}

static void
say_left_jobs(struct play *p)
{
    il_op queues = { .type = IL_OP_QUEUE_LIST };

    play_apply(p, p->players[0].h, &queues);
    for (size_t i = 0; i < queues.out.n_queues; i++) {
        il_op op = { .type = IL_OP_JOB_LIST, .key = queues.out.queues[i].name };
        play_apply(p, p->players[0].h, &op);
        for (size_t k = op.out.n_jobs; k-- > 0;) {
            play_say(p, " %s=", job_name(&op.out.jobs[k]));
            play_say_job(p, &op.out.jobs[k]);
        }
        if (queues.out.queues[i].stale > 0)
            play_say(p, " %s.stale=%u", queues.out.queues[i].name,
                     (unsigned)queues.out.queues[i].stale);
        il_op_release(&op);
    }
    il_op_release(&queues);
}

/* Values have no listing: what the commands of the spec name is looked up. */
static void
say_left_value(struct play *p, const struct command *c, il_op_type type)
{
    il_op op = { .type = type, .key = c->name, .holder = "nobody" };

    if (type == IL_OP_NONE)
        return;
    play_apply(p, p->players[0].h, &op);
    play_say(p, " %s=", c->name);
    play_say_result(p, &op, false);
    il_op_release(&op);
}

static il_op_type
getter_of(const struct command *c)
{
    if (c->type == IL_OP_ONCE_BEGIN)
        return IL_OP_ONCE_GET;
    return c->type == IL_OP_CACHE_LOOKUP ? IL_OP_CACHE_GET : IL_OP_NONE;
}

/* Is it the first command of its kind with this key? */
static bool
is_first(const struct play *p, const struct command *c)
{
    for (size_t i = 0; i < p->n_players; i++) {
        const struct session *s = p->players[i].session;
        for (size_t k = 0; k < s->n_steps; k++) {
            for (size_t n = 0; n < s->steps[k].n_commands; n++) {
                const struct command *other = &s->steps[k].commands[n];
                if (other->type == c->type && strcmp(other->name, c->name) == 0)
                    return other == c;
            }
        }
    }
    return false;
}

void
play_say_end(struct play *p)
{
    say_left_leases(p, false);
    say_left_leases(p, true);
    say_left_runs(p);
    say_left_jobs(p);
    for (size_t i = 0; i < p->n_players; i++) {
        const struct session *s = p->players[i].session;
        for (size_t k = 0; k < s->n_steps; k++) {
            for (size_t n = 0; n < s->steps[k].n_commands; n++) {
                const struct command *c = &s->steps[k].commands[n];
                if (c->verb == VERB_OP && is_first(p, c))
                    say_left_value(p, c, getter_of(c));
            }
        }
    }
}
