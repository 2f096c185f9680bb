/*
 * net.h: HTTP client on top of libcurl. Used by the engine behind a server, by http steps and
 * preflight probes, and by the apps ingest and usage, which fetch their data with it.
 *
 *   curl.c     loads libcurl
 *   headers.c  the headers of a request
 *   url.c      URLs: which are accepted, and which parts may be shown
 *   conn.c     a connection and its requests: timeouts, limits, interruption, redirects
 *
 * Rules for every request:
 *
 * - The URL starts with http:// or https://; no segment of its path is "." or "..".
 * - Certificates are verified; $SSL_CERT_FILE names other authorities.
 * - Redirects are followed here and not by libcurl, which would send the headers, possibly with
 *   secrets, to any host the response names. They stay within the scheme, host and port of the
 *   first URL.
 * - Messages show a URL without user, password, query and fragment, and never a header value.
 * - Child processes do not inherit the sockets.
 */
#ifndef IL_NET_NET_H
#define IL_NET_NET_H

#include "base/base.h"

#define NET_URL_BYTES 512                      /* of a URL in messages */
#define NET_ETAG_BYTES 256                     /* a longer one counts as missing */
#define NET_MODIFIED_BYTES 64                  /* the same */
#define NET_TYPE_BYTES 128                     /* the same */
#define NET_HEAD_BYTES_MAX ((size_t)256 << 10) /* of a response, unless the request sets less */

struct curl_slist;
struct net_conn;

/* Load libcurl. IL_OK, or IL_STORE: not installed. Thread-safe. */
il_status il__net_load(il_error *reterr) MUST_USE;

/* ---- headers (headers.c) --------------------------------------------------------------------- */

/* Zero-initialise. Once complete, several connections may use it at the same time. */
struct net_headers {
    struct curl_slist *list;
};

/* Add one; `value` need not be NUL-terminated. IL_OK, IL_INVAL (the name is not a token, or the
 * value contains a control character), IL_NOMEM, IL_STORE (no libcurl). */
il_status il__net_headers_add(struct net_headers *h, const char *name, const char *value,
                              size_t n_bytes, il_error *reterr) MUST_USE;

/* Make the request conditional on a change since the response with these values (NULL or "" =
 * unknown): if unchanged, the status is 304, without a body. */
il_status il__net_headers_unless(struct net_headers *h, const char *etag, const char *modified,
                                 il_error *reterr) MUST_USE;

void il__net_headers_release(struct net_headers *h);

/* ---- connections (conn.c) -------------------------------------------------------------------- */

struct net_options {
    const char *unix_path; /* path of a Unix socket; NULL = TCP */
    bool        http_1_1;  /* do not try HTTP/2 */
    bool        direct;    /* http:// bypasses $http_proxy, which could read the headers */
};

/* A connection; `o` is borrowed for the call. IL_OK, IL_NOMEM, IL_STORE (no libcurl). */
il_status il__net_open(const struct net_options *o, struct net_conn **ret, il_error *reterr)
    MUST_USE;
void il__net_close(struct net_conn *c); /* NULL is fine */

/* All members are borrowed for the call. */
struct net_request {
    const char               *method;
    const char               *url;
    const struct net_headers *headers; /* NULL = none; a request with a body needs some */
    const void               *body;    /* NULL = none */
    size_t                    n_body_bytes;

    int64_t connect_ms; /* time to connect */
    int64_t total_ms;   /* for everything, including redirects */
    int64_t idle_ms;    /* without a byte in either direction; 0 = total_ms */

    size_t  head_bytes_max; /* of a response; 0 = NET_HEAD_BYTES_MAX */
    int64_t body_bytes_max; /* of all responses together; 0 = no limit */

    unsigned redirects_max;          /* 0: return a redirect as the response */
    long     answer_from, answer_to; /* return a redirect with such a status, too */

    /* Should the request stop? Called every 100 ms and on il__net_wake(). NULL = never. */
    bool (*should_stop)(void *cookie);
    /* Receives the response body in pieces; not that of a redirect. False: out of memory. NULL =
     * discard it. */
    bool (*take)(void *cookie, const void *data, size_t n_bytes);
    void *cookie;
};

struct net_answer {
    long     status; /* of the last response; 0 = none */
    unsigned n_redirects;
    int64_t  n_bytes;                      /* of the bodies */
    char     url[NET_URL_BYTES];           /* of the request, safe to show; "?" = no URL */
    char     etag[NET_ETAG_BYTES];         /* ETag, for il__net_headers_unless(); "" = none */
    char     modified[NET_MODIFIED_BYTES]; /* Last-Modified, likewise */
    char     type[NET_TYPE_BYTES];         /* Content-Type; "" = none */
    int64_t  retry_after_s;                /* Retry-After, in seconds from now; 0 = none */
};

/* The URL without password and query, "?" if it is not one. libcurl must be loaded. */
void il__net_url_show(const char *url, char out[NET_URL_BYTES]);

/*
 * Send a request and wait for its response; *ret is always written. The connection stays open for
 * the next request, to any URL. libcurl resends a request if the server has closed such an idle
 * connection: a request that must not be repeated needs a new connection.
 *
 * IL_OK: a response arrived, whatever its status. Otherwise reterr->message has the reason, without
 * method and URL, and it is unknown whether the server has processed the request: IL_CANCELLED
 * (should_stop), IL_TIMEOUT (total_ms, idle_ms), IL_STORE (no connection, or it broke), IL_NOMEM;
 * IL_INVAL (URL or redirect against the rules) and IL_LIMIT (response too large): a retry would
 * fail the same way.
 */
il_status il__net_send(struct net_conn *c, const struct net_request *r, struct net_answer *ret,
                       il_error *reterr) MUST_USE;

/* Make a waiting request call should_stop() at once. Thread-safe, until il__net_close(). */
void il__net_wake(struct net_conn *c);

#endif
