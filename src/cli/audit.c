/*
 * audit.c: writes what commands do to the audit log; the contract is in audit.h.
 */
#include "cli/audit.h"

#include "base/error.h"
#include "cli/wrap/meta.h"

il_status
il__cli_data_audit(struct il__data *d, const char *action, const char *tenant, const char *what,
                   const char *reason, json_t *details, il_error *reterr)
{
    char  who[80] = "cli:";
    char *text    = details != NULL ? json_dumps(details, JSON_COMPACT) : NULL;

    json_decref(details);
    if (text == NULL)
        return il__error_nomem(reterr);
    wrap_user(who + strlen(who), sizeof who - strlen(who));
    struct il__data_action a  = { .tenant  = tenant,
                                  .who     = who,
                                  .action  = action,
                                  .what    = what,
                                  .reason  = reason,
                                  .outcome = il_status_name(IL_OK),
                                  .details = text };
    il_status              st = il__data_audit_add(d, &a, 1, reterr);
    free(text);
    return st;
}

static il_status
add_actions(const struct cli *cli, const struct il__data_action *actions, size_t n,
            il_error *reterr)
{
    const char          *data = CLI_SETTING(cli, data)->text;
    struct il__data     *d    = NULL;
    struct il__data_open o    = { .store_url  = CLI_SETTING(cli, store)->text,
                                  .data_url   = data[0] != '\0' ? data : NULL,
                                  .timeout_ms = CLI_SETTING(cli, store_timeout)->number,
                                  .no_keys    = true };
    il_status            st   = il__data_open(&o, &d, reterr);

    if (st == IL_OK)
        st = il__data_audit_add(d, actions, n, reterr);
    il__data_close(d);
    return st;
}

void
il__cli_audit_ops(const struct cli *cli, const il_op *ops, size_t n, il_status applied)
{
    const char *store   = CLI_SETTING(cli, store)->text;
    char        who[80] = "cli:";
    il_error    err     = { .message = "out of memory" };

#ifdef IL_MUTANT_action_of_cli_not_recorded
    n = 0;
#endif
    /* The ops of a call are all of one type. */
    if (n == 0 || il__data_action_name(&ops[0]) == NULL || cli->store_missing ||
        il__config_is_server(store) || il__cli_store_is_private(store))
        return;
    AUTO_FREE struct il__data_action *actions = il__calloc(n, sizeof *actions);
    wrap_user(who + strlen(who), sizeof who - strlen(who));
    for (size_t i = 0; actions != NULL && i < n; i++)
        actions[i] = il__data_action_of(&ops[i], applied != IL_OK ? applied : ops[i].status,
                                        CLI_SETTING(cli, tenant)->text, who);
    if (actions == NULL || add_actions(cli, actions, n, &err) != IL_OK)
        il__cli_error("cannot write %s to the audit log: %s", cli->command->name, err.message);
}
