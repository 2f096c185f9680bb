/*
 * migration.h: schema versions, and how a store is created or upgraded (`interlock migrate`).
 */
#ifndef IL_STORE_MIGRATION_H
#define IL_STORE_MIGRATION_H

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

struct il__migration {
    /* such a store upgrades itself when it is opened; the other fields are unused */
    bool by_itself;
    int  from;      /* the schema version before; 0 = there was none */
    int  to;        /* as it is now, or would be */
    bool functions; /* functions of another version were, or would be, replaced */
};

#endif
