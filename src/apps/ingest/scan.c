/*
 * scan.c: one pass over a page before libxml2 reads it. Copies tags and text, drops scripts (kept
 * aside), styles, comments and declarations, and refuses tags that libxml2 would need long for: it
 * compares each attribute of a tag with all others. The limits are in html.h.
 *
 * A tag is delimited as libxml2 does it: a quote counts only after an equals sign. A `<` that
 * begins no tag is written as an entity, so that nothing in the copy is a tag that was not checked
 * here.
 */
#include <strings.h>

#include "apps/ingest/html.h"
#include "base/error.h"

struct scanner {
    struct html *h;
    const char  *text;
    size_t       n_bytes;
    size_t       at;
    size_t       n_parts; /* tags, attributes and ampersands */
};

static bool
is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool
is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool
starts(const struct scanner *s, size_t at, const char *with)
{
    size_t n = strlen(with);

    return s->n_bytes - at >= n && strncasecmp(s->text + at, with, n) == 0;
}

/* The index of the next `needle`, which begins with `<` or `-`; the end of the page without one. */
static size_t
find(const struct scanner *s, size_t from, const char *needle)
{
    for (size_t i = from; i < s->n_bytes; i++) {
        const char *p = memchr(s->text + i, needle[0], s->n_bytes - i);
        if (p == NULL)
            break;
        i = (size_t)(p - s->text);
        if (starts(s, i, needle))
            return i;
    }
    return s->n_bytes;
}

/* The index after the next `>`. */
static size_t
past_gt(const struct scanner *s, size_t from)
{
    size_t at = find(s, from, ">");

    return MIN(at + 1, s->n_bytes);
}

static size_t
skip_spaces(const struct scanner *s, size_t at)
{
    while (at < s->n_bytes && is_space(s->text[at]))
        at++;
    return at;
}

static size_t
skip_name(const struct scanner *s, size_t at)
{
    while (at < s->n_bytes && !is_space(s->text[at]) && s->text[at] != '>' && s->text[at] != '/' &&
           s->text[at] != '=')
        at++;
    return at;
}

/* The value after an equals sign. */
static size_t
skip_value(const struct scanner *s, size_t at)
{
    at = skip_spaces(s, at);
    if (at < s->n_bytes && (s->text[at] == '"' || s->text[at] == '\'')) {
        const char *end = memchr(s->text + at + 1, s->text[at], s->n_bytes - at - 1);
        return end != NULL ? (size_t)(end - s->text) + 1 : s->n_bytes;
    }
    while (at < s->n_bytes && !is_space(s->text[at]) && s->text[at] != '>')
        at++;
    return at;
}

/* The index after a start tag whose name ends at `at`; the end of the page if it is cut off. */
static size_t
skip_attributes(const struct scanner *s, size_t at, size_t *ret_n)
{
    *ret_n = 0;
    for (;;) {
        at = skip_spaces(s, at);
        if (at >= s->n_bytes)
            return s->n_bytes;
        if (s->text[at] == '>')
            return at + 1;
        size_t end = skip_name(s, at);
        if (end == at) { /* a stray slash or equals sign */
            at++;
            continue;
        }
        ++*ret_n;
        at           = end;
        size_t equal = skip_spaces(s, at);
        if (equal < s->n_bytes && s->text[equal] == '=')
            at = skip_value(s, equal + 1);
    }
}

/* Keep the content of a script, and go on after its end tag; a style is only skipped. */
static void
take_raw(struct scanner *s, const char *end_tag, bool keep)
{
    struct html *h   = s->h;
    size_t       end = find(s, s->at, end_tag);

    if (keep && end > s->at && h->n_scripts < HTML_SCRIPTS_MAX)
        h->scripts[h->n_scripts++] = (struct html_script){ s->text + s->at, end - s->at };
    s->at = past_gt(s, end);
}

static il_status
take_start_tag(struct scanner *s, il_error *reterr)
{
    size_t begin = s->at;
    size_t name  = skip_name(s, begin + 1);
    size_t n     = 0;
    size_t end   = skip_attributes(s, name, &n);

    if (end - begin > HTML_TAG_BYTES_MAX)
        return il__error_set(reterr, IL_INVAL, "a tag at byte %zu exceeds %d bytes", begin,
                             HTML_TAG_BYTES_MAX);
    if (n > HTML_ATTRIBUTES_MAX)
        return il__error_set(reterr, IL_INVAL, "a tag at byte %zu has more than %d attributes",
                             begin, HTML_ATTRIBUTES_MAX);
    s->n_parts += n;
    s->at = end;
    if (s->text[end - 1] != '>')
        return IL_OK; /* cut off with the page */
    size_t n_name = name - begin - 1;
    if (n_name == 6 && starts(s, begin + 1, "script"))
        take_raw(s, "</script", true);
    else if (n_name == 5 && starts(s, begin + 1, "style"))
        take_raw(s, "</style", false);
    else
        il__buf_add(&s->h->clean, s->text + begin, end - begin);
    return IL_OK;
}

static void
take_end_tag(struct scanner *s)
{
    size_t name = skip_name(s, s->at + 2);

    if (name - s->at <= 64) { /* no element has a longer name */
        il__buf_add(&s->h->clean, s->text + s->at, name - s->at);
        il__buf_addc(&s->h->clean, '>');
    }
    s->at = past_gt(s, name);
}

static il_status
take_tag(struct scanner *s, il_error *reterr)
{
    char next = s->at + 1 < s->n_bytes ? s->text[s->at + 1] : '\0';

    s->n_parts++;
    if (is_letter(next))
        return take_start_tag(s, reterr);
    if (next == '/' && s->at + 2 < s->n_bytes && is_letter(s->text[s->at + 2])) {
        take_end_tag(s);
    } else if (starts(s, s->at, "<!--")) {
        size_t end = find(s, s->at + 4, "-->");
        s->at      = MIN(end + 3, s->n_bytes);
    } else if (next == '!' || next == '?' || next == '/') {
        s->at = past_gt(s, s->at);
    } else {
        il__buf_adds(&s->h->clean, "&lt;");
        s->at++;
    }
    return IL_OK;
}

/* libxml2 looks each entity up in a list. */
static size_t
count_ampersands(const char *text, size_t n_bytes)
{
    const char *end = text + n_bytes;
    size_t      n   = 0;

    while ((text = memchr(text, '&', (size_t)(end - text))) != NULL) {
        text++;
        n++;
    }
    return n;
}

il_status
il__html_scan(struct html *h, const char *text, size_t n_bytes, il_error *reterr)
{
    struct scanner s = { .h = h, .text = text, .n_bytes = n_bytes };

    s.n_parts = count_ampersands(text, n_bytes);
    il__buf_init(&h->clean, n_bytes + 4 * HTML_PARTS_MAX + 1);
    while (s.at < n_bytes) {
        if (s.n_parts > HTML_PARTS_MAX)
            return il__error_set(reterr, IL_INVAL,
                                 "the page has more than %d tags, attributes and entities",
                                 HTML_PARTS_MAX);
        const char *lt  = memchr(text + s.at, '<', n_bytes - s.at);
        size_t      end = lt != NULL ? (size_t)(lt - text) : n_bytes;
        il__buf_add(&h->clean, text + s.at, end - s.at);
        s.at = end;
        if (s.at == n_bytes)
            break;
        il_status st = take_tag(&s, reterr);
        if (st != IL_OK)
            return st;
    }
    if (h->clean.failed)
        return il__error_set(reterr, IL_NOMEM, "page: out of memory");
    return IL_OK;
}
