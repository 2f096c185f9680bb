/*
 * schema.h: versions of a database schema, how tables are created and upgraded to the newest one,
 * and what `interlock migrate` reports.
 *
 * The stores of SQLite and PostgreSQL do this in their own way (src/store). The data store and the
 * tables of apps share il__schema_prepare(): it decides what is done, and struct il__schema_ops
 * does it in a database.
 */
#ifndef IL_CORE_SCHEMA_H
#define IL_CORE_SCHEMA_H

#include "base/base.h"

/*
 * A schema as this binary knows it. steps[v] is the SQL that upgrades version v to v + 1; steps[0]
 * creates version 1. Each engine defines its steps in a file that holds nothing else
 * (schema_steps.c), so that tests/next can link another one with one more version and test the
 * upgrade.
 */
struct il__schema {
    int                version;     /* the version it writes, and the number of steps */
    int                min_version; /* the oldest code that can use this schema */
    const char *const *steps;
};
/* A schema of all these steps, an array. */
#define IL__SCHEMA(min_version_, steps_)                                               \
    {                                                                                  \
        .version = ARRAY_LEN(steps_), .min_version = (min_version_), .steps = (steps_) \
    }

struct il__migration {
    /* such a store upgrades itself when it is opened; the other fields are unused */
    bool by_itself;
    int  from;      /* the schema version before; 0 = there was none */
    int  to;        /* as it is now, or would be */
    bool functions; /* functions of another version were, or would be, replaced */
};

typedef il_status il__schema_fn(void *cookie, il_error *reterr);

/* What il__schema_prepare() needs of a database. */
struct il__schema_ops {
    /* The version of the tables (0: missing), and the oldest code version that may use them; in
     * `transact` or outside of it. */
    il_status (*look)(void *db, int64_t *ret_version, int64_t *ret_min_version, il_error *reterr);
    /* Call fn in a transaction that excludes other upgrades. Commit if it returns IL_OK, else roll
     * back and return its status. */
    il_status (*transact)(void *db, il__schema_fn *fn, void *cookie, il_error *reterr);
    /* In `transact`: upgrade from `version` to the next one; record the version. */
    il_status (*step)(void *db, int version, il_error *reterr);
    il_status (*record)(void *db, int version, int min_version, il_error *reterr);
};

struct il__schema_tables {
    const struct il__schema     *schema; /* the wanted one */
    const struct il__schema_ops *ops;
    void                        *db;
    const char                  *what;  /* for messages: "the tables of ingest" */
    const char                  *where; /* the database, without user and password */
};

enum il__schema_may {
    IL__SCHEMA_CREATE  = 1 << 0, /* tables that are missing */
    IL__SCHEMA_UPGRADE = 1 << 1, /* tables of an older version */
};

/* What would be done: ret->from and ret->to. IL_OK, IL_NEWER (this code cannot use the tables),
 * IL_CORRUPT, or what ops->look() returns. */
il_status il__schema_look(const struct il__schema_tables *t, struct il__migration *ret,
                          il_error *reterr) MUST_USE;
/*
 * Make sure that the tables exist, in a version that this code can use. `may`: enum il__schema_may.
 * Several processes may call it at once: one does the work, the others wait for it. *ret as above.
 *
 * IL_OK, IL_NOT_FOUND (missing, and it may not create them), IL_STORE (older, and it may not
 * upgrade them), or as il__schema_look().
 */
il_status il__schema_prepare(const struct il__schema_tables *t, unsigned may,
                             struct il__migration *ret, il_error *reterr) MUST_USE;

#endif
