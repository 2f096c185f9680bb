/*
 * tables_internal.h: declarations shared by tables.c and tables_place.c.
 */
#ifndef IL_APPS_COMMON_TABLES_INTERNAL_H
#define IL_APPS_COMMON_TABLES_INTERNAL_H

#include "apps/common/tables.h"

struct tables_place {
    bool                 is_postgres;
    char                *url;    /* PostgreSQL: of the database; SQLite: sqlite:PATH without .db */
    struct il__guard_url server; /* PostgreSQL: what the URL says */
    /* of a memory store: the temporary folder, or NULL, and a lock on it */
    char *folder;
    int   folder_fd;
    /* il__tables_place_share(): how many use it, for which URLs ("" = none given) */
    unsigned             n_shares;
    char                *store_url, *data_url;
    struct tables_place *next;
    /* SQLite: next to a store that a group can read; no tables are created there */
    bool is_for_group;
};

#endif
