/*
 * load_work.c: jobs, runs and idempotency keys under load, and what the store must contain
 * according to their logs. The letters:
 *
 *   P C d D   a push was acknowledged; a claim was; a finish is sent; it was acknowledged
 *   S e E     a start was acknowledged; a finish is sent; it was acknowledged
 *   B a A     a begin was acknowledged; an answer is sent; it was acknowledged
 */
#include <inttypes.h>
#include <stdio.h>

#include "fault/load_internal.h"

#define N_RUN_KEYS 100
#define N_ONCE_KEYS 200

static void
make_name(const struct load_thread *t, const char *kind, char name[48])
{
    (void)snprintf(name, 48, "%s-%u-%u-%u", kind, t->i_log, t->i, t->n);
}

/* ---- the worker ------------------------------------------------------------------------------ */

void
load_job(struct load_thread *t)
{
    char  id[48], worker[48];
    il_op push  = { .type = IL_OP_JOB_PUSH, .key = LOAD_QUEUE };
    il_op claim = { .type = IL_OP_JOB_CLAIM, .key = LOAD_QUEUE, .holder = worker };

    make_name(t, "j", id);
    (void)snprintf(worker, sizeof worker, "w-%u-%u", t->i_log, t->i);
    push.in.job.id = id;
    load_apply(t, &push);
    CHECK(push.status == IL_OK || push.status == IL_DUPLICATE); /* the second: it was repeated */
    il_op_release(&push);
    load_note(t, 'P', id, "-", 0);
    claim.in.job.id       = id; /* an id of its own */
    claim.in.job.limit    = 1 + t_rng_below(&t->rng, 2);
    claim.in.job.lease_ms = LOAD_TTL_MS;
    load_apply(t, &claim);
    for (size_t i = 0; i < claim.out.n_jobs; i++)
        load_note(t, 'C', claim.out.jobs[i].id, worker, claim.out.jobs[i].token);
    for (size_t i = 0; i < claim.out.n_jobs; i++) {
        il_op finish     = { .type = IL_OP_JOB_FINISH, .fence = claim.out.jobs[i].token };
        finish.in.job.id = claim.out.jobs[i].id;
        load_note(t, 'd', claim.out.jobs[i].id, worker, finish.fence);
        load_apply(t, &finish);
        load_expect(&finish, finish.status == IL_OK);
        il_op_release(&finish);
        load_note(t, 'D', claim.out.jobs[i].id, worker, finish.fence);
    }
    il_op_release(&claim);
}

void
load_run(struct load_thread *t)
{
    char  id[48], key[32];
    il_op start  = { .type = IL_OP_RUN_START, .key = key, .holder = id };
    il_op finish = { .type = IL_OP_RUN_FINISH, .holder = id };

    make_name(t, "r", id);
    (void)snprintf(key, sizeof key, "run:%u", t_rng_below(&t->rng, N_RUN_KEYS));
    start.in.run.id     = id;
    start.in.run.policy = IL_POLICY_SKIP;
    start.in.run.ttl_ms = LOAD_TTL_MS;
    load_apply(t, &start);
    bool started = start.status == IL_OK;
    load_expect(&start, started || start.status == IL_DUPLICATE);
    finish.fence = start.out.fence;
    il_op_release(&start);
    if (!started)
        return;
    load_note(t, 'S', id, id, finish.fence);
    finish.in.run.id    = id;
    finish.in.run.state = IL_RUN_COMPLETED;
    load_note(t, 'e', id, id, finish.fence);
    load_apply(t, &finish);
    load_expect(&finish, finish.status == IL_OK);
    il_op_release(&finish);
    load_note(t, 'E', id, id, finish.fence);
}

void
load_once(struct load_thread *t)
{
    char  attempt[48], key[32], answer[32];
    il_op begin  = { .type = IL_OP_ONCE_BEGIN, .key = key, .holder = attempt };
    il_op finish = { .type = IL_OP_ONCE_FINISH, .key = key, .holder = attempt };

    make_name(t, "a", attempt);
    (void)snprintf(key, sizeof key, "once:%u", t_rng_below(&t->rng, N_ONCE_KEYS));
    begin.in.once.lease_ms = LOAD_TTL_MS;
    load_apply(t, &begin);
    bool begun   = begin.status == IL_OK;
    finish.fence = begin.out.fence;
    CHECK(begun || begin.status == IL_BUSY || begin.status == IL_REPLAY);
    il_op_release(&begin);
    if (!begun)
        return;
    load_note(t, 'B', key, attempt, finish.fence);
    int n                         = snprintf(answer, sizeof answer, "%" PRIu64, finish.fence);
    finish.in.once.response       = answer;
    finish.in.once.response_bytes = (size_t)n;
    load_note(t, 'a', key, attempt, finish.fence);
    load_apply(t, &finish);
    load_expect(&finish, finish.status == IL_OK);
    il_op_release(&finish);
    load_note(t, 'A', key, attempt, finish.fence);
}

/* ---- the judge ------------------------------------------------------------------------------- */

bool
load_learn(struct load_fact *facts, size_t *n, char what, const char *name, uint64_t number)
{
    static const char firsts[] = "PCSB", kinds[] = "jjro";
    const char       *first = strchr(firsts, what);

    if (first != NULL) {
        struct load_fact *f = &facts[(*n)++];
        *f                  = (struct load_fact){ .kind = kinds[first - firsts], .number = number };
        (void)snprintf(f->name, sizeof f->name, "%s", name);
        return true;
    }
    if (strchr("dDeEaA", what) == NULL)
        return false;
    for (size_t i = *n; i-- > 0;) { /* near the end */
        if (facts[i].number == number && strcmp(facts[i].name, name) == 0) {
            facts[i].ending = true;
            facts[i].ended  = strchr("DEA", what) != NULL;
            return true;
        }
    }
    T_FAIL("an end of %s without a beginning", name);
}

static int
compare(const void *a, const void *b)
{
    const struct load_fact *x = a;
    const struct load_fact *y = b;
    int                     c = strcmp(x->name, y->name);

    return c != 0 ? c : (x->number > y->number) - (x->number < y->number);
}

static void
judge_job(il *h, const struct load_fact *f, bool claimed)
{
    il_op op = { .type = IL_OP_JOB_GET };

    op.in.job.id = f->name;
    T_EQ(il_apply(h, &op, 1, NULL), IL_OK);
    if (op.status != IL_OK)
        T_FAIL("the acknowledged job %s is lost", f->name);
    const il_job_info *job = &op.out.jobs[0];
    bool               ok  = true;
    if (f->number != 0)
        ok = job->token == f->number && (f->ended    ? job->state == IL_JOB_COMPLETED
                                         : f->ending ? job->state >= IL_JOB_RUNNING
                                                     : job->state == IL_JOB_RUNNING);
    else if (!claimed) /* or its claim was not acknowledged */
        ok = job->state == IL_JOB_READY || (job->state == IL_JOB_RUNNING && job->attempt == 1);
    if (!ok)
        T_FAIL("job %s is %s with token %" PRIu64 ", not %" PRIu64, f->name,
               il_job_state_name(job->state), job->token, f->number);
    il_op_release(&op);
}

static void
judge_run(il *h, const struct load_fact *f)
{
    il_op op = { .type = IL_OP_RUN_GET };

    op.in.run.id = f->name;
    T_EQ(il_apply(h, &op, 1, NULL), IL_OK);
    if (op.status != IL_OK)
        T_FAIL("the acknowledged run %s is lost", f->name);
    const il_run_info *run = &op.out.runs[0];
    bool ok = f->ended ? run->state == IL_RUN_COMPLETED : f->ending || run->state == IL_RUN_RUNNING;
    if (!ok || run->fence != f->number)
        T_FAIL("run %s is %s with fence %" PRIu64 ", not %" PRIu64, f->name,
               il_run_state_name(run->state), run->fence, f->number);
    il_op_release(&op);
}

static void
judge_once(il *h, const struct load_fact *f)
{
    il_op op = { .type = IL_OP_ONCE_GET, .key = f->name };
    char  answer[32];

    (void)snprintf(answer, sizeof answer, "%" PRIu64, f->number);
    T_EQ(il_apply(h, &op, 1, NULL), IL_OK);
    bool answered = op.status == IL_REPLAY && strcmp(op.out.value, answer) == 0;
    if (f->ended ? !answered : !(op.status == IL_BUSY || (f->ending && answered)))
        T_FAIL("the answer %s of %s is lost: %s", answer, f->name, il_status_name(op.status));
    il_op_release(&op);
}

void
load_judge_facts(il *h, struct load_fact *facts, size_t n)
{
    qsort(facts, n, sizeof *facts, compare);
    for (size_t i = 0; i < n; i++) {
        const struct load_fact *f    = &facts[i];
        bool                    next = i + 1 < n && strcmp(facts[i + 1].name, f->name) == 0;
        if (next && (f->kind != 'j' || f->number != 0)) /* of a job: its push, and one claim */
            T_FAIL("%s was had by %" PRIu64 " and by %" PRIu64, f->name, f->number,
                   facts[i + 1].number);
        if (f->kind == 'j')
            judge_job(h, f, next);
        else if (f->kind == 'r')
            judge_run(h, f);
        else
            judge_once(h, f);
    }
}
