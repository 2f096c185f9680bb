/*
 * schema.c: generates JSON Schemas (2020-12) from the tables, for /openapi.json.
 */
#include <stdio.h>

#include "base/buf.h"
#include "wire/field.h"
#include "wire/json.h"

static json_t *
type_of(const char *type, bool nullable)
{
    return nullable ? json_pack("{s:[s,s]}", "type", type, "null")
                    : json_pack("{s:s}", "type", type);
}

static json_t *
names_of(struct json_maker *m, const struct wire_field *f, bool nullable)
{
    json_t *names = json_array();

    for (size_t i = 0; f->choices[i] != NULL; i++)
        il__json_append(m, names, json_string(f->choices[i]));
    for (size_t i = 0; f->others != NULL && f->others[i] != NULL; i++)
        il__json_append(m, names, json_string(f->others[i]));
    if (nullable)
        il__json_append(m, names, json_null());
    return names;
}

static json_t *
number_schema(struct json_maker *m, const struct wire_field *f, bool nullable)
{
    json_t *s = type_of("integer", nullable);

    if (f->min != 0 || f->max != 0) {
        il__json_set(m, s, "minimum", json_integer(f->min));
        il__json_set(m, s, "maximum", json_integer(f->max));
    } else if (f->kind == WIRE_UINT32 || f->kind == WIRE_UINT64 || f->kind == WIRE_SIZE) {
        il__json_set(m, s, "minimum", json_integer(0));
    }
    return s;
}

/* A schema is read by people and by generators, so doubles are good enough here. */
static json_t *
decimal_schema(struct json_maker *m, const struct wire_field *f, bool nullable)
{
    json_t *s    = type_of("number", nullable);
    double  unit = 1;

    for (unsigned i = 0; i < f->digits; i++)
        unit *= 10;
    il__json_set(m, s, "multipleOf", json_real(1 / unit));
    if (f->min != 0 || f->max != 0) {
        il__json_set(m, s, "minimum", json_real((double)f->min / unit));
        il__json_set(m, s, "maximum", json_real((double)f->max / unit));
    }
    return s;
}

static json_t *
ref_to(const struct wire_object *o)
{
    return json_pack("{s:s++}", "$ref", "#/components/schemas/", o->name, "");
}

static json_t *
text_schema(struct json_maker *m, const struct wire_field *f, bool nullable)
{
    json_t *s = type_of("string", nullable);

    /* Our limits are in bytes; JSON Schema counts characters, which are never more. */
    if (f->min > 0)
        il__json_set(m, s, "minLength", json_integer(1));
    if (f->max > 0) {
        il__json_set(m, s, "maxLength", json_integer(f->max));
        il__json_set(m, s, "x-maxBytes", json_integer(f->max));
    }
    return s;
}

/* Names of choices: one, several separated by commas, or an array. */
static json_t *
set_schema(struct json_maker *m, const struct wire_field *f)
{
    json_t                 *names = names_of(m, f, false);
    AUTO_BUF struct il__buf one;
    size_t                  i;
    json_t                 *name;

    il__buf_init(&one, 1024);
    json_array_foreach(names, i, name)
    {
        il__buf_addf(&one, "%s%s", i > 0 ? "|" : "", json_string_value(name));
    }
    m->failed        = m->failed || one.failed;
    const char *text = il__buf_str(&one);
    return json_pack("{s:[{s:s,s:s++++},{s:s,s:{s:s,s:o}}]}", "anyOf", "type", "string", "pattern",
                     "^(", text, ")(,(", text, "))*$", "type", "array", "items", "type", "string",
                     "enum", names);
}

/* In a body, null means that the field is omitted. */
static json_t *
or_null(struct json_maker *m, json_t *s)
{
    json_t *type = json_object_get(s, "type"), *either = json_object_get(s, "anyOf");

    if (json_object_get(s, "$ref") != NULL)
        return json_pack("{s:[o,{s:s}]}", "anyOf", s, "type", "null");
    if (either != NULL)
        il__json_append(m, either, json_pack("{s:s}", "type", "null"));
    else if (json_is_string(type))
        il__json_set(m, s, "type", json_pack("[s,s]", json_string_value(type), "null"));
    if (json_object_get(s, "enum") != NULL)
        il__json_append(m, json_object_get(s, "enum"), json_null());
    return s;
}

static json_t *
field_schema(struct json_maker *m, const struct wire_field *f, bool nullable)
{
    json_t *s;

    switch (f->kind) {
    case WIRE_TEXT:
        return text_schema(m, f, nullable);
    case WIRE_BOOL:
        return type_of("boolean", false);
    case WIRE_CHOICE:
        s = type_of("string", nullable);
        il__json_set(m, s, "enum", names_of(m, f, nullable));
        return s;
    case WIRE_SET:
        return set_schema(m, f);
    case WIRE_TIME:
        s = type_of("string", nullable);
        il__json_set(m, s, "format", json_string("date-time"));
        return s;
    case WIRE_WAIT:
        return json_pack("{s:[{s:s,s:I,s:I},{s:s}]}", "anyOf", "type", "integer", "minimum",
                         (json_int_t)f->min, "maximum", (json_int_t)f->max, "const", "forever");
    case WIRE_OBJECT:
        if (f->bit != 0)
            return json_pack("{s:[o,{s:s}]}", "anyOf", ref_to(f->object), "type", "null");
        return ref_to(f->object);
    case WIRE_OBJECTS:
        s = json_pack("{s:s,s:o}", "type", "array", "items", ref_to(f->object));
        if (f->max > 0)
            il__json_set(m, s, "maxItems", json_integer(f->max));
        return s;
    case WIRE_TEXTS:
        s = json_pack("{s:s,s:{s:s}}", "type", "array", "items", "type", "string");
        if (f->max > 0)
            il__json_set(m, s, "maxItems", json_integer(f->max));
        return s;
    case WIRE_DECIMAL:
        return decimal_schema(m, f, nullable);
    case WIRE_BYTES:
    case WIRE_META:
        return json_object(); /* any value */
    default:
        return number_schema(m, f, nullable);
    }
}

/* Can it be null in an answer? */
static bool
is_nullable(const struct wire_field *f)
{
    if (f->kind == WIRE_CHOICE)
        return f->min > 0;
    if ((f->flags & WIRE_MINUS) != 0)
        return true;
    return (f->flags & (WIRE_NOT_NULL | WIRE_HIDE)) == 0;
}

static void
add_property(struct json_maker *m, json_t *properties, json_t *required, const struct wire_field *f,
             bool answer, bool nulls)
{
    char    other[80];
    json_t *s = field_schema(m, f, answer && is_nullable(f));

    if (nulls && (f->flags & WIRE_REQUIRED) == 0)
        s = or_null(m, s);

    if (f->help != NULL)
        il__json_set(m, s, "description", json_string(f->help));
    il__json_set(m, properties, f->name, s);
    if (f->kind == WIRE_BYTES) {
        (void)snprintf(other, sizeof other, "%s_base64", f->name);
        il__json_set(m, properties, other,
                     json_pack("{s:o,s:s,s:s+}", "type",
                               nulls ? json_pack("[s,s]", "string", "null") : json_string("string"),
                               "contentEncoding", "base64", "description",
                               "instead, if it is not UTF-8: ", f->name));
    }
    if ((f->flags & WIRE_REQUIRED) != 0 || (answer && (f->flags & WIRE_HIDE) == 0))
        il__json_append(m, required, json_string(f->name));
}

json_t *
il__wire_schema(const struct wire_object *o, enum wire_use use)
{
    struct json_maker  made       = { false };
    struct json_maker *m          = &made;
    bool               answer     = (o->flags & WIRE_ANSWER) != 0;
    json_t            *properties = json_object();
    json_t            *required   = json_array();

    for (size_t i = 0; i < o->n_fields; i++)
        add_property(m, properties, required, &o->fields[i], answer,
                     !answer && use == WIRE_IN_JSON);
    bool    some = json_array_size(required) > 0;
    json_t *s    = json_pack("{s:s,s:o,s:o,s:b}", "type", "object", "properties", properties,
                             "required", required, "additionalProperties", answer);
    if (!some)
        (void)json_object_del(s, "required"); /* it was empty */
    if (o->help != NULL)
        il__json_set(m, s, "description", json_string(o->help));
    if (s != NULL && !m->failed)
        return s;
    json_decref(s);
    return NULL;
}
