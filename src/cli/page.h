/*
 * page.h: pages of listings.
 */
#ifndef IL_CLI_PAGE_H
#define IL_CLI_PAGE_H

#include "cli/cli.h"

/* Say how to list what follows; NULL: nothing does. */
void il__cli_note_next(const struct cli *cli, const char *next);

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
