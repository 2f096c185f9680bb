/*
 * admin_tables.c: JSON tables of the request and response bodies that admin.h declares.
 */
#include "http/admin.h"

#define FIELD(type, text, member, kind_, flags_, help_)                                        \
    {                                                                                          \
        .name = text, .kind = WIRE_##kind_, .flags = flags_, .offset = offsetof(type, member), \
        .help = help_                                                                          \
    }
#define TEXT(type, text, member, flags_, min_, max_, help_)                                 \
    {                                                                                       \
        .name = text, .kind = WIRE_TEXT, .flags = flags_, .offset = offsetof(type, member), \
        .min = min_, .max = max_, .help = help_                                             \
    }
#define BOOL(type, text, member, help_)                                                            \
    {                                                                                              \
        .name = text, .kind = WIRE_BOOL, .offset = offsetof(type, member), .bit = 1, .help = help_ \
    }
#define OBJECT(id, schema, struct_, fields_, flags_, help_)         \
    const struct wire_object id = { .name     = schema,             \
                                    .fields   = fields_,            \
                                    .n_fields = ARRAY_LEN(fields_), \
                                    .help     = help_,              \
                                    .bytes    = sizeof(struct_),    \
                                    .flags    = flags_ }

/* In the order of enum il__data_role, from READ on. */
static const char *const roles[] = { "none", "read", "write", "operator", "admin", NULL };
_Static_assert(ARRAY_LEN(roles) == DATA_ROLE_COUNT + 1, "one name for each role, and NULL");

/* ---- tenants --------------------------------------------------------------------------------- */

#define LIMIT(name_, option_, heading_, max_, help_)     \
    { .name   = #name_,                                  \
      .kind   = WIRE_INT64,                              \
      .flags  = WIRE_NOT_NULL,                           \
      .offset = offsetof(struct il__data_limits, name_), \
      .min    = 0,                                       \
      .max    = max_,                                    \
      .help   = help_ },
static const struct wire_field limits[] = {
#include "data/limits.def"
};
#undef LIMIT
static OBJECT(tenant_limits, "TenantLimits", struct il__data_limits, limits, 0,
              "Limits of a tenant");

#define T struct il__data_tenant
#define LIMITS                                                                \
    {                                                                         \
        .name = "limits", .kind = WIRE_OBJECT, .offset = offsetof(T, limits), \
        .object = &tenant_limits, .help = "limits of the tenant"              \
    }
static const struct wire_field tenant_in[] = {
    TEXT(T, "id", id, WIRE_REQUIRED, 1, IL_TENANT_BYTES_MAX, "lower-case letters, digits and _"),
    TEXT(T, "name", name, 0, 0, DATA_NAME_BYTES_MAX, "display name; default: the id"),
    LIMITS,
};
OBJECT(http_in_tenant, "NewTenant", T, tenant_in, 0, "A tenant to create");

static const struct wire_field tenant_set_in[] = {
    TEXT(T, "name", name, 0, 0, DATA_NAME_BYTES_MAX, "display name"),
    LIMITS,
};
OBJECT(http_in_tenant_set, "TenantSettings", T, tenant_set_in, 0,
       "Changes to a tenant; omitted fields stay unchanged, a limit of 0 restores the default");

static const struct wire_field tenant_out[] = {
    FIELD(T, "id", id, TEXT, WIRE_NOT_NULL, "id of the tenant"),
    FIELD(T, "name", name, TEXT, WIRE_NOT_NULL, "display name"),
    LIMITS,
    FIELD(T, "created_at", created_at_ms, TIME, 0, "when it was created"),
};
OBJECT(http_out_tenant, "Tenant", T, tenant_out, WIRE_ANSWER, "A tenant");
#undef T

#define Q struct http_page_in
#define PAGE                                                                          \
    TEXT(Q, "cursor", cursor, 0, 0, 256, "`next` of the previous page"),              \
    {                                                                                 \
        .name = "limit", .kind = WIRE_UINT32, .offset = offsetof(Q, limit), .min = 1, \
        .max = IL_PAGE_ITEMS_MAX, .help = "maximum number of items"                   \
    }
static const struct wire_field tenant_page[] = { PAGE };
OBJECT(http_in_tenant_page, "TenantQuery", Q, tenant_page, 0, "The page to list");

/* ---- keys ------------------------------------------------------------------------------------ */

static const struct wire_field key_page[] = {
    PAGE,
    TEXT(Q, "tenant", tenant, 0, 0, IL_TENANT_BYTES_MAX, "only keys of this tenant"),
};
OBJECT(http_in_key_page, "KeyQuery", Q, key_page, 0, "The keys to list");

#define K struct http_key_in
static const struct wire_field key_in[] = {
    TEXT(K, "tenant", tenant, WIRE_REQUIRED, 1, IL_TENANT_BYTES_MAX,
         "tenant that owns the key; it must exist"),
    TEXT(K, "name", name, 0, 0, DATA_NAME_BYTES_MAX, "label of the key"),
    { .name    = "role",
      .kind    = WIRE_CHOICE,
      .offset  = offsetof(K, role),
      .min     = DATA_ROLE_NONE,
      .choices = roles,
      .help    = "role: none, read, write, operator or admin (of the whole server); each includes "
                 "those before it" },
    { .name    = "permissions",
      .kind    = WIRE_BYTES,
      .offset  = offsetof(K, permissions),
      .offset2 = offsetof(K, permissions_bytes),
      .max     = 4096,
      .help = "permissions in addition to the role: [\"queue:claim\"], or one string with spaces "
              "between them" },
    TEXT(K, "prefix", prefix, 0, 0, DATA_PREFIX_BYTES_MAX,
         "only keys, queues, ... that start with this"),
    FIELD(K, "expires_at", expires_at_ms, TIME, 0, "when it expires; null: never"),
    { .name   = "expires_in_ms",
      .kind   = WIRE_INT64,
      .offset = offsetof(K, expires_in_ms),
      .min    = 1,
      .max    = 100 * IL_DELAY_MS_MAX,
      .help   = "expiry as a duration from now, instead of expires_at" },
};
OBJECT(http_in_key, "NewKey", K, key_in, 0, "An API key to create");

#define O struct http_key_out
#define KEY_FIELDS                                                                                \
    FIELD(O, "id", id, TEXT, WIRE_NOT_NULL, "id of the key, used in listings and the audit log"), \
        FIELD(O, "tenant", tenant, TEXT, WIRE_NOT_NULL, "tenant that owns the key"),              \
        FIELD(O, "name", name, TEXT, 0, "label of the key"),                                      \
        FIELD(O, "role", role, TEXT, WIRE_NOT_NULL, "none, read, write, operator or admin"),      \
        FIELD(O, "permissions", permissions, META, WIRE_NOT_NULL,                                 \
              "list of permissions in addition to the role"),                                     \
        FIELD(O, "prefix", prefix, TEXT, 0, "only names that start with this"),                   \
        FIELD(O, "created_at", created_at_ms, TIME, 0, "when it was created"),                    \
        FIELD(O, "expires_at", expires_at_ms, TIME, 0, "when it expires; null: never"),           \
        FIELD(O, "used_at", used_at_ms, TIME, 0,                                                  \
              "when it was last used, to the minute; null: never"),                               \
        FIELD(O, "revoked_at", revoked_at_ms, TIME, 0, "when it was revoked; null: not revoked")
static const struct wire_field key_out[] = { KEY_FIELDS };
OBJECT(http_out_key, "ApiKey", O, key_out, WIRE_ANSWER, "An API key, without its secret");
static const struct wire_field new_key_out[] = {
    FIELD(O, "key", key, TEXT, 0, "the key itself, shown only in this response; null in a replay"),
    KEY_FIELDS,
};
OBJECT(http_out_new_key, "NewApiKey", O, new_key_out, WIRE_ANSWER, "A new API key");

static const struct wire_field revoke_in[] = {
    BOOL(struct http_revoke, "force", force, "revoke it even if it is the last admin key"),
};
OBJECT(http_in_key_revoke, "RevokeQuery", struct http_revoke, revoke_in, 0, "Options");
static const struct wire_field revoked_out[] = {
    FIELD(struct http_revoke, "id", id, TEXT, WIRE_NOT_NULL, "id of the key"),
    BOOL(struct http_revoke, "revoked", revoked, "true"),
};
OBJECT(http_out_revoked, "RevokedKey", struct http_revoke, revoked_out, WIRE_ANSWER,
       "A revoked key");

/* ---- audit ----------------------------------------------------------------------------------- */

static const struct wire_field audit_page[] = {
    PAGE,
    TEXT(Q, "tenant", tenant, 0, 0, IL_TENANT_BYTES_MAX,
         "only actions on objects of this tenant; other tenants need an admin key"),
    TEXT(Q, "action", act, 0, 0, 64,
         "only this kind of action: lock.break, run.cancel, key.create, ..."),
};
OBJECT(http_in_audit_page, "AuditQuery", Q, audit_page, 0, "The actions to list, newest first");

#define A struct http_act_out
static const struct wire_field act_out[] = {
    FIELD(A, "seq", seq, UINT64, WIRE_NOT_NULL, "sequence number"),
    FIELD(A, "at", at_ms, TIME, 0, "when it happened"),
    FIELD(A, "tenant", tenant, TEXT, WIRE_NOT_NULL, "tenant that owns the object"),
    FIELD(A, "who", who, TEXT, WIRE_NOT_NULL, "id of an API key, cli:USER, or server"),
    FIELD(A, "action", act, TEXT, WIRE_NOT_NULL, "kind of action"),
    FIELD(A, "what", what, TEXT, 0, "the key, run, job, queue, ... it affected"),
    FIELD(A, "reason", reason, TEXT, 0, "reason"),
    FIELD(A, "outcome", outcome, TEXT, WIRE_NOT_NULL, "OK, or an error code"),
    FIELD(A, "details", details, META, 0, "further details"),
};
OBJECT(http_out_act, "AuditEntry", A, act_out, WIRE_ANSWER, "An administrative action");

/* ---- forced releases ------------------------------------------------------------------------- */

static const struct wire_field break_in[] = {
    TEXT(struct http_admin_break, "reason", reason, WIRE_REQUIRED, 1, IL_PLACE_BYTES_MAX,
         "reason, passed to the holder and kept"),
    BOOL(struct http_admin_break, "now", now,
         "free the key at once instead of when its processes are gone"),
};
OBJECT(http_in_admin_break, "ForceRelease", struct http_admin_break, break_in, 0,
       "How to release the lock");

#define B struct http_broken
static const struct wire_field broken_out[] = {
    BOOL(B, "broken", broken, "true"),
    FIELD(B, "tenant", tenant, TEXT, WIRE_NOT_NULL, "tenant that owns the pipeline"),
    FIELD(B, "pipeline", pipeline, TEXT, WIRE_NOT_NULL, "id of the pipeline"),
    FIELD(B, "key", key, TEXT, WIRE_NOT_NULL, "key of the lock"),
    FIELD(B, "holder", holder, TEXT, 0, "holder of the broken lease"),
    FIELD(B, "fence", fence, UINT64, 0, "fence of the broken lease"),
    FIELD(B, "run", run, TEXT, 0, "the run that was asked to stop"),
    BOOL(B, "closing", closing, "the key stays closed until its holder releases it"),
};
OBJECT(http_out_broken, "ForcedRelease", B, broken_out, WIRE_ANSWER, "The lock that was released");
