/*
 * find_id.c: finds the run or job that a short id means, by listing: engines and servers only know
 * full ids. A search reads at most LIVE_PAGES pages of live items and the newest NEWEST items.
 */
#include "cli/find_id.h"

#include "base/error.h"
#include "base/parse.h"
#include "cli/apply.h"

#define SHORT_DIGITS 8
#define NEWEST 1000
#define LIVE_PAGES 10
#define CANDIDATES_MAX 8
#define SHOWN_BYTES 80

#define LIVE_RUNS (1U << IL_RUN_PENDING | 1U << IL_RUN_RUNNING)
#define LIVE_JOBS (1U << IL_JOB_SCHEDULED | 1U << IL_JOB_READY | 1U << IL_JOB_RUNNING)

const char *
il__cli_short_id(const char *id)
{
    return il__is_uuid(id) ? id + strlen(id) - SHORT_DIGITS : id;
}

static bool
is_short(const char *name)
{
    return strlen(name) == SHORT_DIGITS && strspn(name, "0123456789abcdef") == SHORT_DIGITS;
}

/* ---- the search ------------------------------------------------------------------------------ */

struct search {
    const struct cli *cli;
    const char       *name;
    il_op_type        type; /* RUN_LIST, JOB_LIST */
    uint32_t          live; /* bits of the live states */
    size_t            n_found;
    struct {
        char id[IL_ID_BYTES_MAX + 1];
        char what[SHOWN_BYTES]; /* its key or queue, and its state */
    } found[CANDIDATES_MAX];
};

static void
consider(struct search *s, const char *id, const char *of, const char *state)
{
    if (!il__is_uuid(id) || strcmp(il__cli_short_id(id), s->name) != 0)
        return;
    for (size_t i = 0; i < MIN(s->n_found, CANDIDATES_MAX); i++) {
        if (strcmp(s->found[i].id, id) == 0)
            return; /* live, and one of the newest */
    }
    if (s->n_found < CANDIDATES_MAX) {
        (void)snprintf(s->found[s->n_found].id, sizeof s->found[0].id, "%s", id);
        (void)snprintf(s->found[s->n_found].what, sizeof s->found[0].what, "%s %.40s", state, of);
    }
    s->n_found++;
}

static size_t
consider_page(struct search *s, const il_op *op)
{
    for (size_t i = 0; i < op->out.n_runs; i++)
        consider(s, op->out.runs[i].id, op->out.runs[i].key,
                 il_run_state_name(op->out.runs[i].state));
    for (size_t i = 0; i < op->out.n_jobs; i++)
        consider(s, op->out.jobs[i].id, op->out.jobs[i].queue,
                 il_job_state_name(op->out.jobs[i].state));
    return op->out.n_runs + op->out.n_jobs;
}

/* Look at the items in these states (0: all), newest first. */
static il_status
look_through(struct search *s, uint32_t states, size_t n_pages, size_t n_items, il_error *reterr)
{
    char     *cursor = NULL;
    il_status st     = IL_OK;

    while (st == IL_OK && n_pages-- > 0 && n_items > 0) {
        il_op op = { .type    = s->type,
                     .in.list = { .states = states,
                                  .cursor = cursor,
                                  .limit  = (uint32_t)MIN(n_items, IL_PAGE_ITEMS_MAX) } };
        st       = il__cli_apply(s->cli, &op, reterr);
        if (st == IL_OK)
            n_items -= MIN(n_items, consider_page(s, &op));
        il__free(cursor);
        bool more = st == IL_OK && op.out.next != NULL;
        cursor    = more ? il__strdup(op.out.next) : NULL;
        il_op_release(&op);
        if (more && cursor == NULL)
            return il__error_nomem(reterr);
        if (!more)
            return st;
    }
    il__free(cursor);
    return st;
}

static il_status
search(struct search *s, char *buf, bool *ret_found, il_error *reterr)
{
    il_status st = look_through(s, s->live, LIVE_PAGES, SIZE_MAX, reterr);

    if (st == IL_OK)
        st = look_through(s, 0, NEWEST, NEWEST, reterr);
    if (st != IL_OK)
        return st;
#ifdef IL_MUTANT_short_id_takes_any
    s->n_found = MIN(s->n_found, 1);
#endif
    *ret_found = s->n_found == 1;
    if (*ret_found)
        (void)snprintf(buf, IL_ID_BYTES_MAX + 1, "%s", s->found[0].id);
    if (s->n_found <= 1)
        return IL_OK;
    for (size_t i = 0; i < MIN(s->n_found, CANDIDATES_MAX); i++)
        il__cli_error("%s: %s  %s", s->cli->command->name, s->found[i].id, s->found[i].what);
    return il__error_set(reterr, IL_INVAL, "%s: the ids of %zu %ss end with '%s'; use a full id",
                         s->cli->command->name, s->n_found,
                         s->type == IL_OP_RUN_LIST ? "run" : "job", s->name);
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Apply an op that gives at most one run or job. A name that no id or key can have gives none. */
static il_status
look_up(const struct cli *cli, il_op *op, char *buf, bool *ret_found, il_error *reterr)
{
    il_status st = il__cli_apply(cli, op, reterr);

    *ret_found = st == IL_OK && op->out.n_runs + op->out.n_jobs > 0;
    if (*ret_found)
        (void)snprintf(buf, IL_ID_BYTES_MAX + 1, "%s",
                       op->out.n_runs > 0 ? op->out.runs[0].id : op->out.jobs[0].id);
    il_op_release(op);
    return st == IL_NOT_FOUND || st == IL_INVAL ? IL_OK : st;
}

static il_status
find(struct search *s, const char **name, bool or_key, char *buf, il_error *reterr)
{
    il_op get    = { .type = IL_OP_RUN_GET, .in.run = { .id = *name } };
    il_op newest = { .type = IL_OP_RUN_LIST, .key = *name, .in.list = { .limit = 1 } };
    bool  found  = false;

    if (il__is_uuid(*name) || (!or_key && !is_short(*name)))
        return IL_OK;
    if (s->type == IL_OP_JOB_LIST)
        get = (il_op){ .type = IL_OP_JOB_GET, .in.job = { .id = *name } };
    s->name      = *name;
    il_status st = look_up(s->cli, &get, buf, &found, reterr);
    if (st == IL_OK && !found && or_key)
        st = look_up(s->cli, &newest, buf, &found, reterr);
    if (st == IL_OK && !found && is_short(*name))
        st = search(s, buf, &found, reterr);
    if (st == IL_OK && found)
        *name = buf;
    return st;
}

il_status
il__cli_find_run(const struct cli *cli, const char **name, bool or_key,
                 char buf[IL_ID_BYTES_MAX + 1], il_error *reterr)
{
    struct search s = { .cli = cli, .type = IL_OP_RUN_LIST, .live = LIVE_RUNS };

    return find(&s, name, or_key, buf, reterr);
}

il_status
il__cli_find_job(const struct cli *cli, const char **name, char buf[IL_ID_BYTES_MAX + 1],
                 il_error *reterr)
{
    struct search s = { .cli = cli, .type = IL_OP_JOB_LIST, .live = LIVE_JOBS };

    return find(&s, name, false, buf, reterr);
}
