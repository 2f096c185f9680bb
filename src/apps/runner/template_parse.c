/*
 * template_parse.c: finds the parameters in a text; the contract is in template.h. Nothing is
 * substituted here.
 *
 * The SQL parser knows the quoting of PostgreSQL and SQLite. If it ever took quoted text for
 * unquoted or vice versa, a statement would get a placeholder in the wrong place and the database
 * would refuse it: values never become part of the text.
 */
#include "apps/runner/template.h"

static bool
is_alpha(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Characters that may be part of an SQL identifier, including non-ASCII. */
static bool
is_word(char c)
{
    return is_alpha(c) || is_digit(c) || c == '$' || (c & 0x80) != 0;
}

static size_t
name_bytes(const char *s)
{
    size_t n = 0;

    if (!is_alpha(s[0]))
        return 0;
    while (is_alpha(s[n]) || is_digit(s[n]))
        n++;
    return n <= TEMPLATE_NAME_BYTES_MAX ? n : 0;
}

bool
il__template_is_name(const char *text, size_t n_bytes)
{
    return n_bytes > 0 && name_bytes(text) == n_bytes;
}

/* {name} or {{name}} at a brace: its length, and the piece; 0 = neither. */
static size_t
braced(const char *s, struct template_piece *ret)
{
    bool   doubled = s[1] == '{';
    size_t n       = name_bytes(s + 1 + doubled);

    if (n == 0 || s[1 + doubled + n] != '}' || (doubled && s[2 + doubled + n] != '}'))
        return 0;
    if (doubled) { /* {{name}}: the text {name} */
        *ret = (struct template_piece){ TEMPLATE_TEXT, s + 1, n + 2 };
        return n + 4;
    }
    *ret = (struct template_piece){ TEMPLATE_NAME, s + 1, n };
    return n + 2;
}

static enum template_kind
piece(const char **at, size_t n_bytes, enum template_kind kind, struct template_piece *ret)
{
    *ret = (struct template_piece){ kind, *at, n_bytes };
    *at += n_bytes;
    return kind;
}

enum template_kind
il__template_next(const char **at, struct template_piece *ret)
{
    struct template_piece found;
    const char           *s = *at;

    if (*s == '\0')
        return piece(at, 0, TEMPLATE_END, ret);
    size_t n = *s == '{' ? braced(s, ret) : 0;
    if (n > 0) {
        *at += n;
        return ret->kind;
    }
    for (s++; *s != '\0' && (*s != '{' || braced(s, &found) == 0); s++)
        ;
    return piece(at, (size_t)(s - *at), TEMPLATE_TEXT, ret);
}

bool
il__template_has_names(const char *text)
{
    struct template_piece p;

    while (il__template_next(&text, &p) != TEMPLATE_END) {
        if (p.kind == TEMPLATE_NAME)
            return true;
    }
    return false;
}

/* ---- SQL ------------------------------------------------------------------------------------- */

/* From a quote to after its closing quote; a doubled quote does not close it, nor (in E'') one
 * after a backslash. */
static size_t
quoted_bytes(const char *s, bool backslashes)
{
    size_t i = 1;

    for (; s[i] != '\0'; i++) {
        if (backslashes && s[i] == '\\' && s[i + 1] != '\0')
            i++;
        else if (s[i] == s[0] && s[i + 1] == s[0])
            i++;
        else if (s[i] == s[0])
            return i + 1;
    }
    return i;
}

/* Comments of PostgreSQL nest; in SQLite the first end closes. Either way nothing inside is
 * substituted: the longer reading leaves more text untouched. */
static size_t
comment_bytes(const char *s)
{
    size_t depth = 1;
    size_t i     = 2;

    for (; s[i] != '\0' && depth > 0; i++) {
        if (s[i] == '*' && s[i + 1] == '/') {
            depth--;
            i++;
        } else if (s[i] == '/' && s[i + 1] == '*') {
            depth++;
            i++;
        }
    }
    return i;
}

/* $tag$ … $tag$; 0 = not one. */
static size_t
dollar_bytes(const char *s)
{
    size_t n = 1;

    if (is_digit(s[1]))
        return 0;
    while (is_alpha(s[n]) || is_digit(s[n]) || (s[n] & 0x80) != 0)
        n++;
    if (s[n] != '$')
        return 0;
    n++;
    for (const char *p = s + n; *p != '\0'; p++) {
        if (*p == '$' && strncmp(p, s, n) == 0)
            return (size_t)(p - s) + n;
    }
    return strlen(s);
}

/* The length of the quoted text or comment at s; 0 = neither. */
static size_t
region_bytes(const char *start, const char *s)
{
    char before  = s > start ? s[-1] : ' ';
    char before2 = s > start + 1 ? s[-2] : ' ';

    switch (*s) {
    case '\'':
        return quoted_bytes(s, (before == 'E' || before == 'e') && !is_word(before2));
    case '"':
    case '`':
        return quoted_bytes(s, false);
    case '-':
        return s[1] == '-' ? strcspn(s, "\n") : 0;
    case '/':
        return s[1] == '*' ? comment_bytes(s) : 0;
    case '$':
        return is_word(before) ? 0 : dollar_bytes(s);
    default:
        return 0;
    }
}

static bool
is_placeholder(const char *start, const char *s)
{
    return s[0] == '$' && is_digit(s[1]) && (s == start || !is_word(s[-1]));
}

enum template_kind
il__template_next_sql(const char *start, const char **at, struct template_piece *ret)
{
    struct template_piece found;
    const char           *s = *at;

    if (*s == '\0')
        return piece(at, 0, TEMPLATE_END, ret);
    size_t n = region_bytes(start, s);
    if (n > 0)
        return piece(at, n, TEMPLATE_QUOTED, ret);
    if (is_placeholder(start, s))
        return piece(at, 1 + strspn(s + 1, "0123456789"), TEMPLATE_PLACEHOLDER, ret);
    n = *s == '{' ? braced(s, ret) : 0;
    if (n > 0) {
        *at += n;
        return ret->kind;
    }
    for (s++; *s != '\0' && region_bytes(start, s) == 0 && !is_placeholder(start, s) &&
              (*s != '{' || braced(s, &found) == 0);
         s++)
        ;
    return piece(at, (size_t)(s - *at), TEMPLATE_TEXT, ret);
}
