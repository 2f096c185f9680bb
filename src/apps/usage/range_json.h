/*
 * range_json.h: ranges as JSON and as CSV, the same from the server and from a command.
 */
#ifndef IL_APPS_USAGE_RANGE_JSON_H
#define IL_APPS_USAGE_RANGE_JSON_H

#include "apps/usage/usage.h"

#define USAGE_PAGE_MAX 1000 /* parts in one page */
#define USAGE_PAGE_DEFAULT 100

extern const struct wire_object usage_out_day, usage_out_analytics, usage_out_parts,
    usage_out_export;

/* POST /analytics: `before` is the preceding period of the same length, which was only read. */
void usage_print_analytics(struct il__buf *b, const struct usage_range *r,
                           const struct usage_range *before);

/* Is it `next` of a page? */
bool usage_cursor_is_valid(const char *cursor);
/* A page of the parts of a range, which usage_parts_rank() has sorted. cursor NULL: the first. */
void usage_print_parts(struct il__buf *b, const struct usage_range *r, const char *cursor,
                       size_t limit);

/* An export: of days, or of the parts of a breakdown. */
void usage_print_export(struct il__buf *b, const struct usage_range *r, enum usage_by by);
void usage_print_csv(struct il__buf *b, const struct usage_range *r, enum usage_by by);

/* The days in a state, as the text of a JSON list. */
void   usage_print_days_in(struct il__buf *b, const struct usage_range *r, enum usage_state state);
size_t usage_count_days_in(const struct usage_range *r, enum usage_state state);

/* What is wrong with a range of more than USAGE_DAYS_MAX days, as the details of an error: how many
 * there are, how many may be, and ranges that would do. */
void usage_print_too_large(struct il__buf *b, usage_date from, usage_date to);

/* A cell of a CSV file: quoted if it must be; a text that a spreadsheet would take for a formula
 * gets an apostrophe. */
void usage_csv_text(struct il__buf *b, const char *text);

#endif
