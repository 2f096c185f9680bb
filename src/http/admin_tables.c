/*
 * admin_tables.c: the tables of admin.h.
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

/* ---- tenants ------------------------------------------------------------------------------------------------------------- */

#define LIMIT(name_, help_)                                                                 \
    {                                                                                       \
        .name = #name_, .kind = WIRE_INT64, .flags = WIRE_NOT_NULL,                         \
        .offset = offsetof(struct il__data_limits, name_), .min = 0, .max = DATA_LIMIT_MAX, \
        .help = help_                                                                       \
    }
#define RUNS_MAX 50 /* R1.17 */
#define RUNS(name_, max_, help_)                                                                \
    {                                                                                           \
        .name = #name_, .kind = WIRE_INT64, .flags = WIRE_NOT_NULL,                             \
        .offset = offsetof(struct il__data_limits, name_), .min = 0, .max = max_, .help = help_ \
    }
static const struct wire_field limits[] = {
    LIMIT(requests_per_second, "requests per second, of each server; 0 = the server's default"),
    LIMIT(burst, "requests at once; 0 = twice as many as per second"),
    LIMIT(waiters, "requests that are kept open at once, of each server"),
    LIMIT(streams, "event streams at once, of each server"),
    LIMIT(locks, "live locks"),
    LIMIT(jobs, "live jobs"),
    LIMIT(triggers_per_minute, "triggers of pipelines per minute, of each server"),
    LIMIT(triggers_per_hour, "triggers of pipelines per hour, of each server"),
    RUNS(runs, RUNS_MAX, "pipelines that run or wait to at once, 1 to 50"),
    RUNS(runs_per_day, DATA_LIMIT_MAX, "pipeline runs since midnight UTC"),
};
static OBJECT(tenant_limits, "TenantLimits", struct il__data_limits, limits, 0,
              "How much a tenant may do; 0 = the server's default, if it has one");

#define T struct il__data_tenant
#define LIMITS                                                                \
    {                                                                         \
        .name = "limits", .kind = WIRE_OBJECT, .offset = offsetof(T, limits), \
        .object = &tenant_limits, .help = "how much it may do"                \
    }
static const struct wire_field tenant_in[] = {
    TEXT(T, "id", id, WIRE_REQUIRED, 1, IL_TENANT_BYTES_MAX, "lower-case letters, digits and _"),
    TEXT(T, "name", name, 0, 0, DATA_NAME_BYTES_MAX, "for people; the id if there is none"),
    LIMITS,
};
OBJECT(http_in_tenant, "NewTenant", T, tenant_in, 0, "A tenant to be made");

static const struct wire_field tenant_set_in[] = {
    TEXT(T, "name", name, 0, 0, DATA_NAME_BYTES_MAX, "for people"),
    LIMITS,
};
OBJECT(http_in_tenant_set, "TenantSettings", T, tenant_set_in, 0,
       "What is left out stays as it is; a limit of 0 is taken away");

static const struct wire_field tenant_out[] = {
    FIELD(T, "id", id, TEXT, WIRE_NOT_NULL, "of the tenant"),
    FIELD(T, "name", name, TEXT, WIRE_NOT_NULL, "for people"),
    LIMITS,
    FIELD(T, "created_at", created_at_ms, TIME, 0, "when it was made"),
};
OBJECT(http_out_tenant, "Tenant", T, tenant_out, WIRE_ANSWER, "A tenant");
#undef T

#define Q struct http_page_in
#define PAGE                                                                          \
    TEXT(Q, "cursor", cursor, 0, 0, 256, "`next` of the page before"),                \
    {                                                                                 \
        .name = "limit", .kind = WIRE_UINT32, .offset = offsetof(Q, limit), .min = 1, \
        .max = IL_PAGE_ITEMS_MAX, .help = "items at most"                             \
    }
static const struct wire_field tenant_page[] = { PAGE };
OBJECT(http_in_tenant_page, "TenantQuery", Q, tenant_page, 0, "Which page");

/* ---- keys ---------------------------------------------------------------------------------------------------------------- */

static const struct wire_field key_page[] = {
    PAGE,
    TEXT(Q, "tenant", tenant, 0, 0, IL_TENANT_BYTES_MAX, "only of this tenant"),
};
OBJECT(http_in_key_page, "KeyQuery", Q, key_page, 0, "Which keys");

#define K struct http_key_in
static const struct wire_field key_in[] = {
    TEXT(K, "tenant", tenant, WIRE_REQUIRED, 1, IL_TENANT_BYTES_MAX, "whose key it is; it must be there"),
    TEXT(K, "name", name, 0, 0, DATA_NAME_BYTES_MAX, "a label"),
    { .name    = "role",
      .kind    = WIRE_CHOICE,
      .offset  = offsetof(K, role),
      .min     = DATA_ROLE_NONE,
      .choices = roles,
      .help = "what it may do; each contains those before it: read, write, operator, admin (of the "
              "whole server)" },
    { .name    = "permissions",
      .kind    = WIRE_BYTES,
      .offset  = offsetof(K, permissions),
      .offset2 = offsetof(K, permissions_bytes),
      .max     = 4096,
      .help    = "named permissions beside the role: [\"queue:claim\"], or in one text with spaces "
                 "between them" },
    TEXT(K, "prefix", prefix, 0, 0, DATA_PREFIX_BYTES_MAX, "only keys, queues, ... that begin so"),
    FIELD(K, "expires_at", expires_at_ms, TIME, 0, "when it ends; null = never"),
    { .name   = "expires_in_ms",
      .kind   = WIRE_INT64,
      .offset = offsetof(K, expires_in_ms),
      .min    = 1,
      .max    = 100 * IL_DELAY_MS_MAX,
      .help   = "the same, from now on" },
};
OBJECT(http_in_key, "NewKey", K, key_in, 0, "An API key to be made");

#define O struct http_key_out
#define KEY_FIELDS                                                                                  \
    FIELD(O, "id", id, TEXT, WIRE_NOT_NULL, "how people and the audit name the key"),               \
        FIELD(O, "tenant", tenant, TEXT, WIRE_NOT_NULL, "whose it is"),                             \
        FIELD(O, "name", name, TEXT, 0, "its label"),                                               \
        FIELD(O, "role", role, TEXT, WIRE_NOT_NULL, "none, read, write, operator or admin"),        \
        FIELD(O, "permissions", permissions, META, WIRE_NOT_NULL, "its named permissions, a list"), \
        FIELD(O, "prefix", prefix, TEXT, 0, "only what begins so"),                                 \
        FIELD(O, "created_at", created_at_ms, TIME, 0, "when it was made"),                         \
        FIELD(O, "expires_at", expires_at_ms, TIME, 0, "when it ends; null = never"),               \
        FIELD(O, "used_at", used_at_ms, TIME, 0, "to the minute; null = never"),                    \
        FIELD(O, "revoked_at", revoked_at_ms, TIME, 0, "null = it is not")
static const struct wire_field key_out[] = { KEY_FIELDS };
OBJECT(http_out_key, "ApiKey", O, key_out, WIRE_ANSWER, "An API key, without its secret");
static const struct wire_field new_key_out[] = {
    FIELD(O, "key", key, TEXT, WIRE_NOT_NULL, "the key itself: shown only now"),
    KEY_FIELDS,
};
OBJECT(http_out_new_key, "NewApiKey", O, new_key_out, WIRE_ANSWER, "An API key that was made");

static const struct wire_field revoke_in[] = {
    BOOL(struct http_revoke, "force", force, "also if no admin key is left then"),
};
OBJECT(http_in_key_revoke, "RevokeQuery", struct http_revoke, revoke_in, 0, "How");
static const struct wire_field revoked_out[] = {
    FIELD(struct http_revoke, "id", id, TEXT, WIRE_NOT_NULL, "of the key"),
    BOOL(struct http_revoke, "revoked", revoked, "true"),
};
OBJECT(http_out_revoked, "RevokedKey", struct http_revoke, revoked_out, WIRE_ANSWER,
       "A key that can no longer be used");

/* ---- audit --------------------------------------------------------------------------------------------------------------- */

static const struct wire_field audit_page[] = {
    PAGE,
    TEXT(Q, "tenant", tenant, 0, 0, IL_TENANT_BYTES_MAX,
         "only what was done to things of this tenant; of others, for admins"),
    TEXT(Q, "act", act, 0, 0, 64, "only this act: lock.break, run.cancel, key.create, ..."),
};
OBJECT(http_in_audit_page, "AuditQuery", Q, audit_page, 0, "Which acts, newest first");

#define A struct http_act_out
static const struct wire_field act_out[] = {
    FIELD(A, "seq", seq, UINT64, WIRE_NOT_NULL, "grows with each act"),
    FIELD(A, "at", at_ms, TIME, 0, "when"),
    FIELD(A, "tenant", tenant, TEXT, WIRE_NOT_NULL, "whose thing it was done to"),
    FIELD(A, "who", who, TEXT, WIRE_NOT_NULL, "the id of a key, cli:USER, or server"),
    FIELD(A, "act", act, TEXT, WIRE_NOT_NULL, "what was done"),
    FIELD(A, "what", what, TEXT, 0, "to which key, run, job, queue, ..."),
    FIELD(A, "reason", reason, TEXT, 0, "why"),
    FIELD(A, "outcome", outcome, TEXT, WIRE_NOT_NULL, "how it ended: OK, or the code of the error"),
    FIELD(A, "details", details, META, 0, "more about it"),
};
OBJECT(http_out_act, "Act", A, act_out, WIRE_ANSWER, "An administrative act");

/* ---- forced releases ----------------------------------------------------------------------------------------------------- */

static const struct wire_field break_in[] = {
    TEXT(struct http_admin_break, "reason", reason, WIRE_REQUIRED, 1, IL_PLACE_BYTES_MAX,
         "why; told to the holder, and kept"),
    BOOL(struct http_admin_break, "now", now, "open the key at once, not when its processes are gone"),
};
OBJECT(http_in_admin_break, "ForceRelease", struct http_admin_break, break_in, 0, "Why, and how");

#define B struct http_broken
static const struct wire_field broken_out[] = {
    BOOL(B, "broken", broken, "true"),
    FIELD(B, "tenant", tenant, TEXT, WIRE_NOT_NULL, "whose pipeline it is"),
    FIELD(B, "pipeline", pipeline, TEXT, WIRE_NOT_NULL, "its id"),
    FIELD(B, "key", key, TEXT, WIRE_NOT_NULL, "of the lock"),
    FIELD(B, "holder", holder, TEXT, 0, "who had it"),
    FIELD(B, "fence", fence, UINT64, 0, "of the lease that was broken"),
    FIELD(B, "run", run, TEXT, 0, "the run that was asked to stop"),
    BOOL(B, "closing", closing, "the key stays closed until its holder has let go"),
};
OBJECT(http_out_broken, "ForcedRelease", B, broken_out, WIRE_ANSWER, "What was taken away");
