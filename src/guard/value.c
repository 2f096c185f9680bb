/*
 * value.c: typed values: constructors, copies, comparison, printing, room for a row of them.
 */
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>

#include "base/arena.h"
#include "guard/guard_internal.h"

il_guard_value
il_guard_null(void)
{
    return (il_guard_value){ .type = IL_GUARD_NULL };
}

il_guard_value
il_guard_int(int64_t integer)
{
    return (il_guard_value){ .type = IL_GUARD_INT, .integer = integer };
}

il_guard_value
il_guard_double(double number)
{
    return (il_guard_value){ .type = IL_GUARD_DOUBLE, .number = number };
}

static il_guard_value
of_string(il_guard_type type, const char *text)
{
    if (text == NULL)
        return il_guard_null();
    return (il_guard_value){ .type = type, .data = text, .n_bytes = strlen(text) };
}

il_guard_value
il_guard_text(const char *text)
{
    return of_string(IL_GUARD_TEXT, text);
}

il_guard_value
il_guard_json(const char *json)
{
    return of_string(IL_GUARD_JSON, json);
}

il_guard_value
il_guard_blob(const void *data, size_t n_bytes)
{
    if (data == NULL)
        return il_guard_null();
    return (il_guard_value){ .type = IL_GUARD_BLOB, .data = data, .n_bytes = n_bytes };
}

static bool
has_bytes(il_guard_type type)
{
    return type == IL_GUARD_TEXT || type == IL_GUARD_JSON || type == IL_GUARD_BLOB;
}

bool
il__guard_value_is_valid(const il_guard_value *value)
{
    if ((unsigned)value->type >= IL_GUARD_TYPE_COUNT)
        return false;
    return !has_bytes(value->type) || value->data != NULL;
}

bool
il__guard_value_copy(void **mem, const il_guard_value *value, il_guard_value *ret)
{
    *ret = *value;
    if (!has_bytes(value->type))
        return true;
    char *copy = il__arena_alloc(mem, value->n_bytes + 1);
    if (copy == NULL)
        return false;
    if (value->n_bytes > 0)
        memcpy(copy, value->data, value->n_bytes);
    copy[value->n_bytes] = '\0';
    ret->data            = copy;
    return true;
}

/* A total order: by type, then by value; texts by their bytes. */
int
il__guard_value_compare(const il_guard_value *a, const il_guard_value *b)
{
    if (a->type != b->type)
        return a->type < b->type ? -1 : 1;
    switch (a->type) {
    case IL_GUARD_INT:
        return (a->integer > b->integer) - (a->integer < b->integer);
    case IL_GUARD_DOUBLE:
        return (a->number > b->number) - (a->number < b->number);
    case IL_GUARD_TEXT:
    case IL_GUARD_JSON:
    case IL_GUARD_BLOB: {
        size_t n    = MIN(a->n_bytes, b->n_bytes);
        int    diff = n > 0 ? memcmp(a->data, b->data, n) : 0;
        return diff != 0 ? diff : (a->n_bytes > b->n_bytes) - (a->n_bytes < b->n_bytes);
    }
    case IL_GUARD_NULL:
    case IL_GUARD_TYPE_COUNT:
        break;
    }
    return 0;
}

static locale_t       c_locale;
static pthread_once_t c_once = PTHREAD_ONCE_INIT;

static void
make_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* always there */
    CHECK(c_locale != (locale_t)0);
}

void
il__guard_print_double(double number, char out[GUARD_NUMBER_BYTES])
{
    CHECK(pthread_once(&c_once, make_locale) == 0);
    locale_t before = uselocale(c_locale);
    (void)snprintf(out, GUARD_NUMBER_BYTES, "%.17g", number);
    (void)uselocale(before);
}

double
il__guard_parse_double(const char *text)
{
    CHECK(pthread_once(&c_once, make_locale) == 0);
    return strtod_l(text, NULL, c_locale);
}

void
il__guard_value_print(const il_guard_value *value, struct il__buf *out)
{
    char number[GUARD_NUMBER_BYTES];

    switch (value->type) {
    case IL_GUARD_INT:
        il__buf_addf(out, "%" PRId64, value->integer);
        break;
    case IL_GUARD_DOUBLE:
        il__guard_print_double(value->number, number);
        il__buf_adds(out, number);
        break;
    case IL_GUARD_TEXT:
    case IL_GUARD_JSON:
        il__buf_add(out, value->data, value->n_bytes);
        break;
    case IL_GUARD_BLOB:
        il__buf_addf(out, "%zu bytes", value->n_bytes);
        break;
    case IL_GUARD_NULL:
    case IL_GUARD_TYPE_COUNT:
        il__buf_adds(out, "NULL");
        break;
    }
}

bool
il__guard_make_room(struct guard_conn *c, size_t n)
{
    if (n <= c->n_columns)
        return true;
    const char **names = il__realloc(c->names, n * sizeof *names);
    if (names != NULL)
        c->names = names;
    il_guard_value *values = il__realloc(c->values, n * sizeof *values);
    if (values != NULL)
        c->values = values;
    if (names == NULL || values == NULL)
        return false;
    c->n_columns = n;
    return true;
}

void
il__guard_release_room(struct guard_conn *c)
{
    il__free(c->names);
    il__free(c->values);
}

int
il__guard_take_number(void *cookie, const il_guard_row *row)
{
    struct guard_number *n = cookie;

    n->there  = row->n > 0 && row->values[0].type == IL_GUARD_INT;
    n->number = n->there ? row->values[0].integer : 0;
    return 0;
}
