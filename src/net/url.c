/*
 * url.c: request URLs: which are accepted, which parts may be shown, and whether two have the same
 * origin. See net.h for the rules.
 */
#include <stdio.h>
#include <strings.h>

#include "base/error.h"
#include "base/parse.h"
#include "net/net_internal.h"

static const CURLUPart place_parts[NET_PLACE_PARTS] = { CURLUPART_SCHEME, CURLUPART_HOST,
                                                        CURLUPART_PORT };

static char *
part(CURLU *u, CURLUPart which, unsigned flags)
{
    char *text = NULL;

    return il__curl->curl_url_get(u, which, &text, flags) == CURLUE_OK ? text : NULL;
}

static void
free_part(char **text)
{
    if (*text != NULL)
        il__curl->curl_free(*text);
    *text = NULL;
}

static void
free_url(CURLU **u)
{
    if (*u != NULL)
        il__curl->curl_url_cleanup(*u);
}

/* No user, no password, no query. */
static void
show(CURLU *u, char out[NET_URL_BYTES])
{
    char AUTO(free_part) *scheme = part(u, CURLUPART_SCHEME, 0);
    char AUTO(free_part) *host   = part(u, CURLUPART_HOST, 0);
    char AUTO(free_part) *port   = part(u, CURLUPART_PORT, 0);
    char AUTO(free_part) *path   = part(u, CURLUPART_PATH, 0);

    (void)snprintf(out, NET_URL_BYTES, "%s://%s%s%s%s", scheme != NULL ? scheme : "?",
                   host != NULL ? host : "?", port != NULL ? ":" : "", port != NULL ? port : "",
                   path != NULL ? path : "/");
}

/* The character at *at, percent-decoded; *at is advanced past it. */
static char
next_char(const char **at)
{
    int  byte = il__percent_byte(*at);
    char c    = byte >= 0 ? (char)byte : **at;

    *at += byte >= 0 ? 3 : 1;
    return c;
}

/*
 * Is a path segment "." or ".."? Servers would leave the folder that the URL names. Separators may
 * be encoded, as those in a pipeline's parameter always are: some servers decode before splitting,
 * some treat a backslash as a slash, and some end a segment at a semicolon.
 */
static bool
climbs(const char *path)
{
    const char *at = path;

#ifdef IL_MUTANT_url_climbs
    return false;
#endif
    do {
        size_t n_dots = 0, n_others = 0;
        char   c = '.';
        while (*at != '\0' && (c = next_char(&at)) != '/' && c != '\\' && c != ';') {
            n_dots += c == '.';
            n_others += c != '.';
        }
        if (n_others == 0 && (n_dots == 1 || n_dots == 2))
            return true;
    } while (*at != '\0');
    return false;
}

il_status
il__net_url_parse(struct net_url *ret, const char *text, bool is_redirect, il_error *reterr)
{
    CURLU AUTO(free_url) *u = il__curl->curl_url();

    *ret = (struct net_url){ .shown = "?" };
    if (u == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a URL");
    /* Unmodified: libcurl would resolve ".." before we see it. An invalid URL is not shown: any
     * part of it may be secret. */
    if (il__curl->curl_url_set(u, CURLUPART_URL, text, is_redirect ? 0 : CURLU_PATH_AS_IS) !=
        CURLUE_OK)
        return il__error_set(reterr, IL_INVAL,
                             is_redirect ? "redirect to an invalid URL" : "invalid URL");
    show(u, ret->shown);
    for (size_t i = 0; i < NET_PLACE_PARTS; i++)
        ret->place[i] = part(u, place_parts[i], CURLU_DEFAULT_PORT);
    const char *scheme = ret->place[0] != NULL ? ret->place[0] : "";
    if (!is_redirect &&
        (ret->place[1] == NULL || (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0)))
        return il__error_set(reterr, IL_INVAL, "the URL must start with http:// or https://");
    char AUTO(free_part) *path = part(u, CURLUPART_PATH, 0);
    if (!is_redirect && path != NULL && climbs(path))
        return il__error_set(reterr, IL_INVAL, "the path must not contain '.' or '..' segments");
    ret->user     = part(u, CURLUPART_USER, CURLU_URLDECODE);
    ret->password = part(u, CURLUPART_PASSWORD, CURLU_URLDECODE);
    /* Removing a part cannot fail. */
    (void)il__curl->curl_url_set(u, CURLUPART_USER, NULL, 0);
    (void)il__curl->curl_url_set(u, CURLUPART_PASSWORD, NULL, 0);
    (void)il__curl->curl_url_set(u, CURLUPART_FRAGMENT, NULL, 0);
    ret->text = part(u, CURLUPART_URL, 0);
    return ret->text != NULL ? IL_OK : il__error_set(reterr, IL_NOMEM, "out of memory for a URL");
}

void
il__net_url_release(struct net_url *u)
{
    free_part(&u->text);
    for (size_t i = 0; i < NET_PLACE_PARTS; i++)
        free_part(&u->place[i]);
    free_part(&u->user);
    free_part(&u->password);
}

bool
il__net_url_same_place(const struct net_url *a, const struct net_url *b)
{
    for (size_t i = 0; i < NET_PLACE_PARTS; i++) {
        if (a->place[i] == NULL || b->place[i] == NULL || strcasecmp(a->place[i], b->place[i]) != 0)
            return false;
    }
    return true;
}

void
il__net_url_show(const char *url, char out[NET_URL_BYTES])
{
    struct net_url at;
    il_error       ignored;

    IGNORE(il__net_url_parse(&at, url, false, &ignored)); /* at.shown is set in any case */
    memcpy(out, at.shown, sizeof at.shown);
    il__net_url_release(&at);
}
