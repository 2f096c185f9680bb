/*
 * wants.h: *wants*: the slots that this process knows of and may execute. They are only a cache:
 * the store decides who executes a slot. All of it requires the mutex of the executor.
 */
#ifndef IL_APPS_WORK_WANTS_H
#define IL_APPS_WORK_WANTS_H

#include "apps/work/work.h"
#include "base/map.h"

struct want {
    struct want       *next; /* of its group, oldest first */
    struct want_group *group;
    uint64_t           seq;     /* of the run; 0 = not known yet, which sorts last */
    uint64_t           arrived; /* order of arrival */
    uint64_t           pass;    /* the last listing that contained it */
    char               id[IL_ID_BYTES_MAX + 1];
};

/* The slots of one subject. */
struct want_group {
    struct want_group  *next; /* of its tenant */
    struct want_tenant *tenant;
    struct want        *first;
    int64_t             not_before_ns;
    bool                busy; /* one of its runs is being started or executed here */
    char                name[WORK_NAME_BYTES_MAX + 1];
};

struct want_tenant {
    struct want_tenant *next, *prev; /* a ring */
    struct want_group  *groups;
    size_t              n; /* wants */
    char                name[IL_TENANT_BYTES_MAX + 1];
};

struct wants {
    struct il__map      ids;    /* struct want by (tenant, id) */
    struct il__map      groups; /* struct want_group by (tenant, name) */
    struct want_tenant *turn;   /* a ring; points to the tenant whose turn it is */
    size_t              n;
    uint64_t            n_arrived;
};

/* NULL = unknown */
struct want        *wants_find(struct wants *w, const char *tenant, const char *id);
struct want_group  *wants_group(struct wants *w, const char *tenant, const char *name);
struct want_tenant *wants_tenant(struct wants *w, const char *name);
/* Note a slot; its number may become known later. NULL: there is no room or memory; a later
 * listing finds it again. */
struct want *wants_note(struct wants *w, const char *tenant, const char *name, const char *id,
                        uint64_t seq);
/* It no longer waits. Its group goes with its last slot, unless it is busy. */
void wants_forget(struct wants *w, struct want *want);
/* Free the group, and its tenant, if they are empty and not busy. */
void wants_drop_group(struct wants *w, struct want_group *g);
/* Which of two slots was created first? */
bool want_comes_before(const struct want *a, const struct want *b);
/* Try this slot before the others of its group. */
void wants_put_first(struct want *want);
/* Something may have changed: let all groups be tried at once. */
void wants_try_all(struct wants *w);
/* Nothing is executed any more. */
void wants_release(struct wants *w);

#endif
