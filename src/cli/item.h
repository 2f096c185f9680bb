/*
 * item.h: jobs, queues, schedules and runs as JSON and for people.
 */
#ifndef IL_CLI_ITEM_H
#define IL_CLI_ITEM_H

#include "cli/out.h"

json_t *il__cli_job_json(const il_job_info *info);
json_t *il__cli_queue_json(const il_queue_info *info);
json_t *il__cli_cron_json(const il_cron_info *info);
json_t *il__cli_run_json(const il_run_info *info);

/*
 * {"items": [...], "next": CURSOR or null} on stdout. `items` is consumed; NULL = out of memory. Returns the exit
 * status.
 */
int il__cli_json_page(json_t *items, const char *next);

/* An array of what `item(cookie, i)` gives, 0 <= i < n. NULL = out of memory. */
json_t *il__cli_json_items(size_t n, json_t *(*item)(const void *cookie, size_t i), const void *cookie);

/* Add bytes as a string under `name` if they are UTF-8, else null there and base64 under `name`_base64. */
bool il__cli_json_set_bytes(json_t *object, const char *name, const void *data, size_t n_bytes);

/* "NAME  text" with the names in a column; nothing when the text is empty. */
void il__cli_field(const char *name, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The same for a time; nothing when it has not come (0). */
void il__cli_field_time(const char *name, int64_t wall_ms);

/* Bytes for people: escaped on a terminal, as they are elsewhere. */
void il__cli_put_bytes(const void *data, size_t n_bytes);

#endif
