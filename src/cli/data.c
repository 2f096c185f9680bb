/*
 * data.c: opens the data store, writes audit entries for commands, and prints pages of listings.
 */
#include "cli/data.h"

#include <errno.h>
#include <unistd.h>

#include "base/error.h"
#include "base/parse.h"
#include "cli/item.h"
#include "cli/wrap/meta.h"

/* ---- opening --------------------------------------------------------------------------------- */

/* Is it the data store of a default store that has not been used yet? */
static bool
is_missing(const struct cli *cli, const char *data)
{
    const struct il__setting *store = CLI_SETTING(cli, store);

    return data[0] == '\0' && store->source == IL__FROM_DEFAULT &&
           access(store->text + strlen("sqlite:"), F_OK) != 0 && errno == ENOENT;
}

il_status
il__cli_data_open(struct cli *cli, enum cli_data_for what, struct il__data **ret, il_error *reterr)
{
    bool         make   = what >= CLI_DATA_MAKE;
    const char  *data   = CLI_SETTING(cli, data)->text;
    const char  *pepper = CLI_SETTING(cli, pepper_file)->text;
    il_open_opts opts;
    il_status    st = IL_OK;

    *ret = NULL;
    if (data[0] == '\0')
        st = il__cli_store_not_server(
            cli, "it works on --store or --data directly; over HTTP use /api/v1/admin", reterr);
    if (st == IL_OK)
        st = il__cli_store_prepare(cli, make, &opts, reterr);
    if (st != IL_OK || (what == CLI_DATA_LOOK && is_missing(cli, data)))
        return st;
    struct il__data_open o = {
        .store_url   = CLI_SETTING(cli, store)->text,
        .data_url    = data[0] != '\0' ? data : NULL,
        .pepper_file = pepper[0] != '\0' ? pepper : NULL,
        .timeout_ms  = opts.timeout_ms,
        .existing    = !make,
        .no_keys     = what != CLI_DATA_KEYS,
    };
    if (make && il__cli_store_is_private(o.data_url != NULL ? o.data_url : o.store_url))
        return il__error_set(
            reterr, IL_INVAL,
            "%s: a memory store would be lost when this process exits; pass --store or --data",
            cli->command->name);
    st = il__data_open(&o, ret, reterr);
    return st == IL_NOT_FOUND && what == CLI_DATA_LOOK ? IL_OK : st;
}

int
il__cli_data_fail(const struct cli *cli, const il_error *err)
{
    bool blame = err->status == IL_INVAL || err->status == IL_NOT_FOUND;

    if (!blame || strncmp(err->message, cli->command->name, strlen(cli->command->name)) == 0)
        return il__cli_fail(err);
    il__cli_error("%s: %s", cli->command->name, err->message);
    return il_status_exit(err->status);
}

/* ---- audit ----------------------------------------------------------------------------------- */

il_status
il__cli_data_audit(struct il__data *d, const char *act, const char *tenant, const char *what,
                   const char *reason, json_t *details, il_error *reterr)
{
    char  who[80] = "cli:";
    char *text    = details != NULL ? json_dumps(details, JSON_COMPACT) : NULL;

    json_decref(details);
    if (text == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory");
    wrap_user(who + strlen(who), sizeof who - strlen(who));
    struct il__data_act a  = { .tenant  = tenant,
                               .who     = who,
                               .act     = act,
                               .what    = what,
                               .reason  = reason,
                               .outcome = il_status_name(IL_OK),
                               .details = text };
    il_status           st = il__data_audit_add(d, &a, 1, reterr);
    free(text);
    return st;
}

static il_status
add_acts(const struct cli *cli, const struct il__data_act *acts, size_t n, il_error *reterr)
{
    const char          *data = CLI_SETTING(cli, data)->text;
    struct il__data     *d    = NULL;
    struct il__data_open o    = { .store_url  = CLI_SETTING(cli, store)->text,
                                  .data_url   = data[0] != '\0' ? data : NULL,
                                  .timeout_ms = CLI_SETTING(cli, store_timeout)->number,
                                  .no_keys    = true };
    il_status            st   = il__data_open(&o, &d, reterr);

    if (st == IL_OK)
        st = il__data_audit_add(d, acts, n, reterr);
    il__data_close(d);
    return st;
}

void
il__cli_audit_ops(const struct cli *cli, const il_op *ops, size_t n, il_status applied)
{
    const char *store   = CLI_SETTING(cli, store)->text;
    char        who[80] = "cli:";
    il_error    err     = { .message = "out of memory" };

#ifdef IL_MUTANT_act_of_cli_not_recorded
    n = 0;
#endif
    /* The ops of a call are all of one type. */
    if (n == 0 || il__data_act_name(&ops[0]) == NULL || cli->store_missing ||
        il__config_is_server(store) || il__cli_store_is_private(store))
        return;
    AUTO_FREE struct il__data_act *acts = il__calloc(n, sizeof *acts);
    wrap_user(who + strlen(who), sizeof who - strlen(who));
    for (size_t i = 0; acts != NULL && i < n; i++)
        acts[i] = il__data_act_of(&ops[i], applied != IL_OK ? applied : ops[i].status,
                                  CLI_SETTING(cli, tenant)->text, who);
    if (acts == NULL || add_acts(cli, acts, n, &err) != IL_OK)
        il__cli_error("cannot write %s to the audit log: %s", cli->command->name, err.message);
}

/* ---- pages ----------------------------------------------------------------------------------- */

json_t *
il__cli_json_time(int64_t wall_ms)
{
    char text[IL__TIME_TEXT_BYTES];

    return wall_ms != 0 ? json_string(il__time_text(wall_ms, text)) : json_null();
}

void
il__cli_page_init(struct cli_page *p, struct cli *cli, int64_t limit, const char *const *headers,
                  size_t n_headers)
{
    *p = (struct cli_page){ .cli = cli, .limit = (uint32_t)limit };
    if (cli->json)
        p->items = json_array();
    else
        il__cli_grid_init(&p->grid, headers, n_headers);
    p->failed = cli->json && p->items == NULL;
}

void
il__cli_page_release(struct cli_page *p)
{
    json_decref(p->items);
    p->items = NULL;
    il__cli_grid_release(&p->grid);
}

bool
il__cli_page_wants(struct cli_page *p, const char *id)
{
    p->more = p->n == p->limit;
    if (p->more)
        return false;
    p->n++;
    (void)snprintf(p->last, sizeof p->last, "%s", id);
    return true;
}

void
il__cli_page_add(struct cli_page *p, json_t *item)
{
    if (item == NULL || p->items == NULL || json_array_append_new(p->items, item) != 0)
        p->failed = true;
}

int
il__cli_page_print(struct cli_page *p, const char *none)
{
    const char *next = p->more ? p->last : NULL;

    if (p->failed)
        return il__cli_fail_memory();
    if (p->cli->json)
        return il__cli_json_page(TAKE(p->items), next);
    if (p->n == 0) {
        il__cli_note(p->cli, "%s", none);
        return 0;
    }
    int status = il__cli_grid_print(&p->grid);
    if (next != NULL)
        il__cli_note(p->cli, "more items: --cursor '%s'", next);
    return status;
}
