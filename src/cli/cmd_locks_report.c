/*
 * cmd_locks_report.c: `interlock locks --report`: prints waits and holds of row locks, and which of
 * them exceed a threshold.
 */
#include "cli/cmd_locks_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>

#include "base/buf.h"
#include "base/error.h"
#include "cli/lock_report.h"

#define US_PER_MS 1000
#define HOLDS_MAX 64     /* entities with a limit of their own */
#define BAD_SHOWN_MAX 10 /* on standard error */
#define FINDINGS_MAX 4   /* of a group */
#define FINDING_BYTES 160
#define REPORT_PLACE_COLUMN 2 /* the caller may be truncated on a narrow terminal */

enum level {
    LEVEL_OK,
    LEVEL_WARNING,
    LEVEL_CRITICAL,
    LEVEL_COUNT
};

static const char *const level_names[] = { "ok", "warning", "critical" };
_Static_assert(ARRAY_LEN(level_names) == LEVEL_COUNT, "a name for each level");

/* ---- thresholds ------------------------------------------------------------------------------ */

/* The longest P95 of the holds of an entity. */
struct hold_limit {
    const char *entity;
    int64_t     ms;
};

struct limits {
    char             *text; /* which the entities point into */
    struct hold_limit holds[HOLDS_MAX];
    size_t            n_holds;
    int64_t           critical_ms;
    int64_t           rollbacks_percent;
};

static void
limits_release(struct limits *l)
{
    il__free(l->text);
}
#define AUTO_LIMITS AUTO(limits_release)

static il_status
add_hold(struct limits *l, char *item, il_error *reterr)
{
    char   *equals = strrchr(item, '=');
    int64_t ms     = 0;

    if (equals == NULL || equals == item)
        return il__error_set(reterr, IL_INVAL, "locks: --hold-p95: '%.60s' is not ENTITY=DUR",
                             item);
    *equals = '\0';
    if (il_parse_duration(equals + 1, &ms, NULL) != IL_OK || ms == IL_FOREVER)
        return il__error_set(reterr, IL_INVAL,
                             "locks: --hold-p95: '%.60s' is not a duration (try 200ms, 2s)",
                             equals + 1);
    if (l->n_holds == HOLDS_MAX)
        return il__error_set(reterr, IL_INVAL, "locks: --hold-p95: more than %d entities",
                             HOLDS_MAX);
    l->holds[l->n_holds++] = (struct hold_limit){ item, ms };
    return IL_OK;
}

static il_status
read_limits(const struct cli *cli, struct limits *l, il_error *reterr)
{
    const struct cli_value *given = CLI_OPTION(cli, locks, hold_p95);
    char                   *rest  = NULL;
    il_status               st    = IL_OK;

    l->critical_ms       = CLI_OPTION(cli, locks, critical)->number;
    l->rollbacks_percent = CLI_OPTION(cli, locks, rollbacks)->number;
    l->text =
        il__strdup(given->given ? given->text : il__cli_options[CLI_OPT_locks_hold_p95].fallback);
    if (l->text == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for the report");
    if (strcmp(l->text, "none") == 0)
        return IL_OK;
    for (char *item = strtok_r(l->text, ",", &rest); st == IL_OK && item != NULL;
         item       = strtok_r(NULL, ",", &rest))
        st = add_hold(l, item, reterr);
    return st;
}

/* ---- findings -------------------------------------------------------------------------------- */

struct findings {
    size_t n;
    struct {
        enum level level;
        char       text[FINDING_BYTES];
    } items[FINDINGS_MAX];
    enum level worst;
};

static void PRINTF_LIKE(3, 4) find(struct findings *f, enum level level, const char *fmt, ...)
{
    va_list ap;

    CHECK(f->n < FINDINGS_MAX);
    f->items[f->n].level = level;
    va_start(ap, fmt);
    (void)vsnprintf(f->items[f->n].text, FINDING_BYTES, fmt, ap);
    va_end(ap);
    f->n++;
    f->worst = MAX(f->worst, level);
}

static double
to_ms(uint64_t us)
{
    return (double)us / US_PER_MS;
}

static double
percent(const struct lock_group *g)
{
    return 100.0 * (double)g->n_violations / (double)g->n;
}

static void
judge_max(const char *what, const struct lock_times *t, int64_t limit_ms, struct findings *f)
{
    if (t->max_us > (uint64_t)limit_ms * US_PER_MS)
        find(f, LEVEL_CRITICAL, "a %s of %.3f ms (line %" PRIu64 ") exceeds %" PRId64 " ms", what,
             to_ms(t->max_us), t->max_line, limit_ms);
}

static struct findings
judge(const struct lock_group *g, const struct limits *l)
{
    struct findings f = { 0 };

    judge_max("wait", &g->wait, l->critical_ms, &f);
    judge_max("hold", &g->hold, l->critical_ms, &f);
    for (size_t i = 0; i < l->n_holds; i++) {
        uint32_t p95 = il__cli_lock_percentile(g, &g->hold, 95);
        if (strcmp(l->holds[i].entity, g->entity) == 0 &&
            p95 > (uint64_t)l->holds[i].ms * US_PER_MS) {
            find(&f, LEVEL_WARNING, "the P95 of holds is %.3f ms, more than %" PRId64 " ms",
                 to_ms(p95), l->holds[i].ms);
            break;
        }
    }
    if (g->n_violations * 100 > (uint64_t)l->rollbacks_percent * g->n)
        find(&f, LEVEL_WARNING, "%.1f %% integrity rollbacks, more than %" PRId64 " %%", percent(g),
             l->rollbacks_percent);
    return f;
}

/* ---- printing -------------------------------------------------------------------------------- */

static json_t *
json_times(const struct lock_group *g, const struct lock_times *t)
{
    return json_pack("{s:f, s:f, s:f, s:f}", "p50", to_ms(il__cli_lock_percentile(g, t, 50)), "p95",
                     to_ms(il__cli_lock_percentile(g, t, 95)), "p99",
                     to_ms(il__cli_lock_percentile(g, t, 99)), "max", to_ms(t->max_us));
}

static json_t *
json_findings(const struct findings *f)
{
    json_t *items = json_array();

    for (size_t i = 0; items != NULL && i < f->n; i++) {
        if (json_array_append_new(items,
                                  json_pack("{s:s, s:s}", "level", level_names[f->items[i].level],
                                            "text", f->items[i].text)) != 0) {
            json_decref(items);
            return NULL;
        }
    }
    return items;
}

static json_t *
json_group(const struct lock_group *g, const struct findings *f)
{
    return json_pack("{s:o, s:o, s:o, s:I, s:o, s:o, s:I, s:f, s:s, s:o}", "pipeline",
                     il__cli_json_text(g->pipeline), "entity", il__cli_json_text(g->entity),
                     "caller", il__cli_json_text(g->caller), "count", (json_int_t)g->n, "wait_ms",
                     json_times(g, &g->wait), "hold_ms", json_times(g, &g->hold),
                     "integrity_rollbacks", (json_int_t)g->n_violations,
                     "integrity_rollback_percent", percent(g), "status", level_names[f->worst],
                     "findings", json_findings(f));
}

static json_t *
json_bad(const struct lock_report *r)
{
    json_t *items = json_array();

    for (size_t i = 0; items != NULL && i < MIN(r->n_bad, (uint64_t)CLI_LOCKS_BAD_MAX); i++) {
        if (json_array_append_new(items, json_pack("{s:I, s:o}", "line", (json_int_t)r->bad[i].line,
                                                   "error", il__cli_json_text(r->bad[i].why))) !=
            0) {
            json_decref(items);
            return NULL;
        }
    }
    return items;
}

static int
print_json(const struct lock_report *r, const struct limits *l, enum level *ret_worst)
{
    json_t *groups = json_array();
    bool    ok     = groups != NULL;

    for (size_t i = 0; ok && i < r->n_groups; i++) {
        struct findings f = judge(r->groups[i], l);
        *ret_worst        = MAX(*ret_worst, f.worst);
        ok                = json_array_append_new(groups, json_group(r->groups[i], &f)) == 0;
    }
    if (!ok) {
        json_decref(groups);
        return il__cli_fail_memory();
    }
    return il__cli_json_print(
        json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "status", level_names[*ret_worst],
                  "lines", (json_int_t)r->n_lines, "locks", (json_int_t)r->n_locks, "other_lines",
                  (json_int_t)r->n_other, "dropped", (json_int_t)r->n_dropped, "bad_lines",
                  (json_int_t)r->n_bad, "bad", json_bad(r), "groups", groups));
}

static void
add_times(struct cli_grid *grid, const struct lock_group *g, const struct lock_times *t)
{
    static const unsigned percents[] = { 50, 95, 99 };

    for (size_t i = 0; i < ARRAY_LEN(percents); i++)
        il__cli_grid_add(grid, "%.3f", to_ms(il__cli_lock_percentile(g, t, percents[i])));
    il__cli_grid_add(grid, "%.3f", to_ms(t->max_us));
}

static const char *
or_dash(const char *text)
{
    return text[0] != '\0' ? text : "-";
}

static int
print_groups(const struct lock_report *r, const struct limits *l, enum level *ret_worst)
{
    static const char *const  headers[] = { "PIPELINE",   "ENTITY",    "CALLER",    ">COUNT",
                                            ">WAIT P50",  ">WAIT P95", ">WAIT P99", ">WAIT MAX",
                                            ">HOLD P50",  ">HOLD P95", ">HOLD P99", ">HOLD MAX",
                                            ">ROLLBACKS", "STATUS" };
    AUTO_GRID struct cli_grid grid      = { 0 };

    il__cli_grid_init(&grid, headers, ARRAY_LEN(headers));
    grid.elastic = REPORT_PLACE_COLUMN;
    for (size_t i = 0; i < r->n_groups; i++) {
        const struct lock_group *g = r->groups[i];
        struct findings          f = judge(g, l);
        il__cli_grid_add(&grid, "%s", or_dash(g->pipeline));
        il__cli_grid_add(&grid, "%s", or_dash(g->entity));
        il__cli_grid_add(&grid, "%s", or_dash(g->caller));
        il__cli_grid_add(&grid, "%" PRIu64, g->n);
        add_times(&grid, g, &g->wait);
        add_times(&grid, g, &g->hold);
        il__cli_grid_add(&grid, "%.1f%%", percent(g));
        il__cli_grid_add(&grid, "%s", level_names[f.worst]);
        *ret_worst = MAX(*ret_worst, f.worst);
    }
    return il__cli_grid_print(&grid);
}

static void
print_findings(const struct lock_report *r, const struct limits *l)
{
    AUTO_BUF struct il__buf line = { 0 };

    il__buf_init(&line, 4096);
    for (size_t i = 0; i < r->n_groups; i++) {
        const struct lock_group *g = r->groups[i];
        struct findings          f = judge(g, l);
        for (size_t j = 0; j < f.n; j++) {
            il__buf_clear(&line);
            il__buf_addf(&line, "%s: %.256s %.256s %.256s: %s", level_names[f.items[j].level],
                         or_dash(g->pipeline), or_dash(g->entity), or_dash(g->caller),
                         f.items[j].text);
            il__cli_puts(il__buf_str(&line));
            (void)putchar('\n');
        }
    }
}

/* What was left out, on standard error. */
static void
print_notes(const struct cli *cli, const struct lock_report *r, const char *name)
{
    uint64_t n_shown = MIN(r->n_bad, (uint64_t)BAD_SHOWN_MAX);

    for (uint64_t i = 0; i < n_shown; i++)
        il__cli_note(cli, "%s:%" PRIu64 ": %s; line ignored", name, r->bad[i].line, r->bad[i].why);
    if (r->n_bad > n_shown)
        il__cli_note(cli, "%s: %" PRIu64 " more bad lines ignored", name, r->n_bad - n_shown);
    if (r->n_dropped > 0)
        il__cli_note(cli, "%s: %" PRIu64 " locks ignored: more than %d groups", name, r->n_dropped,
                     CLI_LOCKS_GROUPS_MAX);
    if (r->n_locks == 0)
        il__cli_note(cli, "%s: found no locks in %" PRIu64 " lines", name, r->n_lines);
}

/* ---- the command ----------------------------------------------------------------------------- */

static il_status
read_file(const char *path, struct lock_report *r, il_error *reterr)
{
    bool  is_stdin = path == NULL || strcmp(path, "-") == 0;
    FILE *file     = is_stdin ? stdin : fopen(path, "re");

    if (file == NULL)
        return il__error_set(reterr, IL_INVAL, "locks: cannot open %.150s: %s", path,
                             strerror(errno));
    il_error  err = { .message = "" };
    il_status st  = il__cli_lock_report_read(r, file, &err);
    if (!is_stdin)
        (void)fclose(file); /* it was only read */
    if (st == IL_STORE)
        return il__error_set(reterr, IL_INVAL, "locks: %.100s: %.100s",
                             is_stdin ? "standard input" : path, err.message);
    return st == IL_OK ? IL_OK : il__error_set(reterr, st, "%s", err.message);
}

/* Without a file: of the server, if the command has one, else standard input. */
static il_status
read_locks(struct cli *cli, struct lock_report *r, const char **ret_name, il_error *reterr)
{
    const char *path   = cli->args.operands[0];
    const char *server = CLI_SETTING(cli, server)->text;

    if (path != NULL || server == NULL || server[0] == '\0') {
        *ret_name = path != NULL && strcmp(path, "-") != 0 ? path : "standard input";
        return read_file(path, r, reterr);
    }
    *ret_name    = "the server";
    il_status st = il__cli_store_open(cli, false, reterr);
    return st == IL_OK ? il__cli_lock_report_ask(cli, r, reterr) : st;
}

int
il__cli_locks_report(struct cli *cli)
{
    AUTO_LIMITS struct limits           limits = { 0 };
    AUTO_LOCK_REPORT struct lock_report r      = { 0 };
    const char                         *name   = "";
    enum level                          worst  = LEVEL_OK;
    il_error                            err;

    if (CLI_GIVEN(cli, locks, waiters) || CLI_GIVEN(cli, locks, limit) ||
        CLI_GIVEN(cli, locks, cursor))
        return il__cli_usage("locks: --report cannot be combined with --waiters, --limit or "
                             "--cursor");
    il_status st = read_limits(cli, &limits, &err);
    if (st == IL_OK)
        st = read_locks(cli, &r, &name, &err);
    if (st != IL_OK)
        return il__cli_fail(&err);
    int status = 0;
    if (cli->json)
        status = print_json(&r, &limits, &worst);
    else if (r.n_groups > 0)
        status = print_groups(&r, &limits, &worst);
    if (status == 0 && !cli->json)
        print_findings(&r, &limits);
    print_notes(cli, &r, name);
    if (status != 0)
        return status;
    return worst == LEVEL_CRITICAL ? CLI_EXIT_CRITICAL : worst == LEVEL_WARNING ? CLI_EXIT_SLOW : 0;
}
