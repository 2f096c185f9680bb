/*
 * scenario_run.c: runs under faults. A repeated start is the same run, a repeated end the same end.
 */
#include "fault/scenario_internal.h"

static il_op
start(const char *id, const char *holder, il_policy policy)
{
    il_op op = { .type = IL_OP_RUN_START, .key = "run", .holder = holder };

    op.in.run =
        (il_run_in){ .id = id, .policy = policy, .trigger = "test", .by = "me", .meta = "meta" };
    return op;
}

static il_op
by_id(il_op_type type, const char *id, const char *holder, uint64_t fence)
{
    il_op op = { .type = type, .holder = holder, .fence = fence };

    op.in.run.id       = id;
    op.in.run.progress = -1;
    return op;
}

static il_op
finish(const char *id, const char *holder, uint64_t fence)
{
    il_op op = by_id(IL_OP_RUN_FINISH, id, holder, fence);

    op.in.run.state     = IL_RUN_COMPLETED;
    op.in.run.log       = "end";
    op.in.run.log_bytes = 3;
    return op;
}

static il_op
stage(const char *id, const char *holder, uint64_t fence, uint64_t offset)
{
    il_op op = by_id(IL_OP_RUN_STAGE, id, holder, fence);

    op.flags            = IL_LOG_AT;
    op.in.run.offset    = offset;
    op.in.run.log       = "begin ";
    op.in.run.log_bytes = 6;
    return op;
}

static void
expect(struct scenario *s, const char *id, il_run_state state, uint64_t log_bytes)
{
    il_op done = scenario_apply(s, by_id(IL_OP_RUN_GET, id, NULL, 0), IL_OK, IL_OK);

    T_EQU(done.out.n_runs, 1);
    if (done.out.runs[0].state != state || done.out.runs[0].log_bytes != log_bytes)
        T_FAIL("%s: run %s is %s, with %zu bytes of log", s->what, id,
               il_run_state_name(done.out.runs[0].state), (size_t)done.out.runs[0].log_bytes);
    il_op_release(&done);
}

/* A stage with output; repeated if it failed. False: it failed, and was not to be repeated. */
static bool
tell(struct scenario *s, il_run *run, const char *output, bool repeat)
{
    il_error err = { 0 };

    if (!scenario_failed(s, il_run_stage(run, "stage", 50, output, strlen(output), &err), IL_OK))
        return true;
    if (repeat)
        T_EQ(il_run_stage(run, "stage", 50, output, strlen(output), &err), IL_OK);
    return repeat;
}

/* What was told and repeated is there once, what was told and given up at most once, and what came
 * after it is whole. */
static void
play_output(struct scenario *s, il_run *run)
{
    (void)tell(s, run, "first ", true);
    bool second = tell(s, run, "second ", false);
    (void)tell(s, run, "third", true);
    il_op log = scenario_apply(s, by_id(IL_OP_RUN_LOG, il_run_id(run), NULL, 0), IL_OK, IL_OK);
    const char *text = log.out.value;
    if (strcmp(text, "first second third") != 0 && (second || strcmp(text, "first third") != 0))
        T_FAIL("%s: the log is '%s'", s->what, text);
    il_op_release(&log);
}

/* The library's own: whatever a failed start leaves behind, the next one can be had. */
static void
play_held_run(struct scenario *s)
{
    il_run_opts opts = IL_RUN_OPTS_INIT;
    il_run     *run  = NULL;
    il_error    err  = { 0 };

    opts.ttl_ms  = 5000;
    il_status st = il_run_start(s->h, "held run", &opts, &run, NULL, &err);
    if (scenario_failed(s, st, IL_OK)) {
        T_TRUE(run == NULL);
        if (s->lasting) /* it could not clean up, either: in the end that expires */
            t_clock_step(s->test_clock, 5000);
        st = il_run_start(s->h, "held run", &opts, &run, NULL, &err);
    }
    if (st != IL_OK)
        T_FAIL("%s: il_run_start: %s", s->what, err.message);
    if (scenario_failed(s, il_run_stage(run, "stage", 50, NULL, 0, &err), IL_OK))
        T_EQ(il_run_stage(run, "stage", 50, NULL, 0, &err), IL_OK);
    play_output(s, run);
    if (scenario_failed(s, il_run_finish(run, IL_RUN_COMPLETED, NULL, &err), IL_OK))
        T_EQ(il_run_finish(run, IL_RUN_COMPLETED, NULL, &err), IL_OK);
    il_run_free(run);
}

void
scenario_run(struct scenario *s)
{
    uint64_t r1   = scenario_step(s, start("r1", "a", IL_POLICY_JOIN), IL_OK, IL_OK);
    il_op    list = { .type = IL_OP_RUN_LIST, .key = "run" };
    il_op    stop = by_id(IL_OP_RUN_CANCEL, "r3", NULL, 0);
    il_op    slot = start("r4", "d", IL_POLICY_QUEUE);

    T_EQU(scenario_step(s, start("r1", "a", IL_POLICY_JOIN), IL_OK, IL_OK), r1);
    (void)scenario_step(s, start("r2", "b", IL_POLICY_JOIN), IL_DUPLICATE, IL_DUPLICATE);
    (void)scenario_step(s, start("r2", "b", IL_POLICY_QUEUE), IL_QUEUED, IL_QUEUED);
    (void)scenario_step(s, start("r3", "c", IL_POLICY_REPLACE_PENDING), IL_QUEUED, IL_QUEUED);
    expect(s, "r2", IL_RUN_CANCELLED, 0);
    slot.flags = IL_RUN_SLOT;
    (void)scenario_step(s, slot, IL_OK, IL_OK);
    (void)scenario_step(s, by_id(IL_OP_RUN_STAGE, "r1", "a", r1), IL_OK, IL_OK);
    (void)scenario_step(s, stage("r1", "a", r1, 0), IL_OK, IL_OK);
    (void)scenario_step(s, stage("r1", "a", r1, 7), IL_STATE, IL_STATE);
    (void)scenario_step(s, finish("r1", "a", r1), IL_OK, IL_OK);
    expect(s, "r1", IL_RUN_COMPLETED, 9); /* each appended once */
    (void)scenario_step(s, by_id(IL_OP_RUN_STAGE, "r1", "a", r1), IL_STALE, IL_STALE);
    (void)scenario_step(s, by_id(IL_OP_RUN_LOG, "r1", NULL, 0), IL_OK, IL_OK);
    stop.in.run.error = "not needed";
    (void)scenario_step(s, stop, IL_OK, IL_OK);
    uint64_t r4 = scenario_step(s, start("r4", "d", IL_POLICY_QUEUE), IL_OK, IL_OK);
    (void)scenario_step(s, list, IL_OK, IL_OK);
    scenario_look(s);
    t_clock_step(s->test_clock, IL_TTL_MS_DEFAULT);
    (void)scenario_step(s, (il_op){ .type = IL_OP_SWEEP }, IL_OK, IL_OK);
    (void)scenario_step(s, finish("r4", "d", r4), IL_STALE, IL_STALE);
    expect(s, "r4", IL_RUN_FAILED, 0);
    play_held_run(s);
    scenario_look(s);
}
