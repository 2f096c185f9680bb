/*
 * data.h: the data store (tenants, keys, audit) for commands that work without a server.
 */
#ifndef IL_CLI_DATA_H
#define IL_CLI_DATA_H

#include "cli/cli.h"

enum cli_data_for {
    CLI_DATA_LOOK,   /* nothing is created; *ret is NULL if nothing exists yet */
    CLI_DATA_CHANGE, /* it must exist */
    CLI_DATA_MAKE,   /* it is created if missing */
    CLI_DATA_KEYS,   /* and keys are created, for which the pepper is needed */
};

/* Open the data store of --data, or that of --store. il__data_close() it. */
MUST_USE il_status il__cli_data_open(struct cli *cli, enum cli_data_for what, struct il__data **ret,
                                     il_error *reterr);

/* Write an audit entry; details may be NULL (out of memory) and is consumed. */
MUST_USE il_status il__cli_data_audit(struct il__data *d, const char *act, const char *tenant,
                                      const char *what, const char *reason, json_t *details,
                                      il_error *reterr);

/*
 * Record the administrative ops among those applied to a store directly; a server records those
 * that come through it. They have already happened: a failure is reported on standard error and
 * changes nothing else. `applied`: what il_apply() returned.
 */
void il__cli_audit_ops(const struct cli *cli, const il_op *ops, size_t n, il_status applied);

/* As il__cli_fail(); for an argument error, the message begins with the command's name. */
int il__cli_data_fail(const struct cli *cli, const il_error *err);

/* RFC 3339, or null if not set (0). */
json_t *il__cli_json_time(int64_t wall_ms);

/*
 * A page of rows that arrive one by one, with one row more than wanted; the next page continues
 * after the last wanted row. Initialise with the options of the command; add rows while
 * il__cli_page_wants(); print.
 */
struct cli_page {
    struct cli     *cli;
    uint32_t        limit;
    uint32_t        n;
    json_t         *items; /* --json; else in the grid */
    struct cli_grid grid;
    char            last[80];
    bool            more;
    bool            failed;
};

void il__cli_page_init(struct cli_page *p, struct cli *cli, int64_t limit,
                       const char *const *headers, size_t n_headers);
void il__cli_page_release(struct cli_page *p);
/* Does this row belong to the page? `id` is its position in the order. */
bool il__cli_page_wants(struct cli_page *p, const char *id);
void il__cli_page_add(struct cli_page *p, json_t *item); /* consumed; NULL = out of memory */
/* Print it, or `none` if it is empty; returns the exit status. */
int il__cli_page_print(struct cli_page *p, const char *none);

#define AUTO_PAGE AUTO(il__cli_page_release)

#endif
