/*
 * data.h: the data store of the commands that need no server: tenants, keys, audit.
 */
#ifndef IL_CLI_DATA_H
#define IL_CLI_DATA_H

#include "cli/cli.h"

enum cli_data_for {
    CLI_DATA_LOOK,   /* nothing is made; *ret is NULL when nothing is there yet */
    CLI_DATA_CHANGE, /* it must be there */
    CLI_DATA_MAKE,   /* it is made if need be */
    CLI_DATA_KEYS,   /* and keys are made, for which the pepper is needed */
};

/* The one of --data, or that of --store. il__data_close() it. */
MUST_USE il_status il__cli_data_open(struct cli *cli, enum cli_data_for what, struct il__data **ret,
                                     il_error *reterr);

/* Write down what was done; details may be NULL (out of memory) and is consumed. */
MUST_USE il_status il__cli_data_audit(struct il__data *d, const char *act, const char *tenant,
                                      const char *what, const char *reason, json_t *details,
                                      il_error *reterr);

/* As il__cli_fail(); what the arguments are to blame for begins with the command's name. */
int il__cli_data_fail(const struct cli *cli, const il_error *err);

/* RFC 3339, or null when it has not come (0). */
json_t *il__cli_json_time(int64_t wall_ms);

/*
 * A page of rows that come one by one, one more of them than are wanted: the last one wanted is where the next page goes on. Initialise with the options of
 * the command; add rows while il__cli_page_wants(); print.
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
/* Is this row one of the page? `id` is its place in the order. */
bool il__cli_page_wants(struct cli_page *p, const char *id);
void il__cli_page_add(struct cli_page *p, json_t *item); /* consumed; NULL = out of memory */
/* Print it, or `none` if it is empty; the exit status. */
int il__cli_page_print(struct cli_page *p, const char *none);

#define AUTO_PAGE AUTO(il__cli_page_release)

#endif
