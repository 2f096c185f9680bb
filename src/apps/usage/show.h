/* show.h: prints days and ranges for people. Part of the command line. */
#ifndef IL_APPS_USAGE_SHOW_H
#define IL_APPS_USAGE_SHOW_H

#include "apps/usage/range_json.h"

struct cli;

/* Metrics, from an answer. */
void usage_show_read(const json_t *from, struct usage_metrics *ret);
/* A day, from the answer of GET /days/{date}. Returns the exit status. */
int usage_show_day(const struct cli *cli, const json_t *day);
/* A range: a line per day or part, and the totals. On a terminal with bars. */
int usage_show_range(const struct cli *cli, const struct usage_range *r, enum usage_by by);
/* Notes about days that are not fresh. Returns the exit status. */
int usage_show_gaps(const struct cli *cli, const struct usage_range *r);

#endif
