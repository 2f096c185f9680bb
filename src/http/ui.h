/*
 * ui.h: the admin page: its files, and the sessions of people who use it. Used on the loop only.
 *
 * The page calls the routes of /api/v1 below HTTP_UI_BASE, authorised by a cookie instead of an API
 * key. The cookie names a key and the end of the session and is signed (data.h); whether the key is
 * still valid is checked for each request, as if the request carried the key (auth.h). The server
 * keeps nothing of a session, so all servers of a data store accept it, also after a restart.
 *
 * A browser sends cookies with requests that other sites caused. What protects the page from them:
 * SameSite=Strict; the header X-Interlock-Page (HTTP_UI_CALL), which another site's script may only
 * send if we allowed that by CORS, and we never do; and that /api/v1 ignores cookies.
 *
 * The tabs of a browser share one cookie. A page names the key that it shows
 * (HTTP_UI_SESSION_HEADER), so that a tab does nothing in the session of another one.
 */
#ifndef IL_HTTP_UI_H
#define IL_HTTP_UI_H

#include "http/http.h"

#define HTTP_UI_BASE "/ui/api"
#define HTTP_UI_HEADER "X-Interlock-Page"
#define HTTP_UI_SESSION_HEADER "X-Interlock-Session"
#define HTTP_UI_SESSION_MS (INT64_C(12) * 3600 * 1000)
#define HTTP_UI_LINK_MS (INT64_C(10) * 60 * 1000)

/* ---- sessions (ui_session.c) ----------------------------------------------------------------- */

struct http_ui_login {
    const char *key, *link; /* either */
};
struct http_ui_session {
    const char *tenant, *key_id, *role, *permissions /* text of a JSON array */, *prefix, *version;
    int64_t     expires_at_ms;
    uint32_t    is_demo;
};
extern const struct wire_object http_in_ui_login, http_out_ui_session;

/* A token that signs in once, within HTTP_UI_LINK_MS of the start. Kept as its hash. */
struct http_ui_link {
    unsigned char hash[DATA_HASH_BYTES];
    char          key_id[DATA_ID_BYTES];
    int64_t       until_ns; /* 0 = none, or used */
};
/* Take that of the options. */
il_status http_ui_open(struct http_server *s, il_error *reterr) MUST_USE;

/* http_auth() for a request of the page, by its cookie. */
void http_ui_auth(struct http_request *r, http_fn *then);
/* 401: not signed in, or not any more. Not counted as a failed login: a signature cannot be
 * guessed. */
void http_ui_refuse(struct http_request *r, const char *message);

/* ---- cookies (ui_cookie.c) ------------------------------------------------------------------- */

#define HTTP_UI_SIGNED_BYTES (DATA_ID_BYTES + 21)
#define HTTP_UI_COOKIE_BYTES (HTTP_UI_SIGNED_BYTES + DATA_SIGNATURE_BYTES)

/* KEY_ID.ENDS_MS.SIGNATURE */
struct http_ui_cookie {
    char    text[HTTP_UI_SIGNED_BYTES]; /* what is signed: KEY_ID.ENDS_MS */
    char    key_id[DATA_ID_BYTES];
    int64_t ends_ms; /* wall clock */
    char    signature[DATA_SIGNATURE_BYTES];
};
/* Fill in the text to sign, from key_id and ends_ms. */
void http_ui_cookie_text(struct http_ui_cookie *c);
/* Parse a value. False: it has not exactly the form that we print. */
bool http_ui_cookie_parse(const char *value, size_t n_bytes, struct http_ui_cookie *ret);
/* The cookies of this name in a header: their number, and the value of the first. */
size_t http_ui_cookie_find(const char *header, const char *name, const char **ret_value,
                           size_t *ret_bytes);

/* ---- files (ui_files.c) ---------------------------------------------------------------------- */

/* Redirect browsers to the page. False: the client did not ask for HTML before JSON. */
bool http_ui_redirect(struct http_request *r);
/* The weight in thousandths that an Accept header gives to a name; -1: not listed. */
int http_ui_weight(const char *header, const char *name);

#endif
