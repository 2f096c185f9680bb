/*
 * print_item.c: prints jobs, queues, schedules and runs, as JSON or text.
 */
#include "cli/print_item.h"

#include <inttypes.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/parse.h"

#define NAME_WIDTH 14
#define ITEM_FLAGS (WIRE_RAW_BYTES | WIRE_NUL)
#define ITEM_BYTES_MAX ((size_t)16 * IL_BLOB_BYTES_MAX) /* two blobs, every byte of them escaped */

json_t *
il__cli_item_json(const struct wire_object *o, const void *item)
{
    AUTO_BUF struct il__buf b = { 0 };

    il__buf_init(&b, ITEM_BYTES_MAX);
    il__wire_print(&b, o, item, ITEM_FLAGS);
    return b.failed ? NULL : json_loadb(b.data, b.n_bytes, JSON_ALLOW_NUL, NULL);
}

int
il__cli_print_item(const struct wire_object *o, const void *item)
{
    return il__cli_json_print(il__cli_item_json(o, item));
}

int
il__cli_print_page(const struct wire_object *o, const void *items, size_t n, const char *next)
{
    json_t *array = json_array();

    for (size_t i = 0; array != NULL && i < n; i++) {
        if (json_array_append_new(array,
                                  il__cli_item_json(o, (const char *)items + i * o->bytes)) == 0)
            continue;
        json_decref(array);
        array = NULL;
    }
    return il__cli_json_page(array, next);
}

bool
il__cli_json_set_bytes(json_t *object, const char *name, const void *data, size_t n_bytes)
{
    AUTO_BUF struct il__buf b = { 0 };

    il__buf_init(&b, ITEM_BYTES_MAX);
    il__wire_open(&b, NULL);
    il__wire_put_bytes(&b, name, data, n_bytes, ITEM_FLAGS);
    il__wire_close(&b);
    AUTO(json_decrefp)
    json_t *member = b.failed ? NULL : json_loadb(b.data, b.n_bytes, JSON_ALLOW_NUL, NULL);
    return member != NULL && json_object_update(object, member) == 0;
}

int
il__cli_json_page(json_t *items, const char *next)
{
    return il__cli_json_print(
        items != NULL ? json_pack("{s:o, s:o}", "items", items, "next", il__cli_json_text(next))
                      : NULL);
}

void
il__cli_field(const char *name, const char *fmt, ...)
{
    AUTO_BUF struct il__buf b = { 0 };
    va_list                 ap;

    il__buf_init(&b, (size_t)2 * IL_BLOB_BYTES_MAX);
    va_start(ap, fmt);
    il__buf_vaddf(&b, fmt, ap);
    va_end(ap);
    if (b.n_bytes == 0)
        return;
    (void)printf("%-*s ", NAME_WIDTH, name);
    il__cli_puts(il__buf_str(&b));
    (void)putchar('\n');
}

void
il__cli_field_time(const char *name, int64_t wall_ms)
{
    char text[IL__TIME_TEXT_BYTES];

    if (wall_ms != 0)
        il__cli_field(name, "%s", il__time_text(wall_ms, text));
}

/* On a terminal, line by line, since the text within a line is escaped. */
static void
put_escaped(const char *data, size_t n_bytes)
{
    AUTO_BUF struct il__buf line = { 0 };

    il__buf_init(&line, (size_t)2 * IL_BLOB_BYTES_MAX);
    for (size_t i = 0; i < n_bytes; i++) {
        if (data[i] != '\n') {
            il__buf_addc(&line, data[i] != '\0' ? data[i] : ' ');
            continue;
        }
        il__cli_puts(il__buf_str(&line));
        (void)putchar('\n');
        il__buf_clear(&line);
    }
    il__cli_puts(il__buf_str(&line));
}

void
il__cli_put_bytes(const void *data, size_t n_bytes)
{
    if (isatty(STDOUT_FILENO) != 0)
        put_escaped(data, n_bytes);
    else
        (void)fwrite(data, 1, n_bytes, stdout); /* stdout remembers its errors */
}

json_t *
il__cli_json_time(int64_t wall_ms)
{
    char text[IL__TIME_TEXT_BYTES];

    return wall_ms != 0 ? json_string(il__time_text(wall_ms, text)) : json_null();
}
