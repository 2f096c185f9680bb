/*
 * source_http.c: a day from an HTTP endpoint (src/net, whose rules apply). {date} and {tenant} in
 * the URL are replaced; messages show it without user, password and query.
 */
#include <strings.h>

#include "apps/usage/source_internal.h"
#include "base/error.h"
#include "net/net.h"

#define CONNECT_MS_MAX 10000
#define REDIRECTS_MAX 5
#define URL_BYTES_MAX 16384

struct call {
    const struct usage_source *s;
    const struct usage_fetch  *f;
    struct il__buf            *out;
};

static void
expand(struct il__buf *b, const char *url, const struct usage_fetch *f)
{
    static const char date[] = "{date}", tenant[] = "{tenant}";

    for (const char *p = url; *p != '\0';) {
        if (strncmp(p, date, sizeof date - 1) == 0) {
            il__buf_add_url(b, f->date);
            p += sizeof date - 1;
        } else if (strncmp(p, tenant, sizeof tenant - 1) == 0) {
            il__buf_add_url(b, f->tenant);
            p += sizeof tenant - 1;
        } else {
            il__buf_addc(b, *p++);
        }
    }
}

static bool
should_stop(void *cookie)
{
    const struct call *c = cookie;

    return usage_fetch_stopped(c->s, c->f);
}

static bool
take(void *cookie, const void *data, size_t n_bytes)
{
    il__buf_add(((struct call *)cookie)->out, data, n_bytes);
    return true;
}

static il_status
add_header(struct net_headers *h, const char *header, il_error *reterr)
{
    il_status st = il__net_headers_add(h, "Accept", "application/json", 16, reterr);

    if (st != IL_OK || header == NULL)
        return st;
    const char     *colon = strchr(header, ':');
    AUTO_FREE char *name  = il__strndup(header, (size_t)(colon - header));
    const char     *value = colon + 1 + strspn(colon + 1, " ");
    if (name == NULL)
        return il__error_nomem(reterr);
    return il__net_headers_add(h, name, value, strlen(value), reterr);
}

il_status
usage_http_check(const struct usage_source_opts *o, il_error *reterr)
{
    AUTO(il__net_headers_release)
    struct net_headers headers = { .list = NULL };
    il_error           err;

    if (strncasecmp(o->url, "http://", 7) != 0 && strncasecmp(o->url, "https://", 8) != 0)
        return il__error_set(reterr, IL_INVAL,
                             "usage.source.url: must begin with http:// or https://");
    if (o->header == NULL)
        return IL_OK;
    il_status st =
        strchr(o->header, ':') != NULL ? add_header(&headers, o->header, &err) : IL_INVAL;
    if (st == IL_INVAL) /* its own message may show a part of the secret */
        return il__error_set(reterr, st,
                             "usage.source.header_variable must contain one line, 'Name: value'");
    return st == IL_OK ? IL_OK : il__error_set(reterr, st, "usage.source.type: %s", err.message);
}

static il_status
send_request(struct call *c, const char *url, struct net_answer *answer, il_error *reterr)
{
    static const struct net_options options;
    AUTO(il__net_headers_release)
    struct net_headers headers = { .list = NULL };
    struct net_conn   *conn    = NULL;
    struct net_request r       = { .method         = "GET",
                                   .url            = url,
                                   .headers        = &headers,
                                   .connect_ms     = MIN(CONNECT_MS_MAX, c->s->o.timeout_ms),
                                   .total_ms       = c->s->o.timeout_ms,
                                   .body_bytes_max = (int64_t)USAGE_RAW_BYTES_MAX,
                                   .redirects_max  = REDIRECTS_MAX,
                                   .should_stop    = should_stop,
                                   .take           = take,
                                   .cookie         = c };

    il_status st = il__net_open(&options, &conn, reterr);
    if (st == IL_OK)
        st = add_header(&headers, c->s->o.header, reterr);
    if (st == IL_OK)
        st = il__net_send(conn, &r, answer, reterr);
    il__net_close(conn);
    return st;
}

il_status
usage_fetch_http(struct usage_source *s, const struct usage_fetch *f, struct il__buf *out,
                 il_error *reterr)
{
    AUTO_BUF struct il__buf url    = { 0 };
    struct net_answer       answer = { .url = "?" };
    struct call             c      = { s, f, out };
    il_error                err;

    il__buf_init(&url, URL_BYTES_MAX);
    expand(&url, s->o.url, f);
    if (url.failed)
        return il__error_set(reterr, IL_INVAL, "the URL is too long");
    il_status st = send_request(&c, il__buf_str(&url), &answer, &err);
    if (st != IL_OK)
        return il__error_set(reterr, st, "GET %.200s: %.250s", answer.url, err.message);
    if (answer.status < 200 || answer.status > 299)
        return il__error_set(reterr, IL_STATE, "GET %.200s: HTTP status %ld", answer.url,
                             answer.status);
    return IL_OK;
}
