/*
 * history.c: details of pipeline runs: writing, reading, rewriting, truncating, purging.
 */
#include <stdio.h>

#include "data/history.h"
#include "data/place.h"
#include "harness/proc.h"
#include "harness/unit.h"

#define CLASS "pipeline"
#define STEPS_MAX 16
#define LIMIT_MS 60000

/* ---- what was found, copied ------------------------------------------------------------------ */

struct found {
    unsigned               n;
    struct il__data_step   steps[STEPS_MAX];
    struct il__data_join   joins[DATA_JOINS_MAX + 1];
    struct il__data_detail detail;
    char                  *texts[2048]; /* to be freed */
    unsigned               n_texts;
};

static const char *
keep(struct found *f, const char *text)
{
    T_TRUE(f->n_texts < ARRAY_LEN(f->texts));
    T_TRUE(text != NULL);
    f->texts[f->n_texts] = strdup(text);
    T_TRUE(f->texts[f->n_texts] != NULL);
    return f->texts[f->n_texts++];
}

static void
forget(struct found *f)
{
    while (f->n_texts > 0)
        free(f->texts[--f->n_texts]);
    f->n = 0;
}

static void
take_step(void *cookie, const struct il__data_step *x)
{
    struct found *f = cookie;

    T_TRUE(f->n < STEPS_MAX);
    struct il__data_step *c = &f->steps[f->n++];
    *c                      = *x;
    c->tenant               = keep(f, x->tenant);
    c->run                  = keep(f, x->run);
    c->step                 = keep(f, x->step);
    c->type                 = keep(f, x->type);
    c->state                = keep(f, x->state);
    c->error                = keep(f, x->error);
    c->out                  = keep(f, x->out);
    c->err                  = keep(f, x->err);
    c->details              = keep(f, x->details);
}

static void
take_join(void *cookie, const struct il__data_join *x)
{
    struct found *f = cookie;

    T_TRUE(f->n < ARRAY_LEN(f->joins));
    struct il__data_join *c = &f->joins[f->n++];
    *c                      = *x;
    c->by                   = keep(f, x->by);
    c->trigger              = keep(f, x->trigger);
    c->request_id           = keep(f, x->request_id);
}

static void
take_detail(void *cookie, const struct il__data_detail *x)
{
    struct found *f = cookie;

    f->n++;
    f->detail            = *x;
    f->detail.tenant     = keep(f, x->tenant);
    f->detail.run        = keep(f, x->run);
    f->detail.pipeline   = keep(f, x->pipeline);
    f->detail.version    = keep(f, x->version);
    f->detail.node       = keep(f, x->node);
    f->detail.parameters = keep(f, x->parameters);
}

static struct found *
steps_of(struct il__data *d, const char *tenant, const char *run, bool with_output, struct found *f)
{
    il_error err;

    forget(f);
    if (il__data_history_steps(d, tenant, run, with_output, take_step, f, &err) != IL_OK)
        T_FAIL("%s", err.message);
    return f;
}

static struct found *
joins_of(struct il__data *d, const char *tenant, const char *run, struct found *f)
{
    il_error err;

    forget(f);
    if (il__data_history_joins(d, tenant, run, take_join, f, &err) != IL_OK)
        T_FAIL("%s", err.message);
    return f;
}

static struct found *
detail_of(struct il__data *d, const char *tenant, const char *run, struct found *f)
{
    il_error err;

    forget(f);
    if (il__data_history_detail(d, tenant, run, take_detail, f, &err) != IL_OK)
        T_FAIL("%s", err.message);
    return f;
}

/* ---- writing --------------------------------------------------------------------------------- */

static struct il__data_step
step_of(const char *run, uint32_t n, uint32_t attempt, const char *step, const char *state)
{
    return (struct il__data_step){ .tenant        = "t",
                                   .run           = run,
                                   .n             = n,
                                   .attempt       = attempt,
                                   .step          = step,
                                   .type          = "command",
                                   .state         = state,
                                   .level         = n,
                                   .started_at_ms = 1000 + n,
                                   .exit_code     = -1,
                                   .error         = "",
                                   .out           = "",
                                   .err           = "",
                                   .details       = "" };
}

static struct il__data_detail
detail_with(const char *run, int64_t created_at_ms)
{
    return (struct il__data_detail){ .tenant        = "t",
                                     .run           = run,
                                     .pipeline      = "nightly",
                                     .version       = "1.2",
                                     .node          = "host:1",
                                     .parameters    = "{\"a\":1}",
                                     .created_at_ms = created_at_ms };
}

static struct il__data_join
join_of(const char *run, int64_t at_ms, const char *request_id)
{
    return (struct il__data_join){ .tenant     = "t",
                                   .run        = run,
                                   .at_ms      = at_ms,
                                   .by         = "bob",
                                   .trigger    = "api",
                                   .request_id = request_id };
}

static void
write_all(struct il__data *d, const struct il__data_detail *details, size_t n_details,
          const struct il__data_step *steps, size_t n_steps, const struct il__data_join *joins,
          size_t n_joins)
{
    il_error err;

    if (il__data_history_write(d, CLASS, details, n_details, steps, n_steps, joins, n_joins,
                               &err) != IL_OK)
        T_FAIL("%s", err.message);
}

static void
write_step(struct il__data *d, const struct il__data_step *step)
{
    write_all(d, NULL, 0, step, 1, NULL, 0);
}

D_TEST(written_and_read)
{
    struct found          *f       = calloc(1, sizeof *f);
    struct il__data_detail det     = detail_with("r", 5000);
    struct il__data_step   steps[] = { step_of("r", 1, 2, "load", "COMPLETED"),
                                       step_of("r", 1, 1, "load", "FAILED"),
                                       step_of("r", 0, 1, "extract", "WARNING") };
    struct il__data_join   joins[] = { join_of("r", 30, "q2"), join_of("r", 20, "q1") };

    det.renewals         = 7;
    det.renewed_at_ms    = 6000;
    steps[0].ended_at_ms = INT64_C(1800000000000);
    steps[0].exit_code   = 128 + 9;
    steps[0].error       = "it broke; 'quotes' \"and\" ünïcode";
    steps[0].out         = "line 1\nline 2\t\x01\n";
    steps[0].err         = "oops\n";
    steps[0].out_bytes   = INT64_C(1) << 40;
    steps[0].err_bytes   = 5;
    steps[0].details     = "{\"rows\":3}";
    write_all(d, &det, 1, steps, 3, joins, 2);

    T_EQ(detail_of(d, "t", "r", f)->n, 1);
    T_STREQ(f->detail.tenant, "t");
    T_STREQ(f->detail.run, "r");
    T_STREQ(f->detail.pipeline, "nightly");
    T_STREQ(f->detail.version, "1.2");
    T_STREQ(f->detail.node, "host:1");
    T_STREQ(f->detail.parameters, "{\"a\":1}");
    T_EQ(f->detail.renewals, 7);
    T_EQ(f->detail.renewed_at_ms, 6000);
    T_EQ(f->detail.created_at_ms, 5000);

    T_EQ(steps_of(d, "t", "r", true, f)->n, 3); /* by their places, then attempts */
    T_STREQ(f->steps[0].step, "extract");
    T_EQ(f->steps[1].attempt, 1);
    const struct il__data_step *s = &f->steps[2];
    T_EQ(s->n, 1);
    T_EQ(s->attempt, 2);
    T_STREQ(s->run, "r");
    T_STREQ(s->step, "load");
    T_STREQ(s->type, "command");
    T_STREQ(s->state, "COMPLETED");
    T_EQ(s->level, 1);
    T_EQ(s->started_at_ms, 1001);
    T_EQ(s->ended_at_ms, steps[0].ended_at_ms);
    T_EQ(s->exit_code, 137);
    T_STREQ(s->error, steps[0].error);
    T_STREQ(s->out, steps[0].out);
    T_STREQ(s->err, "oops\n");
    T_EQ(s->out_bytes, steps[0].out_bytes);
    T_EQ(s->err_bytes, 5);
    T_STREQ(s->details, "{\"rows\":3}");
    T_EQ(f->steps[1].exit_code, -1);

    T_EQ(steps_of(d, "t", "r", false, f)->n, 3);
    T_STREQ(f->steps[2].out, "");
    T_STREQ(f->steps[2].err, "");
    T_EQ(f->steps[2].out_bytes, steps[0].out_bytes);
    T_STREQ(f->steps[2].details, "{\"rows\":3}");

    T_EQ(joins_of(d, "t", "r", f)->n, 2); /* oldest first */
    T_EQ(f->joins[0].at_ms, 20);
    T_STREQ(f->joins[0].request_id, "q1");
    T_STREQ(f->joins[1].request_id, "q2");
    T_STREQ(f->joins[1].by, "bob");
    T_STREQ(f->joins[1].trigger, "api");
    forget(f);
    free(f);
}

D_TEST(the_output_of_one_step)
{
    struct found        *f       = calloc(1, sizeof *f);
    struct il__data_step steps[] = { step_of("r", 0, 1, "a", "FAILED"),
                                     step_of("r", 0, 2, "a", "COMPLETED"),
                                     step_of("r", 1, 1, "b", "COMPLETED") };
    il_error             err;

    steps[1].out = "of the second attempt";
    steps[2].out = "of another step";
    write_all(d, NULL, 0, steps, 3, NULL, 0);
    T_EQ(il__data_history_step(d, "t", "r", "a", take_step, f, &err), IL_OK);
    T_EQ(f->n, 2);
    T_STREQ(f->steps[1].out, "of the second attempt");
    forget(f);
    T_EQ(il__data_history_step(d, "t", "r", "c", take_step, f, &err), IL_OK);
    T_EQ(f->n, 0);
    T_EQ(il__data_history_step(d, "t", "r", "", take_step, f, &err), IL_INVAL);
    free(f);
}

D_TEST(nothing_is_known)
{
    struct found *f = calloc(1, sizeof *f);
    il_error      err;
    uint64_t      n = 99;

    T_EQ(detail_of(d, "t", "r", f)->n, 0);
    T_EQ(steps_of(d, "t", "r", true, f)->n, 0);
    T_EQ(joins_of(d, "t", "r", f)->n, 0);
    T_EQ(il__data_history_write(d, CLASS, NULL, 0, NULL, 0, NULL, 0, &err), IL_OK);
    T_EQ(il__data_history_purge(d, CLASS, INT64_MAX, &n, &err), IL_OK);
    T_EQU(n, 0);
    free(f);
}

/* What the runs of one tenant have is added up, page by page. */
D_TEST(usage_adds_up)
{
    struct il__data_usage u;
    uint64_t              n_rows = 0, n_bytes = 0;
    unsigned              n_pages = 0;
    char                  run[16], after[IL_ID_BYTES_MAX + 1] = "";

    for (unsigned i = 0; i < 5; i++) {
        (void)snprintf(run, sizeof run, "r%u", i);
        struct il__data_detail det  = detail_with(run, 5000);
        struct il__data_step   step = step_of(run, 0, 1, "a", "RUNNING");
        struct il__data_join   join = join_of(run, 10, "q");
        step.out                    = "four";
        step.out_bytes              = 4;
        step.err_bytes              = INT64_C(1) << 40; /* written in all: the tail is kept */
        write_all(d, &det, 1, &step, 1, &join, 1);
        det.tenant = step.tenant = join.tenant = "other";
        write_all(d, &det, 1, &step, 1, &join, 1);
    }
    do {
        T_EQ(il__data_history_usage(d, "t", after, 2, &u, NULL), IL_OK);
        n_rows += u.n_rows;
        n_bytes += u.n_bytes;
        (void)snprintf(after, sizeof after, "%s", u.last);
        n_pages++;
    } while (after[0] != '\0');
    T_EQU(n_pages, 4);
    T_EQU(n_rows, 15);
    T_EQU(n_bytes, 5 * (strlen("{\"a\":1}") + 4 + DATA_OUTPUT_BYTES_MAX));
}

/* A row is written again as it goes on; what has ended stays so. */
D_TEST(written_again)
{
    struct found          *f    = calloc(1, sizeof *f);
    struct il__data_detail det  = detail_with("r", 5000);
    struct il__data_step   step = step_of("r", 0, 1, "a", "RUNNING");
    struct il__data_join   join = join_of("r", 10, "q");

    for (unsigned i = 0; i < 2; i++) { /* the whole of it, whose outcome was unknown */
        step.out       = "so far";
        step.out_bytes = 6;
        write_all(d, &det, 1, &step, 1, &join, 1);
    }
    det.renewals     = 3;
    det.node         = "host:2";
    step.state       = "COMPLETED";
    step.ended_at_ms = 2000;
    step.exit_code   = 0;
    step.out         = "so far, and done";
    step.out_bytes   = 16;
    write_all(d, &det, 1, &step, 1, &join, 1);
    T_EQ(detail_of(d, "t", "r", f)->n, 1);
    T_EQ(f->detail.renewals, 3);
    T_STREQ(f->detail.node, "host:2");
    T_EQ(joins_of(d, "t", "r", f)->n, 1);
    T_EQ(steps_of(d, "t", "r", true, f)->n, 1);
    T_STREQ(f->steps[0].state, "COMPLETED");
    T_STREQ(f->steps[0].out, "so far, and done");
    struct il__data_step late = step_of("r", 0, 1, "a", "RUNNING");
    write_step(d, &late);
    T_STREQ(steps_of(d, "t", "r", true, f)->steps[0].state, "COMPLETED");
    T_STREQ(f->steps[0].out, "so far, and done");
    step.state = "FAILED";
    write_step(d, &step);
    T_STREQ(steps_of(d, "t", "r", true, f)->steps[0].state, "FAILED");
    /* Twice in one write: the last one counts. */
    struct il__data_detail twice[] = { detail_with("r", 5000), detail_with("q", 5000),
                                       detail_with("r", 5000) };
    twice[0].renewals              = 8;
    twice[2].renewals              = 9;
    write_all(d, twice, 3, NULL, 0, NULL, 0);
    T_EQ(detail_of(d, "t", "r", f)->detail.renewals, 9);
    forget(f);
    free(f);
}

/* Each class is purged after a time of its own, also runs of which nothing but a step is known. */
D_TEST(classes_are_purged_apart)
{
    static const char *const classes[] = { CLASS, "pipe", "pipeline2" };
    struct found            *f         = calloc(1, sizeof *f);
    uint64_t                 n         = 0;
    il_error                 err;

    for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
        char run[16], bare[16];
        (void)snprintf(run, sizeof run, "r%zu", i);
        (void)snprintf(bare, sizeof bare, "s%zu", i);
        struct il__data_detail det  = detail_with(run, 50);
        struct il__data_step   step = step_of(bare, 0, 1, "a", "COMPLETED");
        T_EQ(il__data_history_write(d, classes[i], &det, 1, &step, 1, NULL, 0, &err), IL_OK);
    }
    T_EQ(il__data_history_purge(d, "pipe", INT64_MAX, &n, &err), IL_OK);
    T_EQU(n, 2);
    T_EQ(detail_of(d, "t", "r0", f)->n, 1);
    T_EQ(detail_of(d, "t", "r1", f)->n, 0);
    T_EQ(detail_of(d, "t", "r2", f)->n, 1);
    T_EQ(steps_of(d, "t", "s0", true, f)->n, 1);
    T_EQ(steps_of(d, "t", "s1", true, f)->n, 0);
    T_EQ(steps_of(d, "t", "s2", true, f)->n, 1);
    T_EQ(il__data_history_purge(d, "pipe", INT64_MAX, &n, &err), IL_OK);
    T_EQU(n, 0);
    forget(f);
    free(f);
}

D_TEST(tenants_are_apart)
{
    struct found          *f    = calloc(1, sizeof *f);
    struct il__data_step   step = step_of("r", 0, 1, "a", "COMPLETED");
    struct il__data_detail det  = detail_with("r", 5000);
    uint64_t               n;
    il_error               err;

    write_all(d, &det, 1, &step, 1, NULL, 0);
    step.tenant = det.tenant = "u";
    step.state               = "FAILED";
    det.created_at_ms        = 50;
    write_all(d, &det, 1, &step, 1, NULL, 0);
    T_STREQ(steps_of(d, "t", "r", true, f)->steps[0].state, "COMPLETED");
    T_STREQ(steps_of(d, "u", "r", true, f)->steps[0].state, "FAILED");
    T_EQ(steps_of(d, "v", "r", true, f)->n, 0);
    T_EQ(il__data_history_purge(d, CLASS, 100, &n, &err), IL_OK);
    T_EQU(n, 1);
    T_EQ(steps_of(d, "u", "r", true, f)->n, 0);
    T_EQ(detail_of(d, "u", "r", f)->n, 0);
    T_EQ(steps_of(d, "t", "r", true, f)->n, 1);
    forget(f);
    free(f);
}

/* ---- texts that do not fit ------------------------------------------------------------------- */

#define LONG_BYTES (DATA_OUTPUT_BYTES_MAX + 5000)

D_TEST(the_tail_is_kept)
{
    struct found        *f    = calloc(1, sizeof *f);
    char                *text = malloc(LONG_BYTES + 1);
    struct il__data_step step = step_of("r", 0, 1, "a", "COMPLETED");

    T_TRUE(text != NULL);
    memset(text, 'x', LONG_BYTES);
    memcpy(text + LONG_BYTES - 3, "END", 4);
    memcpy(text, "BEGIN", 5);
    step.out   = text;
    step.error = text;
    write_step(d, &step);
    T_EQ(steps_of(d, "t", "r", true, f)->n, 1);
    T_EQU(strlen(f->steps[0].out), DATA_OUTPUT_BYTES_MAX);
    T_STREQ(f->steps[0].out, text + LONG_BYTES - DATA_OUTPUT_BYTES_MAX);
    T_EQU(strlen(f->steps[0].error), IL_TEXT_BYTES_MAX); /* of an error the beginning */
    T_TRUE(strncmp(f->steps[0].error, "BEGINxxx", 8) == 0);
    /* Exactly as much as may be. */
    step.out = text + LONG_BYTES - DATA_OUTPUT_BYTES_MAX;
    step.err = text + LONG_BYTES - DATA_OUTPUT_BYTES_MAX - 1;
    write_step(d, &step);
    T_STREQ(steps_of(d, "t", "r", true, f)->steps[0].out, step.out);
    T_STREQ(f->steps[0].err, step.err + 1);
    /* A character that the cut goes through is left out. */
    for (size_t i = 0; i + 3 <= LONG_BYTES; i += 3)
        memcpy(text + i, "\xe2\x82\xac", 3);
    for (unsigned i = 0; i < 3; i++) {
        text[LONG_BYTES / 3 * 3 - i]     = '\0';
        text[LONG_BYTES / 3 * 3 - i - 1] = '.';
        memset(text + LONG_BYTES / 3 * 3 - 3, '.', 3 - i);
        step.out = text;
        write_step(d, &step);
        const char *out = steps_of(d, "t", "r", true, f)->steps[0].out;
        T_TRUE(strlen(out) > DATA_OUTPUT_BYTES_MAX - 3 && strlen(out) <= DATA_OUTPUT_BYTES_MAX);
        T_TRUE(strncmp(out, "\xe2\x82\xac", 3) == 0);
        T_STREQ(out, text + strlen(text) - strlen(out));
    }
    free(text);
    forget(f);
    free(f);
}

D_TEST(what_is_no_text_is_made_harmless)
{
    static const char *const bad[][2] = {
        { "a\xff\xfe z", "a?? z" },
        { "\x80\x80\x80\x80", "????" },
        { "cut \xe2\x82", "cut ??" },
        { "\xed\xa0\x80", "???" },
        { "over\xc0\x80long", "over??long" },
        { "fine \xf0\x9f\x98\x80", "fine \xf0\x9f\x98\x80" },
        { "ctrl \x01\x1b[0m\r\n", "ctrl \x01\x1b[0m\r\n" },
    };
    struct found          *f    = calloc(1, sizeof *f);
    struct il__data_step   step = step_of("r", 0, 1, "a", "COMPLETED");
    struct il__data_detail det  = detail_with("r", 5000);
    struct il__data_join   join = join_of("r", 10, "q");
    char                  *text = malloc(DATA_DETAILS_BYTES_MAX + 10);

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        step.out = step.err = step.error = step.details = step.type = bad[i][0];
        det.parameters = det.node = bad[i][0];
        join.by                   = bad[i][0];
        join.at_ms                = (int64_t)i;
        write_all(d, &det, 1, &step, 1, &join, 1);
        steps_of(d, "t", "r", true, f);
        T_STREQ(f->steps[0].out, bad[i][1]);
        T_STREQ(f->steps[0].err, bad[i][1]);
        T_STREQ(f->steps[0].error, bad[i][1]);
        T_STREQ(f->steps[0].details, bad[i][1]);
        T_STREQ(f->steps[0].type, bad[i][1]);
        T_STREQ(detail_of(d, "t", "r", f)->detail.parameters, bad[i][1]);
        T_STREQ(joins_of(d, "t", "r", f)->joins[i].by, bad[i][1]);
    }
    /* What is missing is empty; and JSON cannot be cut. */
    memset(text, ' ', DATA_DETAILS_BYTES_MAX + 9);
    text[DATA_DETAILS_BYTES_MAX + 9] = '\0';
    step.out = step.err = step.error = step.type = NULL;
    step.details                                 = text;
    write_step(d, &step);
    T_STREQ(steps_of(d, "t", "r", true, f)->steps[0].out, "");
    T_STREQ(f->steps[0].details, "{\"omitted_bytes\":65545}");
    free(text);
    forget(f);
    free(f);
}

D_TEST(ids_that_are_none)
{
    struct il__data_step   step = step_of("r", 0, 1, "a", "COMPLETED");
    struct il__data_detail det  = detail_with("", 1);
    struct il__data_join   join = join_of("r", 10, "q");
    struct found          *f    = calloc(1, sizeof *f);
    il_error               err;

    T_EQ(il__data_history_write(d, CLASS, &det, 1, NULL, 0, NULL, 0, &err), IL_INVAL);
    T_HAS(err.message, "run id");
    det.run    = "r";
    det.tenant = NULL;
    T_EQ(il__data_history_write(d, CLASS, &det, 1, NULL, 0, NULL, 0, &err), IL_INVAL);
    T_HAS(err.message, "tenant");
    step.step = "";
    T_EQ(il__data_history_write(d, CLASS, NULL, 0, &step, 1, NULL, 0, &err), IL_INVAL);
    T_HAS(err.message, "step id");
    step.step = "a\xff";
    T_EQ(il__data_history_write(d, CLASS, NULL, 0, &step, 1, NULL, 0, &err), IL_INVAL);
    join.tenant = "t\xff";
    T_EQ(il__data_history_write(d, CLASS, NULL, 0, NULL, 0, &join, 1, &err), IL_INVAL);
    T_EQ(il__data_history_steps(d, "t", "r\xff", true, take_step, f, &err), IL_INVAL);
    T_EQ(il__data_history_detail(d, "t", "", take_detail, f, &err), IL_INVAL);
    T_EQ(steps_of(d, "t", "r", true, f)->n, 0); /* nothing of it was written */
    free(f);
}

/* ---- limits ---------------------------------------------------------------------------------- */

D_TEST(the_newest_joins_are_kept)
{
    struct found        *f = calloc(1, sizeof *f);
    struct il__data_join joins[DATA_JOINS_MAX + 50];
    char                 ids[DATA_JOINS_MAX + 50][16];
    struct il__data_join other = join_of("other", 1, "q");

    write_all(d, NULL, 0, NULL, 0, &other, 1);
    for (unsigned i = 0; i < ARRAY_LEN(joins); i++) {
        (void)snprintf(ids[i], sizeof ids[i], "q%03u", i);
        joins[i] = join_of("r", 1000 + i / 2, ids[i]); /* two at each moment */
    }
    for (unsigned i = 0; i < ARRAY_LEN(joins); i += 25)
        write_all(d, NULL, 0, NULL, 0, joins + i, 25);
    T_EQ(joins_of(d, "t", "r", f)->n, DATA_JOINS_MAX);
    T_STREQ(f->joins[0].request_id, "q050");
    T_STREQ(f->joins[DATA_JOINS_MAX - 1].request_id, "q149");
    T_EQ(joins_of(d, "t", "other", f)->n, 1);
    forget(f);
    free(f);
}

static void
count_row(void *cookie, const struct il__data_step *x UNUSED)
{
    ++*(unsigned *)cookie;
}

D_TEST(old_runs_are_forgotten)
{
    struct found         *f     = calloc(1, sizeof *f);
    struct il__data_step *steps = calloc(200, sizeof *steps);
    char                  runs[40][16];
    uint64_t              n      = 0;
    unsigned              n_rows = 0;
    il_error              err;

    for (unsigned i = 0; i < 40; i++) {
        (void)snprintf(runs[i], sizeof runs[i], "r%02u", i);
        struct il__data_detail det  = detail_with(runs[i], 1000 + i);
        struct il__data_step   step = step_of(runs[i], 0, 1, "a", "COMPLETED");
        struct il__data_join   join = join_of(runs[i], 10, "q");
        write_all(d, &det, 1, &step, 1, &join, 1);
    }
    for (unsigned i = 0; i < 200; i++) /* more than one transaction takes */
        steps[i] = step_of("r05", i / 10 + 1, i % 10, "many", "FAILED");
    write_all(d, NULL, 0, steps, 200, NULL, 0);
    T_EQ(il__data_history_steps(d, "t", "r05", true, count_row, &n_rows, &err), IL_OK);
    T_EQ(n_rows, 201);
    T_EQ(il__data_history_purge(d, CLASS, 1000, &n, &err), IL_OK);
    T_EQU(n, 0);
    T_EQ(il__data_history_purge(d, CLASS, 1030, &n, &err), IL_OK);
    T_EQU(n, 30);
    for (unsigned i = 0; i < 40; i++) {
        T_EQ(detail_of(d, "t", runs[i], f)->n, i >= 30);
        T_EQ(steps_of(d, "t", runs[i], true, f)->n, i >= 30);
        T_EQ(joins_of(d, "t", runs[i], f)->n, i >= 30);
    }
    T_EQ(il__data_history_purge(d, CLASS, INT64_MAX, &n, &err), IL_OK);
    T_EQU(n, 10);
    free(steps);
    forget(f);
    free(f);
}

/* Of runs that nothing else was written of there are no details, but they are forgotten all the
 * same. */
D_TEST(steps_and_joins_without_details)
{
    struct found        *f    = calloc(1, sizeof *f);
    struct il__data_step step = step_of("r", 0, 1, "a", "COMPLETED");
    struct il__data_join join = join_of("q", 10, "q");
    char                 out[4096];
    uint64_t             n = 0;
    il_error             err;

    write_all(d, NULL, 0, &step, 1, &join, 1);
    T_EQ(detail_of(d, "t", "r", f)->n, 0);
    T_EQ(steps_of(d, "t", "r", true, f)->n, 1);
    T_EQ(joins_of(d, "t", "q", f)->n, 1);
    T_EQ(il__data_history_purge(d, CLASS, INT64_MAX, &n, &err), IL_OK);
    T_EQU(n, 2);
    if (p->shared) {
        static const char *const counts[][2] = {
            { "SELECT count(*) FROM il_run_step", "SELECT count(*)::text FROM $.run_step" },
            { "SELECT count(*) FROM il_run_join", "SELECT count(*)::text FROM $.run_join" },
            { "SELECT count(*) FROM il_run_detail", "SELECT count(*)::text FROM $.run_detail" },
        };
        for (size_t i = 0; i < ARRAY_LEN(counts); i++)
            T_STREQ(t_place_ask(p, counts[i][0], counts[i][1], out), "0");
    }
    forget(f);
    free(f);
}

D_TEST(at_most_a_thousand_a_call)
{
    struct il__data_detail *details = calloc(1005, sizeof *details);
    char(*runs)[16]                 = calloc(1005, sizeof *runs);
    uint64_t n                      = 0;
    il_error err;

    for (unsigned i = 0; i < 1005; i++) {
        (void)snprintf(runs[i], sizeof runs[i], "r%u", i);
        details[i] = detail_with(runs[i], 1000);
    }
    write_all(d, details, 1005, NULL, 0, NULL, 0);
    T_EQ(il__data_history_purge(d, CLASS, 2000, &n, &err), IL_OK);
    T_EQU(n, 1000);
    T_EQ(il__data_history_purge(d, CLASS, 2000, &n, &err), IL_OK);
    T_EQU(n, 5);
    free(details);
    free(runs);
}

/* ---- several servers ------------------------------------------------------------------------- */

#define N_SERVERS 4
#define N_ROUNDS 40U

struct server {
    const char *url;
    unsigned    i;
};

/* Joins of the same runs, in an order of its own, steps of runs of its own, and purges in
 * between. */
static int
serve(void *arg)
{
    const struct server *s = arg;
    struct il__data     *d = NULL;
    il_error             err;

    if (il__data_open(&(struct il__data_open){ .store_url = s->url }, &d, &err) != IL_OK) {
        (void)printf("%s\n", err.message);
        return 1;
    }
    for (unsigned round = 0; round < N_ROUNDS; round++) {
        struct il__data_join joins[8];
        char                 runs[8][16], id[32], own[32];
        uint64_t             n;
        (void)snprintf(id, sizeof id, "q%u-%u", s->i, round);
        (void)snprintf(own, sizeof own, "own%u-%u", s->i, round);
        struct il__data_step   step = step_of(own, 0, 1, "a", "COMPLETED");
        struct il__data_detail det  = detail_with(own, 1000 + round);
        for (unsigned i = 0; i < 8; i++) {
            (void)snprintf(runs[i], sizeof runs[i], "r%u-%u", round, s->i % 2 == 0 ? i : 7 - i);
            joins[i] = join_of(runs[i], 1000 + round, id);
        }
        if (il__data_history_write(d, CLASS, &det, 1, &step, 1, joins, 8, &err) != IL_OK ||
            il__data_history_purge(d, CLASS, 1000 + round / 2, &n, &err) != IL_OK) {
            (void)printf("%s\n", err.message);
            return 1;
        }
    }
    il__data_close(d);
    return 0;
}

/* They are forked before the data store is opened here. */
U_TEST(servers_do_not_wait_in_a_circle)
{
    static struct t_proc procs[N_SERVERS];
    struct server        servers[N_SERVERS];
    struct found        *f = calloc(1, sizeof *f);
    struct t_place       p;
    char                 run[16];

    t_place_make(&p);
    for (unsigned i = 0; p.shared && i < N_SERVERS; i++) {
        servers[i] = (struct server){ p.url, i };
        t_proc_fork(&procs[i], serve, &servers[i]);
    }
    for (unsigned i = 0; p.shared && i < N_SERVERS; i++) {
        if (t_proc_exit(&procs[i], LIMIT_MS) != 0)
            T_FAIL("%s", procs[i].text);
        t_proc_release(&procs[i]);
    }
    struct il__data *d = t_data_open(&p, NULL);
    for (unsigned i = 0; p.shared && i < 8; i++) {
        (void)snprintf(run, sizeof run, "r%u-%u", N_ROUNDS - 1, i);
        T_EQ(joins_of(d, "t", run, f)->n, N_SERVERS);
    }
    il__data_close(d);
    t_place_release(&p);
    forget(f);
    free(f);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        D_ROW(written_and_read),
        D_ROW(the_output_of_one_step),
        D_ROW(nothing_is_known),
        D_ROW(usage_adds_up),
        D_ROW(written_again),
        D_ROW(classes_are_purged_apart),
        D_ROW(tenants_are_apart),
        D_ROW(the_tail_is_kept),
        D_ROW(what_is_no_text_is_made_harmless),
        D_ROW(ids_that_are_none),
        D_ROW(the_newest_joins_are_kept),
        D_ROW(old_runs_are_forgotten),
        D_ROW(steps_and_joins_without_details),
        D_ROW(at_most_a_thousand_a_call),
        U_ROW(servers_do_not_wait_in_a_circle),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
