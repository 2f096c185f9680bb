/*
 * parse.c: parses JSON into structs, driven by tables. Strict: an unknown field is refused by name.
 *
 * Error messages say which field, what is wrong with it and what is valid. They quote values only
 * if these are numbers, times or names of choices; a payload or meta never appears in a message.
 */
#include "wire/parse.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "base/suggest.h"
#include "wire/field.h"
#include "wire/json.h"
#include "wire/value.h"

static const char *
type_name(const json_t *value)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array", [JSON_STRING] = "a string",
        [JSON_INTEGER] = "a number", [JSON_REAL] = "a number",  [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",      [JSON_NULL] = "null",
    };

    return il__json_number_text(value) != NULL ? "a number" : names[json_typeof(value)];
}

/* A string, and not a number that is kept like one. */
static bool
is_text(const json_t *value)
{
    return json_is_string(value) && il__json_number_text(value) == NULL;
}

/* ---- from JSON ------------------------------------------------------------------------------- */

static il_status
refuse_type(struct wire_parser *p, const struct wire_field *f, const char *wanted,
            const json_t *value)
{
    return il__value_refuse(p, f, "must be %s, not %s", wanted, type_name(value));
}

static il_status
take_number(struct wire_parser *p, const struct wire_field *f, const json_t *value, void *into)
{
    if (json_is_real(value) || il__json_number_text(value) != NULL)
        return il__value_refuse(p, f, "must be a whole number, written without '.' and 'e'");
    if (!json_is_integer(value))
        return refuse_type(p, f, "a whole number", value);
    return il__value_number(p, f, json_integer_value(value), into);
}

static il_status
take_decimal(struct wire_parser *p, const struct wire_field *f, const json_t *value, void *into)
{
    const char *text = il__json_number_text(value);
    char        whole[24];

    CHECK(!json_is_real(value)); /* the document was loaded with il__wire_load_for() */
    if (json_is_integer(value)) {
        (void)snprintf(whole, sizeof whole, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        text = whole;
    }
    if (text == NULL)
        return refuse_type(p, f, "a number", value);
    return il__value_decimal(p, f, text, into);
}

static il_status
take_wait(struct wire_parser *p, const struct wire_field *f, const json_t *value, void *into)
{
    if (!is_text(value))
        return take_number(p, f, value, into);
    if (strcmp(json_string_value(value), "forever") != 0)
        return il__value_refuse(p, f, "must be a whole number of milliseconds or \"forever\"");
    il__wire_set_number(f, into, IL_FOREVER);
    return IL_OK;
}

static il_status
take_set(struct wire_parser *p, const struct wire_field *f, const json_t *value, void *into)
{
    uint32_t set = 0;

    if (is_text(value)) {
        il_status st = il__value_add(p, f, json_string_value(value), &set);
        if (st != IL_OK)
            return st;
    } else if (!json_is_array(value)) {
        return refuse_type(p, f, "an array of names", value);
    }
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *name = json_array_get(value, i);
        if (!is_text(name))
            return refuse_type(p, f, "an array of names", name);
        il_status st = il__value_add(p, f, json_string_value(name), &set);
        if (st != IL_OK)
            return st;
    }
    il__wire_set_number(f, into, set);
    return IL_OK;
}

/* A string stands for its text; any other value for its JSON text. */
static il_status
take_bytes(struct wire_parser *p, const struct wire_field *f, const json_t *value, void *into)
{
    AUTO_BUF struct il__buf text    = { 0 };
    const char             *data    = is_text(value) ? json_string_value(value) : NULL;
    size_t                  n_bytes = json_string_length(value);

    if (data == NULL) {
        il__buf_init(&text, f->max > 0 ? (size_t)f->max : IL_BLOB_BYTES_MAX);
        il__json_add_loaded(&text, value);
        if (text.failed &&
            json_dumpb(value, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY) < text.n_bytes_max / 2)
            return il__value_no_memory(p);
        if (text.failed)
            return il__value_refuse(p, f, "longer than %zu bytes as text", text.n_bytes_max);
        data    = il__buf_str(&text);
        n_bytes = text.n_bytes;
    }
    if (p->copy || text.data != NULL) {
        char *copy = il__arena_alloc(p->mem, n_bytes + 1);
        if (copy == NULL)
            return il__value_no_memory(p);
        memcpy(copy, data, n_bytes);
        copy[n_bytes] = '\0';
        data          = copy;
    }
    return il__value_bytes(p, f, data, n_bytes, into);
}

static il_status
take_base64(struct wire_parser *p, const struct wire_field *f, const json_t *value, void *into)
{
    size_t n_bytes = 0;
    size_t n_text  = json_string_length(value);

    if (!is_text(value))
        return refuse_type(p, f, "a string (in base64)", value);
    if (f->max > 0 && n_text / 4 * 3 > (size_t)f->max + 2)
        return il__value_refuse(p, f, "longer than %" PRId64 " bytes", f->max);
    char *data = il__arena_alloc(p->mem, n_text / 4 * 3 + 1);
    if (data == NULL)
        return il__value_no_memory(p);
    if (!il__wire_base64_decode(json_string_value(value), n_text, (unsigned char *)data, &n_bytes))
        return il__value_refuse(p, f, "not valid base64");
    data[n_bytes] = '\0';
    return il__value_bytes(p, f, data, n_bytes, into);
}

static il_status
take_object(struct wire_parser *p, const struct wire_field *f, const json_t *value, void *into)
{
    if (!json_is_object(value))
        return refuse_type(p, f, "an object", value);
    if (f->bit != 0)
        il__value_bit(into, f->offset2, f->bit, true);
    return il__wire_parse_into(p, f->object, NULL, value, (char *)into + f->offset);
}

static il_status
take_objects(struct wire_parser *p, const struct wire_field *f, const json_t *value, void *into)
{
    size_t n     = json_array_size(value);
    size_t bytes = f->object->bytes;

    if (!json_is_array(value))
        return refuse_type(p, f, "an array", value);
    if (f->max > 0 && n > (size_t)f->max)
        return il__value_refuse(p, f, "must have at most %" PRId64 " elements, not %zu", f->max, n);
    CHECK(bytes > 0);
    char *items = n > 0 ? il__arena_alloc(p->mem, n * bytes) : NULL;
    if (n > 0 && items == NULL)
        return il__value_no_memory(p);
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(value, i);
        memset(items + i * bytes, 0, bytes);
        if (!json_is_object(item))
            return refuse_type(p, f, "an array of objects", item);
        il_status st = il__wire_parse_into(p, f->object, NULL, item, items + i * bytes);
        if (st != IL_OK)
            return st;
    }
    memcpy((char *)into + f->offset, &items, sizeof items);
    memcpy((char *)into + f->offset2, &n, sizeof n);
    return IL_OK;
}

/* The size, although the bytes themselves may not have been sent. */
static il_status
take_size(struct wire_parser *p, const struct wire_field *f, const json_t *value, void *into)
{
    size_t size = (size_t)json_integer_value(value);

    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return refuse_type(p, f, "a whole number", value);
    if (il__wire_pointer(into, f->offset) == NULL)
        memcpy((char *)into + f->offset2, &size, sizeof size);
    return IL_OK;
}

static il_status
take_string(struct wire_parser *p, const struct wire_field *f, const json_t *value, void *into)
{
    const char *text = json_string_value(value);

    if (!is_text(value))
        return refuse_type(p, f, "a string", value);
    if (f->kind == WIRE_CHOICE)
        return il__value_choice(p, f, text, into);
    if (f->kind == WIRE_TIME)
        return il__value_time(p, f, text, into);
    return il__value_text(p, f, text, json_string_length(value), into);
}

static il_status
take_texts(struct wire_parser *p, const struct wire_field *f, const json_t *value, void *into)
{
    const struct wire_field one   = { .name = f->name, .kind = WIRE_TEXT };
    size_t                  n     = json_array_size(value);
    const char            **texts = n > 0 ? il__arena_alloc(p->mem, n * sizeof *texts) : NULL;

    if (!json_is_array(value))
        return refuse_type(p, f, "an array of strings", value);
    if (f->max > 0 && n > (size_t)f->max)
        return il__value_refuse(p, f, "must have at most %" PRId64 " elements, not %zu", f->max, n);
    if (n > 0 && texts == NULL)
        return il__value_no_memory(p);
    for (size_t i = 0; i < n; i++) {
        il_status st = take_string(p, &one, json_array_get(value, i), &texts[i]);
        if (st != IL_OK)
            return st;
    }
    memcpy((char *)into + f->offset, &texts, sizeof texts);
    memcpy((char *)into + f->offset2, &n, sizeof n);
    return IL_OK;
}

static il_status
take_value(struct wire_parser *p, const struct wire_field *f, const json_t *value, void *into)
{
    switch (f->kind) {
    case WIRE_TEXT:
    case WIRE_META:
    case WIRE_CHOICE:
    case WIRE_TIME:
        return take_string(p, f, value, into);
    case WIRE_BOOL:
        if (!json_is_boolean(value))
            return refuse_type(p, f, "true or false", value);
        il__value_bit(into, f->offset, f->bit, json_is_true(value));
        return IL_OK;
    case WIRE_SET:
        return take_set(p, f, value, into);
    case WIRE_BYTES:
        return take_bytes(p, f, value, into);
    case WIRE_WAIT:
        return take_wait(p, f, value, into);
    case WIRE_OBJECT:
        return take_object(p, f, value, into);
    case WIRE_OBJECTS:
        return take_objects(p, f, value, into);
    case WIRE_TEXTS:
        return take_texts(p, f, value, into);
    case WIRE_SIZE:
        return take_size(p, f, value, into);
    case WIRE_ELAPSED:
        return IL_OK;
    case WIRE_DECIMAL:
        return take_decimal(p, f, value, into);
    case WIRE_INT32:
    case WIRE_UINT32:
    case WIRE_INT64:
    case WIRE_UINT64:
    default:
        return take_number(p, f, value, into);
    }
}

/* ---- objects --------------------------------------------------------------------------------- */

struct names {
    const struct wire_object *o, *also;
};

static const char *
next_name(const void *cookie, size_t i)
{
    const struct names *n = cookie;

    if (i < n->o->n_fields)
        return n->o->fields[i].name;
    i -= n->o->n_fields;
    return n->also != NULL && i < n->also->n_fields ? n->also->fields[i].name : NULL;
}

il_status
il__wire_refuse_unknown(il_error *reterr, const struct wire_object *o,
                        const struct wire_object *also, const char *name)
{
    struct names n     = { o, also };
    const char  *meant = il__suggest(name, next_name, &n);

    return il__error_set(reterr, IL_INVAL, "unknown field '%.80s'%s%s%s", name,
                         meant != NULL ? " (did you mean '" : "", meant != NULL ? meant : "",
                         meant != NULL ? "'?)" : "");
}

/* The index of the field with that name; *ret_base64: as base64. n_fields: unknown. */
size_t
il__wire_find(const struct wire_object *o, const char *name, bool *ret_base64)
{
    *ret_base64 = false;
    for (size_t i = 0; i < o->n_fields; i++) {
        if (strcmp(o->fields[i].name, name) == 0)
            return i;
    }
    *ret_base64 = true;
    for (size_t i = 0; i < o->n_fields; i++) {
        size_t n = strlen(o->fields[i].name);
        if (o->fields[i].kind == WIRE_BYTES && strncmp(o->fields[i].name, name, n) == 0 &&
            strcmp(name + n, "_base64") == 0)
            return i;
    }
    return o->n_fields;
}

/* A value given in the path, for example, must not be given again in the body. */
bool
il__wire_was_given(const struct wire_field *f, const void *into)
{
    return ((f->flags & WIRE_REQUIRED) != 0 || f->kind == WIRE_TEXT) && il__wire_is_set(f, into);
}

struct given {
    uint64_t before; /* fields whose member was set before the parse */
    uint64_t now;    /* fields present in this object */
};

static il_status
take_member(struct wire_parser *p, const struct wire_object *o, size_t i, bool is_base64,
            const json_t *value, void *into, struct given *given)
{
    const struct wire_field *f      = &o->fields[i];
    size_t                   i_main = i;

    while (i_main > 0 && (o->fields[i_main].flags & WIRE_ALIAS) != 0)
        i_main--;
    CHECK(i_main < WIRE_FIELDS_MAX);
    uint64_t mask = UINT64_C(1) << i_main;
    if ((given->before & mask) != 0)
        return il__value_refuse(p, f, "given more than once");
    if (json_is_null(value)) {
        if ((given->now & mask) == 0)
            il__value_nothing(p, f, into);
        return IL_OK;
    }
    if ((given->now & mask) != 0)
        return il__value_refuse(p, f, "given twice, under two names");
    given->now |= mask;
    return is_base64 ? take_base64(p, f, value, into) : take_value(p, f, value, into);
}

static il_status
check_required(const struct wire_object *o, const void *into, uint64_t now, il_error *reterr)
{
    for (size_t i = 0; i < o->n_fields; i++) {
        const struct wire_field *f = &o->fields[i];
        if ((f->flags & WIRE_REQUIRED) != 0 && (now >> i & 1) == 0 && !il__wire_is_set(f, into))
            return il__error_set(reterr, IL_INVAL, "field '%s' is missing", f->name);
    }
    return IL_OK;
}

/* Fields missing in an answer are set to empty, so that no text of it is NULL. */
static void
clear_texts(const struct wire_parser *p, const struct wire_object *o, void *into)
{
    for (size_t i = 0; i < o->n_fields; i++) {
        if (o->fields[i].kind == WIRE_TEXT || o->fields[i].kind == WIRE_META)
            il__value_nothing(p, &o->fields[i], into);
    }
}

il_status
il__wire_parse_into(struct wire_parser *p, const struct wire_object *o,
                    const struct wire_object *also, const json_t *json, void *into)
{
    bool         outer = p->answer;
    struct given given = { 0 };
    il_status    st    = IL_OK;
    const char  *name;
    json_t      *value;

    CHECK(o->n_fields <= WIRE_FIELDS_MAX);
    p->answer = (o->flags & WIRE_ANSWER) != 0;
    if (p->answer)
        clear_texts(p, o, into);
    for (size_t i = 0; !p->answer && i < o->n_fields; i++)
        given.before |= (uint64_t)il__wire_was_given(&o->fields[i], into) << i;
    json_object_foreach((json_t *)(uintptr_t)json, name, value)
    {
        bool   is_base64;
        bool   others;
        size_t i = il__wire_find(o, name, &is_base64);
        if (i < o->n_fields)
            st = take_member(p, o, i, is_base64, value, into, &given);
        else if ((also == NULL || il__wire_find(also, name, &others) == also->n_fields) &&
                 !p->answer)
            st = il__wire_refuse_unknown(p->reterr, o, also, name);
        if (st != IL_OK)
            break;
    }
    if (st == IL_OK)
        st = check_required(o, into, given.now, p->reterr);
    p->answer = outer;
    return st;
}

il_status
il__wire_parse(const struct wire_object *o, const struct wire_object *also, const json_t *json,
               void *into, void **mem, il_error *reterr)
{
    struct wire_parser p = { .mem = mem, .reterr = reterr };

    if (!json_is_object(json))
        return il__error_set(reterr, IL_INVAL, "must be a JSON object, not %s",
                             json != NULL ? type_name(json) : "nothing");
    return il__wire_parse_into(&p, o, also, json, into);
}

il_status
il__wire_complete(const struct wire_object *o, const void *into, il_error *reterr)
{
    return check_required(o, into, 0, reterr);
}
