/*
 * cmd_check_server.c: `interlock check --server`: has the server run its own invariants, those of
 * the key's tenant, and waits for their results.
 */
#include <stdio.h>

#include "apps/check/cmd_check.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/parse.h"
#include "cli/cli.h"
#include "cli/request.h"

#define PATH_BYTES_MAX 4096
#define NAMES_MAX 500 /* of one request */
#define WAIT_MS 20000 /* of one request for a result */

static il_status
odd_answer(il_error *reterr)
{
    return il__error_set(reterr, IL_STORE, "check: unexpected response from the server");
}

/* A string of an object, copied into the set; NULL: it is null, or missing. */
static const char *
text_of(struct check_session *s, const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text != NULL ? il__arena_strdup(&s->set.mem, text) : NULL;
}

static int64_t
number_of(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

/* The index of a name; n: none of them. */
static size_t
index_of(const char *name, const char *(*name_at)(int i), size_t n)
{
    size_t i = 0;

    while (i < n && (name == NULL || strcmp(name, name_at((int)i)) != 0))
        i++;
    return i;
}

static const char *
severity_at(int i)
{
    return il__invariant_severity_name((enum invariant_severity)i);
}

static const char *
outcome_at(int i)
{
    return il__check_outcome_name((enum check_outcome)i);
}

/* ---- which ----------------------------------------------------------------------------------- */

static il_status
take_check(struct check_session *s, const json_t *item, il_error *reterr)
{
    struct check *c  = NULL;
    il_status     st = il__checks_add(&s->set, &c, reterr);

    if (st != IL_OK)
        return st;
    CHECK(c != NULL);
    const char *zone        = json_string_value(json_object_get(item, "timezone"));
    const char *path        = text_of(s, item, "path");
    const char *description = text_of(s, item, "description");
    size_t severity  = index_of(json_string_value(json_object_get(item, "severity")), severity_at,
                                INVARIANT_SEVERITY_COUNT);
    c->tenant        = text_of(s, item, "tenant");
    c->name          = text_of(s, item, "name");
    c->description   = description != NULL ? description : "";
    c->severity      = (enum invariant_severity)severity;
    c->connection    = text_of(s, item, "connection");
    c->schedule_text = text_of(s, item, "schedule");
    c->timeout_ms    = number_of(item, "timeout_ms");
    c->n_baseline    = (size_t)MAX(number_of(item, "baseline"), 0);
    c->path          = path != NULL ? path : "";
    c->fault         = text_of(s, item, "error");
    if (c->tenant == NULL || c->name == NULL || c->schedule_text == NULL || zone == NULL ||
        severity == INVARIANT_SEVERITY_COUNT)
        return odd_answer(reterr);
    st = il__cron_parse(c->schedule_text, &c->schedule, reterr);
    return st == IL_OK ? il__zone_get(zone, &c->zone, reterr) : st;
}

/* *cursor: NULL for the first page; then that of the next one, in the set's memory. */
static il_status
load_page(struct check_session *s, const char **cursor, il_error *reterr)
{
    AUTO_BUF struct il__buf path = { 0 };
    json_t                 *page = NULL;

    il__buf_init(&path, PATH_BYTES_MAX);
    il__buf_adds(&path, "/checks");
    if (*cursor != NULL) {
        il__buf_adds(&path, "?cursor=");
        il__buf_add_url(&path, *cursor);
    }
    il_status st = il__cli_request(s->cli, "GET", il__buf_str(&path), NULL, 0, &page, reterr);
    if (st != IL_OK)
        return st;
    const json_t *items = json_object_get(page, "items");
    for (size_t i = 0; i < json_array_size(items) && st == IL_OK; i++)
        st = take_check(s, json_array_get(items, i), reterr);
    *cursor = text_of(s, page, "next");
    json_decref(page);
    return st;
}

il_status
il__check_server_load(struct check_session *s, il_error *reterr)
{
    const char *cursor = NULL;

    if (CLI_GIVEN(s->cli, check, checks))
        return il__error_set(reterr, IL_INVAL,
                             "check: --checks and --server cannot be combined; the server has its "
                             "own invariants");
    il_status st = il__cli_store_open(s->cli, false, reterr);
    do {
        if (st == IL_OK)
            st = load_page(s, &cursor, reterr);
    } while (st == IL_OK && cursor != NULL);
    if (st == IL_OK && s->set.n == 0)
        return il__error_set(reterr, IL_INVAL,
                             "check: the server has no invariants for this tenant");
    return st;
}

/* ---- results --------------------------------------------------------------------------------- */

/* Keys of the baseline that were not found: their number, and the first of them. */
static bool
take_not_needed(struct check_session *s, const json_t *o, struct invariant_found *f)
{
    const json_t *keys = json_object_get(o, "keys");
    size_t        n    = (size_t)MIN(MAX(number_of(o, "count"), 0), CHECK_BASELINE_MAX);
    const char  **all  = il__arena_alloc(&s->set.mem, (n + 1) * sizeof *all);

    il__free(f->met);
    f->met = il__calloc(n + 1, sizeof *f->met);
    if (all == NULL || f->met == NULL)
        return false;
    for (size_t i = 0; i < n; i++) {
        const char *key = json_string_value(json_array_get(keys, i));
        all[i]          = il__arena_strdup(&s->set.mem, key != NULL ? key : "");
        if (all[i] == NULL)
            return false;
    }
    f->baseline   = all;
    f->n_baseline = n;
    return true;
}

static il_status
take_result(struct check_session *s, const json_t *o, struct check_result *r, il_error *reterr)
{
    const json_t *offenders = json_object_get(o, "offenders");
    const char   *started   = json_string_value(json_object_get(o, "started_at"));
    const char   *error     = json_string_value(json_object_get(o, "error"));

    if (!il__invariant_found_init(&r->found, NULL, 0))
        return il__error_nomem(reterr);
    for (size_t i = 0; i < json_array_size(offenders); i++) {
        const json_t *one = json_array_get(offenders, i);
        const char   *key = json_string_value(json_object_get(one, "key"));
        il__invariant_found(&r->found, key != NULL ? key : "",
                            json_string_value(json_object_get(one, "text")));
    }
    r->found.n_new   = number_of(o, "new");
    r->found.n_known = number_of(o, "known");
    if (!take_not_needed(s, json_object_get(o, "not_needed"), &r->found) || r->found.no_memory)
        return il__error_nomem(reterr);
    if (started != NULL && !il__time_parse(started, &r->started_ms))
        return odd_answer(reterr);
    r->took_ms = number_of(o, "duration_ms");
    if (r->outcome == CHECK_ERROR)
        (void)il__error_set(&r->error, IL_STORE, "%s", error != NULL ? error : "unknown");
    return IL_OK;
}

/* Until the run has ended. */
static il_status
wait_for(struct check_session *s, const char *run, struct check_result *r, il_error *reterr)
{
    AUTO_BUF struct il__buf path = { 0 };
    il_status               st   = IL_OK;

    il__buf_init(&path, PATH_BYTES_MAX);
    il__buf_adds(&path, "/checks/results/");
    il__buf_add_url(&path, run);
    il__buf_addf(&path, "?wait=%dms", WAIT_MS);
    while (st == IL_OK && r->outcome == CHECK_NOT_RUN) {
        json_t *answer = NULL;
        st = il__cli_request(s->cli, "GET", il__buf_str(&path), NULL, WAIT_MS, &answer, reterr);
        if (st != IL_OK)
            return st;
        size_t outcome = index_of(json_string_value(json_object_get(answer, "outcome")), outcome_at,
                                  CHECK_OUTCOME_COUNT);
        r->outcome     = (enum check_outcome)outcome;
        if (outcome == CHECK_OUTCOME_COUNT)
            st = odd_answer(reterr);
        else if (outcome != CHECK_NOT_RUN)
            st = take_result(s, answer, r, reterr);
        json_decref(answer);
    }
    return st;
}

/* ---- running --------------------------------------------------------------------------------- */

/* Start those from..to. *ret: {"items": [{"name", "run_id", "error"}]}; json_decref() it. */
static il_status
start(const struct check_session *s, size_t from, size_t to, json_t **ret, il_error *reterr)
{
    json_t *names = json_array();
    json_t *body  = json_pack("{s:o}", "names", names);
    bool    ok    = body != NULL;

    for (size_t i = from; i < to && ok; i++)
        ok = json_array_append_new(names, json_string(s->chosen[i]->name)) == 0;
    il_status st = ok ? il__cli_request(s->cli, "POST", "/checks/run", body, 0, ret, reterr)
                      : il__error_nomem(reterr);
    json_decref(body);
    return st;
}

/* Its run, of what start() returned; NULL: it is invalid. */
static const char *
run_of(const json_t *started, const char *name)
{
    const json_t *items = json_object_get(started, "items");

    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *one = json_array_get(items, i);
        const char   *is  = json_string_value(json_object_get(one, "name"));
        if (is != NULL && strcmp(is, name) == 0)
            return json_string_value(json_object_get(one, "run_id"));
    }
    return NULL;
}

static il_status
run_some(struct check_session *s, size_t from, size_t to, il_error *reterr)
{
    json_t   *started = NULL;
    il_status st      = start(s, from, to, &started, reterr);

    for (size_t i = from; i < to && st == IL_OK; i++) {
        struct check_result *r   = &s->results[i];
        const char          *run = run_of(started, s->chosen[i]->name);
        r->check                 = s->chosen[i];
        if (run != NULL) {
            st = wait_for(s, run, r, reterr);
        } else {
            r->outcome = CHECK_ERROR;
            (void)il__error_set(&r->error, IL_INVAL, "%s",
                                r->check->fault != NULL ? r->check->fault
                                                        : "the server did not start it");
        }
        il__cli_progress(s->cli, i + 1, s->n, r->check->name);
    }
    json_decref(started);
    return st;
}

il_status
il__check_server_run(struct check_session *s, il_error *reterr)
{
    il_status st = IL_OK;

    for (size_t i = 0; i < s->n && st == IL_OK; i += NAMES_MAX)
        st = run_some(s, i, MIN(i + NAMES_MAX, s->n), reterr);
    return st;
}
