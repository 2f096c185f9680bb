/*
 * step_sql.c: sql steps: statements in one transaction that commits only with the fence of its run
 * (src/guard). Parameters are bound, never pasted.
 *
 * A retry repeats everything, because a failed attempt leaves nothing behind. The exception is a
 * connection that breaks during the commit: its outcome is unknown, so there is no retry.
 */
#include <inttypes.h>

#include "apps/runner/step_run.h"

#define ROWS_MAX 100 /* of a statement, into the output */
#define VALUE_BYTES_MAX 1000
#define SQL_BYTES_MAX ((size_t)1 << 20)

struct sql_step {
    struct runner_attempt *a;
    struct runner_text     text;
    struct il__buf         details;
    int64_t                n_rows; /* of the statement */
    int64_t                n_changed;
};

/* The names of the columns, or a row. */
static void
print_texts(struct runner_text *t, const il_guard_row *row, bool names)
{
    for (size_t i = 0; i < row->n; i++) {
        if (i > 0)
            runner_text_addf(t, "\t");
        runner_text_value(t, names ? row->names[i] : runner_row_text(row, i), VALUE_BYTES_MAX);
    }
    runner_text_addf(t, "\n");
}

static int
print_row(void *cookie, const il_guard_row *row)
{
    struct sql_step *s = cookie;

    if (s->n_rows++ == 0)
        print_texts(&s->text, row, true);
    if (s->n_rows > ROWS_MAX) {
        runner_text_addf(&s->text, "(more than %d rows; the rest is omitted)\n", ROWS_MAX);
        return 0;
    }
    print_texts(&s->text, row, false);
    return !runner_attempt_should_stop(s->a);
}

static il_status
run_statement(struct sql_step *s, il_guard_tx *tx, size_t i, il_error *reterr)
{
    const struct pipeline_step *step = s->a->step;
    const char                 *values[IL_GUARD_VALUES_MAX];
    size_t                      n_values  = 0;
    int64_t                     n_changed = 0;
    struct il__buf AUTO_BUF     sql       = { 0 };

    il__buf_init(&sql, SQL_BYTES_MAX);
    il_status st = il__pipeline_bind(&step->sql[i], s->a->values, &sql, values, IL_GUARD_VALUES_MAX,
                                     &n_values, reterr);
    if (st != IL_OK)
        return st;
    s->n_rows = 0;
    st =
        runner_link_exec(tx, il__buf_str(&sql), values, n_values, print_row, s, &n_changed, reterr);
    if (st != IL_OK)
        return st;
    if (n_changed > 0 || s->n_rows == 0)
        runner_text_addf(&s->text, "statement %zu: %" PRId64 " row%s changed\n", i + 1, n_changed,
                         n_changed == 1 ? "" : "s");
    s->n_changed += n_changed;
    il__buf_addf(&s->details, "%s{\"rows\":%" PRId64 ",\"more_rows\":%s,\"changed\":%" PRId64 "}",
                 i > 0 ? "," : "", MIN(s->n_rows, ROWS_MAX),
                 s->n_rows > ROWS_MAX ? "true" : "false", n_changed);
    return IL_OK;
}

/* Run all statements, then commit. */
static void
run_all(struct sql_step *s, struct runner_link *l, struct runner_result *ret)
{
    il_guard_tx *tx       = NULL;
    il_error     err      = { .message = "" };
    char         what[64] = "";

    il_status st = runner_link_begin(l, false, &tx, &err);
    for (size_t i = 0; st == IL_OK && i < s->a->step->n_sql; i++) {
        st = run_statement(s, tx, i, &err);
        if (st != IL_OK)
            (void)snprintf(what, sizeof what, "statement %zu of %zu: ", i + 1, s->a->step->n_sql);
    }
    runner_text_flush(&s->text);
    if (st == IL_OK) {
        st = il_guard_commit(tx, &err);
        if (st != IL_OK)
            (void)snprintf(what, sizeof what, "commit: ");
    } else {
        il_guard_rollback(tx);
    }
    if (st != IL_OK) {
        runner_result_status(ret, s->a, st, what, &err);
        return;
    }
    ret->outcome = RUNNER_STEP_COMPLETED;
    il__buf_addf(&s->details, "],\"rows_changed\":%" PRId64 "}", s->n_changed);
    ret->details = il__buf_take(&s->details); /* NULL: omitted */
}

void
runner_step_sql(struct runner_attempt *a, struct runner_result *ret)
{
    struct sql_step    s = { .a = a };
    struct runner_link l;

    *ret = (struct runner_result){ .outcome = RUNNER_STEP_FAILED, .exit_code = -1 };
    if (!runner_link_open(&l, a, ret))
        return;
    runner_text_init(&s.text, a);
    il__buf_init(&s.details, DATA_DETAILS_BYTES_MAX);
    il__buf_adds(&s.details, "{\"statements\":[");
    run_all(&s, &l, ret);
    runner_link_close(&l);
    runner_text_release(&s.text);
    il__buf_release(&s.details);
}
