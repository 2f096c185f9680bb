/*
 * ui_session.c: signing in to the admin page and out, and whom a cookie stands for. ui.h has the
 * rules.
 */
#include "http/ui.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/parse.h"
#include "http/auth.h"
#include "http/handler.h"
#include "http/log.h"
#include "http/server.h"
#include "wire/table.h"

#define LINK_BYTES_MIN 32
#define LINK_BYTES_MAX 120
_Static_assert(LINK_BYTES_MAX <= DATA_KEY_BYTES_MAX, "a body can have it");
#define LINK_REFUSED "this link has expired or was used already"
#define COOKIE_HEADER_BYTES (HTTP_UI_COOKIE_BYTES + 128)

/* ---- bodies ---------------------------------------------------------------------------------- */

#define STRUCT struct http_ui_login
static const struct wire_field login_in[] = {
    BOUNDED("key", key, TEXT, 0, 1, DATA_KEY_BYTES_MAX, "an API key"),
    BOUNDED("link", link, TEXT, 0, 1, DATA_KEY_BYTES_MAX, "the token of a link that signs in once"),
};
OBJECT(http_in_ui_login, "UiLogin", login_in, 0, "Credentials: an API key or a link token");
#undef STRUCT

#define STRUCT struct http_ui_session
static const struct wire_field session_out[] = {
    F("tenant", tenant, TEXT, WIRE_NOT_NULL, "tenant that owns the key"),
    F("key_id", key_id, TEXT, WIRE_NOT_NULL, "id of the key"),
    F("role", role, TEXT, WIRE_NOT_NULL, "none, read, write, operator or admin"),
    F("permissions", permissions, META, WIRE_NOT_NULL,
      "the role with those below it, and the key's own permissions"),
    F("prefix", prefix, TEXT, 0, "only names that start with this"),
    F("expires_at", expires_at_ms, TIME, 0, "when the session ends"),
    F("version", version, TEXT, WIRE_NOT_NULL, "version of the server"),
    BOOL("demo", 0, is_demo, 1, "the server is the demo's"),
};
OBJECT(http_out_ui_session, "UiSession", session_out, WIRE_ANSWER, "Who is signed in");
#undef STRUCT

/* ---- one-time links -------------------------------------------------------------------------- */

static void
hash_link(struct http_server *s, const char *token, unsigned char ret[DATA_HASH_BYTES])
{
    il__data_key_hash(s->data, token, strlen(token), ret);
}

il_status
http_ui_open(struct http_server *s, il_error *reterr)
{
    const struct http_options *o = s->o;

    if (o->link_token == NULL)
        return IL_OK;
    size_t n = strlen(o->link_token);
    if (n < LINK_BYTES_MIN || n > LINK_BYTES_MAX || !il__is_uuid(o->link_key_id))
        return il__error_set(reterr, IL_INVAL,
                             "INTERLOCK_LINK must be the id of an API key, a space and a token of "
                             "%d to %d characters",
                             LINK_BYTES_MIN, LINK_BYTES_MAX);
    memcpy(s->link.key_id, o->link_key_id, sizeof s->link.key_id);
    hash_link(s, o->link_token, s->link.hash);
    s->link.until_ns = il__clock_boot_ns() + HTTP_UI_LINK_MS * IL__NS_PER_MS;
    return IL_OK;
}

static bool
link_is_live(const struct http_server *s)
{
    return il__clock_boot_ns() < s->link.until_ns;
}

/* The time that the comparison of hashes takes tells nothing about the token. */
static bool
is_link(struct http_server *s, const char *token)
{
    unsigned char hash[DATA_HASH_BYTES];

    hash_link(s, token, hash);
    return link_is_live(s) && memcmp(hash, s->link.hash, sizeof hash) == 0;
}

/* ---- cookies --------------------------------------------------------------------------------- */

/* The __Host- prefix makes browsers insist on Secure, on Path=/, and on this very host. */
static const char *
cookie_name(const struct http_server *s)
{
    return s->o->tls_proxy ? "__Host-interlock" : "interlock";
}

/* Max-Age 0 removes the cookie. */
static void
set_cookie(struct http_request *r, const char *value, int64_t max_age_s)
{
    char *text = http_alloc(r, COOKIE_HEADER_BYTES);

    if (text == NULL)
        return; /* the client is not signed in, and will be told so next time */
    int n = snprintf(text, COOKIE_HEADER_BYTES,
                     "%s=%s; Path=%s; Max-Age=%lld; HttpOnly; %sSameSite=Strict",
                     cookie_name(r->server), value, r->server->o->tls_proxy ? "/" : "/ui",
                     (long long)max_age_s, r->server->o->tls_proxy ? "Secure; " : "");
    CHECK(n > 0);
    CHECK(n < COOKIE_HEADER_BYTES);
    http_header(r, "Set-Cookie", text);
}

static void
sign(struct http_server *s, struct http_ui_cookie *c)
{
    http_ui_cookie_text(c);
    il__data_sign(s->data, c->text, strlen(c->text), c->signature);
}

/* The session of a request. False: the request has been answered. */
static bool
take_cookie(struct http_request *r, struct http_ui_cookie *ret)
{
    const char *header  = r->cookie != NULL ? r->cookie : "";
    const char *value   = NULL;
    size_t      n_bytes = 0;
    size_t      n       = http_ui_cookie_find(header, cookie_name(r->server), &value, &n_bytes);

    if (n == 0) {
        http_ui_refuse(r, "not signed in");
        return false;
    }
    /* Another application on the same host may have set one of them, and controls their order. */
    if (n > 1) {
        http_ui_refuse(
            r, "multiple session cookies; clear the cookies of this site and sign in again");
        return false;
    }
    bool is_ours = http_ui_cookie_parse(value, n_bytes, ret);
#ifndef IL_MUTANT_cookie_not_checked
    is_ours = is_ours &&
              il__data_is_signed(r->server->data, ret->text, strlen(ret->text), ret->signature);
#endif
    if (!is_ours) {
        http_ui_refuse(r, "invalid session; sign in again");
        return false;
    }
    if (ret->ends_ms <= il__clock_wall_ms()) {
        http_ui_refuse(r, "the session has expired; sign in again");
        return false;
    }
    return true;
}

void
http_ui_auth(struct http_request *r, http_fn *then)
{
    struct http_ui_cookie c;

    if (!take_cookie(r, &c))
        return;
    if (r->session_key != NULL && strcmp(r->session_key, c.key_id) != 0) {
        http_ui_refuse(r, "another user signed in with this browser; sign in again");
        return;
    }
    r->session_ends_ms = c.ends_ms;
    http_auth_id(r, c.key_id, then);
}

void
http_ui_refuse(struct http_request *r, const char *message)
{
    http_header(r, "WWW-Authenticate", "Session realm=\"interlock\"");
    http_fail(r, 401, "UNAUTHORIZED", "auth", NULL, "%s", message);
}

/* ---- routes ---------------------------------------------------------------------------------- */

/* ["read","write","admin:usage"]: the roles up to the key's, then its permissions, which have no
 * character that JSON would escape. */
static void
print_permissions(struct il__buf *b, const struct http_caller *c)
{
    const char *comma = "";

    il__buf_addc(b, '[');
    for (int role = DATA_ROLE_READ; role <= (int)c->role; role++) {
        il__buf_addf(b, "%s\"%s\"", comma, il__data_role_name((enum il__data_role)role));
        comma = ",";
    }
    for (const char *p = c->permissions; *p != '\0';) {
        int n = (int)strcspn(p, " ");
        if (n > 0)
            il__buf_addf(b, "%s\"%.*s\"", comma, n, p);
        comma = n > 0 ? "," : comma;
        p += n + (p[n] == ' ');
    }
    il__buf_addc(b, ']');
}

/* Does the server have the routes of `interlock demo`, for which the page has buttons? */
static bool
has_demo(struct http_request *r)
{
    const char *args[HTTP_PATH_ARGS_MAX], *allow;

    return http_route_find("GET", HTTP_BASE "/demo", &r->mem, args, &allow) != NULL;
}

/* Answer with the session of r->caller, who has one. */
static void
say_session(struct http_request *r)
{
    const struct http_caller *c = r->caller;
    AUTO_BUF struct il__buf   permissions;

    il__buf_init(&permissions, 4 * sizeof c->permissions);
    print_permissions(&permissions, c);
    struct http_ui_session s = { .tenant        = c->tenant,
                                 .key_id        = c->key_id,
                                 .role          = il__data_role_name(c->role),
                                 .permissions   = il__buf_str(&permissions),
                                 .prefix        = c->prefix,
                                 .version       = il_version(),
                                 .expires_at_ms = r->session_ends_ms,
                                 .is_demo       = has_demo(r) ? 1 : 0 };
    if (permissions.failed)
        http_fail_nomem(r);
    else
        http_say(r, 200, &http_out_ui_session, &s);
}

/* The key, or the key of the link, is valid. */
static void
signed_in(struct http_request *r)
{
    int64_t               now_ms = il__clock_wall_ms();
    int64_t               key_ms = r->caller->expires_at_ms;
    struct http_ui_cookie c      = { .ends_ms = now_ms + HTTP_UI_SESSION_MS };
    char                  value[HTTP_UI_COOKIE_BYTES];

    if (key_ms != 0)
        c.ends_ms = MIN(c.ends_ms, key_ms);
    memcpy(c.key_id, r->caller->key_id, sizeof c.key_id);
    sign(r->server, &c);
    (void)snprintf(value, sizeof value, "%s.%s", c.text, c.signature); /* (it fits) */
    set_cookie(r, value, MAX((c.ends_ms - now_ms) / 1000, 1));
    il__data_forget(value, sizeof value);
    r->session_ends_ms = c.ends_ms;
    if (http_log_begin(r->server, HTTP_EVENT_ui_signed_in)) {
        http_log_who(r->server, r);
        http_log_text(r->server, "peer", r->peer);
        http_log_end(r->server);
    }
    say_session(r);
}

/* The key of the link is valid. Only now the link is used up: a request that was refused before, by
 * a limit or while the data store is away, may be repeated. Race-free: the loop runs this, so that
 * of several requests only the first finds the link live. */
static void
linked_in(struct http_request *r)
{
    if (!link_is_live(r->server)) {
        http_auth_refuse(r, LINK_REFUSED);
        return;
    }
#ifndef IL_MUTANT_link_used_twice
    r->server->link.until_ns = 0;
#endif
    signed_in(r);
}

void
http_ui_session_create(struct http_request *r)
{
    struct http_ui_login in = { .key = NULL };

    if (!http_take_body(r, &in))
        return;
    if ((in.key == NULL) == (in.link == NULL)) {
        http_fail(r, 400, il_status_name(IL_INVAL), "request", NULL,
                  "exactly one of 'key' and 'link' is required");
        return;
    }
    if (in.key != NULL)
        http_auth_key(r, in.key, signed_in);
    else if (is_link(r->server, in.link))
        http_auth_id(r, r->server->link.key_id, linked_in);
    else
        http_auth_refuse(r, LINK_REFUSED);
}

void
http_ui_session_get(struct http_request *r)
{
    http_ui_auth(r, say_session);
}

/* No need to be signed in: an expired cookie is removed as well. */
void
http_ui_session_remove(struct http_request *r)
{
    set_cookie(r, "", 0);
    il__buf_adds(&r->out, "{}");
    http_answer(r, 200);
}
