/*
 * data_internal.h: declarations shared by the files of this folder.
 *
 *   data.c                                   opening, transactions, listings: access to an engine
 *   url.c                                    the URL of the data store that belongs to a store
 *   api_key_hash.c                           hashes of keys, and the pepper they are computed with
 *   session_sign.c                           signatures of sessions, random tokens
 *   libsodium.c                              loads libsodium on first use
 *   tenant.c, api_key.c, audit.c, history.c  the stored objects
 *   schema_steps.c                           the versions of the tables
 *   text.c                                   truncates long texts and replaces invalid UTF-8
 *   sqlite/, postgres/                       the engines: the same statements, each in its own SQL
 *                                            files
 */
#ifndef IL_DATA_INTERNAL_H
#define IL_DATA_INTERNAL_H

#include "base/buf.h"
#include "base/mutex.h"
#include "core/schema.h"
#include "data/data.h"
#include "data/libsodium.h"

/* schema_steps.c */
extern const struct il__schema il__data_sqlite_schema;
extern const struct il__schema il__data_postgres_schema;

/* The statements that every engine has in its sql/, with the same parameters and columns. A
 * statement that writes must be part of a transaction. */
enum data_stmt {
#define X(name) DATA_##name,
#include "data_statements.inc"
#undef X
};

/* ---- an engine ------------------------------------------------------------------------------- */

#define DATA_PARAMS_MAX 20
#define DATA_COLUMNS_MAX 20

/* A parameter: a text or, if that is NULL, a number. */
struct data_param {
    const char *text;
    int64_t     number;
};
#define DATA_TEXT(t) ((struct data_param){ .text = (t) })
#define DATA_NUMBER(n) ((struct data_param){ .number = (n) })

/* A result row: each column is a text or a number, as defined by its statement. */
struct data_row {
    struct {
        const char *text; /* "" for a number */
        int64_t     number;
    } columns[DATA_COLUMNS_MAX];
};
typedef void data_row_fn(void *cookie, const struct data_row *row);

struct data_engine;

/* One caller at a time. */
struct data_engine_ops {
    const struct il__schema *schema;
    void (*free)(struct data_engine *e);
    /* Begin a write transaction; it ends with commit, whatever that returns, or with rollback. */
    il_status (*begin)(struct data_engine *e, il_error *reterr);
    il_status (*commit)(struct data_engine *e, il_error *reterr);
    void (*rollback)(struct data_engine *e);
    /* Run one statement, in the transaction or, if it only reads, without one. each may be NULL.
     * After a failure in a transaction only rollback is allowed. */
    il_status (*run)(struct data_engine *e, enum data_stmt stmt, const struct data_param *params,
                     size_t n, data_row_fn *each, void *cookie, il_error *reterr);
    /* The version of the tables (0: none), and the oldest code version that may use them. */
    il_status (*look)(struct data_engine *e, int64_t *ret_version, int64_t *ret_min_version,
                      il_error *reterr);
    /* In an exclusive transaction of `begin_upgrade`: upgrade from `version` to the next. */
    il_status (*begin_upgrade)(struct data_engine *e, il_error *reterr);
    il_status (*upgrade)(struct data_engine *e, int64_t version, il_error *reterr);
};

struct data_engine {
    const struct data_engine_ops *ops;
    const char                   *where; /* for display; owned by the engine */
};

struct data_engine_open {
    const char *url;
    int64_t     timeout_ms;
    bool        existing;
};

/* sqlite:PATH and memory:; postgres: and postgresql:. */
il_status il__data_sqlite_open(const struct data_engine_open *o, struct data_engine **ret,
                               il_error *reterr) MUST_USE;
il_status il__data_postgres_open(const struct data_engine_open *o, struct data_engine **ret,
                                 il_error *reterr) MUST_USE;

/* ---- data.c ---------------------------------------------------------------------------------- */

struct il__data {
    struct data_engine *engine;
    struct il__mutex    mutex; /* held while using the engine */
    bool                has_pepper;
    /* HMAC states, ready for the message, keyed with it and with the key of sessions derived from
     * it; never change after opening */
    crypto_auth_hmacsha256_state keyed, session_keyed;
};

/* Run a statement that reads, without a transaction. */
il_status il__data_read(struct il__data *d, enum data_stmt stmt, const struct data_param *params,
                        size_t n, data_row_fn *each, void *cookie, il_error *reterr) MUST_USE;
/* Run one that writes, in its own transaction. */
il_status il__data_write(struct il__data *d, enum data_stmt stmt, const struct data_param *params,
                         size_t n, data_row_fn *each, void *cookie, il_error *reterr) MUST_USE;

/* A transaction of several statements: all or nothing. fn runs them with il__data_run(); any result
 * other than IL_OK rolls them back. */
typedef il_status data_tx_fn(struct il__data *d, void *cookie, il_error *reterr);
il_status il__data_transaction(struct il__data *d, data_tx_fn *fn, void *cookie, il_error *reterr)
    MUST_USE;
il_status il__data_run(struct il__data *d, enum data_stmt stmt, const struct data_param *params,
                       size_t n, data_row_fn *each, void *cookie, il_error *reterr) MUST_USE;

/* A data_row_fn that counts the rows; its cookie is a uint64_t. */
void il__data_count_row(void *cookie, const struct data_row *row);
/* The number of rows of a listing, from the requested limit. */
int64_t il__data_page(uint32_t limit);

/* ---- api_key_hash.c -------------------------------------------------------------------------- */

/* Find or create the pepper, and compute the keyed states from it. */
il_status il__data_pepper_open(struct il__data *d, const char *file, il_error *reterr) MUST_USE;
void      il__data_pepper_close(struct il__data *d);

#define DATA_HEX_BYTES(n) (2 * (n) + 1) /* of il__hex_print() */
/* HMAC-SHA-256 of a message with a keyed state. */
void il__data_hmac(const crypto_auth_hmacsha256_state *keyed, const char *message, size_t n_bytes,
                   unsigned char ret[DATA_HASH_BYTES]);

/* ---- text.c ---------------------------------------------------------------------------------- */

/* `text` if it can be stored unchanged (valid UTF-8, at most n_max bytes), else a copy of its
 * beginning or end that can: invalid UTF-8 becomes '?'. NULL becomes "". Returns NULL when out of
 * memory. */
const char *il__data_fit(void **arena, const char *text, size_t n_max);
const char *il__data_fit_tail(void **arena, const char *text, size_t n_max);

/* ---- tenant.c -------------------------------------------------------------------------------- */

/* The parameters of tenant_add and tenant_set: id, name, the limits, and `last`. */
#define DATA_TENANT_PARAMS (3 + sizeof(struct il__data_limits) / sizeof(int64_t))
_Static_assert(DATA_TENANT_PARAMS == 14, "sql/tenant.sql has a column for each limit");
_Static_assert(DATA_TENANT_PARAMS <= DATA_PARAMS_MAX, "a row of a tenant fits");
void il__data_tenant_params(struct data_param             params[DATA_TENANT_PARAMS],
                            const struct il__data_tenant *t, int64_t last);

/* ---- api_key.c ------------------------------------------------------------------------------- */

/* ^[a-z0-9_]+$, at most IL_TENANT_BYTES_MAX: IL_OK or IL_INVAL. */
il_status il__data_check_tenant(const char *id, il_error *reterr) MUST_USE;

#endif
