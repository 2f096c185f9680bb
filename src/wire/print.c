/*
 * print.c: prints structs as JSON, driven by tables, straight into a buffer.
 *
 * Every member is printed with a trailing comma; the end of its object removes the last one.
 */
#include "base/decimal.h"
#include "base/parse.h"
#include "wire/field.h"
#include "wire/json.h"

/* ---- members --------------------------------------------------------------------------------- */

int64_t
il__wire_number(const struct wire_field *f, const void *from)
{
    const char *at = (const char *)from + f->offset;
    int64_t     wide;
    int32_t     narrow;
    uint32_t    unsign;

    switch (f->kind) {
    case WIRE_INT32:
    case WIRE_CHOICE:
        memcpy(&narrow, at, sizeof narrow);
        return narrow;
    case WIRE_UINT32:
    case WIRE_SET:
        memcpy(&unsign, at, sizeof unsign);
        return unsign;
    default:
        memcpy(&wide, at, sizeof wide);
        return wide;
    }
}

void
il__wire_set_number(const struct wire_field *f, void *into, int64_t number)
{
    char    *at     = (char *)into + f->offset;
    int32_t  narrow = (int32_t)number;
    uint32_t unsign = (uint32_t)number;

    switch (f->kind) {
    case WIRE_INT32:
    case WIRE_CHOICE:
        memcpy(at, &narrow, sizeof narrow);
        break;
    case WIRE_UINT32:
    case WIRE_SET:
        memcpy(at, &unsign, sizeof unsign);
        break;
    default:
        memcpy(at, &number, sizeof number);
    }
}

bool
il__wire_is_set(const struct wire_field *f, const void *from)
{
    switch (f->kind) {
    case WIRE_TEXT:
    case WIRE_META:
    case WIRE_BYTES:
        return il__wire_pointer(from, f->offset) != NULL;
    case WIRE_BOOL:
        return (il__wire_word(from, f->offset) & f->bit) != 0;
    case WIRE_UINT64:
        if (f->bit != 0)
            return (il__wire_word(from, f->offset2) & f->bit) != 0;
        return il__wire_number(f, from) != 0;
    case WIRE_OBJECT:
    case WIRE_SIZE:
    case WIRE_ELAPSED:
        return false;
    case WIRE_OBJECTS:
    case WIRE_TEXTS:
        return il__wire_size(from, f->offset2) > 0;
    case WIRE_DECIMAL:
        if ((f->flags & WIRE_MINUS) != 0)
            return il__wire_number(f, from) != INT64_MIN;
        return il__wire_number(f, from) != 0;
    default:
        if ((f->flags & WIRE_MINUS) != 0 && il__wire_number(f, from) == -1)
            return false;
        return il__wire_number(f, from) != 0;
    }
}

/* ---- by hand --------------------------------------------------------------------------------- */

void
il__wire_name(struct il__buf *b, const char *name)
{
    size_t n  = strlen(name);
    char  *at = il__buf_room(b, n + 3);

    if (at == NULL)
        return;
    at[0] = '"';
    memcpy(at + 1, name, n);
    at[n + 1] = '"';
    at[n + 2] = ':';
    at[n + 3] = '\0';
    b->n_bytes += n + 3;
}

void
il__wire_open(struct il__buf *b, const char *name)
{
    if (name != NULL)
        il__wire_name(b, name);
    il__buf_addc(b, '{');
}

static void
close_with(struct il__buf *b, char bracket)
{
    if (b->failed)
        return;
    if (b->n_bytes > 0 && b->data[b->n_bytes - 1] == ',')
        b->data[b->n_bytes - 1] = bracket;
    else
        il__buf_addc(b, bracket);
}

void
il__wire_close(struct il__buf *b)
{
    close_with(b, '}');
}

void
il__wire_print_text(struct il__buf *b, const char *text)
{
    if (text != NULL)
        il__json_add_string(b, text, strlen(text));
    else
        il__buf_add(b, "null", 4);
}

void
il__wire_print_json(struct il__buf *b, const char *text, size_t n_bytes)
{
    if (!il__json_add_value(b, text, n_bytes, false))
        il__json_add_string(b, text, n_bytes);
}

void
il__wire_print_time(struct il__buf *b, int64_t wall_ms)
{
    char text[IL__TIME_TEXT_BYTES + 1] = "\"";

    if (wall_ms == 0) {
        il__buf_add(b, "null", 4);
        return;
    }
    (void)il__time_text(wall_ms, text + 1);
    il__buf_adds(b, text);
    il__buf_addc(b, '"');
}

void
il__wire_put_text(struct il__buf *b, const char *name, const char *text)
{
    il__wire_name(b, name);
    il__wire_print_text(b, text);
    il__buf_addc(b, ',');
}

void
il__wire_put_int(struct il__buf *b, const char *name, int64_t number)
{
    il__wire_name(b, name);
    il__json_add_int(b, number);
    il__buf_addc(b, ',');
}

void
il__wire_put_bool(struct il__buf *b, const char *name, bool value)
{
    il__wire_name(b, name);
    il__buf_adds(b, value ? "true," : "false,");
}

static void
put_scaled(struct il__buf *b, const char *name, int64_t scaled, unsigned digits)
{
    char text[IL__DECIMAL_TEXT_BYTES];

    il__wire_name(b, name);
    il__buf_adds(b, il__decimal_text(scaled, digits, text));
    il__buf_addc(b, ',');
}

void
il__wire_put_null(struct il__buf *b, const char *name)
{
    il__wire_name(b, name);
    il__buf_add(b, "null,", 5);
}

void
il__wire_put_time(struct il__buf *b, const char *name, int64_t wall_ms)
{
    il__wire_name(b, name);
    il__wire_print_time(b, wall_ms);
    il__buf_addc(b, ',');
}

void
il__wire_put_bytes(struct il__buf *b, const char *name, const void *data, size_t n_bytes,
                   unsigned flags)
{
    il__wire_name(b, name);
    if (data == NULL) {
        il__buf_add(b, "null,", 5);
        return;
    }
    if ((flags & WIRE_RAW_BYTES) == 0 && il__json_add_value(b, data, n_bytes, true)) {
        il__buf_addc(b, ',');
        return;
    }
    bool nul = (flags & WIRE_NUL) == 0 && n_bytes > 0 && memchr(data, '\0', n_bytes) != NULL;
    if (!nul && il__utf8_valid(data, n_bytes)) {
        il__json_add_string(b, data, n_bytes);
        il__buf_addc(b, ',');
        return;
    }
    il__buf_adds(b, "null,\"");
    il__buf_adds(b, name);
    il__buf_adds(b, "_base64\":\"");
    il__wire_base64(b, data, n_bytes);
    il__buf_add(b, "\",", 2);
}

void
il__wire_put_object(struct il__buf *b, const char *name, const struct wire_object *o,
                    const void *from, unsigned flags)
{
    il__wire_name(b, name);
    il__wire_print(b, o, from, flags);
    il__buf_addc(b, ',');
}

void
il__wire_put_objects(struct il__buf *b, const char *name, const struct wire_object *o,
                     const void *items, size_t item_bytes, size_t n, unsigned flags)
{
    il__wire_name(b, name);
    il__buf_addc(b, '[');
    for (size_t i = 0; i < n; i++) {
        il__wire_print(b, o, (const char *)items + i * item_bytes, flags);
        il__buf_addc(b, ',');
    }
    close_with(b, ']');
    il__buf_addc(b, ',');
}

/* ---- by a table ------------------------------------------------------------------------------ */

/* null, or nothing at all. */
static void
put_nothing(struct il__buf *b, const struct wire_field *f)
{
    if ((f->flags & WIRE_HIDE) == 0)
        il__wire_put_null(b, f->name);
}

static void
put_text(struct il__buf *b, const struct wire_field *f, const char *text, unsigned flags)
{
    if (text == NULL || (text[0] == '\0' && (f->flags & WIRE_NOT_NULL) == 0)) {
        put_nothing(b, f);
        return;
    }
    il__wire_name(b, f->name);
    if (f->kind != WIRE_META || (flags & WIRE_RAW_META) != 0 ||
        !il__json_add_value(b, text, strlen(text), false))
        il__wire_print_text(b, text);
    il__buf_addc(b, ',');
}

static void
put_number(struct il__buf *b, const struct wire_field *f, const void *from)
{
    int64_t number = il__wire_number(f, from);
    bool    minus  = (f->flags & WIRE_MINUS) != 0;

    if (f->bit != 0 && !il__wire_is_set(f, from))
        put_nothing(b, f);
    else if (minus && number == -1)
        il__wire_put_null(b, f->name);
    else if (number == 0 && f->bit == 0 && (f->flags & WIRE_NOT_NULL) == 0 &&
             (!minus || (f->flags & WIRE_HIDE) != 0))
        put_nothing(b, f);
    else
        il__wire_put_int(b, f->name, number);
}

static void
put_decimal(struct il__buf *b, const struct wire_field *f, const void *from)
{
    int64_t scaled = il__wire_number(f, from);

    if (il__wire_is_set(f, from) || (scaled == 0 && (f->flags & WIRE_NOT_NULL) != 0))
        put_scaled(b, f->name, scaled, f->digits);
    else
        put_nothing(b, f);
}

static void
put_bool(struct il__buf *b, const struct wire_field *f, const void *from)
{
    bool value = il__wire_is_set(f, from);

    if (value || (f->flags & WIRE_HIDE) == 0)
        il__wire_put_bool(b, f->name, value);
}

static void
put_choice(struct il__buf *b, const struct wire_field *f, const void *from)
{
    int64_t value = il__wire_number(f, from);

    for (int64_t i = f->min; f->choices[i - f->min] != NULL; i++) {
        if (i == value) {
            il__wire_put_text(b, f->name, f->choices[i - f->min]);
            return;
        }
    }
    put_nothing(b, f);
}

static void
put_set(struct il__buf *b, const struct wire_field *f, const void *from)
{
    uint32_t set = il__wire_word(from, f->offset);

    if (set == 0) {
        put_nothing(b, f);
        return;
    }
    il__wire_name(b, f->name);
    il__buf_addc(b, '[');
    for (int64_t i = f->min; f->choices[i - f->min] != NULL; i++) {
        if ((set >> i & 1) == 0)
            continue;
        il__wire_print_text(b, f->choices[i - f->min]);
        il__buf_addc(b, ',');
    }
    close_with(b, ']');
    il__buf_addc(b, ',');
}

static void
put_time(struct il__buf *b, const struct wire_field *f, const void *from)
{
    int64_t wall_ms = il__wire_number(f, from);

    if (wall_ms == ((f->flags & WIRE_MINUS) != 0 ? INT64_MAX : 0))
        put_nothing(b, f);
    else
        il__wire_put_time(b, f->name, wall_ms);
}

static void
put_wait(struct il__buf *b, const struct wire_field *f, const void *from)
{
    int64_t wait_ms = il__wire_number(f, from);

    if (wait_ms == IL_FOREVER)
        il__wire_put_text(b, f->name, "forever");
    else if (wait_ms != 0 || (f->flags & WIRE_NOT_NULL) != 0)
        il__wire_put_int(b, f->name, wait_ms);
    else
        put_nothing(b, f);
}

static void
put_size(struct il__buf *b, const struct wire_field *f, const void *from)
{
    size_t size = il__wire_size(from, f->offset2);

    if (size > 0 || il__wire_pointer(from, f->offset) != NULL)
        il__wire_put_int(b, f->name, (int64_t)size);
    else
        put_nothing(b, f);
}

static void
put_elapsed(struct il__buf *b, const struct wire_field *f, const void *from)
{
    int64_t until;
    int64_t since;

    memcpy(&until, (const char *)from + f->offset, sizeof until);
    memcpy(&since, (const char *)from + f->offset2, sizeof since);
    if (until != 0 && since != 0)
        il__wire_put_int(b, f->name, MAX(until - since, 0));
    else
        put_nothing(b, f);
}

static void
put_object(struct il__buf *b, const struct wire_field *f, const void *from, unsigned flags)
{
    if (f->bit != 0 && (il__wire_word(from, f->offset2) & f->bit) == 0)
        put_nothing(b, f);
    else
        il__wire_put_object(b, f->name, f->object, (const char *)from + f->offset, flags);
}

static void
put_objects(struct il__buf *b, const struct wire_field *f, const void *from, unsigned flags)
{
    size_t n = il__wire_size(from, f->offset2);

    if (n > 0 || (f->flags & WIRE_HIDE) == 0)
        il__wire_put_objects(b, f->name, f->object, il__wire_pointer(from, f->offset),
                             f->object->bytes, n, flags);
}

static void
put_texts(struct il__buf *b, const struct wire_field *f, const void *from)
{
    const char *const *texts = il__wire_pointer(from, f->offset);
    size_t             n     = il__wire_size(from, f->offset2);

    if (n == 0 && (f->flags & WIRE_HIDE) != 0)
        return;
    il__wire_name(b, f->name);
    il__buf_addc(b, '[');
    for (size_t i = 0; i < n; i++) {
        il__wire_print_text(b, texts[i]);
        il__buf_addc(b, ',');
    }
    close_with(b, ']');
    il__buf_addc(b, ',');
}

static void
put_bytes(struct il__buf *b, const struct wire_field *f, const void *from, unsigned flags)
{
    const void *data = il__wire_pointer(from, f->offset);

    if (data != NULL)
        il__wire_put_bytes(b, f->name, data, il__wire_size(from, f->offset2), flags);
    else
        put_nothing(b, f);
}

void
il__wire_print_field(struct il__buf *b, const struct wire_field *f, const void *from,
                     unsigned flags)
{
    switch (f->kind) {
    case WIRE_TEXT:
    case WIRE_META:
        put_text(b, f, il__wire_pointer(from, f->offset), flags);
        break;
    case WIRE_BOOL:
        put_bool(b, f, from);
        break;
    case WIRE_CHOICE:
        put_choice(b, f, from);
        break;
    case WIRE_SET:
        put_set(b, f, from);
        break;
    case WIRE_BYTES:
        put_bytes(b, f, from, flags);
        break;
    case WIRE_TIME:
        put_time(b, f, from);
        break;
    case WIRE_WAIT:
        put_wait(b, f, from);
        break;
    case WIRE_OBJECT:
        put_object(b, f, from, flags);
        break;
    case WIRE_OBJECTS:
        put_objects(b, f, from, flags);
        break;
    case WIRE_TEXTS:
        put_texts(b, f, from);
        break;
    case WIRE_SIZE:
        put_size(b, f, from);
        break;
    case WIRE_ELAPSED:
        put_elapsed(b, f, from);
        break;
    case WIRE_DECIMAL:
        put_decimal(b, f, from);
        break;
    case WIRE_INT32:
    case WIRE_UINT32:
    case WIRE_INT64:
    case WIRE_UINT64:
    default:
        put_number(b, f, from);
    }
}

void
il__wire_print_fields(struct il__buf *b, const struct wire_object *o, const void *from,
                      unsigned flags)
{
    for (size_t i = 0; i < o->n_fields; i++) {
        if ((o->fields[i].flags & WIRE_ALIAS) == 0)
            il__wire_print_field(b, &o->fields[i], from, flags);
    }
}

void
il__wire_print(struct il__buf *b, const struct wire_object *o, const void *from, unsigned flags)
{
    il__buf_addc(b, '{');
    il__wire_print_fields(b, o, from, flags);
    il__wire_close(b);
}

void
il__wire_print_page(struct il__buf *b, const struct wire_object *o, const void *items,
                    size_t item_bytes, size_t n, const char *next)
{
    il__buf_addc(b, '{');
    il__wire_put_objects(b, "items", o, items, item_bytes, n, 0);
    il__wire_put_text(b, "next", next);
    il__wire_close(b);
}
