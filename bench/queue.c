/*
 * queue.c: jobs in batches of a hundred on SQLite, compared with a hand-written queue in the same
 * folder. Both databases are used for all rounds.
 */
#include "queue.h"

#include "load.h"

#define QUEUE "mail"

/* ---- ours ------------------------------------------------------------------------------------ */

void
jobs_open(struct jobs *j, const struct bench *b, const char *name, unsigned n_batches)
{
    char path[BENCH_PATH_BYTES];
    char url[BENCH_PATH_BYTES + 16];

    (void)snprintf(url, sizeof url, "sqlite:%s", temp_path(b, name, path));
    jobs_open_url(j, url, 1, n_batches);
    memcpy(j->path, path, sizeof path);
}

void
jobs_open_url(struct jobs *j, const char *url, unsigned i_worker, unsigned n_batches)
{
    *j = (struct jobs){ .n_batches = n_batches,
                        .store     = store_open(url, NULL),
                        .n_claim   = QUEUE_BATCH };
    (void)snprintf(j->worker, sizeof j->worker, "worker-%u", i_worker);
}

void
jobs_close(struct jobs *j)
{
    il_op_release(&j->claim);
    il_close(j->store);
    if (j->path[0] != '\0')
        temp_remove_database(j->path);
}

void
queue_ids(char ids[QUEUE_BATCH][RAW_ID_BYTES])
{
    for (size_t i = 0; i < QUEUE_BATCH; i++)
        must(il_uuid(ids[i]), "il_uuid", &(il_error){ .message = "no id" });
}

void
jobs_push(struct jobs *j)
{
    for (size_t i = 0; i < QUEUE_BATCH; i++) {
        il_op *op = &j->ops[i];
        *op       = (il_op){ .type = IL_OP_JOB_PUSH, .key = QUEUE };
        op->in.job =
            (il_job_in){ .id = j->ids[i], .data = j->payload, .data_bytes = sizeof j->payload };
    }
    store_apply(j->store, j->ops, QUEUE_BATCH, NULL, &j->err);
}

static il_op
claim_op(const struct jobs *j, char id[37])
{
    il_op op = { .type = IL_OP_JOB_CLAIM, .key = QUEUE, .holder = j->worker };

    must(il_uuid(id), "il_uuid", &(il_error){ .message = "no id" });
    op.in.job = (il_job_in){ .id = id, .limit = j->n_claim };
    return op;
}

void
jobs_claim(struct jobs *j)
{
    char id[37];

    j->claim = claim_op(j, id);
    must(il_apply(j->store, &j->claim, 1, &j->err), "claim", &j->err);
    if (j->claim.status != IL_OK || j->claim.out.n_jobs != j->n_claim)
        die("claim: %s, %zu jobs", il_status_name(j->claim.status), j->claim.out.n_jobs);
}

/* A finish for each claimed job; returns how many. */
static size_t
finish_ops(struct jobs *j)
{
    size_t n = j->claim.out.n_jobs;

    CHECK(n <= QUEUE_CLAIM_MAX);
    for (size_t i = 0; i < n; i++) {
        il_op *op     = &j->ops[i];
        *op           = (il_op){ .type = IL_OP_JOB_FINISH, .fence = j->claim.out.jobs[i].token };
        op->in.job.id = j->claim.out.jobs[i].id;
    }
    return n;
}

void
jobs_finish(struct jobs *j)
{
    store_apply(j->store, j->ops, finish_ops(j), NULL, &j->err);
    il_op_release(&j->claim);
}

size_t
jobs_work(struct jobs *j)
{
    char   id[37];
    size_t n = finish_ops(j);

    j->ops[n] = claim_op(j, id);
    must(il_apply(j->store, j->ops, n + 1, &j->err), "finishes and a claim", &j->err);
    for (size_t i = 0; i < n; i++) {
        if (j->ops[i].status != IL_OK)
            die("finish: %s", il_status_name(j->ops[i].status));
        il_op_release(&j->ops[i]);
    }
    il_op_release(&j->claim);
    j->claim = j->ops[n];
    if (j->claim.status != IL_OK && j->claim.status != IL_EMPTY)
        die("claim: %s", il_status_name(j->claim.status));
    return n;
}

static double
rate(unsigned n_batches, int64_t took_ns)
{
    return (double)n_batches * QUEUE_BATCH * BENCH_NS_PER_S / (double)MAX(took_ns, 1);
}

double
jobs_push_round(void *cookie)
{
    struct jobs *j       = cookie;
    int64_t      took_ns = 0;

    for (unsigned i = 0; i < j->n_batches; i++) {
        queue_ids(j->ids);
        int64_t start_ns = il__clock_boot_ns();
        jobs_push(j);
        took_ns += il__clock_boot_ns() - start_ns;
    }
    return rate(j->n_batches, took_ns);
}

double
jobs_claim_round(void *cookie)
{
    struct jobs *j = cookie;

    IGNORE(jobs_push_round(j) > 0); /* not measured here */
    int64_t start_ns = il__clock_boot_ns();
    for (unsigned i = 0; i < j->n_batches; i++) {
        jobs_claim(j);
        jobs_finish(j);
    }
    return rate(j->n_batches, il__clock_boot_ns() - start_ns);
}

/* ---- by hand --------------------------------------------------------------------------------- */

struct by_hand {
    struct raw_queue *raw;
    unsigned          n_batches;
    char              ids[QUEUE_BATCH][RAW_ID_BYTES];
    char              payload[QUEUE_PAYLOAD_BYTES];
};

static double
raw_push_round(void *cookie)
{
    struct by_hand *r       = cookie;
    int64_t         took_ns = 0;

    for (unsigned i = 0; i < r->n_batches; i++) {
        queue_ids(r->ids);
        int64_t start_ns = il__clock_boot_ns();
        raw_queue_push(r->raw, r->ids, QUEUE_BATCH, r->payload, sizeof r->payload);
        took_ns += il__clock_boot_ns() - start_ns;
    }
    return rate(r->n_batches, took_ns);
}

static double
raw_claim_round(void *cookie)
{
    struct by_hand *r = cookie;

    IGNORE(raw_push_round(r) > 0); /* not measured here */
    int64_t start_ns = il__clock_boot_ns();
    for (unsigned i = 0; i < r->n_batches; i++) {
        raw_queue_claim(r->raw, r->ids, QUEUE_BATCH);
        raw_queue_finish(r->raw, r->ids, QUEUE_BATCH);
    }
    return rate(r->n_batches, il__clock_boot_ns() - start_ns);
}

void
bench_queue(struct bench *b, unsigned claims)
{
    struct result   r    = { .name         = claims ? "queue-claim" : "queue-push",
                             .what         = claims ? "claims of 100 jobs, batches of 100 finishes"
                                                    : "batches of 100 pushes with 100 bytes each",
                             .against      = claims ? "raw SQLite: 100 marked, then 100 moved"
                                                    : "raw SQLite, three indexes, 100 at a time",
                             .durability   = BENCH_FULL,
                             .unit         = UNIT_PAIRS_PER_S,
                             .wanted       = WANTED_RATIO_AT_LEAST,
                             .wanted_value = 0.5 };
    struct jobs    *ours = must_calloc(1, sizeof *ours);
    struct by_hand *raw  = must_calloc(1, sizeof *raw);
    char            path[BENCH_PATH_BYTES];

    jobs_open(ours, b, "jobs.db", b->quick ? 2 : 300);
    raw->raw       = raw_queue_open(temp_path(b, "raw-jobs.db", path));
    raw->n_batches = ours->n_batches;
    compare(&r, b->n_rounds, (struct side){ claims ? jobs_claim_round : jobs_push_round, ours },
            (struct side){ claims ? raw_claim_round : raw_push_round, raw });
    raw_queue_close(raw->raw);
    temp_remove_database(path);
    jobs_close(ours);
    free(ours);
    free(raw);
    report_add(&b->report, &r);
}
