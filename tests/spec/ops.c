/*
 * ops.c: translates a command into an op.
 */
#include <stdio.h>

#include "core/op.h"
#include "spec/play_internal.h"

static const char *
or_null(const char *text)
{
    return text[0] != '\0' ? text : NULL;
}

/* ---- fences and tokens that sessions remember ------------------------------------------------ */

/* What a fence belongs to: the key of a lock, the id of a run or job, … */
static void
name_of(const il_op *op, const char *id, char name[HELD_BYTES])
{
    static const char *const kinds[] = {
        [IL__FAMILY_LOCK] = "lock", [IL__FAMILY_RUN] = "run",     [IL__FAMILY_ONCE] = "once",
        [IL__FAMILY_QUEUE] = "job", [IL__FAMILY_CACHE] = "cache",
    };
    enum il__family family = il__op_family(op->type);
    bool            by_id  = family == IL__FAMILY_RUN || family == IL__FAMILY_QUEUE;

    (void)snprintf(name, HELD_BYTES, "%s %s", kinds[family], by_id ? id : op->key);
}

static void
remember(struct play *p, const il_op *op, const char *id, uint64_t fence)
{
    CHECK(p->n_helds < FENCES_MAX);
    struct held *h = &p->helds[p->n_helds++];
    name_of(op, id, h->name);
    (void)snprintf(h->holder, sizeof h->holder, "%s", op->holder);
    h->fence = fence;
}

void
play_remember(struct play *p, const il_op *op)
{
    bool granted =
        op->status == IL_OK && (op->type == IL_OP_ACQUIRE || op->type == IL_OP_ONCE_BEGIN);

    if (granted || op->status == IL_LEAD)
        remember(p, op, NULL, op->out.fence);
    if (op->status == IL_OK && op->type == IL_OP_RUN_START && (op->flags & IL_RUN_SLOT) == 0)
        remember(p, op, op->in.run.id, op->out.fence);
    for (size_t i = 0; op->status == IL_OK && op->type == IL_OP_JOB_CLAIM && i < op->out.n_jobs;
         i++)
        remember(p, op, op->out.jobs[i].id, op->out.jobs[i].token);
}

static uint64_t
remembered(const struct play *p, const il_op *op, const char *id)
{
    char name[HELD_BYTES];

    name_of(op, id, name);
    for (size_t i = p->n_helds; i-- > 0;) {
        if (strcmp(p->helds[i].name, name) == 0 && strcmp(p->helds[i].holder, op->holder) == 0)
            return p->helds[i].fence;
    }
    return 1; /* never had it: a fence that nobody has */
}

/* ---- inputs ---------------------------------------------------------------------------------- */

static il_lock_in
lock_in(const struct command *c)
{
    return (il_lock_in){
        .ttl_ms    = c->ttl_ms,
        .wait_ms   = c->wait_ms,
        .settle_ms = c->settle_ms,
        .mode      = c->mode,
        .permits   = (uint32_t)c->permits,
        .place     = or_null(c->place),
        .reason    = "spec",
    };
}

static il_policy
policy_of(const struct play *p, const char *name)
{
    for (int i = 0; i < IL_POLICY_COUNT; i++) {
        if (strcmp(il_policy_name((il_policy)i), name) == 0)
            return (il_policy)i;
    }
    if (name[0] != '\0')
        T_FAIL("%s: there is no policy '%s'", p->sp->path, name);
    return IL_POLICY_JOIN;
}

static il_run_in
run_in(const struct play *p, const struct command *c)
{
    return (il_run_in){
        .id        = c->id,
        .policy    = policy_of(p, c->policy),
        .queue_max = (uint32_t)c->limit,
        .ttl_ms    = c->ttl_ms,
        .wait_ms   = c->wait_ms,
        .settle_ms = c->settle_ms,
        .keep_ms   = c->keep_ms,
        .meta      = or_null(c->meta),
        .stage     = or_null(c->meta),
        .progress  = c->progress != 0 ? (int32_t)c->progress : -1,
        .state     = c->state[0] != '\0' ? il_run_state_parse(c->state) : IL_RUN_COMPLETED,
        .error     = c->type == IL_OP_RUN_CANCEL ? "spec" : NULL,
        .log       = c->value,
        .log_bytes = strlen(c->value),
        .live_max  = (uint32_t)c->live_max,
        .day_max   = (uint32_t)c->day_max,
    };
}

static il_once_in
once_in(const struct command *c)
{
    return (il_once_in){
        .fingerprint       = c->print,
        .fingerprint_bytes = strlen(c->print),
        .lease_ms          = c->ttl_ms,
        .keep_ms           = c->keep_ms,
        .meta              = or_null(c->meta),
        .response          = c->value,
        .response_bytes    = strlen(c->value),
        .code              = (int32_t)c->code,
    };
}

static il_job_in
job_in(struct play *p, const struct command *c)
{
    if (c->type == IL_OP_JOB_CLAIM) /* each claim has an id of its own */
        (void)snprintf(p->claim_id, sizeof p->claim_id, "claim-%u", p->n_claims++);
    return (il_job_in){
        .id            = c->type == IL_OP_JOB_CLAIM ? p->claim_id : c->id,
        .data          = c->value,
        .data_bytes    = strlen(c->value),
        .group         = or_null(c->group),
        .unique_key    = or_null(c->unique),
        .unique_for_ms = c->period_ms,
        .parent        = or_null(c->parent),
        .n_children    = (uint32_t)c->children,
        .priority      = (int32_t)c->priority,
        .delay_ms      = c->delay_ms,
        .max_attempts  = (uint32_t)c->attempts,
        .limit         = (uint32_t)c->limit,
        .lease_ms      = c->lease_ms,
        .progress      = c->progress != 0 ? (int32_t)c->progress : -1,
        .text          = "spec",
    };
}

static il_queue_opts
queue_in(const struct command *c)
{
    return (il_queue_opts){
        .strategy       = strcmp(c->strategy, "optimistic") == 0 ? 1 + IL_STRATEGY_OPTIMISTIC : 0,
        .max_attempts   = (int32_t)c->attempts,
        .lease_ms       = c->lease_ms,
        .backoff_ms     = c->delay_ms,
        .group_limit    = (int32_t)c->group_limit,
        .rate_n         = (int32_t)c->rate,
        .rate_ms        = c->rate_ms,
        .keep_ms        = c->keep_ms,
        .keep_failed_ms = c->keep_ms,
    };
}

/* The schedule with its blanks goes to the player, which outlives the op. */
static il_cron_in
cron_in(const struct command *c, struct player *pl)
{
    (void)snprintf(pl->schedule, sizeof pl->schedule, "%s", c->schedule);
    for (char *s = pl->schedule; *s != '\0'; s++)
        *s = *s == '_' ? ' ' : *s;
    return (il_cron_in){
        .name       = c->id,
        .schedule   = pl->schedule,
        .data       = c->value,
        .data_bytes = strlen(c->value),
        .missed     = strcmp(c->missed, "all") == 0   ? IL_MISSED_ALL
                      : strcmp(c->missed, "one") == 0 ? IL_MISSED_ONE
                                                      : IL_MISSED_SKIP,
    };
}

static il_cache_in
cache_in(const struct command *c)
{
    return (il_cache_in){
        .value       = c->value,
        .value_bytes = strlen(c->value),
        .ttl_ms      = c->ttl_ms != 0 ? c->ttl_ms : 10000,
        .grace_ms    = c->grace_ms,
        .lease_ms    = c->lease_ms,
        .chance      = (uint32_t)c->chance,
        .code        = (int32_t)c->code,
    };
}

static void
fill_in(struct play *p, struct player *pl, const struct command *c, il_op *op)
{
    if (c->type == IL_OP_LIST)
        return;
    if (c->type == IL_OP_JOB_PURGE)
        op->in.list = (il_list_in){ .states = 1U << il_job_state_parse(c->state) };
    else if (c->type == IL_OP_QUEUE_SET)
        op->in.queue = queue_in(c);
    else if (c->type == IL_OP_CRON_SET)
        op->in.cron = cron_in(c, pl);
    else if (il__op_family(c->type) == IL__FAMILY_RUN)
        op->in.run = run_in(p, c);
    else if (il__op_family(c->type) == IL__FAMILY_ONCE)
        op->in.once = once_in(c);
    else if (il__op_family(c->type) == IL__FAMILY_QUEUE)
        op->in.job = job_in(p, c);
    else if (il__op_family(c->type) == IL__FAMILY_CACHE)
        op->in.cache = cache_in(c);
    else
        op->in.lock = lock_in(c);
}

static uint64_t
newest_fence(struct play *p, struct player *pl, const char *key)
{
    il_op op = { .type = IL_OP_GET, .key = key };

    play_apply(p, pl->h, &op);
    uint64_t fence = op.out.fence;
    il_op_release(&op);
    return fence != 0 ? fence : 1;
}

static bool
takes_fence(il_op_type type)
{
    return type == IL_OP_RENEW || type == IL_OP_RELEASE || type == IL_OP_BREAK ||
           type == IL_OP_CHECK_FENCE || type == IL_OP_RUN_STAGE || type == IL_OP_RUN_FINISH ||
           type == IL_OP_ONCE_FINISH || type == IL_OP_ONCE_ABANDON || type == IL_OP_JOB_HEARTBEAT ||
           type == IL_OP_JOB_FINISH || type == IL_OP_JOB_FAIL || type == IL_OP_JOB_SNOOZE ||
           type == IL_OP_CACHE_FILL || type == IL_OP_CACHE_ABANDON;
}

il_op
play_op(struct play *p, struct player *pl, const struct command *c)
{
    il_op op = {
        .type   = c->type,
        .flags  = c->flags,
        .key    = or_null(c->name),
        .holder = c->holder[0] != '\0' ? c->holder : pl->session->name,
    };

    fill_in(p, pl, c, &op);
    if (c->type == IL_OP_BREAK && c->holder[0] == '\0')
        op.fence = newest_fence(p, pl, c->name); /* whoever has it */
    else if (takes_fence(c->type))
        op.fence = remembered(p, &op, c->id);
    return op;
}
