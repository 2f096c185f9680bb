/* print_item.h: prints jobs, queues, schedules and runs, as JSON or text. */
#ifndef IL_CLI_PRINT_ITEM_H
#define IL_CLI_PRINT_ITEM_H

#include "cli/out.h"
#include "wire/wire.h"

/* A lease, run, job, queue, … as wire.h shows it, except that bytes are always strings. NULL =
 * out of memory. */
json_t *il__cli_item_json(const struct wire_object *o, const void *item);
/* Print one object, or a page of an array of them, on stdout. Returns the exit status. */
int il__cli_print_item(const struct wire_object *o, const void *item);
int il__cli_print_page(const struct wire_object *o, const void *items, size_t n, const char *next);

/*
 * {"items": [...], "next": CURSOR or null} on stdout. `items` is consumed; NULL = out of memory.
 * Returns the exit status.
 */
int il__cli_json_page(json_t *items, const char *next);

/* RFC 3339, or null if not set (0). */
json_t *il__cli_json_time(int64_t wall_ms);

/* Add bytes as a string under `name` if they are UTF-8, else null there and base64 under
 * `name`_base64. */
bool il__cli_json_set_bytes(json_t *object, const char *name, const void *data, size_t n_bytes);

/* "NAME  text" with the names in a column; nothing when the text is empty. */
void il__cli_field(const char *name, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The same for a time; nothing if it is not set (0). */
void il__cli_field_time(const char *name, int64_t wall_ms);

/* Print bytes for people: escaped on a terminal, unchanged elsewhere. */
void il__cli_put_bytes(const void *data, size_t n_bytes);

#endif
