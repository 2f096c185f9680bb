/*
 * pipeline_step.c: parses the steps of a pipeline file: common keys, keys of each type, and
 * dependencies.
 */
#include "apps/runner/pipeline_internal.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/parse.h"

#define STEP_ID_BYTES_MAX 64
#define STATEMENTS_MAX 100

const char *const il__pipeline_step_types[] = { "command", "sql", "http", "check", NULL };

static const char *const common_keys[] = {
    "step_id", "type",        "description",     "depends_on", "timeout",
    "retries", "retry_delay", "timeout_minutes", "on_failure", NULL
};
static const char *const sql_keys[]   = { "connection", "sql", NULL };
static const char *const http_keys[]  = { "method", "url", "headers", "body", "expect", NULL };
static const char *const check_keys[] = { "connection", "table", "expectations", NULL };

static const char *const *const type_keys[PIPELINE_STEP_TYPE_COUNT] = {
    [PIPELINE_COMMAND] = il__pipeline_read_command_keys,
    [PIPELINE_SQL]     = sql_keys,
    [PIPELINE_HTTP]    = http_keys,
    [PIPELINE_CHECK]   = check_keys,
};

/* ---- the kinds ------------------------------------------------------------------------------- */

static void
read_sql(struct reading *r, const struct doc_node *map, const char *at, struct pipeline_step *step)
{
    const struct doc_node *sql   = il__doc_get(map, "sql");
    const struct doc_node *first = sql;
    size_t                 n     = 1;

    step->connection = il__reading_id(r, map, "connection", at, PIPELINE_ID_BYTES_MAX);
    if (sql == NULL) {
        il__reading_fault(r, map->line, PLACE(at, "sql"),
                          "missing; must be a statement or a list of statements");
        return;
    }
    if (sql->type == DOC_LIST) {
        first = sql->first;
        n     = sql->n;
    }
    if (n == 0 || n > STATEMENTS_MAX) {
        il__reading_fault(r, sql->line, PLACE(at, "sql"), "must have 1 to %d statements",
                          STATEMENTS_MAX);
        return;
    }
    step->sql = il__reading_alloc(r, n, sizeof *step->sql);
    for (size_t i = 0; i < n && step->sql != NULL; i++, first = first->next) {
        char key[32] = "sql";
        if (sql->type == DOC_LIST)
            (void)snprintf(key, sizeof key, "sql[%zu]", i);
        step->n_sql += il__pipeline_read_sql(r, first, PLACE(at, key), &step->sql[step->n_sql]);
    }
}

/* 200, or 200..299 */
static void
read_expect(struct reading *r, const struct doc_node *map, const char *at,
            struct pipeline_http *ret)
{
    const struct doc_node *node = il__doc_get(map, "expect");
    char                   from[8];
    uint64_t               lo;
    uint64_t               hi;

    if (node == NULL)
        return;
    const char *text = node->type == DOC_TEXT && node->text != NULL ? node->text : "";
    const char *dots = strstr(text, "..");
    (void)snprintf(from, sizeof from, "%.*s", dots != NULL ? (int)MIN(dots - text, 7) : 7, text);
    if (il__parse_u64(from, 599, &lo) && il__parse_u64(dots != NULL ? dots + 2 : from, 599, &hi) &&
        lo >= 100 && lo <= hi) {
        ret->expect_from = (int64_t)lo;
        ret->expect_to   = (int64_t)hi;
        return;
    }
    il__reading_fault(r, node->line, PLACE(at, "expect"),
                      "must be a status from 100 to 599 or a range such as 200..299, not '%.40s'",
                      text);
}

static void
read_kind(struct reading *r, const struct doc_node *map, const char *at, struct pipeline_step *step)
{
    switch (step->type) {
    case PIPELINE_COMMAND:
        il__pipeline_read_command(r, map, at, &step->command);
        break;
    case PIPELINE_SQL:
        read_sql(r, map, at, step);
        break;
    case PIPELINE_HTTP:
        il__pipeline_read_http(r, map, at, &step->http);
        read_expect(r, map, at, &step->http);
        break;
    case PIPELINE_CHECK:
        il__pipeline_read_check(r, map, at, step);
        break;
    case PIPELINE_STEP_TYPE_COUNT:
        break;
    }
}

/* ---- a step ---------------------------------------------------------------------------------- */

static void
read_step(struct reading *r, const struct doc_node *map, size_t i)
{
    static const char *const            failures[] = { "stop", "continue", "alert", NULL };
    static const struct reading_timeout timeout    = { 120, 250, 7200000, 600000 };
    struct pipeline_step               *step       = &own(r)->p->steps[i];
    char                                at[32];
    bool                                given;

    (void)snprintf(at, sizeof at, "steps[%zu]", i);
    step->line = map->line;
    if (map->type != DOC_MAP) {
        il__reading_fault(r, map->line, PLACE(at, ""), "must be a mapping (step_id, type, …)");
        return;
    }
    step->id         = il__reading_id(r, map, "step_id", at, STEP_ID_BYTES_MAX);
    step->timeout_ms = il__reading_timeout(r, map, at, &timeout, &given);
    step->retries =
        (uint32_t)il__reading_number(r, map, at, "retries", 0, 10, own(r)->retry_attempts);
    step->retry_delay_ms =
        il__reading_duration(r, map, at, "retry_delay", 0, 300000, own(r)->retry_delay_ms);
    (void)il__reading_text(r, map, at, "description", 4096, false);
    size_t failure = il__reading_choice(r, map, at, "on_failure", failures, false);
    if (failure != SIZE_MAX)
        step->on_failure = (enum pipeline_on_failure)failure;
    size_t type = il__reading_choice(r, map, at, "type", il__pipeline_step_types, true);
    if (type == SIZE_MAX)
        return; /* its keys are unknown */
    step->type = (enum pipeline_step_type)type;
    (void)il__reading_keys(r, map, at, common_keys, type_keys[type]); /* reports */
    read_kind(r, map, at, step);
}

/* ---- dependencies ---------------------------------------------------------------------------- */

static const char *
step_id_at(const void *cookie, size_t i)
{
    const struct pipeline *p = cookie;

    return i < p->n_steps ? p->steps[i].id != NULL ? p->steps[i].id : "" : NULL;
}

static size_t
find_step(const struct pipeline *p, const char *id)
{
    for (size_t i = 0; i < p->n_steps; i++) {
        if (p->steps[i].id != NULL && strcmp(p->steps[i].id, id) == 0)
            return i;
    }
    return SIZE_MAX;
}

static void
add_need(struct reading *r, struct pipeline_step *step, const struct doc_node *node, const char *at)
{
    char hint[100];

    if (node->type != DOC_TEXT || node->text == NULL) {
        il__reading_fault(r, node->line, PLACE(at, "depends_on"), "must be a list of step ids");
        return;
    }
    size_t found = find_step(own(r)->p, node->text);
    if (found == SIZE_MAX) {
        il__reading_fault(r, node->line, PLACE(at, "depends_on"), "no such step: '%.60s'%s",
                          node->text,
                          il__reading_hint(node->text, step_id_at, own(r)->p, hint, sizeof hint));
        return;
    }
    for (size_t i = 0; i < step->n_needs; i++) {
        if (step->needs[i] == found) {
            il__reading_fault(r, node->line, PLACE(at, "depends_on"), "'%.60s' is listed twice",
                              node->text);
            return;
        }
    }
    step->needs[step->n_needs++] = (uint32_t)found;
}

static void
read_needs(struct reading *r, const struct doc_node *map, size_t i)
{
    const struct doc_node *node = map->type == DOC_MAP ? il__doc_get(map, "depends_on") : NULL;
    struct pipeline_step  *step = &own(r)->p->steps[i];
    char                   at[32];

    if (node == NULL || (node->type == DOC_TEXT && node->text == NULL))
        return;
    (void)snprintf(at, sizeof at, "steps[%zu]", i);
    if (node->n > PIPELINE_STEPS_MAX) {
        il__reading_fault(r, node->line, PLACE(at, "depends_on"), "must list at most %d steps",
                          PIPELINE_STEPS_MAX);
        return;
    }
    step->needs = il__reading_alloc(r, node->n, sizeof *step->needs);
    if (step->needs == NULL)
        return;
    if (node->type != DOC_LIST) {
        add_need(r, step, node, at);
        return;
    }
    for (const struct doc_node *m = node->first; m != NULL; m = m->next)
        add_need(r, step, m, at);
}

static void
refuse_same_ids(struct reading *r)
{
    struct pipeline *p = own(r)->p;

    for (size_t i = 1; i < p->n_steps; i++) {
        size_t first = p->steps[i].id != NULL ? find_step(p, p->steps[i].id) : i;
        char   at[32];
        if (first >= i)
            continue;
        (void)snprintf(at, sizeof at, "steps[%zu]", i);
        il__reading_fault(r, p->steps[i].line, PLACE(at, "step_id"),
                          "'%s' is already the id of another step (line %zu)", p->steps[i].id,
                          p->steps[first].line);
    }
}

void
il__pipeline_read_steps(struct reading *r, const struct doc_node *root)
{
    const struct doc_node *list = il__doc_get(root, "steps");
    struct pipeline       *p    = own(r)->p;
    char                   cycle[300];
    size_t                 i_step;
    size_t                 i = 0;

    if (list == NULL || list->type != DOC_LIST || list->n == 0 || list->n > PIPELINE_STEPS_MAX) {
        il__reading_fault(r, list != NULL ? list->line : root->line, PLACE("", "steps"),
                          "must be a list of 1 to %d steps", PIPELINE_STEPS_MAX);
        return;
    }
    p->steps = il__reading_alloc(r, list->n, sizeof *p->steps);
    if (p->steps == NULL)
        return;
    p->n_steps = list->n;
    for (const struct doc_node *m = list->first; m != NULL; m = m->next)
        read_step(r, m, i++);
    refuse_same_ids(r);
    i = 0;
    for (const struct doc_node *m = list->first; m != NULL; m = m->next)
        read_needs(r, m, i++);
    if (!il__pipeline_levels(p, cycle, sizeof cycle, &i_step))
        il__reading_fault(r, p->steps[i_step].line, PLACE("steps", "depends_on"),
                          "dependency cycle: %s", cycle);
}
