/*
 * cmd_audit.c: `interlock audit`: lists administrative actions taken through the server and the
 * command line.
 */
#include <inttypes.h>

#include "base/error.h"
#include "base/parse.h"
#include "cli/data_store.h"
#include "cli/page.h"
#include "cli/print_item.h"

#define REASON_COLUMN 6 /* may be truncated on a narrow terminal */

/* An object, or null. */
static json_t *
details_json(const char *text)
{
    json_t *value = text[0] != '\0' ? json_loads(text, 0, NULL) : NULL;

    return value != NULL ? value : json_null();
}

static json_t *
action_json(const struct il__data_action *a)
{
    return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "seq", (json_int_t)a->seq,
                     "at", il__cli_json_time(a->at_ms), "tenant", il__cli_json_text(a->tenant),
                     "who", il__cli_json_text(a->who), "action", il__cli_json_text(a->action),
                     "what", il__cli_json_text(a->what), "reason", il__cli_json_text(a->reason),
                     "outcome", il__cli_json_text(a->outcome), "details", details_json(a->details));
}

static void
take_action(void *cookie, const struct il__data_action *a)
{
    struct cli_page *p = cookie;
    char             seq[24], at[IL__TIME_TEXT_BYTES];

    (void)snprintf(seq, sizeof seq, "%" PRIu64, a->seq);
    if (!il__cli_page_wants(p, seq))
        return;
    if (p->cli->json) {
        il__cli_page_add(p, action_json(a));
        return;
    }
    il__cli_grid_add(&p->grid, "%s", il__time_text(a->at_ms, at));
    il__cli_grid_add(&p->grid, "%s", a->tenant);
    il__cli_grid_add(&p->grid, "%s", a->who);
    il__cli_grid_add(&p->grid, "%s", a->action);
    il__cli_grid_add(&p->grid, "%s", a->what);
    il__cli_grid_add(&p->grid, "%s", a->outcome);
    il__cli_grid_add(&p->grid, "%s", a->reason);
}

int
il__cli_cmd_audit(struct cli *cli)
{
    static const char *const  headers[] = { "AT",   "TENANT",  "WHO",   "ACTION",
                                            "WHAT", "OUTCOME", "REASON" };
    AUTO_PAGE struct cli_page p         = { 0 };
    const char               *cursor    = CLI_OPTION(cli, audit, cursor)->text;
    struct il__data          *d         = NULL;
    uint64_t                  before    = 0;
    il_error                  err;

    if (cursor != NULL && !il__parse_u64(cursor, INT64_MAX, &before))
        return il__cli_usage("audit: --cursor: '%.40s' is not a cursor from a listing", cursor);
    il_status st = il__cli_data_open(cli, CLI_DATA_LOOK, &d, &err);
    il__cli_page_init(&p, cli, CLI_OPTION(cli, audit, limit)->number, headers, ARRAY_LEN(headers));
    p.grid.elastic = REASON_COLUMN;
    if (st == IL_OK && d != NULL)
        st = il__data_audit_list(
            d, CLI_GIVEN(cli, common, tenant) ? CLI_SETTING(cli, tenant)->text : NULL,
            CLI_OPTION(cli, audit, action)->text, before, p.limit + 1, take_action, &p, &err);
    il__data_close(d);
    return st == IL_OK ? il__cli_page_print(&p, "the audit log is empty")
                       : il__cli_data_fail(cli, &err);
}
