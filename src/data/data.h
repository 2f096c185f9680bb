/*
 * data.h: tenants, their API keys, and the audit: what a server keeps beside the store that coordinates.
 *
 * With a SQLite store it is in the store's own file (tables il_tenant, il_api_key, il_audit, il_secret), with PostgreSQL in the store's schema (the same names without
 * il_), with memory: in memory, and with Redis in a SQLite file in the state folder: several servers on one Redis need a data store that they share (--data URL: sqlite: or
 * postgres:). All calls block; any thread may make them, they take turns. Few and rare: the server asks for a key once a second at most. README.md has the rest.
 *
 * A key is `sk_TENANT_` and 43 url-safe characters (256 random bits), shown once. Kept is HMAC-SHA-256(pepper, key): it cannot be turned back, and a
 * copy of the table alone cannot be used to test guesses. Looking a key up is looking its HMAC up, so the time it takes says nothing about the key.
 */
#ifndef IL_DATA_DATA_H
#define IL_DATA_DATA_H

#include "base/base.h"

#define DATA_HASH_BYTES 32
#define DATA_KEY_BYTES_MAX 128 /* of a key as it is shown */
#define DATA_ID_BYTES 37       /* UUIDv7 and a NUL */
#define DATA_PREFIX_BYTES_MAX 256
#define DATA_NAME_BYTES_MAX 256 /* of the name of a key or tenant */
#define DATA_PERMISSIONS_MAX 16 /* named permissions of a key */
#define DATA_PERMISSION_BYTES_MAX 64
#define DATA_PERMISSIONS_BYTES_MAX 511        /* of all of them, with the spaces between */
#define DATA_LIMIT_MAX INT64_C(1000000000000) /* of a number of struct il__data_limits */
#define DATA_PAGE_MAX \
    1001 /* rows of a listing: a page of the API, and one more to see whether there is another */

struct il__data;

struct il__data_open {
    const char *store_url;   /* where the coordination is */
    const char *data_url;    /* NULL: with the store */
    const char *pepper_file; /* holds the pepper (at least 16 bytes); NULL: one is made at random at the first start and kept in the data store */
    int64_t     timeout_ms;  /* give up on a busy data store after; 0 = 5,000 */
    bool        existing;    /* do not create anything */
    bool        no_keys;     /* keys will be neither made nor looked up, so no pepper is needed */
};
/*
 * Makes or upgrades the tables. IL_OK, IL_INVAL (a URL that cannot keep data; a pepper that will not do, or is not the one that the keys were made with), IL_NOT_FOUND
 * (`existing`, and there are no tables), IL_STORE, IL_FULL, IL_CORRUPT, IL_NEWER, IL_NOMEM: the same that other calls can end with.
 */
il_status il__data_open(const struct il__data_open *o, struct il__data **ret, il_error *reterr)
    MUST_USE;
void il__data_close(struct il__data *d); /* NULL is fine */
/* Where it is, for people to read; without user and password. */
const char *il__data_where(const struct il__data *d);
/* Can it be reached? For /ready. */
il_status il__data_ping(struct il__data *d, il_error *reterr) MUST_USE;

/* ---- tenants --------------------------------------------------------------------------------------------------------------- */

/* 0 = no limit, or the server's own. Live leases and jobs are counted once a second, so a burst within a second may pass their limits. */
struct il__data_limits {
    int64_t requests_per_second; /* a token bucket; per server */
    int64_t burst;               /* its size; 0 = twice the rate */
    int64_t waiters;             /* long polls at once, per server */
    int64_t streams;             /* event streams at once, per server */
    int64_t locks;               /* live leases */
    int64_t jobs;                /* live jobs */
    int64_t triggers_per_minute; /* of pipelines; per server */
    int64_t triggers_per_hour;
    int64_t runs; /* of pipelines, live: PENDING and RUNNING ones; exact (il_run_in.live_max) */
    int64_t runs_per_day; /* begun since midnight, UTC; exact */
};

struct il__data_tenant {
    const char            *id; /* ^[a-z0-9_]+$, at most IL_TENANT_BYTES_MAX */
    const char            *name;
    struct il__data_limits limits;
    int64_t                created_at_ms;
};

/* Callbacks get rows that live until they return. They are called while the data store is busy with the caller: they must not use it. A limit of 0 is 100
 * rows, one above DATA_PAGE_MAX is that. */
typedef void il__data_tenant_fn(void *cookie, const struct il__data_tenant *tenant);

/* IL_OK, IL_DUPLICATE, IL_INVAL, IL_STORE. */
il_status il__data_tenant_create(struct il__data *d, const struct il__data_tenant *t,
                                 il_error *reterr) MUST_USE;
/* Name and limits. IL_NOT_FOUND. */
il_status il__data_tenant_set(struct il__data *d, const struct il__data_tenant *t, il_error *reterr)
    MUST_USE;
/* One by id (IL_NOT_FOUND), or a page in order of ids after `after` (NULL = from the first). */
il_status il__data_tenant_get(struct il__data *d, const char *id, il__data_tenant_fn *each,
                              void *cookie, il_error *reterr) MUST_USE;
il_status il__data_tenant_list(struct il__data *d, const char *after, uint32_t limit,
                               il__data_tenant_fn *each, void *cookie, il_error *reterr) MUST_USE;

/* ---- keys ------------------------------------------------------------------------------------------------------------------ */

/* What a key may do. A role contains those before it. */
enum il__data_role {
    DATA_ROLE_NONE, /* only its named permissions */
    DATA_ROLE_READ,
    DATA_ROLE_WRITE,
    DATA_ROLE_OPERATOR,
    DATA_ROLE_ADMIN, /* of the server: tenants, keys, and everything of every tenant that has an /admin route */
    DATA_ROLE_COUNT
};
const char *il__data_role_name(enum il__data_role role); /* "none", "read", "write", "operator", "admin" */
enum il__data_role il__data_role_parse(const char *name); /* DATA_ROLE_COUNT: it is none */

struct il__data_key {
    const char        *id; /* UUIDv7; how people and audits name the key */
    const char        *tenant;
    const char        *name; /* a label; "" = none */
    enum il__data_role role;
    const char *permissions; /* named ones, separated by spaces: "admin:usage queue:claim"; "" = none */
    const char *prefix;      /* only keys, queues, … that begin so; "" = all */
    int64_t     created_at_ms;
    int64_t     expires_at_ms; /* 0 = never */
    int64_t     used_at_ms;    /* to the minute; 0 = never */
    int64_t     revoked_at_ms; /* 0 = not */
};
typedef void il__data_key_fn(void *cookie, const struct il__data_key *key);

/* Make one; the tenant is made if `make_tenant`, else it must be there (IL_NOT_FOUND). Of *key the id and the times other than expires_at_ms are not read. ret_secret
 * is the key as it is shown, once: il__data_forget() it. */
il_status il__data_key_create(struct il__data *d, const struct il__data_key *key, bool make_tenant,
                              char ret_id[DATA_ID_BYTES], char ret_secret[DATA_KEY_BYTES_MAX],
                              il_error *reterr) MUST_USE;
/* Overwrite a secret, for certain. */
void il__data_forget(void *secret, size_t n_bytes);
/* By what a caller shows: IL_OK (also of one that is revoked or expired: the caller looks), IL_NOT_FOUND. The hash takes no lock, and about a microsecond. */
void      il__data_key_hash(struct il__data *d, const char *secret, size_t n_bytes,
                            unsigned char ret[DATA_HASH_BYTES]);
il_status il__data_key_find(struct il__data *d, const unsigned char hash[DATA_HASH_BYTES],
                            il__data_key_fn *each, void *cookie, il_error *reterr) MUST_USE;
/* By its id. IL_NOT_FOUND also when it is another tenant's (tenant NULL = any). */
il_status il__data_key_get(struct il__data *d, const char *tenant, const char *id,
                           il__data_key_fn *each, void *cookie, il_error *reterr) MUST_USE;
/* tenant NULL = of all. In order of ids after `after`. */
il_status il__data_key_list(struct il__data *d, const char *tenant, const char *after, uint32_t limit,
                            il__data_key_fn *each, void *cookie, il_error *reterr) MUST_USE;
/* IL_NOT_FOUND also when it is another tenant's (tenant NULL = any). Repeatable. */
il_status il__data_key_revoke(struct il__data *d, const char *tenant, const char *id,
                              il_error *reterr) MUST_USE;
/* It was used then: noted to the minute, and only if that is later than what is known. IL_OK also when there is no such key. */
il_status il__data_key_used(struct il__data *d, const char *id, int64_t at_ms, il_error *reterr)
    MUST_USE;
/* How many keys are there that can be used? 0: a server's first start prints one. */
il_status il__data_key_count(struct il__data *d, uint64_t *ret, il_error *reterr) MUST_USE;

/* ---- audit ------------------------------------------------------------------------------------------------------------------ */

struct il__data_act {
    uint64_t    seq;
    int64_t     at_ms;
    const char *tenant; /* whose thing it was done to */
    const char *who;    /* the key's id, "cli:USER", "config" */
    const char *act; /* "lock.break", "run.cancel", "job.retry", "queue.pause", "key.create", "tenant.create", "config.reload", … */
    const char *what;    /* the key, run, job, queue, … */
    const char *reason;  /* "" = none */
    const char *outcome; /* the status's wire name */
    const char *details; /* JSON object; "" = none; never a secret or a payload */
};
#define DATA_ACT_TEXT_BYTES_MAX 4096 /* what, reason and details: what is longer is cut */
typedef void il__data_act_fn(void *cookie, const struct il__data_act *act);

/* One commit. seq is given here, and at_ms unless it is set; a text that is NULL is "", and what is not UTF-8 in one becomes '?'. */
il_status il__data_audit_add(struct il__data *d, const struct il__data_act *acts, size_t n,
                             il_error *reterr) MUST_USE;
/* Newest first, before `before` (0 = from the newest). tenant NULL = all; act NULL = all, else this one. */
il_status il__data_audit_list(struct il__data *d, const char *tenant, const char *act,
                              uint64_t before, uint32_t limit, il__data_act_fn *each, void *cookie,
                              il_error *reterr) MUST_USE;
/* Forget what is older; at most 1,000 rows a call. *ret_n = how many. */
il_status il__data_audit_purge(struct il__data *d, int64_t older_than_ms, uint64_t *ret_n,
                               il_error *reterr) MUST_USE;

#endif
