/*
 * migration.h: bringing a store up to date: `interlock migrate`.
 */
#ifndef IL_STORE_MIGRATION_H
#define IL_STORE_MIGRATION_H

#include "base/base.h"

struct il__migration {
    bool by_itself; /* such a store brings itself up to date when it is opened; the rest means nothing */
    int  from;      /* version of the schema as it was; 0 = there was none */
    int  to;        /* as it is now, or would be */
    bool functions; /* functions of another version were, or would be, installed */
};

#endif
