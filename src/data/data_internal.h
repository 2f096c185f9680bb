/*
 * data_internal.h: what the files of this folder share.
 *
 *   data.c      opening, transactions, listings: the way to an engine
 *   where.c     which data store belongs to which URLs
 *   pepper.c    the pepper, and hashes with it
 *   tenant.c, key.c, audit.c, history.c   what is kept
 *   text.c      texts that do not fit, or are none
 *   sqlite/, postgres/         the engines: the same statements, in files of their own
 */
#ifndef IL_DATA_INTERNAL_H
#define IL_DATA_INTERNAL_H

#include "base/buf.h"
#include "base/mutex.h"
#include "data/data.h"
#include "data/libsodium.h"

#define DATA_VERSION 2 /* the newest migration leads here; the engines have one to each version */
#define DATA_MIN_VERSION 1 /* the oldest code that can use what we make */

enum data_stmt {
#define X(name) DATA_##name,
#include "data/statements.def"
#undef X
    DATA_STMT_COUNT
};

/* ---- an engine ------------------------------------------------------------------------------------------------------------- */

#define DATA_PARAMS_MAX 20
#define DATA_COLUMNS_MAX 20

/* A parameter: a text, or, if that is NULL, a number. */
struct data_param {
    const char *text;
    int64_t     number;
};
#define DATA_TEXT(t) ((struct data_param){ .text = (t) })
#define DATA_NUMBER(n) ((struct data_param){ .number = (n) })

/* A row of an answer: each column has a text or a number, as its statement says. */
struct data_row {
    size_t n;
    struct {
        const char *text; /* "" for a number */
        int64_t     number;
    } columns[DATA_COLUMNS_MAX];
};
typedef void data_row_fn(void *cookie, const struct data_row *row);

struct data_engine;

/* One caller at a time. */
struct data_engine_ops {
    void (*free)(struct data_engine *e);
    /* Begin a write transaction; it ends with commit, whatever that returns, or with rollback. */
    il_status (*begin)(struct data_engine *e, il_error *reterr);
    il_status (*commit)(struct data_engine *e, il_error *reterr);
    void (*rollback)(struct data_engine *e);
    /* Run one statement, in the transaction or, if it only reads, without one. each may be NULL. After a failure in a transaction all that is left is rollback. */
    il_status (*run)(struct data_engine *e, enum data_stmt stmt, const struct data_param *params,
                     size_t n, data_row_fn *each, void *cookie, il_error *reterr);
    /* Which version of the tables is there (0: none), and which is the oldest code that may use it? */
    il_status (*look)(struct data_engine *e, int64_t *ret_version, int64_t *ret_min_version,
                      il_error *reterr);
    /* In a transaction of `begin_upgrade`, which only one has at a time: make what leads from `version` to the next. */
    il_status (*begin_upgrade)(struct data_engine *e, il_error *reterr);
    il_status (*upgrade)(struct data_engine *e, int64_t version, il_error *reterr);
};

struct data_engine {
    const struct data_engine_ops *ops;
    const char                   *where; /* for people; the engine's */
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

/* ---- data.c ---------------------------------------------------------------------------------------------------------------- */

struct il__data {
    struct data_engine *engine;
    struct il__mutex    mutex; /* of who uses the engine */
    bool                has_pepper;
    crypto_auth_hmacsha256_state keyed; /* HMAC with it, ready for the message; never changed after opening */
};

/* A statement that reads, by itself. */
il_status il__data_read(struct il__data *d, enum data_stmt stmt, const struct data_param *params,
                        size_t n, data_row_fn *each, void *cookie, il_error *reterr) MUST_USE;
/* One that writes, as a transaction of its own. */
il_status il__data_write(struct il__data *d, enum data_stmt stmt, const struct data_param *params,
                         size_t n, data_row_fn *each, void *cookie, il_error *reterr) MUST_USE;

/* A transaction of several statements: all of them or none. fn runs them with il__data_run(), and what it returns other than IL_OK undoes them. */
typedef il_status data_tx_fn(struct il__data *d, void *cookie, il_error *reterr);
il_status il__data_transaction(struct il__data *d, data_tx_fn *fn, void *cookie, il_error *reterr)
    MUST_USE;
il_status il__data_run(struct il__data *d, enum data_stmt stmt, const struct data_param *params,
                       size_t n, data_row_fn *each, void *cookie, il_error *reterr) MUST_USE;

/* A data_row_fn whose cookie is a uint64_t: how many rows came. */
void il__data_count_row(void *cookie, const struct data_row *row);
/* Rows of a listing, from what the caller asked for. */
int64_t il__data_page(uint32_t limit);

/* ---- where.c --------------------------------------------------------------------------------------------------------------- */

/* The URL of the data store of these options, into *url; the folder of a default one is made unless `existing`. */
il_status il__data_url(const struct il__data_open *o, struct il__buf *url, il_error *reterr) MUST_USE;

/* ---- pepper.c -------------------------------------------------------------------------------------------------------------- */

/* Find the pepper, or make one, and make d->keyed of it. */
il_status il__data_pepper_open(struct il__data *d, const char *file, il_error *reterr) MUST_USE;
void      il__data_pepper_close(struct il__data *d);

#define DATA_HEX_BYTES(n) (2 * (n) + 1)
/* Bytes as small hex digits and a NUL. */
void il__data_hex(const unsigned char *data, size_t n, char *out);

/* ---- text.c ---------------------------------------------------------------------------------------------------------------- */

/* `text` if it can be kept as it is (valid UTF-8, at most n_max bytes), else a copy of its beginning or of its end that can: what is not UTF-8 becomes '?'. NULL is "". NULL
 * is returned when there is no memory. */
const char *il__data_fit(void **arena, const char *text, size_t n_max);
const char *il__data_fit_tail(void **arena, const char *text, size_t n_max);

/* ---- tenant.c -------------------------------------------------------------------------------------------------------------- */

/* The parameters of tenant_add; all but the last are those of tenant_set. */
#define DATA_TENANT_PARAMS 13
void il__data_tenant_params(struct data_param             params[DATA_TENANT_PARAMS],
                            const struct il__data_tenant *t, int64_t now_ms);

/* ---- key.c ----------------------------------------------------------------------------------------------------------------- */

/* ^[a-z0-9_]+$, at most IL_TENANT_BYTES_MAX: IL_OK or IL_INVAL. */
il_status il__data_check_tenant(const char *id, il_error *reterr) MUST_USE;

#endif
