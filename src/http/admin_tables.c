/*
 * admin_tables.c: JSON tables of the request and response bodies that admin.h declares.
 */
#include "http/admin.h"

#include "wire/table.h"

/* ---- tenants --------------------------------------------------------------------------------- */

#define STRUCT struct il__data_limits
#define LIMIT(member, option_, heading_, most, text) \
    BOUNDED(#member, member, INT64, WIRE_NOT_NULL, 0, most, text),
static const struct wire_field limits[] = {
#include "data/limits.def"
};
#undef LIMIT
static OBJECT(tenant_limits, "TenantLimits", limits, 0, "Limits of a tenant");
#undef STRUCT

#define STRUCT struct il__data_tenant
#define LIMITS ONE("limits", limits, tenant_limits, "limits of the tenant")
static const struct wire_field tenant_in[] = {
    TEXT("id", WIRE_REQUIRED, id, 1, IL_TENANT_BYTES_MAX, "lower-case letters, digits and _"),
    TEXT("name", 0, name, 0, DATA_NAME_BYTES_MAX, "display name; default: the id"),
    LIMITS,
};
OBJECT(http_in_tenant, "NewTenant", tenant_in, 0, "A tenant to create");

static const struct wire_field tenant_set_in[] = {
    TEXT("name", 0, name, 0, DATA_NAME_BYTES_MAX, "display name"),
    LIMITS,
};
OBJECT(http_in_tenant_set, "TenantSettings", tenant_set_in, 0,
       "Changes to a tenant; omitted fields stay unchanged, a limit of 0 restores the default");

static const struct wire_field tenant_out[] = {
    F("id", id, TEXT, WIRE_NOT_NULL, "id of the tenant"),
    F("name", name, TEXT, WIRE_NOT_NULL, "display name"),
    LIMITS,
    F("created_at", created_at_ms, TIME, 0, "when it was created"),
};
OBJECT(http_out_tenant, "Tenant", tenant_out, WIRE_ANSWER, "A tenant");
#undef STRUCT

#define STRUCT struct http_page_in
#define PAGE                                                          \
    TEXT("cursor", 0, cursor, 0, 256, "`next` of the previous page"), \
        BOUNDED("limit", limit, UINT32, 0, 1, IL_PAGE_ITEMS_MAX, "maximum number of items")
static const struct wire_field tenant_page[] = { PAGE };
OBJECT(http_in_tenant_page, "TenantQuery", tenant_page, 0, "The page to list");

/* ---- keys ------------------------------------------------------------------------------------ */

static const struct wire_field key_page[] = {
    PAGE,
    TEXT("tenant", 0, tenant, 0, IL_TENANT_BYTES_MAX, "only keys of this tenant"),
};
OBJECT(http_in_key_page, "KeyQuery", key_page, 0, "The keys to list");
#undef STRUCT

#define STRUCT struct http_key_in
static const struct wire_field key_in[] = {
    TEXT("tenant", WIRE_REQUIRED, tenant, 1, IL_TENANT_BYTES_MAX,
         "tenant that owns the key; it must exist"),
    TEXT("name", 0, name, 0, DATA_NAME_BYTES_MAX, "label of the key"),
    CHOICE("role", 0, role, il__data_roles, DATA_ROLE_NONE,
           "role: none, read, write, operator or admin (of the whole server); each includes those "
           "before it"),
    BYTES("permissions", 0, permissions, permissions_bytes, 4096,
          "permissions in addition to the role: [\"queue:claim\"], or one string with spaces "
          "between them"),
    TEXT("prefix", 0, prefix, 0, DATA_PREFIX_BYTES_MAX,
         "only keys, queues, ... that start with this"),
    F("expires_at", expires_at_ms, TIME, 0, "when it expires; null: never"),
    BOUNDED("expires_in_ms", expires_in_ms, INT64, 0, 1, 100 * IL_DELAY_MS_MAX,
            "expiry as a duration from now, instead of expires_at"),
};
OBJECT(http_in_key, "NewKey", key_in, 0, "An API key to create");
#undef STRUCT

#define STRUCT struct http_key_out
#define KEY_FIELDS                                                                              \
    F("id", id, TEXT, WIRE_NOT_NULL, "id of the key, used in listings and the audit log"),      \
        F("tenant", tenant, TEXT, WIRE_NOT_NULL, "tenant that owns the key"),                   \
        F("name", name, TEXT, 0, "label of the key"),                                           \
        F("role", role, TEXT, WIRE_NOT_NULL, "none, read, write, operator or admin"),           \
        F("permissions", permissions, META, WIRE_NOT_NULL,                                      \
          "list of permissions in addition to the role"),                                       \
        F("prefix", prefix, TEXT, 0, "only names that start with this"),                        \
        F("created_at", created_at_ms, TIME, 0, "when it was created"),                         \
        F("expires_at", expires_at_ms, TIME, 0, "when it expires; null: never"),                \
        F("used_at", used_at_ms, TIME, 0, "when it was last used, to the minute; null: never"), \
        F("revoked_at", revoked_at_ms, TIME, 0, "when it was revoked; null: not revoked")
static const struct wire_field key_out[] = { KEY_FIELDS };
OBJECT(http_out_key, "ApiKey", key_out, WIRE_ANSWER, "An API key, without its secret");
static const struct wire_field new_key_out[] = {
    F("key", key, TEXT, 0, "the key itself, shown only in this response; null in a replay"),
    KEY_FIELDS,
};
OBJECT(http_out_new_key, "NewApiKey", new_key_out, WIRE_ANSWER, "A new API key");
#undef STRUCT

#define STRUCT struct http_revoke
static const struct wire_field revoke_in[] = {
    BOOL("force", 0, force, 1, "revoke it even if it is the last admin key"),
};
OBJECT(http_in_key_revoke, "RevokeQuery", revoke_in, 0, "Options");
static const struct wire_field revoked_out[] = {
    F("id", id, TEXT, WIRE_NOT_NULL, "id of the key"),
    BOOL("revoked", 0, revoked, 1, "true"),
};
OBJECT(http_out_revoked, "RevokedKey", revoked_out, WIRE_ANSWER, "A revoked key");
#undef STRUCT

/* ---- audit ----------------------------------------------------------------------------------- */

#define STRUCT struct http_page_in
static const struct wire_field audit_page[] = {
    PAGE,
    TEXT("tenant", 0, tenant, 0, IL_TENANT_BYTES_MAX,
         "only actions on objects of this tenant; other tenants need an admin key"),
    TEXT("action", 0, action, 0, 64,
         "only this kind of action: lock.break, run.cancel, key.create, ..."),
};
OBJECT(http_in_audit_page, "AuditQuery", audit_page, 0, "The actions to list, newest first");
#undef STRUCT

#define STRUCT struct http_action_out
static const struct wire_field action_out[] = {
    F("seq", seq, UINT64, WIRE_NOT_NULL, "sequence number"),
    F("at", at_ms, TIME, 0, "when it happened"),
    F("tenant", tenant, TEXT, WIRE_NOT_NULL, "tenant that owns the object"),
    F("who", who, TEXT, WIRE_NOT_NULL, "id of an API key, cli:USER, or server"),
    F("action", action, TEXT, WIRE_NOT_NULL, "kind of action"),
    F("what", what, TEXT, 0, "the key, run, job, queue, ... it affected"),
    F("reason", reason, TEXT, 0, "reason"),
    F("outcome", outcome, TEXT, WIRE_NOT_NULL, "OK, or an error code"),
    F("details", details, META, 0, "further details"),
};
OBJECT(http_out_action, "AuditEntry", action_out, WIRE_ANSWER, "An administrative action");
#undef STRUCT

/* ---- forced releases ------------------------------------------------------------------------- */

#define STRUCT struct http_admin_break
static const struct wire_field break_in[] = {
    TEXT("reason", WIRE_REQUIRED, reason, 1, IL_PLACE_BYTES_MAX,
         "reason, passed to the holder and kept"),
    BOOL("now", 0, now, 1, "free the key at once instead of when its processes are gone"),
};
OBJECT(http_in_admin_break, "ForceRelease", break_in, 0, "How to release the lock");
#undef STRUCT

#define STRUCT struct http_broken
static const struct wire_field broken_out[] = {
    BOOL("broken", 0, broken, 1, "true"),
    F("tenant", tenant, TEXT, WIRE_NOT_NULL, "tenant that owns the pipeline"),
    F("pipeline", pipeline, TEXT, WIRE_NOT_NULL, "id of the pipeline"),
    F("key", key, TEXT, WIRE_NOT_NULL, "key of the lock"),
    F("holder", holder, TEXT, 0, "holder of the broken lease"),
    F("fence", fence, UINT64, 0, "fence of the broken lease"),
    F("run", run, TEXT, 0, "the run that was asked to stop"),
    BOOL("closing", 0, closing, 1, "the key stays closed until its holder releases it"),
};
OBJECT(http_out_broken, "ForcedRelease", broken_out, WIRE_ANSWER, "The lock that was released");
#undef STRUCT
