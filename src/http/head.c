/*
 * head.c: is the head of a request one that we accept? What another reader of the same bytes could understand differently (which length, which host, where a
 * line ends) is refused and the connection closed: nothing can be smuggled through it.
 *
 * libmicrohttpd 1.0 finds bare CR and LF, NUL and folded lines itself. Earlier ones do not tell, but the names and values that they show
 * are where they were received, with the colon and the end of the line overwritten by NUL: in a strictly formed head each begins exactly where the one
 * before says, and the whole is as long as it should be. (One thing cannot be told apart there: a line that ends in NUL LF instead of CR LF. No proxy
 * passes a NUL on.)
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

#define TARGET_BYTES_MAX 4096
#define BODY_BYTES_UNASKED INT64_C(65536)
#define HEAD_FIELDS_MAX 100
#define HEAD_FIELD_BYTES 80    /* that libmicrohttpd needs for a header beside its text, at most */
#define ID_BASE_BYTES 13       /* of http_server.id_base */
#define ANSWER_HEAD_BYTES 1024 /* of an answer of ours, at most */

/* Headers of which there may be one. */
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
    [ONE_HOST]              = ONE("Host"),
    [ONE_CONTENT_LENGTH]    = ONE("Content-Length"),
    [ONE_CONTENT_TYPE]      = ONE("Content-Type"),
    [ONE_TRANSFER_ENCODING] = ONE("Transfer-Encoding"),
    [ONE_AUTHORIZATION]     = ONE("Authorization"),
    [ONE_X_API_KEY]         = ONE("X-API-Key"),
    [ONE_X_REQUEST_ID]      = ONE("X-Request-Id"),
    [ONE_IDEMPOTENCY_KEY]   = ONE("Idempotency-Key"),
    [ONE_EXPECT]            = ONE("Expect"),
    [ONE_CONTENT_ENCODING]  = ONE("Content-Encoding"),
#undef ONE
};

struct head {
    const char *ones[ONE_COUNT]; /* NULL = not there */
    const char *at;              /* where the next name must be; NULL: it does not matter */
    unsigned    n_fields;
    const char *wrong; /* NULL = nothing so far */
};

/* ---- the form --------------------------------------------------------------------------------------------------------------- */

/* What the name of a header may be made of (RFC 9110: token). */
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

/* Is the value where it must be, behind the name, a colon and blanks? Then the next name is behind its end and CR LF. */
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

static enum MHD_Result
see_field(void *cookie, enum MHD_ValueKind kind UNUSED, const char *name, size_t n_name,
          const char *value, size_t n_value)
{
    struct head *h = cookie;

    if (++h->n_fields > HEAD_FIELDS_MAX)
        return MHD_NO;
    if (value == NULL || !is_token(name, n_name))
        h->wrong = "the name of a header is malformed";
    else if (!is_value(value, n_value))
        h->wrong = "the value of a header has control characters";
    else if (h->at != NULL && !follows(h, name, n_name, value, n_value))
        h->wrong = "the head of the request is malformed";
    for (size_t i = 0; h->wrong == NULL && i < ONE_COUNT; i++) {
        if (n_name != one_names[i].n_bytes || strncasecmp(name, one_names[i].name, n_name) != 0)
            continue;
        if (h->ones[i] != NULL)
            h->wrong = "a header is there twice that may be there once";
        h->ones[i] = value;
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

/* The first line: METHOD SP TARGET SP VERSION, with one blank each. */
static bool
line_is_strict(const struct http_request *r, const char *version)
{
    return r->target == r->method + strlen(r->method) + 1 && version == r->target + r->n_target + 1;
}

/* The client's id goes into the log and back to it, so only what is harmless everywhere; else one of ours. */
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

/* False: it is answered. */
static bool
check_form(struct http_request *r, const char *version, struct head *h)
{
    bool strict = http_mhd_strict;

    if (!strict)
        h->at = version + strlen(version) + 2;
    if (!strict && !line_is_strict(r, version))
        h->wrong = "the first line of the request is malformed";
    else
        (void)il__mhd->MHD_get_connection_values_n(r->conn, MHD_HEADER_KIND, see_field, h); /* h says it all */
    if (h->n_fields > HEAD_FIELDS_MAX) {
        refuse(r, 431, "HEADERS_TOO_LARGE", "the request has more than 100 headers");
        return false;
    }
    /* The answer's head must have room beside it. */
    if (head_bytes(r) + h->n_fields * HEAD_FIELD_BYTES > HTTP_POOL_BYTES - ANSWER_HEAD_BYTES) {
        r->bare = true;
        refuse(r, 431, "HEADERS_TOO_LARGE", "the head of the request is too large");
        return false;
    }
    /* Behind the last field is the empty line. */
    if (!strict && h->wrong == NULL && h->at + 2 != r->method + head_bytes(r))
        h->wrong = "the head of the request is malformed";
    if (h->wrong == NULL && h->ones[ONE_HOST] == NULL && strcmp(version, "HTTP/1.0") != 0)
        h->wrong = "the request has no Host";
    if (h->wrong == NULL && h->ones[ONE_HOST] != NULL && strpbrk(h->ones[ONE_HOST], " \t") != NULL)
        h->wrong = "Host is malformed";
    if (h->wrong != NULL) {
        http_count(r->server, HTTP_COUNT_malformed, 1);
        refuse(r, 400, "BAD_REQUEST", h->wrong);
    }
    return h->wrong == NULL;
}

/* ---- what is asked for ------------------------------------------------------------------------------------------------------- */

static bool
check_target(struct http_request *r)
{
    static const char *const methods[] = { "GET",    "HEAD",  "POST",   "PUT",
                                           "DELETE", "PATCH", "OPTIONS" };
    bool                     known     = false;

    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        known = known || strcmp(r->method, methods[i]) == 0;
    if (!known) {
        refuse(r, 501, "METHOD_UNKNOWN", "the method is not known");
        return false;
    }
    if (r->n_target > TARGET_BYTES_MAX) {
        refuse(r, 414, "URI_TOO_LONG", "the request's target is longer than 4096 bytes");
        return false;
    }
    if (r->path[0] != '/') {
        refuse(r, 400, "BAD_REQUEST", "the request's target must begin with '/'");
        return false;
    }
    for (size_t i = 0; i < r->n_target; i++) {
        unsigned char c = (unsigned char)r->path[i];
        if ((c <= ' ' || c >= 0x7f) && !(c == '\0' && r->path + i + 1 == r->query)) {
            refuse(r, 400, "BAD_REQUEST", "the request's target has characters that must be escaped");
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
               "a body needs Content-Length; Transfer-Encoding is not taken");
        return false;
    }
    if (length != NULL) {
        size_t n_digits = strlen(length);
        if (n_digits == 0 || strspn(length, "0123456789") != n_digits) {
            refuse(r, 400, "BAD_REQUEST", "Content-Length is no number");
            return false;
        }
        for (; *length != '\0'; length++)
            n = n > SIZE_MAX / 100 ? SIZE_MAX / 100 : n * 10 + (size_t)(*length - '0');
    }
    r->n_expected = n;
    if (h->ones[ONE_EXPECT] != NULL && strcasecmp(h->ones[ONE_EXPECT], "100-continue") != 0) {
        refuse(r, 417, "EXPECTATION_FAILED", "only 100-continue can be expected");
        return false;
    }
    r->expects = h->ones[ONE_EXPECT] != NULL;
    return true;
}

/* How large a body the route takes. One that takes none is given little: everybody may ask for /health. */
static int64_t
body_bytes_max(const struct http_request *r)
{
    const struct http_options *o = r->server->o;

    if ((r->route->flags & HTTP_LARGE) != 0)
        return o->body_bytes_max_large;
    return r->route->body != NULL ? o->body_bytes_max : MIN(o->body_bytes_max, BODY_BYTES_UNASKED);
}

static bool
check_size(struct http_request *r, const struct head *h)
{
    int64_t max = body_bytes_max(r);

    if (r->n_expected > (size_t)max) {
        r->close = true;
        http_fail(r, 413, "BODY_TOO_LARGE", "request", NULL,
                  "the body is larger than the %lld bytes that are taken", (long long)max);
        return false;
    }
    if (r->n_expected > 0 && h->ones[ONE_CONTENT_ENCODING] != NULL &&
        strcasecmp(h->ones[ONE_CONTENT_ENCODING], "identity") != 0) {
        http_fail(r, 415, "UNSUPPORTED_MEDIA_TYPE", "request", NULL, "a body must not be compressed");
        return false;
    }
    if (r->n_expected > 0 &&
        (h->ones[ONE_CONTENT_TYPE] == NULL || !is_json(h->ones[ONE_CONTENT_TYPE]))) {
        http_fail(r, 415, "UNSUPPORTED_MEDIA_TYPE", "request", NULL, "a body must be application/json");
        return false;
    }
    return true;
}

/* On an address for metrics only what says how the server is; and there alone, if there is one. */
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
        r->route = il__http_route_find(r->method, r->path, &r->mem, r->args, &allow);
    if (r->route != NULL)
        return true;
    if (allow != NULL) {
        http_header(r, "Allow", allow);
        http_fail(r, 405, "METHOD_NOT_ALLOWED", "request", NULL, "%s is not possible here; %s is",
                  r->method, allow);
    } else {
        http_fail(r, 404, "NOT_FOUND", "request", NULL, "there is no such path");
    }
    return false;
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
    if (!check_target(r) || !check_body(r, &h) || !find_route(r) || !check_size(r, &h))
        return;
    if (r->route->permission == HTTP_MAY_open)
        http_request_accept(r);
    else
        http_auth(r, http_request_accept);
}
