/*
 * head.c: decides whether to accept the head of a request. A head that another parser could read
 * differently (which length, which host, where a line ends) is refused and the connection closed,
 * so requests cannot be smuggled.
 *
 * libmicrohttpd 1.0 detects bare CR and LF, NUL and folded lines itself. Earlier versions do not
 * report them, but the names and values they return still lie in the receive buffer, with the colon
 * and the line end overwritten by NUL. In a strictly formed head each of them starts exactly where
 * the previous one implies, and the total length matches. (One case cannot be told apart there: a
 * line that ends in NUL LF instead of CR LF. No proxy passes a NUL on.)
 */
#include <stdio.h>
#include <strings.h>

#include "base/error.h"
#include "base/parse.h"
#include "http/auth.h"
#include "http/metrics.h"
#include "http/mhd.h"
#include "http/route.h"
#include "http/server.h"
#include "http/ui.h"

#define TARGET_BYTES_MAX 4096
#define BODY_BYTES_UNASKED INT64_C(65536)
#define HEAD_FIELDS_MAX 100
#define HEAD_FIELD_BYTES 80    /* libmicrohttpd's overhead per header, at most */
#define ID_BASE_BYTES 13       /* of http_server.id_base */
#define ANSWER_HEAD_BYTES 1024 /* of our own answer, at most */

/* Headers that may occur only once. */
enum one {
    ONE_HOST,
    ONE_CONTENT_LENGTH,
    ONE_CONTENT_TYPE,
    ONE_TRANSFER_ENCODING,
    ONE_AUTHORIZATION,
    ONE_X_API_KEY,
    ONE_X_REQUEST_ID,
    ONE_IDEMPOTENCY_KEY,
    ONE_EXPECT,
    ONE_CONTENT_ENCODING,
    ONE_COOKIE,
    ONE_X_INTERLOCK_PAGE,
    ONE_X_INTERLOCK_SESSION,
    ONE_COUNT
};
static const struct {
    const char *name;
    size_t      n_bytes;
} one_names[ONE_COUNT] = {
#define ONE(name)             \
    {                         \
        name, sizeof name - 1 \
    }
    [ONE_HOST]                = ONE("Host"),
    [ONE_CONTENT_LENGTH]      = ONE("Content-Length"),
    [ONE_CONTENT_TYPE]        = ONE("Content-Type"),
    [ONE_TRANSFER_ENCODING]   = ONE("Transfer-Encoding"),
    [ONE_AUTHORIZATION]       = ONE("Authorization"),
    [ONE_X_API_KEY]           = ONE("X-API-Key"),
    [ONE_X_REQUEST_ID]        = ONE("X-Request-Id"),
    [ONE_IDEMPOTENCY_KEY]     = ONE("Idempotency-Key"),
    [ONE_EXPECT]              = ONE("Expect"),
    [ONE_CONTENT_ENCODING]    = ONE("Content-Encoding"),
    [ONE_COOKIE]              = ONE("Cookie"),
    [ONE_X_INTERLOCK_PAGE]    = ONE(HTTP_UI_HEADER),
    [ONE_X_INTERLOCK_SESSION] = ONE(HTTP_UI_SESSION_HEADER),
#undef ONE
};

struct head {
    const char *ones[ONE_COUNT]; /* NULL = missing */
    size_t      n_copied;        /* bytes of the pool that libmicrohttpd's copy of cookies takes */
    const char *at;              /* where the next name must start; NULL: not checked */
    unsigned    n_fields;
    const char *wrong; /* NULL = nothing so far */
};

/* ---- syntax ---------------------------------------------------------------------------------- */

/* Characters allowed in a header name (RFC 9110: token). */
static const bool token_bytes[256] = {
    ['0' ... '9'] = true, ['A' ... 'Z'] = true, ['a' ... 'z'] = true, ['!'] = true,  ['#'] = true,
    ['$'] = true,         ['%'] = true,         ['&'] = true,         ['\''] = true, ['*'] = true,
    ['+'] = true,         ['-'] = true,         ['.'] = true,         ['^'] = true,  ['_'] = true,
    ['`'] = true,         ['|'] = true,         ['~'] = true,
};

static bool
is_token(const char *text, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++) {
        if (!token_bytes[(unsigned char)text[i]])
            return false;
    }
    return n_bytes > 0;
}

static bool
is_value(const char *text, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++) {
        unsigned char c = (unsigned char)text[i];
        if ((c < ' ' && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

/* Does the value start where it must, after the name, a colon and blanks? If so, the next name
 * follows its end and CR LF. */
static bool
follows(struct head *h, const char *name, size_t n_name, const char *value, size_t n_value)
{
    const char *p = name + n_name + 1;

    if (name != h->at || value < p)
        return false;
    while (p < value && (*p == ' ' || *p == '\t'))
        p++;
    h->at = value + n_value + 2;
    return p == value;
}

/* libmicrohttpd copies the value of a Cookie header and keeps a header's struct for each cookie. */
static size_t
cookie_bytes(const char *value)
{
    size_t n_cookies = 1;

    for (const char *p = value; *p != '\0'; p++)
        n_cookies += *p == ';';
    return strlen(value) + 1 + n_cookies * HEAD_FIELD_BYTES;
}

static enum MHD_Result
see_field(void *cookie, enum MHD_ValueKind kind UNUSED, const char *name, size_t n_name,
          const char *value, size_t n_value)
{
    struct head *h = cookie;

    if (++h->n_fields > HEAD_FIELDS_MAX)
        return MHD_NO;
    if (value == NULL || !is_token(name, n_name))
        h->wrong = "malformed header name";
    else if (!is_value(value, n_value))
        h->wrong = "header value contains control characters";
    else if (h->at != NULL && !follows(h, name, n_name, value, n_value))
        h->wrong = "malformed request headers";
    for (size_t i = 0; h->wrong == NULL && i < ONE_COUNT; i++) {
        if (n_name != one_names[i].n_bytes || strncasecmp(name, one_names[i].name, n_name) != 0)
            continue;
        if (h->ones[i] != NULL)
            h->wrong = "a header that must be unique is repeated";
        h->ones[i] = value;
        if (i == ONE_COOKIE)
            h->n_copied = cookie_bytes(value);
        break;
    }
    return h->wrong == NULL ? MHD_YES : MHD_NO;
}

static size_t
head_bytes(struct http_request *r)
{
    const union MHD_ConnectionInfo *info =
        il__mhd->MHD_get_connection_info(r->conn, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

    return info != NULL ? info->header_size : 0;
}

/* The request line: METHOD SP TARGET SP VERSION, with exactly one space each. */
static bool
line_is_strict(const struct http_request *r, const char *version)
{
    return r->target == r->method + strlen(r->method) + 1 && version == r->target + r->n_target + 1;
}

/* The client's request id is logged and echoed, so only harmless characters are accepted;
 * otherwise a new id is generated. */
static void
set_id(struct http_request *r, const char *given)
{
    static const char harmless[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    static const char digits[] = "0123456789abcdef";
    size_t            n        = given != NULL ? strlen(given) : 0;
    char             *at       = r->id + ID_BASE_BYTES;
    unsigned          shift    = 60;

    if (n > 0 && n < sizeof r->id && strspn(given, harmless) == n) {
        memcpy(r->id, given, n + 1);
        return;
    }
    /* The server's own part, a dash, and a number in hexadecimal. */
    uint64_t number = ++r->server->n_ids;
    memcpy(r->id, r->server->id_base, ID_BASE_BYTES);
    while (shift > 0 && number >> shift == 0)
        shift -= 4;
    for (;; shift -= 4) {
        *at++ = digits[number >> shift & 15];
        if (shift == 0)
            break;
    }
    *at = '\0';
}

static void
refuse(struct http_request *r, int status, const char *code, const char *why)
{
    if (r->id[0] == '\0')
        set_id(r, NULL);
    r->close = true;
    http_fail(r, status, code, "request", NULL, "%s", why);
}

/* False: the request has been answered. */
static bool
check_form(struct http_request *r, const char *version, struct head *h)
{
    bool strict = http_mhd_strict;

    if (!strict)
        h->at = version + strlen(version) + 2;
    if (!strict && !line_is_strict(r, version))
        h->wrong = "malformed request line";
    else
        /* h holds the result */
        (void)il__mhd->MHD_get_connection_values_n(r->conn, MHD_HEADER_KIND, see_field, h);
    if (h->n_fields > HEAD_FIELDS_MAX) {
        refuse(r, 431, "HEADERS_TOO_LARGE", "more than 100 headers");
        return false;
    }
    /* The head of the answer must fit as well. */
    if (head_bytes(r) + h->n_copied + h->n_fields * HEAD_FIELD_BYTES >
        HTTP_POOL_BYTES - ANSWER_HEAD_BYTES) {
        r->bare = true;
        refuse(r, 431, "HEADERS_TOO_LARGE", "request headers too large");
        return false;
    }
    /* The empty line follows the last field. */
    if (!strict && h->wrong == NULL && h->at + 2 != r->method + head_bytes(r))
        h->wrong = "malformed request headers";
    if (h->wrong == NULL && h->ones[ONE_HOST] == NULL && strcmp(version, "HTTP/1.0") != 0)
        h->wrong = "missing Host header";
    if (h->wrong == NULL && h->ones[ONE_HOST] != NULL && strpbrk(h->ones[ONE_HOST], " \t") != NULL)
        h->wrong = "malformed Host header";
    if (h->wrong != NULL) {
        http_count(r->server, HTTP_COUNT_malformed, 1);
        refuse(r, 400, "BAD_REQUEST", h->wrong);
    }
    return h->wrong == NULL;
}

/* ---- method, target and body ----------------------------------------------------------------- */

static bool
check_target(struct http_request *r)
{
    static const char *const methods[] = { "GET",    "HEAD",  "POST",   "PUT",
                                           "DELETE", "PATCH", "OPTIONS" };
    bool                     known     = false;

    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        known = known || strcmp(r->method, methods[i]) == 0;
    if (!known) {
        refuse(r, 501, "METHOD_UNKNOWN", "unknown method");
        return false;
    }
    if (r->n_target > TARGET_BYTES_MAX) {
        refuse(r, 414, "URI_TOO_LONG", "request target longer than 4096 bytes");
        return false;
    }
    if (r->path[0] != '/') {
        refuse(r, 400, "BAD_REQUEST", "the request target must start with '/'");
        return false;
    }
    for (size_t i = 0; i < r->n_target; i++) {
        unsigned char c = (unsigned char)r->path[i];
        if ((c <= ' ' || c >= 0x7f) && !(c == '\0' && r->path + i + 1 == r->query)) {
            refuse(r, 400, "BAD_REQUEST",
                   "the request target contains characters that must be escaped");
            return false;
        }
    }
    return true;
}

static bool
is_json(const char *type)
{
    size_t n = strcspn(type, "; \t");

    return n == strlen("application/json") && strncasecmp(type, "application/json", n) == 0;
}

/* The length of the body, and whether it may be sent. */
static bool
check_body(struct http_request *r, const struct head *h)
{
    const char *length = h->ones[ONE_CONTENT_LENGTH];
    size_t      n      = 0;

    if (h->ones[ONE_TRANSFER_ENCODING] != NULL) {
        refuse(r, 411, "LENGTH_REQUIRED",
               "a body needs Content-Length; Transfer-Encoding is not supported");
        return false;
    }
    if (length != NULL) {
        size_t n_digits = strlen(length);
        if (n_digits == 0 || strspn(length, "0123456789") != n_digits) {
            refuse(r, 400, "BAD_REQUEST", "Content-Length is not a number");
            return false;
        }
        for (; *length != '\0'; length++)
            n = n > SIZE_MAX / 100 ? SIZE_MAX / 100 : n * 10 + (size_t)(*length - '0');
    }
    r->n_expected = n;
    if (h->ones[ONE_EXPECT] != NULL && strcasecmp(h->ones[ONE_EXPECT], "100-continue") != 0) {
        refuse(r, 417, "EXPECTATION_FAILED", "the only expectation supported is 100-continue");
        return false;
    }
#ifndef IL_MUTANT_stream_outlived
    /* libmicrohttpd sends the 100 regardless, and accepts no answer while it does. */
    if (h->ones[ONE_EXPECT] != NULL && n == 0) {
        refuse(r, 417, "EXPECTATION_FAILED", "Expect: 100-continue needs a body");
        return false;
    }
#endif
    r->expects = h->ones[ONE_EXPECT] != NULL;
    return true;
}

/* The body limit of the route. A route without a body, or that anyone may call, gets a small
 * limit. */
static int64_t
body_bytes_max(const struct http_request *r)
{
    const struct http_options *o = r->server->o;

    if ((r->route->flags & HTTP_LARGE) != 0)
        return o->body_bytes_max_large;
    return r->route->body != NULL && r->route->permission.role != HTTP_MAY_open
               ? o->body_bytes_max
               : MIN(o->body_bytes_max, BODY_BYTES_UNASKED);
}

static bool
check_size(struct http_request *r, const struct head *h)
{
    int64_t max = body_bytes_max(r);

    if (r->n_expected > (size_t)max) {
        r->close = true;
        http_fail(r, 413, "BODY_TOO_LARGE", "request", NULL,
                  "the body is larger than the limit of %lld bytes", (long long)max);
        return false;
    }
    if (r->n_expected > 0 && h->ones[ONE_CONTENT_ENCODING] != NULL &&
        strcasecmp(h->ones[ONE_CONTENT_ENCODING], "identity") != 0) {
        http_fail(r, 415, "UNSUPPORTED_MEDIA_TYPE", "request", NULL,
                  "compressed bodies are not supported");
        return false;
    }
    if (r->n_expected > 0 &&
        (h->ones[ONE_CONTENT_TYPE] == NULL || !is_json(h->ones[ONE_CONTENT_TYPE]))) {
        http_fail(r, 415, "UNSUPPORTED_MEDIA_TYPE", "request", NULL,
                  "the body must be application/json");
        return false;
    }
    return true;
}

/* A metrics address serves only /metrics, /health and /ready; if one exists, /metrics is served
 * nowhere else. */
static bool
is_served_here(const struct http_request *r)
{
    bool metrics = strcmp(r->path, "/metrics") == 0;

    if (r->c->listener->metrics)
        return metrics || strcmp(r->path, "/health") == 0 || strcmp(r->path, "/ready") == 0;
    return !metrics || r->server->n_listeners == 1;
}

static bool
find_route(struct http_request *r)
{
    const char *allow = NULL;

    if (is_served_here(r))
        r->route = http_route_find(r->method, r->path, &r->mem, r->args, &allow);
    if (r->route != NULL) {
        r->store_text = r->route->store_text;
        return true;
    }
    if (allow != NULL) {
        http_header(r, "Allow", allow);
        http_fail(r, 405, "METHOD_NOT_ALLOWED", "request", NULL, "%s is not allowed here; use %s",
                  r->method, allow);
    } else {
        http_fail(r, 404, "NOT_FOUND", "request", NULL, "no such route: %.80s", r->path);
    }
    return false;
}

/* Other sites can have a browser send our cookie, but not this header (ui.h). */
static bool
check_page(struct http_request *r, const struct head *h)
{
    const char *page = h->ones[ONE_X_INTERLOCK_PAGE];
    bool        sent = page != NULL && strcmp(page, "1") == 0;

    r->is_ui = strncmp(r->path, HTTP_UI_BASE "/", strlen(HTTP_UI_BASE "/")) == 0;
    if (!r->is_ui && (r->route->flags & HTTP_UI_CALL) == 0)
        return true;
    if (r->is_ui)
        r->api_key = r->authorization = NULL; /* the cookie alone decides */
#ifdef IL_MUTANT_page_header_optional
    sent = true;
#endif
    if (!sent)
        http_fail(r, 403, "PAGE_HEADER_MISSING", "auth", NULL,
                  "calls of the admin page need the header " HTTP_UI_HEADER ": 1");
    return sent;
}

void
http_head(struct http_request *r, const char *version)
{
    struct head h = { 0 };

    if (!check_form(r, version, &h))
        return;
    set_id(r, h.ones[ONE_X_REQUEST_ID]);
    r->idempotency_key = h.ones[ONE_IDEMPOTENCY_KEY];
    r->api_key         = h.ones[ONE_X_API_KEY];
    r->authorization   = h.ones[ONE_AUTHORIZATION];
    r->cookie          = h.ones[ONE_COOKIE];
    r->session_key     = h.ones[ONE_X_INTERLOCK_SESSION];
    if (!check_target(r) || !check_body(r, &h) || !find_route(r) || !check_page(r, &h) ||
        !check_size(r, &h))
        return;
    if (r->route->permission.role == HTTP_MAY_open)
        http_request_accept(r);
    else
        http_auth(r, http_request_accept);
}
