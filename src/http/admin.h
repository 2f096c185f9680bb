/*
 * admin.h: tenants, keys, audit and forced releases over HTTP. The tables below are referenced by
 * routes.def; all of them, inputs included, hold offsets into structs private to admin.c.
 */
#ifndef IL_HTTP_ADMIN_H
#define IL_HTTP_ADMIN_H

#include "http/http.h"

/* Queries and bodies. */
extern const struct wire_object http_in_tenant, http_in_tenant_set, http_in_tenant_page;
extern const struct wire_object http_in_key, http_in_key_page, http_in_key_revoke;
extern const struct wire_object http_in_audit_page, http_in_admin_break;
/* Answers, or items of pages. */
extern const struct wire_object http_out_tenant, http_out_key, http_out_new_key, http_out_revoked,
    http_out_action, http_out_broken;

/* ---- structs behind the tables --------------------------------------------------------------- */

/* Queries of listings. */
struct http_page_in {
    const char *cursor, *tenant, *action;
    uint32_t    limit; /* 0 = 100 */
};
#define HTTP_PAGE_DEFAULT 100
/* Allocate a page plus one extra row, which shows whether there are more. NULL: the request has
 * been answered. */
void *http_page_rows(struct http_request *r, struct http_page_in *page, size_t n_bytes);

/* Restrict the tenant of a listing to the caller's. False: another tenant was asked for; the
 * request has been answered with 403. */
bool http_admin_narrow(struct http_request *r, const char **tenant);

struct http_key_in {
    const char        *tenant, *name, *prefix;
    enum il__data_role role;        /* NONE: not given */
    const void        *permissions; /* a list, or words in a string: the text of either */
    size_t             permissions_bytes;
    int64_t            expires_at_ms, expires_in_ms;
};

struct http_key_out {
    const char *id, *key, *tenant, *name, *role, *permissions /* text of a JSON array */, *prefix;
    int64_t     created_at_ms, expires_at_ms, used_at_ms, revoked_at_ms;
};

struct http_revoke {
    const char *id;
    uint32_t    force, revoked;
};

struct http_action_out {
    uint64_t    seq;
    int64_t     at_ms;
    const char *tenant, *who, *action, *what, *reason, *outcome, *details;
};

struct http_admin_break {
    const char *reason;
    uint32_t    now;
};
struct http_broken {
    const char *tenant, *pipeline, *key, *holder, *run;
    uint64_t    fence;
    uint32_t    broken, closing;
};

/* Answer with an error of the data store or with invalid input. */
void http_fail_data(struct http_request *r, const il_error *err);

#endif
