/* columns.h: the columns of each tab of `interlock top`: text and order of a cell. */
#ifndef IL_CLI_TOP_COLUMNS_H
#define IL_CLI_TOP_COLUMNS_H

#include "cli/top/model.h"

struct top_column {
    const char *header;
    void (*cell)(const void *item, int64_t now_ms, struct il__buf *b); /* not escaped */
    int (*compare)(const void *a, const void *b);                      /* two items */
};

struct top_columns {
    const char              *name; /* of the tab */
    const struct top_column *columns;
    size_t                   n;
    size_t                   sort;    /* the column that it is sorted by at first */
    size_t                   elastic; /* the column that is cut on a narrow terminal */
    /* Identifies the item after the next read. */
    void (*id)(const void *item, char out[TOP_ID_BYTES]);
};

extern const struct top_columns il__top_columns[TOP_TAB_COUNT];

#endif
