/*
 * cmd_queue_push.c: `interlock queue push`: one job, or one for each line of the input.
 */
#include <errno.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/apply.h"
#include "cli/find_id.h"
#include "cli/input.h"
#include "cli/print_item.h"

#define BATCH_JOBS 100

struct pusher {
    struct cli *cli;
    il_job_in   job; /* common to all of them */
    uint32_t    flags;
    size_t      n_jobs;   /* pushed so far */
    size_t      n_lines;  /* lines read so far, including empty ones */
    json_t     *items;    /* --json with --lines */
    bool        progress; /* show progress on the terminal */
};

static il_status
fill(struct pusher *p, il_error *reterr)
{
    struct cli             *cli      = p->cli;
    const struct cli_value *children = CLI_OPTION(cli, queue_push, children);

    if (CLI_GIVEN(cli, queue_push, delay) && CLI_GIVEN(cli, queue_push, run_at))
        return il__error_set(reterr, IL_INVAL,
                             "queue push: --delay and --run-at cannot be combined");
    if (CLI_GIVEN(cli, queue_push, unique_for) && !CLI_GIVEN(cli, queue_push, unique_key))
        return il__error_set(reterr, IL_INVAL, "queue push: --unique-for needs --unique-key");
    if (CLI_GIVEN(cli, queue_push, lines) &&
        (CLI_GIVEN(cli, queue_push, id) || CLI_GIVEN(cli, queue_push, unique_key)))
        return il__error_set(reterr, IL_INVAL,
                             "queue push: --lines cannot be combined with --id or --unique-key");
    p->job = (il_job_in){
        .id            = CLI_OPTION(cli, queue_push, id)->text,
        .group         = CLI_OPTION(cli, queue_push, group)->text,
        .unique_key    = CLI_OPTION(cli, queue_push, unique_key)->text,
        .unique_for_ms = CLI_OPTION(cli, queue_push, unique_for)->number,
        .parent        = CLI_OPTION(cli, queue_push, parent)->text,
        .n_children    = (uint32_t)children->number,
        .priority      = (int32_t)CLI_OPTION(cli, queue_push, priority)->number,
        .delay_ms      = CLI_OPTION(cli, queue_push, delay)->number,
        .run_at_ms     = CLI_OPTION(cli, queue_push, run_at)->number,
        .max_attempts  = (uint32_t)CLI_OPTION(cli, queue_push, max_attempts)->number,
    };
    if (children->given || CLI_GIVEN(cli, queue_push, is_parent))
        p->flags |= IL_PUSH_PARENT;
    return IL_OK;
}

/* The current state of the job. Its payload is the one that was pushed, except for a duplicate,
 * whose payload is not returned. */
static json_t *
pushed_json(const il_op *op)
{
    il_job_info info  = op->out.n_jobs > 0 ? op->out.jobs[0] : (il_job_info){ 0 };
    bool        there = op->status == IL_DUPLICATE || (op->out.flags & IL_OUT_RENEWED) != 0;

    if (op->status == IL_OK) {
        info.payload       = op->in.job.data_bytes > 0 ? op->in.job.data : "";
        info.payload_bytes = op->in.job.data_bytes;
    }
    json_t *job = op->out.n_jobs > 0 ? il__cli_item_json(&il__wire_job, &info) : json_object();
    if (job != NULL && json_object_set_new(job, "duplicate", json_boolean(there)) != 0) {
        json_decref(job);
        return NULL;
    }
    return job;
}

/* The id of the job that exists now. */
static const char *
pushed_id(const il_op *op)
{
    return op->out.n_jobs > 0 ? op->out.jobs[0].id : op->in.job.id;
}

static il_status
no_randomness(il_error *reterr)
{
    return il__error_set(reterr, IL_STORE, "cannot read random bytes for the job id");
}

static int
push_one(struct pusher *p)
{
    struct cli             *cli  = p->cli;
    AUTO_BUF struct il__buf b    = { 0 };
    const char             *data = NULL;
    char                    uuid[37];
    il_op                   op = {
                          .type   = IL_OP_JOB_PUSH,
                          .flags  = p->flags,
                          .key    = cli->args.operands[0],
                          .in.job = p->job,
    };
    il_error err;
    int      status;

    il_status st =
        il__cli_payload(cli, cli->args.operands[1], CLI_OPTION(cli, queue_push, file)->text, &b,
                        &data, &op.in.job.data_bytes, &err);
    op.in.job.data = data;
    if (st == IL_OK && op.in.job.id == NULL) {
        op.in.job.id = uuid;
        st           = il_uuid(uuid) == IL_OK ? IL_OK : no_randomness(&err);
    }
    if (st == IL_OK)
        st = il__cli_apply_to(cli, &op, "job", p->job.parent != NULL ? p->job.parent : "", &err);
    if (st != IL_OK && st != IL_DUPLICATE) {
        status = il__cli_fail(&err);
    } else if (cli->json) {
        status = il__cli_json_print(pushed_json(&op));
    } else {
        il__cli_puts(pushed_id(&op));
        (void)putchar('\n');
        if (st == IL_DUPLICATE)
            il__cli_note(cli, "queue push: a job with this unique key already exists");
        status = 0;
    }
    il_op_release(&op);
    return status;
}

static il_status
report_line(struct pusher *p, const il_op *op, il_error *reterr)
{
    p->n_jobs++;
    if (p->items == NULL) {
        il__cli_puts(pushed_id(op));
        (void)putchar('\n');
        return IL_OK;
    }
    if (json_array_append_new(p->items, pushed_json(op)) != 0)
        return il__error_nomem(reterr);
    return IL_OK;
}

struct batch {
    il_op  ops[BATCH_JOBS];
    char   ids[BATCH_JOBS][37];
    char  *lines[BATCH_JOBS];
    size_t numbers[BATCH_JOBS]; /* line numbers, from 1 */
    size_t n;
};

/* Push what has been collected, in one batch. */
static il_status
push_batch(struct pusher *p, struct batch *b, il_error *reterr)
{
    il_status st = b->n > 0 ? il_apply(p->cli->store, b->ops, b->n, reterr) : IL_OK;

    if (st != IL_OK)
        return st;
    for (size_t i = 0; st == IL_OK && i < b->n; i++) {
        const il_op *op = &b->ops[i];
        if (il_status_exit(op->status) == 0)
            st = report_line(p, op, reterr);
        else
            st =
                il__error_set(reterr, op->status, "queue push: line %zu: %s", b->numbers[i],
                              op->out.detail != NULL ? op->out.detail : il_status_text(op->status));
    }
    /* print the ids of pushed jobs even if we are killed next; stdout remembers its errors */
    (void)fflush(stdout);
    if (p->progress)
        (void)fprintf(stderr, "\r%zu jobs pushed", p->n_jobs);
    return st;
}

static void
batch_clear(struct batch *b)
{
    for (size_t i = 0; i < b->n; i++) {
        il_op_release(&b->ops[i]);
        il__free(b->lines[i]);
    }
    b->n = 0;
}

static il_status
batch_add(struct pusher *p, struct batch *b, const char *line, size_t n_bytes, il_error *reterr)
{
    size_t i = b->n;

    if (n_bytes > IL_BLOB_BYTES_MAX)
        return il__error_set(reterr, IL_INVAL, "queue push: line %zu is longer than %d bytes",
                             p->n_lines, IL_BLOB_BYTES_MAX);
    b->lines[i] = il__alloc(n_bytes);
    if (b->lines[i] == NULL)
        return il__error_nomem(reterr);
    memcpy(b->lines[i], line, n_bytes);
    b->numbers[i] = p->n_lines;
    b->n++;
    b->ops[i] = (il_op){
        .type = IL_OP_JOB_PUSH, .flags = p->flags, .key = p->cli->args.operands[0], .in.job = p->job
    };
    if (il_uuid(b->ids[i]) != IL_OK)
        return no_randomness(reterr);
    b->ops[i].in.job.id         = b->ids[i];
    b->ops[i].in.job.data       = b->lines[i];
    b->ops[i].in.job.data_bytes = n_bytes;
    return IL_OK;
}

/* Read the next line, without its end. false: end of input. A line that is too long is cut off
 * just above the limit. */
static bool
next_line(FILE *file, struct il__buf *line)
{
    int c;

    il__buf_clear(line);
    while ((c = getc_unlocked(file)) != EOF && c != '\n' && line->n_bytes <= IL_BLOB_BYTES_MAX)
        il__buf_addc(line, (char)c);
    return c != EOF || line->n_bytes > 0;
}

static il_status
push_lines(struct pusher *p, FILE *file, struct batch *b, il_error *reterr)
{
    AUTO_BUF struct il__buf line = { 0 };
    il_status               st   = IL_OK;

    il__buf_init(&line, IL_BLOB_BYTES_MAX + 1);
    while (st == IL_OK && next_line(file, &line)) {
        p->n_lines++;
        if (line.n_bytes > 0)
            st = batch_add(p, b, line.data, line.n_bytes, reterr);
        if (st == IL_OK && b->n == BATCH_JOBS) {
            st = push_batch(p, b, reterr);
            batch_clear(b);
        }
    }
    if (st == IL_OK && ferror(file) != 0)
        st = il__error_set(reterr, IL_INVAL, "queue push: cannot read standard input: %s",
                           strerror(errno));
    if (st == IL_OK && line.failed)
        st = il__error_nomem(reterr);
    if (st == IL_OK)
        st = push_batch(p, b, reterr);
    batch_clear(b);
    return st;
}

static int
push_all_lines(struct pusher *p)
{
    struct cli *cli  = p->cli;
    const char *path = CLI_OPTION(cli, queue_push, file)->text;
    il_error    err;

    if (cli->args.operands[1] != NULL && strcmp(cli->args.operands[1], "-") != 0)
        return il__cli_usage("queue push: --lines and a payload argument cannot be combined");
    FILE *file = path != NULL ? fopen(path, "re") : stdin;
    if (file == NULL)
        return il__cli_usage("queue push: cannot open %s: %s", path, strerror(errno));
    p->progress = !cli->quiet && isatty(STDERR_FILENO) != 0 && isatty(STDOUT_FILENO) == 0;
    if (cli->json)
        p->items = json_array();
    AUTO_FREE struct batch *b  = il__calloc(1, sizeof *b);
    il_status               st = b != NULL ? push_lines(p, file, b, &err) : il__error_nomem(&err);
    if (p->progress)
        (void)fputc('\n', stderr);
    if (path != NULL)
        (void)fclose(file); /* was only read from */
    if (st == IL_OK)
        return cli->json ? il__cli_json_page(p->items, NULL) : 0;
    json_decref(p->items);
    int status = il__cli_fail(&err);
    if (p->n_jobs > 0)
        il__cli_error("queue push: %zu job%s already existed", p->n_jobs,
                      p->n_jobs == 1 ? "" : "s");
    return status;
}

int
il__cli_cmd_queue_push(struct cli *cli)
{
    struct pusher p = { .cli = cli };
    char          parent[IL_ID_BYTES_MAX + 1];
    il_error      err;
    il_status     st = fill(&p, &err);

    if (st == IL_OK && p.job.parent != NULL)
        st = il__cli_find_job(cli, &p.job.parent, parent, &err);
    if (st != IL_OK)
        return il__cli_fail(&err);
    return CLI_GIVEN(cli, queue_push, lines) ? push_all_lines(&p) : push_one(&p);
}
