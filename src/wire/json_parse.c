/*
 * json_parse.c: parses JSON text strictly. Valid texts are parsed here; others are passed to
 * jansson, which reports the error. What jansson would accept (depth, a few bytes that expand to
 * much memory, NUL) is checked first.
 */
#include <stdio.h>

#include "base/error.h"
#include "wire/json.h"
#include "wire/lex.h"

/* Count the brackets and commas outside strings: each value follows one of these and costs a
 * hundred bytes. */
static il_status
check_shape(const char *text, size_t n_bytes, size_t n_values_max, il_error *reterr)
{
    int    depth    = 0;
    size_t n_values = 1;
    bool   inside   = false; /* of a string */

    for (size_t i = 0; i < n_bytes; i++) {
        char c = text[i];
        if (c == '\0') /* jansson ignores it after a number */
            return il__error_set(reterr, IL_INVAL, "invalid JSON at byte %zu: NUL character", i);
        if (inside) {
            if (c == '\\' && i + 1 < n_bytes && text[i + 1] != '\0')
                i++;
            else if (c == '"')
                inside = false;
            continue;
        }
        if (c == '"')
            inside = true;
        else if (c == '{' || c == '[')
            depth++;
        else if (c == '}' || c == ']')
            depth--;
        if (c == ',' || c == '{' || c == '[')
            n_values++;
        if (depth > WIRE_DEPTH_MAX)
            return il__error_set(reterr, IL_INVAL, "JSON nested deeper than %d levels at byte %zu",
                                 WIRE_DEPTH_MAX, i);
        if (n_values > n_values_max)
            return il__error_set(
                reterr, IL_INVAL,
                "too many JSON values at byte %zu (maximum %zu); pass a large one as a string", i,
                n_values_max);
    }
    return IL_OK;
}

/* jansson reports most failed allocations as a syntax error. If the syntax is right, it was out of
 * memory. */
static bool
lacks_memory(const json_error_t *why, const char *text, size_t n_bytes)
{
    AUTO_BUF struct il__buf b = { 0 };

    if (json_error_code(why) == json_error_out_of_memory || why->text[0] == '\0')
        return true;
    il__buf_init(&b, n_bytes);
    return il__json_add_value(&b, text, n_bytes, false) || b.failed;
}

/* jansson's message without what it quotes, which is user data. */
static il_status
refuse(const json_error_t *why, const char *text, size_t n_bytes, il_error *reterr)
{
    const char *near = strstr(why->text, " near ");
    int         n    = near != NULL ? (int)(near - why->text) : (int)strlen(why->text);
    const char *said = NULL;

    switch (json_error_code(why)) {
    case json_error_null_character:
    case json_error_null_byte_in_key:
        said = "a string must not contain NUL";
        break;
    case json_error_duplicate_key:
        said = "duplicate name in an object";
        break;
    default:
        if (lacks_memory(why, text, n_bytes))
            return il__error_nomem(reterr);
    }
    if (said != NULL)
        return il__error_set(reterr, IL_INVAL, "invalid JSON: line %d, column %d: %s", why->line,
                             why->column, said);
    return il__error_set(reterr, IL_INVAL, "invalid JSON: line %d, column %d: %.*s", why->line,
                         why->column, n, why->text);
}

/* ---- the short way --------------------------------------------------------------------------- */

/*
 * jansson's scanner visits each byte several times, which takes three quarters of its time. So
 * valid texts are scanned here, and only the values are jansson's. This parser accepts what jansson
 * accepts, with the same result (tests/fuzz/json.c), or gives up: then jansson decides, and reports
 * what is wrong.
 */
struct reader {
    const char    *at;
    const char    *end;
    int            depth;
    size_t         n_values_max;
    size_t         n_values;  /* counted like check_shape() */
    bool           exact;     /* keep numbers as they were written */
    struct il__buf unescaped; /* room for one string */
};

static json_t *read_value(struct reader *r);

/* A code point as UTF-8. */
static void
add_code(struct il__buf *b, uint32_t code)
{
    char text[4] = { (char)code };

    if (code < 0x80) {
        il__buf_add(b, text, 1);
    } else if (code < 0x800) {
        text[0] = (char)(0xC0 | code >> 6);
        text[1] = (char)(0x80 | (code & 0x3F));
        il__buf_add(b, text, 2);
    } else if (code < 0x10000) {
        text[0] = (char)(0xE0 | code >> 12);
        text[1] = (char)(0x80 | (code >> 6 & 0x3F));
        text[2] = (char)(0x80 | (code & 0x3F));
        il__buf_add(b, text, 3);
    } else {
        text[0] = (char)(0xF0 | code >> 18);
        text[1] = (char)(0x80 | (code >> 12 & 0x3F));
        text[2] = (char)(0x80 | (code >> 6 & 0x3F));
        text[3] = (char)(0x80 | (code & 0x3F));
        il__buf_add(b, text, 4);
    }
}

/* Decode the escape at s, which is valid; returns its length. */
static size_t
add_unescaped(struct il__buf *b, const char *s, const char *end)
{
    static const char names[]  = "\"\\/bfnrt";
    static const char values[] = "\"\\/\b\f\n\r\t";

    if (s[1] != 'u') {
        il__buf_addc(b, values[strchr(names, s[1]) - names]);
        return 2;
    }
    uint32_t code = (uint32_t)il__lex_hex4(s + 2, end);
    if (code < 0xD800 || code > 0xDFFF) {
        add_code(b, code);
        return 6;
    }
    add_code(b, 0x10000 + ((code - 0xD800) << 10) + ((uint32_t)il__lex_hex4(s + 8, end) - 0xDC00));
    return 12;
}

/* The next string, without its quotes. False: give up. */
static bool
read_text(struct reader *r, const char **ret, size_t *ret_bytes)
{
    bool        escaped;
    const char *begin = r->at + 1;
    const char *end   = il__lex_string(r->at, r->end, &escaped);

    if (end == NULL)
        return false;
    r->at      = end--;
    *ret       = begin;
    *ret_bytes = (size_t)(end - begin);
    if (!escaped)
        return true;
    il__buf_clear(&r->unescaped);
    while (begin < end) {
        const char *slash = memchr(begin, '\\', (size_t)(end - begin));
        il__buf_add(&r->unescaped, begin, (size_t)((slash != NULL ? slash : end) - begin));
        begin = slash != NULL ? slash + add_unescaped(&r->unescaped, slash, end) : end;
    }
    *ret       = r->unescaped.data;
    *ret_bytes = r->unescaped.n_bytes;
    return !r->unescaped.failed;
}

static json_t *
read_number(struct reader *r)
{
    bool        whole;
    char        text[LEX_NUMBER_BYTES];
    const char *end = il__lex_number(r->at, r->end, &whole);

    if (end == NULL || !il__lex_number_copy(r->at, end, text))
        return NULL;
    r->at = end;
    if (r->exact && !whole)
        return il__json_number(text);
    return whole ? json_integer(strtoll(text, NULL, 10)) : json_real(strtod(text, NULL));
}

static json_t *
read_word(struct reader *r, const char *word, json_t *value)
{
    size_t n = strlen(word);

    if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0)
        return NULL;
    r->at += n;
    return value; /* not reference-counted: no need to release them */
}

/* `"name": value` into an object; false: give up. */
static bool
read_member(struct reader *r, json_t *object)
{
    char        name[256];
    const char *text;
    size_t      n_bytes;
    size_t      n_before = json_object_size(object);

    if (!read_text(r, &text, &n_bytes) || n_bytes >= sizeof name)
        return false;
    memcpy(name, text, n_bytes);
    name[n_bytes] = '\0';
    r->at         = il__lex_space(r->at, r->end);
    if (r->at == r->end || *r->at != ':')
        return false;
    r->at++;
    return json_object_set_new_nocheck(object, name, read_value(r)) == 0 &&
           json_object_size(object) == n_before + 1; /* else it was there */
}

static bool
read_element(struct reader *r, json_t *array)
{
    return json_array_append_new(array, read_value(r)) == 0;
}

/* The content between the brackets; `into` is consumed on failure. */
static json_t *
read_nested(struct reader *r, json_t *into, char close)
{
    bool good = into != NULL && ++r->depth <= WIRE_DEPTH_MAX && ++r->n_values <= r->n_values_max;

    r->at = il__lex_space(r->at + 1, r->end);
    if (good && r->at < r->end && *r->at == close) {
        r->at++;
        r->depth--;
        return into;
    }
    while (good) {
        good  = close == '}' ? read_member(r, into) : read_element(r, into);
        r->at = il__lex_space(r->at, r->end);
        good  = good && r->at < r->end;
        if (!good || *r->at != ',')
            break;
        good  = ++r->n_values <= r->n_values_max;
        r->at = il__lex_space(r->at + 1, r->end);
    }
    if (good && *r->at == close) {
        r->at++;
        r->depth--;
        return into;
    }
    json_decref(into);
    return NULL;
}

static json_t *
read_value(struct reader *r)
{
    const char *text;
    size_t      n_bytes;

    r->at = il__lex_space(r->at, r->end);
    if (r->at == r->end)
        return NULL;
    switch (*r->at) {
    case '{':
        return read_nested(r, json_object(), '}');
    case '[':
        return read_nested(r, json_array(), ']');
    case '"':
        return read_text(r, &text, &n_bytes) ? json_stringn_nocheck(text, n_bytes) : NULL;
    case 't':
        return read_word(r, "true", json_true());
    case 'f':
        return read_word(r, "false", json_false());
    case 'n':
        return read_word(r, "null", json_null());
    default:
        return read_number(r);
    }
}

static json_t *
read_all(const char *text, size_t n_bytes, size_t n_values_max, bool exact)
{
    struct reader r = { .at           = text,
                        .end          = text + n_bytes,
                        .n_values     = 1,
                        .n_values_max = n_values_max,
                        .exact        = exact };

    il__buf_init(&r.unescaped, n_bytes);
    json_t *value = read_value(&r);
    il__buf_release(&r.unescaped);
    if (value != NULL && il__lex_space(r.at, r.end) != r.end) {
        json_decref(value);
        value = NULL;
    }
    return value;
}

static il_status
load(const char *text, size_t n_bytes, size_t n_values_max, bool exact, json_t **ret,
     il_error *reterr)
{
    json_error_t why;

    if (n_bytes == 0)
        return il__error_set(reterr, IL_INVAL, "empty body, expected JSON");
    json_t *value = read_all(text, n_bytes, n_values_max, exact);
    if (value == NULL) {
        il_status st = check_shape(text, n_bytes, n_values_max, reterr);
        if (st != IL_OK)
            return st;
        value = json_loadb(text, n_bytes, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
        if (value == NULL)
            return refuse(&why, text, n_bytes, reterr);
        if (exact) { /* jansson has made doubles of its numbers */
            json_decref(value);
            return il__error_set(
                reterr, IL_INVAL,
                "JSON name longer than 255 bytes, or number longer than %d characters",
                LEX_NUMBER_BYTES - 1);
        }
    }
    *ret = value;
    return IL_OK;
}

/* Tables are nested, never recursive. */
static bool
has_decimals(const struct wire_object *o)
{
    for (size_t i = 0; o != NULL && i < o->n_fields; i++) {
        if (o->fields[i].kind == WIRE_DECIMAL || has_decimals(o->fields[i].object))
            return true;
    }
    return false;
}

il_status
il__wire_load_for(const struct wire_object *o, const char *text, size_t n_bytes, json_t **ret,
                  il_error *reterr)
{
    return load(text, n_bytes, WIRE_VALUES_MAX, has_decimals(o), ret, reterr);
}

il_status
il__wire_load_answer(const char *text, size_t n_bytes, json_t **ret, il_error *reterr)
{
    return load(text, n_bytes, SIZE_MAX, false, ret, reterr);
}
