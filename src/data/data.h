/*
 * data.h: the data store: tenants, their API keys and the audit log, which a server keeps besides
 * the coordination store.
 *
 * For a SQLite store the data is in the store's own file (tables il_tenant, il_api_key, il_audit,
 * il_secret), for PostgreSQL in the schema SCHEMA_admin beside the store's (the same names without
 * il_), for memory: in memory, and for Redis in a SQLite file in the state folder: several servers
 * on one Redis need a shared data store (--data URL: sqlite: or postgres:). All calls block; they
 * are thread-safe and take turns. Calls are rare: the server looks up a key at most once a second.
 * README.md has the rest.
 *
 * A key is `sk_TENANT_` and 43 url-safe characters (256 random bits), shown once. Only
 * HMAC-SHA-256(pepper, key) is stored: it cannot be reversed, and a copy of the table alone does
 * not allow testing guesses. A key is looked up by its HMAC, so the time this takes reveals nothing
 * about the key.
 */
#ifndef IL_DATA_DATA_H
#define IL_DATA_DATA_H

#include "base/base.h"

#define DATA_HASH_BYTES 32
#define DATA_KEY_BYTES_MAX 128 /* of a displayed key */
#define DATA_ID_BYTES 37       /* UUIDv7 and a NUL */
#define DATA_PREFIX_BYTES_MAX 256
#define DATA_NAME_BYTES_MAX 256 /* of the name of a key or tenant */
#define DATA_PERMISSIONS_MAX 16 /* named permissions of a key */
#define DATA_PERMISSION_BYTES_MAX 64
#define DATA_PERMISSIONS_BYTES_MAX 511 /* of all of them, with the spaces between */
/* Numbers in struct il__data_limits (limits.def). */
#define DATA_LIMIT_MAX 1000000000
#define DATA_RUNS_MAX 50
#define DATA_BYTES_MAX INT64_C(1000000000000)
/* rows of a listing: a page of the API, plus one to see whether more follow */
#define DATA_PAGE_MAX 1001

struct il__data;
struct il__buf;

struct il__data_open {
    const char *store_url; /* the coordination store */
    const char *data_url;  /* NULL: with the store */
    /* contains the pepper (at least 16 bytes); NULL: a random one is created at the first start and
     * kept in the data store */
    const char *pepper_file;
    int64_t     timeout_ms; /* give up on a busy data store after; 0 = 5,000 */
    bool        existing;   /* do not create anything */
    bool        no_keys;    /* keys will be neither created nor looked up, so no pepper is needed */
};
/* Append the URL of the data store for store_url and data_url to *url; the folder of a default one
 * is created unless `existing`. IL_OK, IL_INVAL, IL_STORE, IL_NOMEM. */
il_status il__data_url(const struct il__data_open *o, struct il__buf *url, il_error *reterr)
    MUST_USE;
/* IL_INVAL with a message if this is the SQLite store of a group, whose members could read `what`,
 * such as "the API keys", if it were kept there. */
il_status il__data_refuse_group(const char *url, const char *what, il_error *reterr) MUST_USE;
/*
 * Creates or upgrades the tables. IL_OK, IL_INVAL (a URL that cannot keep data; an invalid pepper,
 * or not the one that the keys were created with), IL_NOT_FOUND (`existing`, and the tables are
 * missing), IL_STORE, IL_FULL, IL_CORRUPT, IL_NEWER, IL_NOMEM; other calls can return the same.
 */
il_status il__data_open(const struct il__data_open *o, struct il__data **ret, il_error *reterr)
    MUST_USE;
void il__data_close(struct il__data *d); /* NULL is fine */
/* Its location for display, without user and password. */
const char *il__data_where(const struct il__data *d);
/* Is it reachable? For /ready. */
il_status il__data_ping(struct il__data *d, il_error *reterr) MUST_USE;

/* ---- tenants --------------------------------------------------------------------------------- */

/* 0 = the server's default in a tenant's own limits, no limit in the default and when merged. Live
 * leases and jobs are counted once a second, so a burst within a second may exceed their limits. */
struct il__data_limits {
#define LIMIT(name, ...) int64_t name;
#include "data/limits.def"
#undef LIMIT
};
/* A limit that il__data_tenant_set() does not change, and limits of which it changes none. */
#define DATA_LIMIT_KEEP (-1)
extern const struct il__data_limits il__data_limits_keep;

/* The limits that apply: each is the tenant's own one if set, else the default, and at most its
 * maximum of limits.def. The burst is that of the rate that applies. */
struct il__data_limits il__data_limits_merge(const struct il__data_limits *own,
                                             const struct il__data_limits *by_default);

struct il__data_tenant {
    const char            *id; /* ^[a-z0-9_]+$, at most IL_TENANT_BYTES_MAX */
    const char            *name;
    struct il__data_limits limits;
    int64_t                created_at_ms;
};

/* Callbacks get rows that are valid until they return. The data store is locked meanwhile:
 * callbacks must not use it. A limit of 0 means 100 rows; the maximum is DATA_PAGE_MAX. */
typedef void il__data_tenant_fn(void *cookie, const struct il__data_tenant *tenant);

/* IL_OK, IL_DUPLICATE, IL_INVAL, IL_STORE. */
il_status il__data_tenant_create(struct il__data *d, const struct il__data_tenant *t,
                                 il_error *reterr) MUST_USE;
/* Change the name (NULL = keep it) and the limits that are not DATA_LIMIT_KEEP. Concurrent changes
 * of different values all stay. `each` (may be NULL) gets the tenant as changed, which is true only
 * on IL_OK. IL_NOT_FOUND, IL_INVAL. */
il_status il__data_tenant_set(struct il__data *d, const struct il__data_tenant *t,
                              il__data_tenant_fn *each, void *cookie, il_error *reterr) MUST_USE;
/* One by id (IL_NOT_FOUND), or a page sorted by id after `after` (NULL = from the first). */
il_status il__data_tenant_get(struct il__data *d, const char *id, il__data_tenant_fn *each,
                              void *cookie, il_error *reterr) MUST_USE;
il_status il__data_tenant_list(struct il__data *d, const char *after, uint32_t limit,
                               il__data_tenant_fn *each, void *cookie, il_error *reterr) MUST_USE;
/* The ids of all tenants, but at most n_max, sorted: an array of il__arena_append(). */
il_status il__data_tenant_ids(struct il__data *d, size_t n_max, void **mem, const char ***ret,
                              size_t *ret_n, il_error *reterr) MUST_USE;
/* Merge the tenant's own limits into *limits, the default. A missing tenant has none: IL_OK. On
 * failure *limits is unchanged. */
il_status il__data_tenant_limits(struct il__data *d, const char *id, struct il__data_limits *limits,
                                 il_error *reterr) MUST_USE;

/* ---- keys ------------------------------------------------------------------------------------ */

/* What a key may do. A role includes those before it. */
enum il__data_role {
    DATA_ROLE_NONE, /* only its named permissions */
    DATA_ROLE_READ,
    DATA_ROLE_WRITE,
    DATA_ROLE_OPERATOR,
    /* of the server: tenants, keys, and all objects of every tenant that have an /admin route */
    DATA_ROLE_ADMIN,
    DATA_ROLE_COUNT
};
/* "none", "read", "write", "operator", "admin", and NULL */
extern const char *const il__data_roles[DATA_ROLE_COUNT + 1];

const char        *il__data_role_name(enum il__data_role role);
enum il__data_role il__data_role_parse(const char *name); /* DATA_ROLE_COUNT: unknown name */

struct il__data_key {
    const char        *id; /* UUIDv7; identifies the key to people and in the audit log */
    const char        *tenant;
    const char        *name; /* a label; "" = none */
    enum il__data_role role;
    /* named ones, separated by spaces: "admin:usage queue:claim"; "" = none */
    const char *permissions;
    const char *prefix; /* only keys, queues, … with this prefix; "" = all */
    int64_t     created_at_ms;
    int64_t     expires_at_ms; /* 0 = never */
    int64_t     used_at_ms;    /* to the minute; 0 = never */
    int64_t     revoked_at_ms; /* 0 = not */
};
typedef void il__data_key_fn(void *cookie, const struct il__data_key *key);

/* Create one; the tenant is created if `make_tenant`, else it must exist (IL_NOT_FOUND). The id and
 * the times of *key other than expires_at_ms are ignored. ret_secret is the key, to be shown once:
 * il__data_forget() it. */
il_status il__data_key_create(struct il__data *d, const struct il__data_key *key, bool make_tenant,
                              char ret_id[DATA_ID_BYTES], char ret_secret[DATA_KEY_BYTES_MAX],
                              il_error *reterr) MUST_USE;
/* Overwrite a secret; never optimised away. */
void il__data_forget(void *secret, size_t n_bytes);
/* Find a key by the secret a client presents: IL_OK (also for a revoked or expired key: the caller
 * checks), IL_NOT_FOUND. The hash takes no lock, and about a microsecond. */
void      il__data_key_hash(struct il__data *d, const char *secret, size_t n_bytes,
                            unsigned char ret[DATA_HASH_BYTES]);
il_status il__data_key_find(struct il__data *d, const unsigned char hash[DATA_HASH_BYTES],
                            il__data_key_fn *each, void *cookie, il_error *reterr) MUST_USE;
/* By its id. IL_NOT_FOUND also if it belongs to another tenant (tenant NULL = any). */
il_status il__data_key_get(struct il__data *d, const char *tenant, const char *id,
                           il__data_key_fn *each, void *cookie, il_error *reterr) MUST_USE;
/* tenant NULL = all. Sorted by id, after `after`. */
il_status il__data_key_list(struct il__data *d, const char *tenant, const char *after,
                            uint32_t limit, il__data_key_fn *each, void *cookie, il_error *reterr)
    MUST_USE;
/* IL_NOT_FOUND also if it belongs to another tenant (tenant NULL = any). Idempotent. keep_admin:
 * IL_STATE if no usable key with DATA_ROLE_ADMIN would remain, also when several servers revoke
 * such keys at once. */
il_status il__data_key_revoke(struct il__data *d, const char *tenant, const char *id,
                              bool keep_admin, il_error *reterr) MUST_USE;
/* Record when it was used, to the minute, and only if later than the stored time. IL_OK also if the
 * key does not exist. */
il_status il__data_key_used(struct il__data *d, const char *id, int64_t at_ms, il_error *reterr)
    MUST_USE;
/* The number of usable keys. 0: a server's first start prints one. */
il_status il__data_key_count(struct il__data *d, uint64_t *ret, il_error *reterr) MUST_USE;

/* ---- sessions of the admin page -------------------------------------------------------------- */

#define DATA_SIGNATURE_BYTES 65 /* hex digits and a NUL */
/* Sign a text: its HMAC with a key derived from the pepper, so that every server of this data store
 * accepts it and nobody else can make it. Takes no lock. */
void il__data_sign(struct il__data *d, const char *text, size_t n_bytes,
                   char ret[DATA_SIGNATURE_BYTES]);
/* Is this the signature of the text? Takes as long for a wrong one as for the right one. */
bool il__data_is_signed(struct il__data *d, const char *text, size_t n_bytes,
                        const char signature[DATA_SIGNATURE_BYTES]);

#define DATA_TOKEN_BYTES 44
/* 256 random bits as URL-safe characters. IL_STORE: libsodium is not installed. */
il_status il__data_token(char ret[DATA_TOKEN_BYTES], il_error *reterr) MUST_USE;

/* ---- audit ----------------------------------------------------------------------------------- */

struct il__data_action {
    uint64_t    seq;
    int64_t     at_ms;
    const char *tenant; /* the tenant that owns the object */
    const char *who;    /* the key's id, "cli:USER", "config" */
    /* "lock.break", "run.cancel", "job.retry", "queue.pause", "key.create", "tenant.create",
     * "config.reload", … */
    const char *action;
    const char *what;    /* the key, run, job, queue, … */
    const char *reason;  /* "" = none */
    const char *outcome; /* the status's wire name */
    const char *details; /* JSON object; "" = none; never a secret or a payload */
};
#define DATA_ACTION_TEXT_BYTES_MAX 4096 /* what, reason and details: longer ones are truncated */
typedef void il__data_action_fn(void *cookie, const struct il__data_action *action);

/* The name of an op as an action ("lock.break"), or NULL if it is not administrative. */
const char *il__data_action_name(const il_op *op);
/*
 * The entry for such an op that ended with this status; `tenant`: the default if the op has none.
 * The texts are those of the op.
 */
struct il__data_action il__data_action_of(const il_op *op, il_status status, const char *tenant,
                                          const char *who);

/* One commit. seq is assigned here, and at_ms unless it is set; a NULL text is stored as "", and
 * invalid UTF-8 becomes '?'. */
il_status il__data_audit_add(struct il__data *d, const struct il__data_action *actions, size_t n,
                             il_error *reterr) MUST_USE;
/* Newest first, before `before` (0 = from the newest). tenant NULL = all; action NULL = all, else
 * this one. */
il_status il__data_audit_list(struct il__data *d, const char *tenant, const char *action,
                              uint64_t before, uint32_t limit, il__data_action_fn *each,
                              void *cookie, il_error *reterr) MUST_USE;
/* Delete older entries; at most 1,000 rows per call. *ret_n = number deleted. */
il_status il__data_audit_purge(struct il__data *d, int64_t older_than_ms, uint64_t *ret_n,
                               il_error *reterr) MUST_USE;

/* Of SQLite itself, as it runs: "3.40.1". */
const char *il__data_sqlite_version(void);

#endif
