/*
 * url.c: parses the URL of a store: postgres://… as libpq accepts it, plus a few options of our
 * own, which are removed from the query before libpq sees it:
 *
 *   schema=NAME   schema that holds everything (default: interlock)
 *   clock=test    each batch supplies the time
 *   listen=no     poll instead of listening for wake-ups
 *   listen=URL    listen on this server (percent-encoded), to bypass a pooler that drops
 *                 notifications
 *
 * libpq's message about a malformed URL is never shown, because it may quote the password.
 */
#include <ctype.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/parse.h"
#include "store/postgres/postgres_internal.h"

#define URL_BYTES_MAX 8192
#define SCHEMA_DEFAULT "interlock"

static il_status
bad(il_error *reterr, const char *what)
{
    return il__error_set(reterr, IL_INVAL, "store URL: %s", what);
}

/* A name that needs no quoting in SQL, and can be part of a channel's name. */
static bool
is_schema_name(const char *s, size_t n)
{
    if (n == 0 || n > PG_SCHEMA_BYTES_MAX || isdigit((unsigned char)s[0]) ||
        strncmp(s, "pg_", 3) == 0)
        return false;
    if (n >= PG_ADMIN_BYTES && memcmp(s + n - PG_ADMIN_BYTES, PG_ADMIN, PG_ADMIN_BYTES) == 0)
        return false; /* it belongs to another one */
    for (size_t i = 0; i < n; i++) {
        if (!(s[i] >= 'a' && s[i] <= 'z') && !(s[i] >= '0' && s[i] <= '9') && s[i] != '_')
            return false;
    }
    return true;
}

static void
add_decoded(struct il__buf *to, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int byte = n - i > 2 ? il__percent_byte(s + i) : -1;
        il__buf_addc(to, byte >= 0 ? (char)byte : s[i]);
        i += byte >= 0 ? 2 : 0;
    }
}

static const char *
value_of(const PQconninfoOption *options, const char *keyword)
{
    for (const PQconninfoOption *o = options; o != NULL && o->keyword != NULL; o++) {
        if (strcmp(o->keyword, keyword) == 0)
            return o->val;
    }
    return NULL;
}

/* Is there an '@' that does not end user and password? libpq takes the first one, and none after a
 * '/': the rest of the password would become part of a name, and names are shown. */
static bool
has_stray_at(const char *url)
{
    const char *rest = strstr(url, "://") + 3;
    size_t      n    = strcspn(rest, "?");
    const char *at   = memchr(rest, '@', n);

    if (at == NULL)
        return false;
    return memchr(rest, '/', (size_t)(at - rest)) != NULL ||
           memchr(at + 1, '@', n - (size_t)(at + 1 - rest)) != NULL;
}

/* Numbers, one for each server. */
static bool
is_port(const char *port)
{
    return port == NULL || strspn(port, "0123456789,") == strlen(port);
}

static il_status
parse_server(const char *url, PQconninfoOption **ret, il_error *reterr)
{
    char *why = NULL; /* not for showing */

    if (strncmp(url, "postgres://", 11) != 0 && strncmp(url, "postgresql://", 13) != 0)
        return bad(reterr, "must start with postgres://");
    if (has_stray_at(url))
        return bad(reterr, "percent-encode '/' and '@' in the password (%2F, %40)");
    *ret = il__pq->PQconninfoParse(url, &why);
    il__pq->PQfreemem(why);
    if (*ret == NULL)
        return bad(reterr, "libpq rejects it (an unknown option after '?', or a character that "
                           "must be percent-encoded)");
    if (!is_port(value_of(*ret, "port")))
        return bad(
            reterr,
            "the port is not a number; percent-encode '/' and '@' in the password (%2F, %40)");
    return IL_OK;
}

static il_status
take_listen(struct pg_url *u, const char *value, size_t n, il_error *reterr)
{
    struct il__buf AUTO_BUF url = { 0 };

    if (n == 2 && memcmp(value, "no", 2) == 0) {
        u->no_listen = true;
        return IL_OK;
    }
    il__buf_init(&url, URL_BYTES_MAX);
    add_decoded(&url, value, n);
    if (url.failed)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a store");
    il__pq->PQconninfoFree(u->listen);
    u->listen = NULL;
    return parse_server(il__buf_str(&url), &u->listen, reterr);
}

/* Process one option of the query: ours, or libpq's. */
static il_status
take_option(struct pg_url *u, const char *option, size_t n, struct il__buf *rest, il_error *reterr)
{
#define IS(name) (n >= sizeof name - 1 && memcmp(option, name, sizeof name - 1) == 0)
    if (IS("schema=")) {
        if (!is_schema_name(option + 7, n - 7))
            return bad(reterr, "invalid schema name; use at most 48 lower-case letters, digits and "
                               "'_', not starting with a digit or pg_, nor ending in " PG_ADMIN);
        memcpy(u->schema, option + 7, n - 7);
        u->schema[n - 7] = '\0';
        return IL_OK;
    }
    if (IS("clock="))
        return n == 10 && memcmp(option, "clock=test", 10) == 0
                   ? IL_OK
                   : bad(reterr, "the only supported clock is clock=test");
    if (IS("listen="))
        return take_listen(u, option + 7, n - 7, reterr);
#undef IS
    il__buf_addc(rest, strchr(il__buf_str(rest), '?') == NULL ? '?' : '&');
    il__buf_add(rest, option, n);
    return IL_OK;
}

/* Host, port and database, but neither user nor password. */
static void
show(struct pg_url *u)
{
    const char *host = value_of(u->server, "host");
    const char *port = value_of(u->server, "port");
    const char *name = value_of(u->server, "dbname");

    if (host == NULL)
        host = value_of(u->server, "hostaddr");
    (void)snprintf(u->shown, sizeof u->shown, "postgres://%s%s%s/%s", host != NULL ? host : "",
                   port != NULL ? ":" : "", port != NULL ? port : "", name != NULL ? name : "");
}

il_status
il__pg_url_parse(struct pg_url *u, const char *url, il_error *reterr)
{
    struct il__buf AUTO_BUF rest  = { 0 };
    const char             *query = strchr(url, '?');
    il_status               st    = IL_OK;

    if (strlen(url) > URL_BYTES_MAX)
        return bad(reterr, "too long");
    il__buf_init(&rest, URL_BYTES_MAX);
    il__buf_add(&rest, url, query != NULL ? (size_t)(query - url) : strlen(url));
    (void)snprintf(u->schema, sizeof u->schema, "%s", SCHEMA_DEFAULT);
    while (st == IL_OK && query != NULL) {
        const char *option = query + 1;
        size_t      n      = strcspn(option, "&");
        if (n > 0)
            st = take_option(u, option, n, &rest, reterr);
        query = option[n] == '&' ? option + n : NULL;
    }
    if (st == IL_OK && rest.failed)
        st = il__error_set(reterr, IL_NOMEM, "out of memory for a store");
    if (st == IL_OK)
        st = parse_server(il__buf_str(&rest), &u->server, reterr);
    if (st == IL_OK) {
        (void)snprintf(u->channel, sizeof u->channel, "interlock_%s", u->schema);
        show(u);
    }
    return st;
}

void
il__pg_url_release(struct pg_url *u)
{
    if (u->server != NULL)
        il__pq->PQconninfoFree(u->server);
    if (u->listen != NULL)
        il__pq->PQconninfoFree(u->listen);
    u->server = u->listen = NULL;
}
