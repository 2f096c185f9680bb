/*
 * audit.h: writes what commands do to the audit log.
 */
#ifndef IL_CLI_AUDIT_H
#define IL_CLI_AUDIT_H

#include "cli/cli.h"

/* Write an audit entry; details may be NULL (out of memory) and is consumed. */
MUST_USE il_status il__cli_data_audit(struct il__data *d, const char *action, const char *tenant,
                                      const char *what, const char *reason, json_t *details,
                                      il_error *reterr);

/*
 * Record the administrative ops among those applied to a store directly; a server records those
 * that come through it. They have already happened: a failure is reported on standard error and
 * changes nothing else. `applied`: what il_apply() returned.
 */
void il__cli_audit_ops(const struct cli *cli, const il_op *ops, size_t n, il_status applied);

#endif
