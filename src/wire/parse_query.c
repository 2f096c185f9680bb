/*
 * parse_query.c: parses query string fields into structs, driven by tables.
 */
#include "base/error.h"
#include "base/parse.h"
#include "wire/field.h"
#include "wire/value.h"

static il_status
read_number(struct wire_parser *p, const struct wire_field *f, const char *text, void *into)
{
    bool     negative = text[0] == '-';
    uint64_t number;

    if (!il__parse_u64(text + negative, WIRE_NUMBER_MAX, &number))
        return il__value_refuse(p, f, "'%.40s' is not a whole number", text);
    return il__value_number(p, f, negative ? -(int64_t)number : (int64_t)number, into);
}

/* 30s, forever; or milliseconds. */
static il_status
read_wait(struct wire_parser *p, const struct wire_field *f, const char *text, void *into)
{
    int64_t ms;

    if (text[strspn(text, "0123456789")] == '\0')
        return read_number(p, f, text, into);
    if (il_parse_duration(text, &ms, NULL) != IL_OK)
        return il__value_refuse(p, f, "'%.40s' is not a duration (try 250ms, 30s, 5m, forever)",
                                text);
    if (ms != IL_FOREVER)
        return il__value_number(p, f, ms, into);
    il__wire_set_number(f, into, ms);
    return IL_OK;
}

static il_status
read_bool(struct wire_parser *p, const struct wire_field *f, const char *text, void *into)
{
    bool value = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;

    if (!value && strcmp(text, "false") != 0 && strcmp(text, "0") != 0)
        return il__value_refuse(p, f, "'%.40s' is neither true nor false", text);
    il__value_bit(into, f->offset, f->bit, value);
    return IL_OK;
}

static il_status
read_text(struct wire_parser *p, const struct wire_field *f, const char *text, void *into)
{
    uint32_t  set = 0;
    il_status st;

    switch (f->kind) {
    case WIRE_TEXT:
    case WIRE_META:
        return il__value_text(p, f, text, strlen(text), into);
    case WIRE_BYTES:
        return il__value_bytes(p, f, text, strlen(text), into);
    case WIRE_BOOL:
        return read_bool(p, f, text, into);
    case WIRE_CHOICE:
        return il__value_choice(p, f, text, into);
    case WIRE_SET:
        st = il__value_add(p, f, text, &set);
        if (st == IL_OK)
            il__wire_set_number(f, into, set);
        return st;
    case WIRE_TIME:
        return il__value_time(p, f, text, into);
    case WIRE_WAIT:
        return read_wait(p, f, text, into);
    case WIRE_DECIMAL:
        return il__value_decimal(p, f, text, into);
    case WIRE_INT32:
    case WIRE_UINT32:
    case WIRE_INT64:
    case WIRE_UINT64:
        return read_number(p, f, text, into);
    default:
        return il__value_refuse(p, f, "cannot be set in a query string");
    }
}

il_status
il__wire_parse_text(const struct wire_object *o, const char *name, const char *text, void *into,
                    void **mem, il_error *reterr)
{
    struct wire_parser p = { .mem = mem, .reterr = reterr };
    bool               is_base64;
    size_t             i = il__wire_find(o, name, &is_base64);

    if (i == o->n_fields || is_base64)
        return il__wire_refuse_unknown(reterr, o, NULL, name);
    if (il__wire_was_given(&o->fields[i], into))
        return il__value_refuse(&p, &o->fields[i], "given more than once");
    if (!il__utf8_valid(text, strlen(text)))
        return il__value_refuse(&p, &o->fields[i], "not valid UTF-8");
    return read_text(&p, &o->fields[i], text, into);
}
