/* model.c: reads, filters and sorts what `interlock top` shows; the columns are in columns.c. */
#include "cli/top/model.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli/apply.h"
#include "cli/print_lease.h"
#include "cli/top/columns.h"

#define CELL_BYTES_MAX 4096

const char *
top_tab_name(enum top_tab tab)
{
    return il__top_columns[tab].name;
}

void
top_model_init(struct top_model *m, const char *prefix)
{
    *m = (struct top_model){ .prefix = prefix };
    for (enum top_tab tab = TOP_OVERVIEW; tab < TOP_TAB_COUNT; tab++)
        m->sort[tab] = il__top_columns[tab].sort;
}

void
top_model_release(struct top_model *m)
{
    for (size_t i = 0; i < TOP_TAB_COUNT; i++)
        il_op_release(&m->lists[i]);
    il__free(m->problems);
    il__free(m->rows);
    m->problems   = NULL;
    m->rows       = NULL;
    m->n_problems = m->n_rows = 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

static il_status
read_list(struct top_model *m, const struct cli *cli, enum top_tab tab, il_error *reterr)
{
    static const il_op_type types[] = {
        [TOP_LOCKS] = IL_OP_LIST, [TOP_RUNS] = IL_OP_RUN_LIST, [TOP_QUEUES] = IL_OP_QUEUE_LIST
    };
    il_op     op = { .type    = types[tab],
                     .in.list = { .prefix = m->prefix, .limit = IL_PAGE_ITEMS_MAX } };
    il_status st = il__cli_apply(cli, &op, reterr);

    if (st != IL_OK) {
        il_op_release(&op);
        return st;
    }
    il_op_release(&m->lists[tab]);
    m->lists[tab] = op;
    return IL_OK;
}

static void
add_problem(struct top_model *m, const char *what, const char *name, const char *detail,
            const il_lease_info *lease)
{
    m->problems[m->n_problems++] = (struct top_problem){ what, name, detail, lease };
}

/* Did the newest run of its key fail? `runs` has the newest first. */
static bool
has_failed(const il_op *runs, size_t i)
{
    const il_run_info *info = &runs->out.runs[i];

    if (info->state != IL_RUN_FAILED && info->state != IL_RUN_INTERRUPTED &&
        info->state != IL_RUN_TIMEOUT)
        return false;
    for (size_t j = 0; j < i; j++) {
        if (strcmp(runs->out.runs[j].key, info->key) == 0)
            return false;
    }
    return true;
}

/* Two problems of a queue at most, one of a lease or a run. */
static void
find_problems(struct top_model *m)
{
    const il_op *locks  = &m->lists[TOP_LOCKS];
    const il_op *runs   = &m->lists[TOP_RUNS];
    const il_op *queues = &m->lists[TOP_QUEUES];
    size_t       n_max  = locks->out.n_items + runs->out.n_runs + 2 * queues->out.n_queues;

    il__free(m->problems);
    m->n_problems = 0;
    m->problems   = il__calloc(MAX(n_max, 1), sizeof *m->problems);
    if (m->problems == NULL)
        return;
    for (size_t i = 0; i < locks->out.n_items; i++) {
        const il_lease_info *info = &locks->out.items[i];
        if (il__cli_lease_is_late(info))
            add_problem(m, "missed renewal", info->key, info->holder, info);
    }
    for (size_t i = 0; i < runs->out.n_runs; i++) {
        const il_run_info *info = &runs->out.runs[i];
        if (has_failed(runs, i))
            add_problem(m, "failed run", info->key, info->error, NULL);
    }
    for (size_t i = 0; i < queues->out.n_queues; i++) {
        const il_queue_info *info = &queues->out.queues[i];
        if (info->n_failed > 0)
            add_problem(m, "failed jobs", info->name, "", NULL);
        if (info->paused)
            add_problem(m, "paused queue", info->name, info->reason, NULL);
    }
}

il_status
top_model_read(struct top_model *m, const struct cli *cli)
{
    il_status st = IL_OK;

    for (enum top_tab tab = TOP_LOCKS; st == IL_OK && tab < TOP_TAB_COUNT; tab++) {
        if (m->tab == TOP_OVERVIEW || m->tab == tab)
            st = read_list(m, cli, tab, &m->error);
    }
    m->lost = st != IL_OK;
    if (!m->lost)
        m->now_ms = il__clock_wall_ms();
    find_problems(m); /* they point into the lists */
    top_model_arrange(m);
    return st;
}

/* ---- arranging ------------------------------------------------------------------------------- */

static const void *
item_at(const struct top_model *m, size_t i)
{
    switch (m->tab) {
    case TOP_LOCKS:
        return &m->lists[TOP_LOCKS].out.items[i];
    case TOP_RUNS:
        return &m->lists[TOP_RUNS].out.runs[i];
    case TOP_QUEUES:
        return &m->lists[TOP_QUEUES].out.queues[i];
    default:
        return &m->problems[i];
    }
}

static size_t
n_items(const struct top_model *m)
{
    switch (m->tab) {
    case TOP_LOCKS:
        return m->lists[TOP_LOCKS].out.n_items;
    case TOP_RUNS:
        return m->lists[TOP_RUNS].out.n_runs;
    case TOP_QUEUES:
        return m->lists[TOP_QUEUES].out.n_queues;
    default:
        return m->n_problems;
    }
}

/* Does a cell contain the filter? */
static bool
matches(const struct top_model *m, const void *item)
{
    const struct top_columns *c     = &il__top_columns[m->tab];
    AUTO_BUF struct il__buf   cell  = { 0 };
    bool                      found = m->filter[0] == '\0';

    il__buf_init(&cell, CELL_BYTES_MAX);
    for (size_t i = 0; !found && i < c->n; i++) {
        il__buf_clear(&cell);
        c->columns[i].cell(item, m->now_ms, &cell);
        found = strcasestr(il__buf_str(&cell), m->filter) != NULL;
    }
    return found;
}

/* Insertion is stable, and a page has at most 1,000 rows, mostly in order. */
static void
insert(struct top_model *m, const void *item)
{
    const struct top_columns *c       = &il__top_columns[m->tab];
    bool                      reverse = m->reverse[m->tab];
    size_t                    i       = m->n_rows++;

    for (; i > 0; i--) {
        int order = c->columns[m->sort[m->tab]].compare(m->rows[i - 1], item);
        if ((reverse ? -order : order) <= 0)
            break;
        m->rows[i] = m->rows[i - 1];
    }
    m->rows[i] = item;
}

static void
remember(struct top_model *m)
{
    m->selected_id[0] = '\0';
    if (m->selected < m->n_rows)
        il__top_columns[m->tab].id(m->rows[m->selected], m->selected_id);
}

void
top_model_arrange(struct top_model *m)
{
    char id[TOP_ID_BYTES];

    il__free(m->rows);
    m->n_rows = 0;
    m->rows   = il__calloc(MAX(n_items(m), 1), sizeof *m->rows);
    for (size_t i = 0; m->rows != NULL && i < n_items(m); i++) {
        if (matches(m, item_at(m, i)))
            insert(m, item_at(m, i));
    }
    for (size_t i = 0; i < m->n_rows; i++) {
        il__top_columns[m->tab].id(m->rows[i], id);
        if (strcmp(id, m->selected_id) == 0)
            m->selected = i;
    }
    m->selected = MIN(m->selected, MAX(m->n_rows, 1) - 1);
    remember(m);
}

void
top_model_tab(struct top_model *m, enum top_tab tab)
{
    m->tab            = tab;
    m->selected       = 0;
    m->selected_id[0] = '\0';
    top_model_arrange(m);
}

void
top_model_sort(struct top_model *m, int step)
{
    size_t n = il__top_columns[m->tab].n;

    m->sort[m->tab] = (m->sort[m->tab] + (step < 0 ? n - 1 : 1)) % n;
    top_model_arrange(m);
}

void
top_model_select(struct top_model *m, int64_t step)
{
    int64_t last = (int64_t)MAX(m->n_rows, 1) - 1;

    m->selected = (size_t)MIN(MAX((int64_t)m->selected + step, 0), last);
    remember(m);
}

const il_lease_info *
top_model_lease(const struct top_model *m)
{
    if (m->selected >= m->n_rows)
        return NULL;
    if (m->tab == TOP_LOCKS)
        return m->rows[m->selected];
    return m->tab == TOP_OVERVIEW ? ((const struct top_problem *)m->rows[m->selected])->lease
                                  : NULL;
}

/* ---- texts ----------------------------------------------------------------------------------- */

void
top_model_grid(const struct top_model *m, struct cli_grid *g)
{
    const struct top_columns *c = &il__top_columns[m->tab];
    const char               *headers[CLI_GRID_COLUMNS_MAX];
    AUTO_BUF struct il__buf   cell = { 0 };

    for (size_t i = 0; i < c->n; i++)
        headers[i] = c->columns[i].header;
    il__cli_grid_init(g, headers, c->n);
    g->elastic = c->elastic;
    il__buf_init(&cell, CELL_BYTES_MAX);
    for (size_t i = 0; i < m->n_rows; i++) {
        for (size_t j = 0; j < c->n; j++) {
            il__buf_clear(&cell);
            c->columns[j].cell(m->rows[i], m->now_ms, &cell);
            il__cli_grid_add(g, "%s", il__buf_str(&cell));
        }
    }
}

/* "locks 12", or "locks over 1,000" if a page was not enough. */
static void
add_count(const struct top_model *m, enum top_tab tab, size_t n, struct il__buf *b)
{
    il__buf_addf(b, "%s %s", top_tab_name(tab), m->lists[tab].out.next != NULL ? "over " : "");
    if (n >= 1000)
        il__buf_addf(b, "%zu,%03zu  ", n / 1000, n % 1000);
    else
        il__buf_addf(b, "%zu  ", n);
}

void
top_model_summary(const struct top_model *m, struct il__buf *b)
{
    const struct top_column *sort = &il__top_columns[m->tab].columns[m->sort[m->tab]];

    if (m->tab == TOP_OVERVIEW || m->tab == TOP_LOCKS)
        add_count(m, TOP_LOCKS, m->lists[TOP_LOCKS].out.n_items, b);
    if (m->tab == TOP_OVERVIEW || m->tab == TOP_RUNS)
        add_count(m, TOP_RUNS, m->lists[TOP_RUNS].out.n_runs, b);
    if (m->tab == TOP_OVERVIEW || m->tab == TOP_QUEUES)
        add_count(m, TOP_QUEUES, m->lists[TOP_QUEUES].out.n_queues, b);
    if (m->tab == TOP_OVERVIEW)
        il__buf_addf(b, "problems %zu  ", m->n_problems);
    il__buf_addf(b, "sorted by %s%s", sort->header + (sort->header[0] == '>' ? 1 : 0),
                 m->reverse[m->tab] ? ", descending" : "");
    if (m->filter[0] != '\0') {
        il__buf_addf(b, "  %zu match ", m->n_rows);
        il__cli_escape(b, m->filter);
    }
}
