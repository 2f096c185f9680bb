/*
 * history.h: the tournaments of a user as a replay of the skills reads them (skill.c).
 */
#ifndef IL_APPS_CAMPUS_HISTORY_H
#define IL_APPS_CAMPUS_HISTORY_H

#include "apps/campus/campus_tx.h"
#include "apps/campus/skills_json.h"

struct campus_past {
    const char          *id, *license; /* license NULL: none */
    int64_t              achieved_ms;
    struct campus_played played;
};
struct campus_history {
    struct campus_past   *items; /* sorted by (achieved_ms, id) */
    size_t                n;
    struct campus_played *played; /* room for n + 1: campus_history_of() */
};
/* Release in any case. */
il_status campus_history_read(struct campus_call *c, il_guard_tx *tx, const char *user,
                              struct campus_history *ret, il_error *reterr) MUST_USE;
void      campus_history_release(struct campus_history *h);
#define AUTO_HISTORY AUTO(campus_history_release)
/* Insert a participation, which is not in it, at its place; there is room for one. Returns its
 * index. */
size_t campus_history_insert(struct campus_history *h, const struct campus_past *p);
/* The tournaments of one license, in h->played; returns how many. *ret_i (may be NULL): the index
 * among them of the item with index i. */
size_t campus_history_of(struct campus_history *h, const char *license, size_t i, size_t *ret_i);

#endif
