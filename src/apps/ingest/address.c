/*
 * address.c: builds the addresses of pages; see address.h.
 */
#include "apps/ingest/address.h"

#include <stdio.h>

#include "base/error.h"

#define SLUG "{slug}"
#define ID_DIGITS "0123456789"
#define SLUG_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789-"

bool
il__address_is_slug(const char *slug)
{
    size_t n = strlen(slug);

    return n >= 1 && n <= ADDRESS_SLUG_BYTES_MAX && strspn(slug, SLUG_LETTERS) == n &&
           slug[0] != '-' && slug[n - 1] != '-';
}

bool
il__address_is_id(const char *id)
{
    size_t n = strlen(id);

    return n >= 1 && n <= LIVERC_ID_BYTES_MAX && strspn(id, ID_DIGITS) == n;
}

/* The bytes of a base URL before its host; 0: it has another scheme. */
static size_t
n_scheme(const char *base)
{
    static const char *const schemes[] = { "http://", "https://" };

    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        if (strncmp(base, schemes[i], strlen(schemes[i])) == 0)
            return strlen(schemes[i]);
    }
    return 0;
}

/* The bytes of a base URL before its path. */
static size_t
n_origin(const char *base)
{
    size_t n = n_scheme(base);

    return n + strcspn(base + n, "/");
}

il_status
il__address_check(const char *base, il_error *reterr)
{
    static const char host_letters[] =
        SLUG_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZ.:[]"; /* of a name, an address, a port */
    static const char path_letters[] = SLUG_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZ._~/";
    const char       *slug           = strstr(base, SLUG);
    char              plain[ADDRESS_BASE_BYTES_MAX + 1];

    if (n_scheme(base) == 0)
        return il__error_set(reterr, IL_INVAL, "the URL must start with http:// or https://");
    if (strlen(base) > ADDRESS_BASE_BYTES_MAX)
        return il__error_set(reterr, IL_INVAL, "URL longer than %d bytes", ADDRESS_BASE_BYTES_MAX);
    if (slug != NULL && strstr(slug + 1, SLUG) != NULL)
        return il__error_set(reterr, IL_INVAL, SLUG " may occur only once");
    (void)snprintf(plain, sizeof plain, "%.*s%s%s",
                   (int)(slug != NULL ? (size_t)(slug - base) : strlen(base)), base,
                   slug != NULL ? "x" : "", slug != NULL ? slug + strlen(SLUG) : "");
    size_t scheme = n_scheme(plain), origin = n_origin(plain);
    if (origin == scheme || strspn(plain + scheme, host_letters) < origin - scheme)
        return il__error_set(reterr, IL_INVAL, "the URL has no valid host");
    if (plain[origin + strspn(plain + origin, path_letters)] != '\0')
        return il__error_set(reterr, IL_INVAL,
                             "the path may contain only letters, digits and . _ ~ -, and no query");
    return IL_OK;
}

/* Where the page is below the base URL. */
static void
add_page(struct il__buf *url, enum liverc_kind kind, const char *id)
{
    static const char *const pages[LIVERC_KIND_COUNT] = {
        [LIVERC_EVENT]   = "view_event",
        [LIVERC_ENTRIES] = "view_entry_list",
        [LIVERC_RACE]    = "view_race_result",
    };

    if (kind == LIVERC_TRACKS)
        il__buf_addc(url, '/');
    else if (kind == LIVERC_EVENTS)
        il__buf_adds(url, "/events");
    else
        il__buf_addf(url, "/results/?p=%s&id=%s", pages[kind], id);
}

static void
take_origin(struct address *a)
{
    size_t scheme = n_scheme(a->url);

    a->n_origin = n_origin(a->url);
    CHECK(a->n_origin - scheme < sizeof a->host);
    (void)snprintf(a->host, sizeof a->host, "%.*s", (int)(a->n_origin - scheme), a->url + scheme);
}

il_status
il__address_of(const char *base, enum liverc_kind kind, const char *slug, const char *id,
               struct address *ret, il_error *reterr)
{
    AUTO_BUF struct il__buf url = { 0 };
    size_t                  n   = strlen(base);
    const char             *at  = strstr(base, SLUG);

    if (kind == LIVERC_TRACKS)
        slug = "live";
    else if (slug == NULL || !il__address_is_slug(slug))
        return il__error_set(reterr, IL_INVAL, "'%.80s' is not a track slug",
                             slug != NULL ? slug : "");
    if (kind != LIVERC_TRACKS && kind != LIVERC_EVENTS && (id == NULL || !il__address_is_id(id)))
        return il__error_set(reterr, IL_INVAL, "'%.80s' is not the id of an event or a race",
                             id != NULL ? id : "");
    if (kind == LIVERC_TRACKS && (at == NULL || (size_t)(at - base) > n_origin(base))) {
        n  = n_origin(base);
        at = NULL;
    }
    while (n > 0 && base[n - 1] == '/')
        n--;
    il__buf_init(&url, ADDRESS_BYTES_MAX);
    if (at != NULL) {
        il__buf_add(&url, base, (size_t)(at - base));
        il__buf_adds(&url, slug);
        at += strlen(SLUG);
        il__buf_add(&url, at, (size_t)(base + n - at));
    } else {
        il__buf_add(&url, base, n);
    }
    add_page(&url, kind, id);
    CHECK(!url.failed || url.n_bytes < ADDRESS_BYTES_MAX); /* the parts are bounded: no memory */
    if (url.failed)
        return il__error_set(reterr, IL_NOMEM, "out of memory for an address");
    (void)snprintf(ret->url, sizeof ret->url, "%s", il__buf_str(&url));
    take_origin(ret);
    return IL_OK;
}

void
il__address_robots(const struct address *of, struct address *ret)
{
    (void)snprintf(ret->url, sizeof ret->url, "%.*s/robots.txt", (int)of->n_origin, of->url);
    take_origin(ret);
}
