/*
 * doctor_checklist.c: the guard checklist (checklist.def). The database can answer some of its
 * questions, per table; the others are for people, and are printed without an answer.
 */
#include <stdio.h>

#include "apps/common/pipeline.h"
#include "base/error.h"
#include "cli/doctor.h"

static const struct {
    const char *name, *question;
} questions[CHECKLIST_COUNT] = {
#define X(id, name, question) { name, question },
#include "apps/common/checklist.def"
#undef X
};

/* What the checks have found of one table. */
struct answers {
    size_t n_good[DOCTOR_CHECK_COUNT];
    size_t n_wrong[DOCTOR_CHECK_COUNT]; /* warning or bad */
    size_t n_noted[DOCTOR_CHECK_COUNT];
    size_t n_bad;
};

static void
count_finding(void *cookie, const struct doctor_finding *f)
{
    struct answers *a = cookie;

    if (f->level == IL__FINDING_GOOD)
        a->n_good[f->check]++;
    else if (f->level == IL__FINDING_NOTE)
        a->n_noted[f->check]++;
    else
        a->n_wrong[f->check]++;
    if (f->level == IL__FINDING_BAD)
        a->n_bad++;
}

/* Does a table of jobs have its three indexes? NULL: a partial one may do, or not. */
static const char *
answer_indexes(const struct answers *a)
{
    size_t n_good = a->n_good[DOCTOR_WORKER_INDEX], n_wrong = a->n_wrong[DOCTOR_WORKER_INDEX];
    size_t n_noted = a->n_noted[DOCTOR_WORKER_INDEX];

    if (n_good + n_wrong + n_noted == 0)
        return "not applicable"; /* not a table of jobs */
    if (n_wrong > 0 || a->n_good[DOCTOR_IDEMPOTENCY_KEY] == 0 || n_good + n_noted < 2)
        return "no";
    return n_noted == 0 ? "yes" : NULL;
}

/* NULL: the database cannot answer it. */
static const char *
answer_of(const struct answers *a, enum checklist_item q)
{
    if (q == CHECKLIST_indexes)
        return answer_indexes(a);
    if (q != CHECKLIST_repeats)
        return NULL;
    /* Without a key, a savepoint may do: the database cannot see that. */
    if (a->n_wrong[DOCTOR_IDEMPOTENCY_KEY] > 0)
        return "no";
    return a->n_good[DOCTOR_IDEMPOTENCY_KEY] > 0 ? "yes" : NULL;
}

static size_t
count_unique(const struct doctor_table *t)
{
    size_t n = 0;

    for (const struct doctor_key *k = t->indexes; k != NULL; k = k->next)
        n += k->is_unique && k->is_valid && k != t->primary;
    return n;
}

static size_t
count_keys(const struct doctor_key *k)
{
    size_t n = 0;

    for (; k != NULL; k = k->next)
        n++;
    return n;
}

/* What the database knows about a question; "" for nothing. */
static void
detail_of(const struct doctor_table *t, enum checklist_item q, char *out, size_t n_bytes)
{
    out[0] = '\0';
    if (q == CHECKLIST_constraints)
        (void)snprintf(out, n_bytes, "primary key: %s; unique: %zu; foreign keys: %zu; CHECK: %zu",
                       t->primary != NULL ? "yes" : "no", count_unique(t),
                       count_keys(t->foreign_keys), t->n_checks);
}

struct checklist {
    struct cli             *cli;
    struct doctor_database *db; /* NULL: none */
    struct doctor_table    *tables;
    struct answers         *answers; /* one per table */
    size_t                  n_bad;
    size_t                  n_missing; /* constraints of pipelines */
};

/* The answers to one question, as an array or as lines. */
static json_t *
show_tables(const struct checklist *l, enum checklist_item q)
{
    json_t *list = json_array();
    size_t  i    = 0;
    char    detail[160];

    for (const struct doctor_table *t = l->tables; t != NULL; t = t->next, i++) {
        const char *answer = answer_of(&l->answers[i], q);
        detail_of(t, q, detail, sizeof detail);
        if (answer == NULL && detail[0] == '\0')
            continue;
        if (l->cli->json) {
            json_t *row = json_pack("{s:o, s:o, s:o}", "table", il__cli_json_text(t->name),
                                    "answer", il__cli_json_text(answer), "found",
                                    il__cli_json_text(detail[0] != '\0' ? detail : NULL));
            if (json_array_append_new(list, row) != 0) {
                json_decref(list);
                return NULL;
            }
            continue;
        }
        (void)fputs("      ", stdout);
        il__cli_puts(t->name);
        (void)printf(": %s\n", answer != NULL ? answer : detail);
    }
    return list;
}

static il_status
show_questions(const struct checklist *l, json_t *items, il_error *reterr)
{
    bool ok = items != NULL;

    for (int q = 0; ok && q < CHECKLIST_COUNT; q++) {
        if (!l->cli->json)
            (void)printf("%2d. %s: %s\n", q + 1, questions[q].name, questions[q].question);
        json_t *tables = show_tables(l, (enum checklist_item)q);
        ok             = tables != NULL &&
             json_array_append_new(items, json_pack("{s:s, s:s, s:o}", "name", questions[q].name,
                                                    "question", questions[q].question, "tables",
                                                    tables)) == 0;
    }
    return ok ? IL_OK : il__error_set(reterr, IL_NOMEM, "out of memory for a checklist");
}

static int
show(struct checklist *l, bool with_pipelines)
{
    AUTO_GRID struct cli_grid grid      = { 0 };
    json_t                   *items     = json_array();
    json_t                   *pipelines = json_array();
    int                       status    = 0;
    il_error                  err;
    il_status                 st = show_questions(l, items, &err);

    if (st == IL_OK && with_pipelines)
        st = il__doctor_pipelines(l->cli, l->db != NULL ? l->db->tx : NULL, pipelines, &grid,
                                  &l->n_missing, &err);
    if (st != IL_OK) {
        status = il__cli_fail(&err);
    } else if (l->cli->json) {
        status = il__cli_json_print(
            json_pack("{s:O, s:O, s:n}", "items", items, "pipelines", pipelines, "next"));
    } else if (json_array_size(pipelines) > 0) {
        (void)putchar('\n');
        status = il__cli_grid_print(&grid);
    }
    json_decref(items);
    json_decref(pipelines);
    return status;
}

static il_status
answer(struct checklist *l, const char *table, il_error *reterr)
{
    size_t i = 0, n = 0;

    il_status st = il__doctor_read(l->db, table, &l->tables, reterr);
    if (st != IL_OK)
        return st;
    for (const struct doctor_table *t = l->tables; t != NULL; t = t->next)
        n++;
    l->answers = il__calloc(n + 1, sizeof *l->answers);
    if (l->answers == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a checklist");
    for (const struct doctor_table *t = l->tables; st == IL_OK && t != NULL; t = t->next, i++) {
        st = il__doctor_check_table(l->db, t, count_finding, &l->answers[i], reterr);
        l->n_bad += l->answers[i].n_bad;
    }
    return st;
}

int
il__doctor_checklist(struct cli *cli, struct doctor_database *db, const char *table)
{
    struct checklist l = { .cli = cli, .db = db };
    il_error         err;
    int              status;

    if (db != NULL && answer(&l, table, &err) != IL_OK)
        status = il__cli_fail(&err);
    else
        status = show(&l, table == NULL);
    il__free(l.answers);
    if (l.n_missing > 0)
        il__cli_note(cli, "%zu %s of pipelines missing", l.n_missing,
                     l.n_missing == 1 ? "constraint" : "constraints");
    return status == 0 && l.n_bad + l.n_missing > 0 ? 1 : status;
}
