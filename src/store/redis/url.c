/*
 * url.c: parses the store URL.
 *
 *   redis://[user:password@]host[:port][,host[:port]…][/db][?options]    rediss: the same with TLS
 *   redis+unix://[user:password@]/path/of/socket[?options]
 *
 * No error message shows the part of the URL before the '@'.
 */
#include "base/error.h"
#include "base/parse.h"
#include "store/redis/redis_internal.h"

#define PORT_DEFAULT "6379"
#define PREFIX_DEFAULT "il"
#define MAX_TTL_S_DEFAULT 60
#define MAX_TTL_S_MAX 86400
#define DB_MAX 65535

static bool
is_word(const char *s, size_t n_max)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_-");

    return n > 0 && n <= n_max && s[n] == '\0';
}

/* Resolve %XX in place. False: not well-formed, or a NUL. */
static bool
decode(char *text)
{
    char *to = text;

    for (const char *from = text; *from != '\0'; from++) {
        if (*from != '%') {
            *to++ = *from;
            continue;
        }
        int byte = il__percent_byte(from);
        if (byte <= 0)
            return false;
        *to++ = (char)byte;
        from += 2;
    }
    *to = '\0';
    return true;
}

/* user:password@, :password@ or password@; moves *rest behind it. */
static il_status
parse_login(struct redis_url *u, char **rest, il_error *reterr)
{
    char *end = *rest + strcspn(*rest, "/?");
    char *at  = memrchr(*rest, '@', (size_t)(end - *rest));

    if (at == NULL)
        return IL_OK;
    *at            = '\0';
    char *user     = *rest;
    char *colon    = strchr(user, ':');
    char *password = colon != NULL ? colon + 1 : user;
    if (colon != NULL)
        *colon = '\0';
    if (!decode(user) || !decode(password))
        return il__error_set(reterr, IL_INVAL, "store URL: malformed user or password (%%XX)");
    u->user     = colon != NULL && user[0] != '\0' ? user : NULL;
    u->password = password;
    *rest       = at + 1;
    return IL_OK;
}

static il_status
bad_host(il_error *reterr)
{
    return il__error_set(reterr, IL_INVAL,
                         "store URL: the address must be host, host:port or [IPv6]:port");
}

/* One host of the list, which is split in place. */
static il_status
parse_host(struct redis_url *u, char *text, il_error *reterr)
{
    char    *port = NULL;
    uint64_t number;

    if (u->n_hosts == REDIS_HOSTS_MAX)
        return il__error_set(reterr, IL_INVAL, "store URL: at most %d hosts", REDIS_HOSTS_MAX);
    if (text[0] == '[') {
        char *end = strchr(text, ']');
        if (end == NULL || (end[1] != '\0' && end[1] != ':'))
            return bad_host(reterr);
        port = end[1] == ':' ? end + 2 : NULL;
        *end = '\0';
        text++;
    } else if ((port = strchr(text, ':')) != NULL) {
        *port++ = '\0';
    }
    if (port != NULL && (!il__parse_u64(port, 65535, &number) || number == 0))
        return bad_host(reterr);
    u->hosts[u->n_hosts].name   = text[0] != '\0' ? text : "localhost";
    u->hosts[u->n_hosts++].port = port != NULL ? port : PORT_DEFAULT;
    return IL_OK;
}

static il_status
parse_db(struct redis_url *u, const char *text, il_error *reterr)
{
    uint64_t number;

    if (!il__parse_u64(text, DB_MAX, &number))
        return il__error_set(reterr, IL_INVAL, "store URL: the database must be a number");
    u->db = (uint32_t)number;
    return IL_OK;
}

static il_status
parse_hosts(struct redis_url *u, char *rest, il_error *reterr)
{
    char     *slash = strchr(rest, '/');
    il_status st    = IL_OK;

    if (slash != NULL) {
        *slash = '\0';
        if (slash[1] != '\0')
            st = parse_db(u, slash + 1, reterr);
    }
    while (st == IL_OK && rest != NULL) {
        char *comma = strchr(rest, ',');
        if (comma != NULL)
            *comma++ = '\0';
        /* An empty host is localhost, but not in a list, where it was probably forgotten. */
        if (rest[0] == '\0' && (comma != NULL || u->n_hosts > 0))
            return il__error_set(reterr, IL_INVAL, "store URL: empty host in the list of hosts");
        st   = parse_host(u, rest, reterr);
        rest = comma;
    }
    return st;
}

static il_status
parse_max_ttl(struct redis_url *u, const char *value, il_error *reterr)
{
    uint64_t seconds;

    if (!il__parse_u64(value, MAX_TTL_S_MAX, &seconds) || seconds == 0)
        return il__error_set(reterr, IL_INVAL, "store URL: max_ttl must be 1 to %d seconds",
                             MAX_TTL_S_MAX);
    u->max_ttl_ms = (int64_t)seconds * 1000;
    return IL_OK;
}

static il_status
set_prefix(struct redis_url *u, const char *value, il_error *reterr)
{
    if (!is_word(value, REDIS_PREFIX_BYTES_MAX))
        return il__error_set(
            reterr, IL_INVAL,
            "store URL: prefix must be 1 to %d characters of a-z, 0-9, '_' and '-'",
            REDIS_PREFIX_BYTES_MAX);
    (void)snprintf(u->tag, sizeof u->tag, "{%s}", value);
    return IL_OK;
}

static il_status
set_file(const char **field, char *value, il_error *reterr)
{
    if (!decode(value) || value[0] == '\0')
        return il__error_set(reterr, IL_INVAL, "store URL: malformed file name");
    *field = value;
    return IL_OK;
}

/* An option that has a few values. */
static il_status
bad_value(const char *option, const char *value, const char *values, il_error *reterr)
{
    return il__error_set(reterr, IL_INVAL, "store URL: %s=%.40s: the value must be %s", option,
                         value, values);
}

static il_status
set_classic(struct redis_url *u, const char *value, il_error *reterr)
{
    if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
        return bad_value("classic", value, "yes or no", reterr);
    u->classic = value[0] == 'y';
    return IL_OK;
}

static il_status
set_unsafe(struct redis_url *u, const char *value, il_error *reterr)
{
    if (strcmp(value, "eviction") != 0)
        return bad_value("unsafe", value, "eviction", reterr);
    u->evicts = true;
    return IL_OK;
}

static il_status
parse_option(struct redis_url *u, char *option, il_error *reterr)
{
    char *value = strchr(option, '=');

    if (value == NULL)
        return il__error_set(reterr, IL_INVAL, "store URL: an option must be name=value");
    *value++ = '\0';
    if (strcmp(option, "prefix") == 0)
        return set_prefix(u, value, reterr);
    if (strcmp(option, "max_ttl") == 0)
        return parse_max_ttl(u, value, reterr);
    if (strcmp(option, "db") == 0)
        return parse_db(u, value, reterr);
    if (strcmp(option, "classic") == 0)
        return set_classic(u, value, reterr);
    if (strcmp(option, "unsafe") == 0)
        return set_unsafe(u, value, reterr);
    if (strcmp(option, "clock") == 0 && strcmp(value, "test") == 0)
        return IL_OK; /* handled by il__store_open() */
    if (strcmp(option, "cacert") == 0)
        return set_file(&u->cacert, value, reterr);
    if (strcmp(option, "cert") == 0)
        return set_file(&u->cert, value, reterr);
    if (strcmp(option, "key") == 0)
        return set_file(&u->key, value, reterr);
    return il__error_set(reterr, IL_INVAL,
                         "store URL: unknown option (known: prefix, max_ttl, classic, "
                         "unsafe=eviction, db, cacert, cert, key)");
}

static il_status
parse_options(struct redis_url *u, char *query, il_error *reterr)
{
    while (query != NULL && query[0] != '\0') {
        char *next = strchr(query, '&');
        if (next != NULL)
            *next++ = '\0';
        il_status st = parse_option(u, query, reterr);
        if (st != IL_OK)
            return st;
        query = next;
    }
    return IL_OK;
}

/* Options for files that would not be used are an error: the user expects encryption, or a client
 * certificate. */
static il_status
check_files(const struct redis_url *u, il_error *reterr)
{
    if (!u->tls && (u->cacert != NULL || u->cert != NULL || u->key != NULL))
        return il__error_set(reterr, IL_INVAL,
                             "store URL: cacert, cert and key need TLS; use rediss:");
    if ((u->cert != NULL) != (u->key != NULL))
        return il__error_set(
            reterr, IL_INVAL, "store URL: %s also needs %s",
            u->cert != NULL ? "cert=" : "key=", u->cert != NULL ? "key=" : "cert=");
    return IL_OK;
}

/* How the store is called in messages. */
static void
set_shown(struct redis_url *u, const char *scheme)
{
    if (u->path != NULL)
        (void)snprintf(u->shown, sizeof u->shown, "%s//%s", scheme, u->path);
    else
        (void)snprintf(u->shown, sizeof u->shown, "%s//%s:%s%s/%u", scheme, u->hosts[0].name,
                       u->hosts[0].port, u->n_hosts > 1 ? ",..." : "", u->db);
}

il_status
il__redis_url_parse(struct redis_url *u, const char *scheme, const char *rest, const char *query,
                    il_error *reterr)
{
    bool   is_unix = strcmp(scheme, "redis+unix:") == 0;
    size_t n_rest  = strlen(rest) + 1;
    size_t n_query = query != NULL ? strlen(query) + 1 : 0;
    char  *text    = il__alloc(n_rest + n_query);

    *u = (struct redis_url){ .text       = text,
                             .n_bytes    = n_rest + n_query,
                             .max_ttl_ms = MAX_TTL_S_DEFAULT * 1000 };
    if (text == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a store");
    memcpy(text, rest, n_rest);
    if (query != NULL)
        memcpy(text + n_rest, query, n_query);
    u->tls = strcmp(scheme, "rediss:") == 0;
    (void)snprintf(u->tag, sizeof u->tag, "{%s}", PREFIX_DEFAULT);
    if (strncmp(text, "//", 2) != 0)
        return il__error_set(reterr, IL_INVAL,
                             "store URL must be redis://host:port/db or redis+unix:///path");
    text += 2;
    il_status st = parse_login(u, &text, reterr);
    if (st == IL_OK && is_unix) {
        if (text[0] != '/' || !decode(text))
            return il__error_set(reterr, IL_INVAL, "store URL: redis+unix:// needs a path");
        u->path    = text;
        u->n_hosts = 1;
    } else if (st == IL_OK) {
        st = parse_hosts(u, text, reterr);
    }
    if (st == IL_OK)
        st = parse_options(u, query != NULL ? u->text + n_rest : NULL, reterr);
    if (st == IL_OK)
        st = check_files(u, reterr);
    if (st == IL_OK)
        set_shown(u, scheme);
    return st;
}

void
il__redis_url_release(struct redis_url *u)
{
    /* Do not leave this copy of a password in freed memory. (The caller's own string is the
     * caller's business.) */
    if (u->text != NULL)
        explicit_bzero(u->text, u->n_bytes);
    il__free(u->text);
    *u = (struct redis_url){ 0 };
}
