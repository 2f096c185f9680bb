/*
 * cmd_check.c: `interlock check`: has invariants run (cmd_check.h) and prints what they found. All
 * of them run, whatever the others find; the exit status says what came of it.
 */
#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "apps/check/cmd_check.h"
#include "apps/common/tables.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/suggest.h"
#include "cli/cli.h"
#include "cli/print_item.h"
#include "cli/request.h"

#define LINE_BYTES_MAX 8192
#define JUNIT_BYTES_MAX ((size_t)256 << 20)

static void
session_release(struct check_session *s)
{
    for (size_t i = 0; s->results != NULL && i < s->n; i++)
        il__check_result_release(&s->results[i]);
    il__free(s->results);
    il__free(s->chosen);
    il__checks_release(&s->set);
    il__tables_place_close(s->place);
}

/* ---- which ----------------------------------------------------------------------------------- */

static const char *
name_at(const void *cookie, size_t i)
{
    const struct check_set *set = cookie;

    return i < set->n ? set->items[i].name : NULL;
}

/* Those that the operands name, or all. */
static il_status
choose(struct check_session *s, il_error *reterr)
{
    const struct cli_args *args = &s->cli->args;

    s->chosen  = il__calloc(s->set.n + 1, sizeof *s->chosen);
    s->results = il__calloc(s->set.n + 1, sizeof *s->results);
    if (s->chosen == NULL || s->results == NULL)
        return il__error_nomem(reterr);
    for (size_t k = 0; k < args->n_operands; k++) {
        size_t i = 0;
        while (i < s->set.n && strcmp(s->set.items[i].name, args->operands[k]) != 0)
            i++;
        if (i < s->set.n)
            continue;
        const char *meant = il__suggest(args->operands[k], name_at, &s->set);
        return il__error_set(reterr, IL_INVAL, "check: no invariant '%.64s'%s%.64s%s",
                             args->operands[k], meant != NULL ? " (did you mean '" : "",
                             meant != NULL ? meant : "", meant != NULL ? "'?)" : "");
    }
    for (size_t i = 0; i < s->set.n; i++) {
        bool wanted = args->n_operands == 0;
        for (size_t k = 0; k < args->n_operands && !wanted; k++)
            wanted = strcmp(s->set.items[i].name, args->operands[k]) == 0;
        if (wanted)
            s->chosen[s->n++] = &s->set.items[i];
    }
    return IL_OK;
}

/* ---- the list -------------------------------------------------------------------------------- */

static int
list_json(const struct check_session *s, int64_t now_ms)
{
    json_t *items = json_array();

    for (size_t i = 0; i < s->n && items != NULL; i++) {
        if (json_array_append_new(items, il__check_json(s->chosen[i], now_ms)) != 0) {
            json_decref(items);
            items = NULL;
        }
    }
    return il__cli_json_page(items, NULL);
}

static int
list(const struct check_session *s)
{
    static const char *const  headers[] = { "TENANT",   "INVARIANT", "SEVERITY",   "CONNECTION",
                                            "SCHEDULE", "NEXT",      "DESCRIPTION" };
    AUTO_GRID struct cli_grid g         = { 0 };
    int64_t                   now_ms    = il__clock_wall_ms();

    if (s->cli->json)
        return list_json(s, now_ms);
    il__cli_grid_init(&g, headers, ARRAY_LEN(headers));
    g.elastic = ARRAY_LEN(headers) - 1;
    for (size_t i = 0; i < s->n; i++) {
        const struct check *c    = s->chosen[i];
        int64_t             next = il__check_next_tick(c, now_ms);
        bool                utc  = strcmp(c->zone->name, "UTC") == 0;
        char                text[IL__TIME_TEXT_BYTES];
        il__cli_grid_add(&g, "%s", c->tenant);
        il__cli_grid_add(&g, "%s", c->name);
        il__cli_grid_add(&g, "%s", il__invariant_severity_name(c->severity));
        il__cli_grid_add(&g, "%s", c->connection != NULL ? c->connection : "");
        il__cli_grid_add(&g, "%s%s%s", c->schedule_text, utc ? "" : " ", utc ? "" : c->zone->name);
        il__cli_grid_add(&g, "%s", next != IL__NEVER ? il__time_text(next, text) : "");
        il__cli_grid_add(&g, "%s%.*s", c->fault != NULL ? "invalid: " : "",
                         (int)strcspn(c->fault != NULL ? c->fault : c->description, "\n"),
                         c->fault != NULL ? c->fault : c->description);
    }
    return il__cli_grid_print(&g);
}

/* ---- results --------------------------------------------------------------------------------- */

static int
print_json(const struct check_session *s)
{
    json_t *items = json_array();

    for (size_t i = 0; i < s->n && items != NULL; i++) {
        if (json_array_append_new(items, il__check_result_json(&s->results[i])) != 0) {
            json_decref(items);
            items = NULL;
        }
    }
    return il__cli_json_page(items, NULL);
}

static int
print_table(const struct check_session *s)
{
    static const char *const  headers[] = { "OUTCOME",   "SEVERITY", "TENANT",
                                            "INVARIANT", ">TIME",    "FOUND" };
    AUTO_GRID struct cli_grid g         = { 0 };

    il__cli_grid_init(&g, headers, ARRAY_LEN(headers));
    for (size_t i = 0; i < s->n; i++) {
        const struct check_result *r       = &s->results[i];
        AUTO_BUF struct il__buf    summary = { 0 };
        char                       age[CLI_AGE_BYTES];
        if (r->outcome == CHECK_SKIPPED || (s->cli->quiet && r->outcome == CHECK_PASSED))
            continue;
        il__buf_init(&summary, LINE_BYTES_MAX);
        il__check_summary(r, &summary);
        il__cli_grid_add(&g, "%s", il__check_outcome_name(r->outcome));
        il__cli_grid_add(&g, "%s", il__invariant_severity_name(r->check->severity));
        il__cli_grid_add(&g, "%s", r->check->tenant);
        il__cli_grid_add(&g, "%s", r->check->name);
        il__cli_grid_add(&g, "%s", il__cli_age(r->took_ms, age));
        il__cli_grid_add(&g, "%s", il__buf_str(&summary));
    }
    return g.n_cells > g.n_columns ? il__cli_grid_print(&g) : 0;
}

/* Its offenders, and the keys of its baseline that are no longer needed. */
static void
print_details(const struct check_result *r)
{
    const char *keys[INVARIANT_OFFENDERS_MAX];
    size_t      n_keys = il__invariant_not_needed(&r->found, keys, ARRAY_LEN(keys));

    if (r->found.n_new == 0 && n_keys == 0)
        return;
    (void)printf("\n%s/%s", r->check->tenant, r->check->name); /* both are ids */
    (void)printf("%s", r->check->description[0] != '\0' ? ": " : "");
    il__cli_puts(r->check->description);
    (void)printf("\n");
    for (size_t i = 0; i < r->found.n_offenders; i++) {
        const struct invariant_offender *o = &r->found.offenders[i];
        (void)printf("  ");
        il__cli_puts(o->key);
        (void)printf("%s", o->text != NULL ? "  " : "");
        il__cli_puts(o->text != NULL ? o->text : "");
        (void)printf("\n");
    }
    if (r->found.n_new > (int64_t)r->found.n_offenders)
        (void)printf("  and %" PRId64 " more\n", r->found.n_new - (int64_t)r->found.n_offenders);
    for (size_t i = 0; i < MIN(n_keys, ARRAY_LEN(keys)); i++) {
        (void)printf("  known offender that no longer occurs, remove it from the baseline: ");
        il__cli_puts(keys[i]);
        (void)printf("\n");
    }
}

static int
write_junit(const struct check_session *s, const char *path)
{
    AUTO_BUF struct il__buf xml = { 0 };

    il__buf_init(&xml, JUNIT_BYTES_MAX);
    il__check_junit(s->results, s->n, CLI_GIVEN(s->cli, check, strict), &xml);
    if (xml.failed)
        return il__cli_fail_memory();
    FILE *file = fopen(path, "we");
    bool  ok   = file != NULL && fwrite(xml.data, 1, xml.n_bytes, file) == xml.n_bytes;
    if ((file != NULL && fclose(file) != 0) || !ok) {
        il__cli_error("check: cannot write %.400s: %s", path, strerror(errno));
        return CLI_EXIT_IO;
    }
    return 0;
}

static int
conclude(const struct check_session *s)
{
    size_t n[CHECK_OUTCOME_COUNT] = { 0 };
    bool   fails                  = false;

    for (size_t i = 0; i < s->n; i++) {
        n[s->results[i].outcome]++;
        fails |= il__check_fails(&s->results[i], CLI_GIVEN(s->cli, check, strict));
    }
    il__cli_note(s->cli, "%zu passed, %zu broken, %zu could not run", n[CHECK_PASSED],
                 n[CHECK_BROKEN], n[CHECK_ERROR]);
    if (fails)
        return CLI_EXIT_BROKEN;
    return n[CHECK_ERROR] > 0 ? CLI_EXIT_UNCHECKED : 0;
}

static int
print_results(const struct check_session *s)
{
    const char *junit  = CLI_OPTION(s->cli, check, junit)->text;
    int         status = s->cli->json ? print_json(s) : print_table(s);

    for (size_t i = 0; i < s->n && !s->cli->json && status == 0; i++)
        print_details(&s->results[i]);
    if (status == 0 && junit != NULL)
        status = write_junit(s, junit);
    return status != 0 ? status : conclude(s);
}

int
il__cli_cmd_check(struct cli *cli)
{
    AUTO(session_release) struct check_session s = { .cli = cli };
    il_error                                   err;

    if (CLI_GIVEN(cli, check, list) &&
        (CLI_GIVEN(cli, check, junit) || CLI_GIVEN(cli, check, strict)))
        return il__cli_usage("check: --list cannot be combined with --junit or --strict");
    bool      remote = il__cli_is_remote(cli);
    il_status st     = remote ? il__check_server_load(&s, &err) : il__check_here_load(&s, &err);
    if (st == IL_OK)
        st = choose(&s, &err);
    if (st == IL_OK && CLI_GIVEN(cli, check, list))
        return list(&s);
    if (st == IL_OK)
        st = remote ? il__check_server_run(&s, &err) : il__check_here_run(&s, &err);
    il__cli_progress_end();
    return st == IL_OK ? print_results(&s) : il__cli_fail(&err);
}
