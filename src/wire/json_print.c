/*
 * json_print.c: prints JSON values: strings, numbers, nested values; base64. Prints straight into a
 * buffer: a server response must not cost more than the op it reports. jansson does the parsing
 * (parse.c).
 */
#include "wire/json.h"

#include <stdio.h>

#include "wire/lex.h"

/* ---- numbers and strings --------------------------------------------------------------------- */

void
il__json_add_int(struct il__buf *b, int64_t number)
{
    char     digits[24];
    char    *at   = digits + sizeof digits;
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;

    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (number < 0)
        *--at = '-';
    il__buf_add(b, at, (size_t)(digits + sizeof digits - at));
}

static void
add_escape(struct il__buf *b, char c)
{
    static const char hex[]   = "0123456789abcdef";
    char              text[6] = { '\\', 'u', '0', '0', hex[(unsigned char)c >> 4], hex[c & 15] };

    switch (c) {
    case '"':
    case '\\':
        text[1] = c;
        break;
    case '\n':
        text[1] = 'n';
        break;
    case '\t':
        text[1] = 't';
        break;
    case '\r':
        text[1] = 'r';
        break;
    default:
        il__buf_add(b, text, 6);
        return;
    }
    il__buf_add(b, text, 2);
}

void
il__json_add_string(struct il__buf *b, const char *text, size_t n_bytes)
{
    il__buf_addc(b, '"');
    for (size_t i = 0; i < n_bytes;) {
        size_t n = il__lex_plain(text + i, n_bytes - i);
        if (n == 0 && (unsigned char)text[i] >= 0x80)
            n = il__lex_utf8(text + i, n_bytes - i);
        if (n > 0) {
            il__buf_add(b, text + i, n);
            i += n;
        } else if ((unsigned char)text[i] >= 0x80) {
            il__buf_adds(b, "\\ufffd");
            i++;
        } else {
            add_escape(b, text[i]);
            i++;
        }
    }
    il__buf_addc(b, '"');
}

/* ---- a value inside of a value --------------------------------------------------------------- */

struct copy {
    struct il__buf *b;
    const char     *at;
    const char     *end;
    int             depth;
};

static bool copy_value(struct copy *c);

static void
skip_space(struct copy *c)
{
    c->at = il__lex_space(c->at, c->end);
}

/* Copy one character if it comes next. */
static bool
copy_char(struct copy *c, char wanted)
{
    if (c->at == c->end || *c->at != wanted)
        return false;
    il__buf_addc(c->b, *c->at++);
    return true;
}

static bool
copy_word(struct copy *c, const char *word)
{
    size_t n = strlen(word);

    if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0)
        return false;
    il__buf_add(c->b, word, n);
    c->at += n;
    return true;
}

/* A string or a number, which ends there. */
static bool
copy_until(struct copy *c, const char *end)
{
    if (end == NULL)
        return false;
    il__buf_add(c->b, c->at, (size_t)(end - c->at));
    c->at = end;
    return true;
}

static bool
copy_string(struct copy *c)
{
    bool escaped;

    return copy_until(c, il__lex_string(c->at, c->end, &escaped));
}

static bool
copy_number(struct copy *c)
{
    bool whole;

    return copy_until(c, il__lex_number(c->at, c->end, &whole));
}

/* The members of an object, or the elements of an array. */
static bool
copy_nested(struct copy *c, char close)
{
    if (++c->depth > WIRE_DEPTH_MAX)
        return false;
    il__buf_addc(c->b, *c->at++);
    skip_space(c);
    if (!copy_char(c, close)) {
        do {
            skip_space(c);
            if (close == '}') {
                if (!copy_string(c))
                    return false;
                skip_space(c);
                if (!copy_char(c, ':'))
                    return false;
            }
            if (!copy_value(c))
                return false;
            skip_space(c);
        } while (copy_char(c, ','));
        if (!copy_char(c, close))
            return false;
    }
    c->depth--;
    return true;
}

static bool
copy_value(struct copy *c)
{
    skip_space(c);
    if (c->at == c->end)
        return false;
    switch (*c->at) {
    case '{':
        return copy_nested(c, '}');
    case '[':
        return copy_nested(c, ']');
    case '"':
        return copy_string(c);
    case 't':
        return copy_word(c, "true");
    case 'f':
        return copy_word(c, "false");
    case 'n':
        return copy_word(c, "null");
    default:
        return copy_number(c);
    }
}

bool
il__json_add_value(struct il__buf *b, const char *text, size_t n_bytes, bool only_nested)
{
    struct copy c       = { b, text, text + n_bytes, 0 };
    size_t      n_begin = b->n_bytes;

    skip_space(&c);
    if (c.at == c.end || (only_nested && *c.at != '{' && *c.at != '['))
        return false;
    if (copy_value(&c)) {
        skip_space(&c);
        if (c.at == c.end)
            return true;
    }
    if (!b->failed) {
        b->n_bytes = n_begin;
        if (b->data != NULL)
            b->data[n_begin] = '\0';
    }
    return false;
}

/* ---- loaded values --------------------------------------------------------------------------- */

/* The shortest text that parses to the same number and is not an integer. */
static void
add_real(struct il__buf *b, double number)
{
    char text[40];

    for (int precision = 15; precision <= 17; precision++) {
        (void)snprintf(text, sizeof text, "%.*g", precision, number);
        if (strtod(text, NULL) == number)
            break;
    }
    il__buf_adds(b, text);
    if (strpbrk(text, ".e") == NULL)
        il__buf_adds(b, ".0");
}

static void
add_members(struct il__buf *b, const json_t *object)
{
    const char *name;
    json_t     *member;
    bool        first = true;

    il__buf_addc(b, '{');
    json_object_foreach((json_t *)(uintptr_t)object, name, member)
    {
        if (!first)
            il__buf_addc(b, ',');
        first = false;
        il__json_add_string(b, name, strlen(name));
        il__buf_addc(b, ':');
        il__json_add_loaded(b, member);
    }
    il__buf_addc(b, '}');
}

void
il__json_add_loaded(struct il__buf *b, const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        add_members(b, value);
        break;
    case JSON_ARRAY:
        il__buf_addc(b, '[');
        for (size_t i = 0; i < json_array_size(value); i++) {
            if (i > 0)
                il__buf_addc(b, ',');
            il__json_add_loaded(b, json_array_get(value, i));
        }
        il__buf_addc(b, ']');
        break;
    case JSON_STRING:
        if (il__json_number_text(value) != NULL)
            il__buf_adds(b, il__json_number_text(value));
        else
            il__json_add_string(b, json_string_value(value), json_string_length(value));
        break;
    case JSON_INTEGER:
        il__json_add_int(b, json_integer_value(value));
        break;
    case JSON_REAL:
        add_real(b, json_real_value(value));
        break;
    case JSON_TRUE:
        il__buf_adds(b, "true");
        break;
    case JSON_FALSE:
        il__buf_adds(b, "false");
        break;
    case JSON_NULL:
    default:
        il__buf_adds(b, "null");
    }
}

json_t *
il__json_number(const char *text)
{
    char   raw[LEX_NUMBER_BYTES + 1] = "";
    size_t n                         = strlen(text);

    CHECK(n < LEX_NUMBER_BYTES);
    memcpy(raw + 1, text, n + 1);
    return json_stringn_nocheck(raw, n + 1);
}

const char *
il__json_number_text(const json_t *value)
{
    const char *text = json_string_value(value);

    /* jansson terminates its strings. */
    return text != NULL && text[0] == '\0' && json_string_length(value) > 0 ? text + 1 : NULL;
}

/* ---- base64 ---------------------------------------------------------------------------------- */

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void
il__wire_base64(struct il__buf *b, const void *data, size_t n_bytes)
{
    const unsigned char *in  = data;
    char                *out = il__buf_room(b, (n_bytes + 2) / 3 * 4);

    if (out == NULL)
        return;
    for (size_t i = 0; i < n_bytes; i += 3) {
        size_t   n    = MIN(n_bytes - i, 3);
        uint32_t bits = (uint32_t)in[i] << 16;
        if (n > 1)
            bits |= (uint32_t)in[i + 1] << 8;
        if (n > 2)
            bits |= in[i + 2];
        for (size_t k = 0; k < 4; k++)
            *out++ = k <= n ? base64_digits[bits >> (18 - 6 * k) & 63] : '=';
    }
    *out       = '\0';
    b->n_bytes = (size_t)(out - b->data);
}

static int
base64_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+')
        return 62;
    return c == '/' ? 63 : -1;
}

bool
il__wire_base64_decode(const char *text, size_t n_bytes, unsigned char *out, size_t *ret_bytes)
{
    size_t n_pad = 0;
    size_t n_out = 0;

    if (n_bytes % 4 != 0)
        return false;
    while (n_pad < 2 && n_pad < n_bytes && text[n_bytes - 1 - n_pad] == '=')
        n_pad++;
    for (size_t i = 0; i < n_bytes; i += 4) {
        size_t   n_digits = i + 4 == n_bytes ? 4 - n_pad : 4;
        uint32_t bits     = 0;
        for (size_t k = 0; k < 4; k++) {
            int value = k < n_digits ? base64_value(text[i + k]) : 0;
            if (value < 0)
                return false;
            bits = bits << 6 | (uint32_t)value;
        }
        for (size_t k = 0; k + 1 < n_digits; k++)
            out[n_out++] = (unsigned char)(bits >> (16 - 8 * k));
        /* The unused bits of the last digit must be 0: each value has exactly one encoding. */
        if ((n_digits == 3 && (bits & 0xFF) != 0) || (n_digits == 2 && (bits & 0xFFFF) != 0))
            return false;
    }
    *ret_bytes = n_out;
    return true;
}

void
il__json_set(struct json_maker *m, json_t *object, const char *name, json_t *value)
{
    if (json_object_set_new(object, name, value) != 0)
        m->failed = true;
}

void
il__json_append(struct json_maker *m, json_t *array, json_t *value)
{
    if (json_array_append_new(array, value) != 0)
        m->failed = true;
}
