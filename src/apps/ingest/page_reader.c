/*
 * page_reader.c: what all parsers of pages share; see page_reader.h.
 */
#include "apps/ingest/page_reader.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

#include "apps/ingest/parse_lap_script.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/parse.h"
#include "data/libsodium.h"

const char *const il__liverc_kinds[LIVERC_KIND_COUNT] = {
    [LIVERC_EVENT] = "event",   [LIVERC_ENTRIES] = "entries", [LIVERC_RACE] = "race",
    [LIVERC_EVENTS] = "events", [LIVERC_TRACKS] = "tracks",
};

const char *const il__liverc_codes[LIVERC_CODE_COUNT] = {
    [LIVERC_OK] = "",
#define X(code, http, status, text) [LIVERC_##code] = #code,
#include "apps/ingest/errors.def"
#undef X
};

/* A text may be longer before it is normalised: indented lines, hidden parts. */
#define RAW_BYTES_MAX (16 * LIVERC_TEXT_BYTES_MAX)

il_status
il__reader_open(struct reader *r, struct liverc_page *page, const struct liverc_source *s,
                enum liverc_code format, il_error *reterr)
{
    il_error err = { 0 };

    *r = (struct reader){ .page = page, .source = s, .format = format, .err = reterr };
    il__buf_init(&r->raw, RAW_BYTES_MAX);
    il__buf_init(&r->text, LIVERC_TEXT_BYTES_MAX);
    page->code = LIVERC_OK;
    if (il__buf_room(&r->raw, RAW_BYTES_MAX) == NULL ||
        il__buf_room(&r->text, LIVERC_TEXT_BYTES_MAX) == NULL)
        return il__error_set(reterr, IL_NOMEM, "page: out of memory");
    il_status st = il__html_parse(&r->html, s->body, s->n_bytes, &err);
    if (st == IL_INVAL)
        return il__reader_fail(r, format, "%s", err.message);
    return st == IL_OK ? IL_OK : il__error_set(reterr, st, "%s", err.message);
}

void
il__reader_release(struct reader *r)
{
    il__html_release(&r->html);
    il__buf_release(&r->raw);
    il__buf_release(&r->text);
}

void
il__liverc_page_release(struct liverc_page *p)
{
    il__arena_free(&p->mem);
    *p = (struct liverc_page){ 0 };
}

il_status
il__reader_finish(struct reader *r)
{
    if (r->no_memory)
        return il__error_set(r->err, IL_NOMEM, "page: out of memory");
    if (r->too_long) {
        r->page->code = LIVERC_VALIDATION_ERROR;
        return il__error_set(r->err, IL_INVAL, "a field is longer than %d bytes",
                             LIVERC_TEXT_BYTES_MAX);
    }
    return IL_OK;
}

il_status
il__reader_fail(struct reader *r, enum liverc_code code, const char *fmt, ...)
{
    char    text[256];
    va_list ap;

    il_status st = il__reader_finish(r);
    if (st != IL_OK) /* then what looks wrong may only be missing */
        return st;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    r->page->code = code;
    return il__error_set(r->err, IL_INVAL, "%s", text);
}

void
il__reader_warn(struct reader *r, const char *fmt, ...)
{
    char    text[256];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (r->page->n_warnings < LIVERC_WARNINGS_MAX)
        r->page->warnings[r->page->n_warnings] = il__reader_keep(r, text);
    r->page->n_warnings++;
}

void *
il__reader_alloc(struct reader *r, size_t n_bytes)
{
    void *p = il__arena_alloc(&r->page->mem, n_bytes);

    if (p != NULL)
        memset(p, 0, n_bytes);
    else
        r->no_memory = true;
    return p;
}

void *
il__reader_append(struct reader *r, void *array, size_t *n, size_t size)
{
    void *item = il__arena_append(&r->page->mem, array, n, size);

    if (item != NULL)
        memset(item, 0, size);
    else
        r->no_memory = true;
    return item;
}

const char *
il__reader_keep(struct reader *r, const char *text)
{
    if (text[0] == '\0')
        return "";
    const char *kept = il__arena_strdup(&r->page->mem, text);
    if (kept == NULL)
        r->no_memory = true;
    return kept != NULL ? kept : "";
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* Normalise a part of r->raw into r->text. */
static void
normalise(struct reader *r, const char *from, size_t n_bytes)
{
    if (!il__liverc_normalise(from, n_bytes, &r->text))
        r->no_memory = true;
}

static void
gather(struct reader *r, const xmlNode *n, const char *without)
{
    il__buf_clear(&r->raw);
    if (n != NULL)
        il__html_text(n, without, &r->raw);
}

/* The scratch buffers have their full size from the start, so one that failed is full. */
static const char *
keep_text(struct reader *r)
{
    r->too_long |= r->raw.failed || r->text.failed;
    return il__reader_keep(r, il__buf_str(&r->text));
}

const char *
il__reader_peek(struct reader *r, const xmlNode *n, const char *without)
{
    gather(r, n, without);
    normalise(r, il__buf_str(&r->raw), r->raw.n_bytes);
    return il__buf_str(&r->text);
}

const char *
il__reader_text(struct reader *r, const xmlNode *n, const char *without)
{
    (void)il__reader_peek(r, n, without);
    return keep_text(r);
}

const char *
il__reader_first_line(struct reader *r, const xmlNode *n, const char *without)
{
    gather(r, n, without);
    for (const char *line = il__buf_str(&r->raw); *line != '\0';) {
        size_t n_bytes = strcspn(line, "\n");
        normalise(r, line, n_bytes);
        if (r->text.n_bytes > 0)
            return keep_text(r);
        line += n_bytes + (line[n_bytes] == '\n' ? 1 : 0);
    }
    return "";
}

const char *
il__reader_clean(struct reader *r, const char *text)
{
    il__buf_clear(&r->raw);
    il__buf_adds(&r->raw, text);
    normalise(r, il__buf_str(&r->raw), r->raw.n_bytes);
    return keep_text(r);
}

const char *
il__reader_upper(struct reader *r, const char *text)
{
    il__buf_clear(&r->raw);
    il__liverc_upper(text, &r->text);
    return keep_text(r);
}

/* ---- links ----------------------------------------------------------------------------------- */

/* Compare the value of p= with a name; an underscore may be written as %5F. */
static bool
is_page(const char *value, const char *name)
{
    for (; *name != '\0'; name++) {
        if (*name == '_' && strncasecmp(value, "%5f", 3) == 0)
            value += 3;
        else if (*value++ != *name)
            return false;
    }
    return *value == '\0' || *value == '&' || *value == '#';
}

/* The value of a parameter of the query, up to the next & or #; NULL = not there. */
static const char *
parameter(const char *href, const char *name)
{
    size_t n = strlen(name);

    for (const char *at = strchr(href, '?'); at != NULL; at = strpbrk(at, "&;")) {
        at++;
        if (strncmp(at, name, n) == 0 && at[n] == '=')
            return at + n + 1;
    }
    return NULL;
}

const char *
il__reader_link_id(struct reader *r, const char *href, const char *page)
{
    char        id[LIVERC_ID_BYTES_MAX + 1];
    const char *p     = href != NULL ? parameter(href, "p") : NULL;
    const char *value = p != NULL && is_page(p, page) ? parameter(href, "id") : NULL;
    size_t      n     = value != NULL ? strspn(value, "0123456789") : 0;

    if (n == 0 || n > LIVERC_ID_BYTES_MAX || isalpha((unsigned char)value[n]))
        return NULL;
    memcpy(id, value, n);
    id[n]            = '\0';
    const char *kept = il__reader_keep(r, id);
    return kept[0] != '\0' ? kept : NULL;
}

il_status
il__reader_id(struct reader *r, const char *const *pages, const char **ret)
{
    const xmlNode *top   = il__html_top(&r->html);
    const char    *given = r->source->id;
    const char    *found = NULL;

    for (const xmlNode *n = il__html_next(top, top); n != NULL && found == NULL;
         n                = il__html_next(top, n)) {
        const char *href = il__html_attribute(n, "href");
        for (size_t i = 0; href != NULL && pages[i] != NULL && found == NULL; i++)
            found = il__reader_link_id(r, href, pages[i]);
    }
    if (given != NULL && found != NULL && strcmp(given, found) != 0)
        return il__reader_fail(r, LIVERC_VALIDATION_ERROR,
                               "expected the page of id %.20s, got that of %s", given, found);
    *ret = found != NULL ? found : given != NULL ? il__reader_keep(r, given) : NULL;
    return IL_OK;
}

/* ---- digests --------------------------------------------------------------------------------- */

void
il__liverc_digest(const void *data, size_t n_bytes, char out[LIVERC_DIGEST_BYTES])
{
    unsigned char hash[crypto_hash_sha256_BYTES];

    CHECK(il__sodium != NULL);
    CHECK(il__sodium->crypto_hash_sha256(hash, data, n_bytes) == 0);
    il__hex_print(hash, sizeof hash, out);
}

void
il__liverc_synthetic_id(const char *slug, const char *upper_name, const char *car_number,
                        char out[LIVERC_DRIVER_ID_BYTES])
{
    char digest[LIVERC_DIGEST_BYTES];
    char text[2 * LIVERC_TEXT_BYTES_MAX + 512]; /* a slug has at most 253 bytes */

    int n = snprintf(text, sizeof text, "%.253s.liverc.com|%s%s%s", slug, upper_name,
                     car_number != NULL ? "|" : "", car_number != NULL ? car_number : "");
    CHECK(n > 0 && (size_t)n < sizeof text);
    il__liverc_digest(text, (size_t)n, digest);
    (void)snprintf(out, LIVERC_DRIVER_ID_BYTES, "synthetic-%.16s", digest);
}
