/*
 * slots.h: the slots that this process knows of and may execute. They are only a cache: the store
 * decides who executes a slot. All of it requires the mutex of the executor.
 */
#ifndef IL_APPS_WORK_SLOTS_H
#define IL_APPS_WORK_SLOTS_H

#include "apps/work/work.h"
#include "base/map.h"

struct slot {
    struct slot       *next; /* of its group, oldest first */
    struct slot_group *group;
    uint64_t           seq;     /* of the run; 0 = not known yet, which sorts last */
    uint64_t           arrived; /* order of arrival */
    uint64_t           pass;    /* the last listing that contained it */
    char               id[IL_ID_BYTES_MAX + 1];
};

/* The slots of one subject. */
struct slot_group {
    struct slot_group  *next; /* of its tenant */
    struct slot_tenant *tenant;
    struct slot        *first;
    int64_t             not_before_ns;
    bool                busy; /* one of its runs is being started or executed here */
    char                name[WORK_NAME_BYTES_MAX + 1];
};

struct slot_tenant {
    struct slot_tenant *next, *prev; /* a ring */
    struct slot_group  *groups;
    size_t              n; /* slots */
    char                name[IL_TENANT_BYTES_MAX + 1];
};

struct slots {
    struct il__map      ids;    /* struct slot by (tenant, id) */
    struct il__map      groups; /* struct slot_group by (tenant, name) */
    struct slot_tenant *turn;   /* a ring; points to the tenant whose turn it is */
    size_t              n;
    uint64_t            n_arrived;
};

/* NULL = unknown */
struct slot        *work_slots_find(struct slots *w, const char *tenant, const char *id);
struct slot_group  *work_slots_group(struct slots *w, const char *tenant, const char *name);
struct slot_tenant *work_slots_tenant(struct slots *w, const char *name);
/* Note a slot; its number may become known later. NULL: there is no room or memory; a later
 * listing finds it again. */
struct slot *work_slots_note(struct slots *w, const char *tenant, const char *name, const char *id,
                             uint64_t seq);
/* It no longer waits. Its group goes with its last slot, unless it is busy. */
void work_slots_forget(struct slots *w, struct slot *slot);
/* Free the group, and its tenant, if they are empty and not busy. */
void work_slots_drop_group(struct slots *w, struct slot_group *g);
/* Which of two slots was created first? */
bool work_slot_comes_before(const struct slot *a, const struct slot *b);
/* Try this slot before the others of its group. */
void work_slots_put_first(struct slot *slot);
/* Something may have changed: let all groups be tried at once. */
void work_slots_try_all(struct slots *w);
/* Nothing is executed any more. */
void work_slots_release(struct slots *w);

#endif
