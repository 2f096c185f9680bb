/*
 * model.h: what `interlock top` shows: reads pages of locks, runs and queues, sorts and filters
 * them, and makes tables of them. It knows no terminal.
 */
#ifndef IL_CLI_TOP_MODEL_H
#define IL_CLI_TOP_MODEL_H

#include "cli/cli.h"

enum top_tab {
    TOP_OVERVIEW,
    TOP_LOCKS,
    TOP_RUNS,
    TOP_QUEUES,
    TOP_TAB_COUNT
};

#define TOP_FILTER_BYTES 128
#define TOP_ID_BYTES (IL_KEY_BYTES_MAX + 64)

/* Something that needs attention; a row of the overview. */
struct top_problem {
    const char          *what;
    const char          *name; /* key, run or queue */
    const char          *detail;
    const il_lease_info *lease; /* NULL: not of a lock */
};

struct top_model {
    const char         *prefix; /* of the keys and queues to show, or NULL */
    enum top_tab        tab;
    size_t              sort[TOP_TAB_COUNT];    /* a column */
    bool                reverse[TOP_TAB_COUNT]; /* descending */
    char                filter[TOP_FILTER_BYTES];
    il_op               lists[TOP_TAB_COUNT]; /* the pages; that of TOP_OVERVIEW is not used */
    struct top_problem *problems;             /* of the overview */
    size_t              n_problems;
    const void        **rows; /* of the tab: filtered and sorted */
    size_t              n_rows;
    size_t              selected;
    char                selected_id[TOP_ID_BYTES];
    int64_t             now_ms; /* wall clock of the last read */
    bool                lost;   /* the last read failed; what is shown is older */
    il_error            error;  /* then: why */
};

/* `prefix` is not copied. */
void top_model_init(struct top_model *m, const char *prefix);
void top_model_release(struct top_model *m);

const char *top_tab_name(enum top_tab tab);

/* Read what the tab shows, and arrange it. A failed read sets `lost` and keeps what was read
 * before. IL_OK, or the error. */
il_status top_model_read(struct top_model *m, const struct cli *cli);
/* Filter and sort what was read; the selection stays on its row if that is still there. */
void top_model_arrange(struct top_model *m);

void top_model_tab(struct top_model *m, enum top_tab tab);
/* Sort by the next column (or by the previous: -1). */
void top_model_sort(struct top_model *m, int step);
void top_model_select(struct top_model *m, int64_t step);

/* The lease of the selected row, or NULL. */
const il_lease_info *top_model_lease(const struct top_model *m);

/* The table of the tab: headers, then a row for each of `rows`. il__cli_grid_release() it. */
void top_model_grid(const struct top_model *m, struct cli_grid *g);
/* One line: how many there are, the filter and the sorting. */
void top_model_summary(const struct top_model *m, struct il__buf *b);

#endif
