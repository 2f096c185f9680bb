/*
 * headers.c: builds the headers of a request; see net.h.
 */
#include "base/buf.h"
#include "base/error.h"
#include "net/curl.h"

#define HEADER_BYTES_MAX 32768

static bool
is_token(const char *name)
{
    static const char others[] = "!#$%&'*+-.^_`|~0123456789"
                                 "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

    return name[0] != '\0' && strspn(name, others) == strlen(name);
}

static il_status
append(struct net_headers *h, const char *line, il_error *reterr)
{
    struct curl_slist *longer = il__curl->curl_slist_append(h->list, line);

    if (longer == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for the headers");
    h->list = longer;
    return IL_OK;
}

/* libcurl would announce a large body ("Expect: 100-continue") and wait for the server's
 * consent. */
static il_status
begin(struct net_headers *h, il_error *reterr)
{
    il_status st = il__net_load(reterr);

    return st == IL_OK && h->list == NULL ? append(h, "Expect:", reterr) : st;
}

il_status
il__net_headers_add(struct net_headers *h, const char *name, const char *value, size_t n_bytes,
                    il_error *reterr)
{
    struct il__buf AUTO_BUF line = { 0 };
    il_status               st   = begin(h, reterr);

    if (st != IL_OK)
        return st;
    if (!is_token(name))
        return il__error_set(reterr, IL_INVAL, "'%.100s' is not a header name", name);
    /* A value with a line break would be another header, or another request. */
    for (size_t i = 0; i < n_bytes; i++) {
        if ((unsigned char)value[i] < ' ' && value[i] != '\t')
            return il__error_set(reterr, IL_INVAL,
                                 "header %.100s: the value contains a control character", name);
    }
    il__buf_init(&line, HEADER_BYTES_MAX);
    il__buf_addf(&line, n_bytes > 0 ? "%s: " : "%s;", name); /* libcurl's form of an empty one */
    il__buf_add(&line, value, n_bytes);
    if (line.failed)
        return il__error_set(reterr, IL_INVAL, "header %.100s is too long", name);
    st = append(h, il__buf_str(&line), reterr);
    explicit_bzero(line.data, line.n_bytes); /* it may be a key */
    return st;
}

il_status
il__net_headers_unless(struct net_headers *h, const char *etag, const char *modified,
                       il_error *reterr)
{
    il_status st = IL_OK;

    if (etag != NULL && etag[0] != '\0')
        st = il__net_headers_add(h, "If-None-Match", etag, strlen(etag), reterr);
    if (st == IL_OK && modified != NULL && modified[0] != '\0')
        st = il__net_headers_add(h, "If-Modified-Since", modified, strlen(modified), reterr);
    return st;
}

void
il__net_headers_release(struct net_headers *h)
{
    if (h->list != NULL)
        il__curl->curl_slist_free_all(h->list);
    h->list = NULL;
}
