/*
 * orphan.c: reports runs whose server died. A dead server cannot report that the leases of its runs
 * expired, so the others do: each remembers the runs it sees RUNNING elsewhere, and examines one
 * that is no longer RUNNING. Of the servers that notice the same run, the one that gets a lock
 * named after the run reports it; the lock is left to expire.
 *
 * Nothing is executed again here. The run has FAILED; another one needs a new trigger.
 */
#include <stdio.h>

#include "apps/work/work_internal.h"
#include "base/clock.h"
#include "base/hash.h"

#define TOLD_KEY "%s-expired:%s" /* class, run */
#define TOLD_MS WORK_CLOCKS_MS   /* servers notice the same run within seconds of each other */
#define KNOWN_MAX 4096
#define FIRST_PAGE 100

struct orphan {
    uint64_t hash;
    bool     seen; /* by the current scan */
    char     tenant[IL_TENANT_BYTES_MAX + 1];
    char     id[IL_ID_BYTES_MAX + 1];
};

struct orphans {
    struct work   *w;
    struct il__map map;       /* struct orphan: RUNNING elsewhere at the last scan */
    int64_t        opened_ms; /* wall clock */
    bool           looked;    /* for runs that ended before this server started */
};

struct orphans *
work_orphans_new(struct work *w)
{
    struct orphans *o = il__calloc(1, sizeof *o);

    if (o != NULL)
        *o = (struct orphans){ .w = w, .opened_ms = il__clock_wall_ms() };
    return o;
}

void
work_orphans_free(struct orphans *o)
{
    if (o == NULL)
        return;
    for (size_t i = 0; i < o->map.size; i++)
        il__free(o->map.slots[i].item);
    il__map_release(&o->map);
    il__free(o);
}

bool
work_claim_expiry_report(struct work *w, const char *tenant, const char *run)
{
    char  key[IL_KEY_BYTES_MAX + 1];
    il_op op = { .type = IL_OP_ACQUIRE, .tenant = tenant, .key = key, .holder = w->instance };

    (void)snprintf(key, sizeof key, TOLD_KEY, w->o.kind->class, run); /* the buffer fits */
    op.in.lock.ttl_ms = TOLD_MS;
    /* Better twice than never: leave it to another server only if that one holds the lock. */
    bool other = il_apply(w->o.h, &op, 1, NULL) == IL_OK && op.status == IL_HELD;
    bool again = (op.out.flags & IL_OUT_RENEWED) != 0; /* already reported by us */
    il_op_release(&op);
    return !other && !again;
}

static struct orphan *
find(const struct orphans *o, uint64_t hash, const char *tenant, const char *id)
{
    struct orphan *it;

    for (size_t i = il__map_start(&o->map, hash); (it = il__map_next(&o->map, hash, &i)) != NULL;
         i++) {
        if (strcmp(it->id, id) == 0 && strcmp(it->tenant, tenant) == 0)
            break;
    }
    return it;
}

static void
remember(struct orphans *o, const char *tenant, const il_run_info *run)
{
    uint64_t       hash = il__hash_mix(il__hash_bytes(tenant, strlen(tenant)),
                                       il__hash_bytes(run->id, strlen(run->id)));
    struct orphan *it   = find(o, hash, tenant, run->id);

    il__mutex_lock(&o->w->mutex);
    bool ours = work_is_executing(o->w, tenant, run->id);
    il__mutex_unlock(&o->w->mutex);
    if (it == NULL && !ours && o->map.n < KNOWN_MAX && il__map_reserve(&o->map) &&
        (it = il__calloc(1, sizeof *it)) != NULL) {
        it->hash = hash;
        (void)snprintf(it->tenant, sizeof it->tenant, "%s", tenant);
        (void)snprintf(it->id, sizeof it->id, "%s", run->id);
        il__map_add(&o->map, hash, it);
    }
    if (it != NULL)
        it->seen = true;
}

/* The run has ended. Was it because its worker died? */
static void
judge(struct orphans *o, const char *tenant, const il_run_info *run)
{
    int64_t ended_ms = run->ended_at_ms != 0 ? run->ended_at_ms : il__clock_wall_ms();

    if (run->started_at_ms == 0 || strstr(run->error, WORK_CRASHED) == NULL ||
        strncmp(run->key, o->w->prefix, o->w->n_prefix) != 0 ||
        !work_claim_expiry_report(o->w, tenant, run->id))
        return;
    work_note(o->w, (struct work_note){ .event   = WORK_EVENT_expired,
                                        .tenant  = tenant,
                                        .name    = run->key + o->w->n_prefix,
                                        .run     = run->id,
                                        .text    = run->error,
                                        .wait_ms = -1,
                                        .hold_ms = MAX(ended_ms - run->started_at_ms, 0),
                                        .fence   = run->fence });
}

/* A run missing from the listing: find out what became of it. */
static void
ask(struct orphans *o, struct orphan *it)
{
    il_op op = { .type = IL_OP_RUN_GET, .tenant = it->tenant };

    op.in.run.id = it->id;
    bool told    = il_apply(o->w->o.h, &op, 1, NULL) == IL_OK;
    bool ended =
        told && op.status == IL_OK && op.out.n_runs > 0 && op.out.runs[0].state > IL_RUN_RUNNING;
    if (ended)
        judge(o, it->tenant, &op.out.runs[0]);
    if (ended || (told && op.status == IL_NOT_FOUND)) {
        il__map_remove(&o->map, it->hash, it);
        il__free(it);
    }
    il_op_release(&op);
}

static il_op
list_op(const struct work *w, const char *tenant, uint32_t states, uint32_t limit)
{
    il_op op = { .type = IL_OP_RUN_LIST, .tenant = tenant };

    op.in.list.prefix = w->prefix;
    op.in.list.states = states;
    op.in.list.limit  = limit;
    return op;
}

static void
look_at(struct orphans *o, const char *tenant, const il_op *running, const il_op *ended)
{
    for (size_t i = 0; i < running->out.n_runs; i++)
        remember(o, tenant, &running->out.runs[i]);
    /* Removing one may move another into its slot; that one is then examined in the next scan. */
    for (size_t i = 0; running->out.next == NULL && i < o->map.size; i++) {
        struct orphan *it = o->map.slots[i].item;
        if (it != NULL && !it->seen && strcmp(it->tenant, tenant) == 0)
            ask(o, it);
    }
    /* Runs that ended around our start: perhaps no server saw them RUNNING. */
    for (size_t i = 0; ended != NULL && i < ended->out.n_runs; i++) {
        const il_run_info *run = &ended->out.runs[i];
        if (run->ended_at_ms == 0 || run->ended_at_ms >= o->opened_ms - WORK_CLOCKS_MS)
            judge(o, tenant, run);
    }
}

void
work_orphans_look(struct orphans *o, char (*tenants)[IL_TENANT_BYTES_MAX + 1], size_t n)
{
    size_t n_ops = o->looked ? n : 2 * n; /* the first time also ended runs, after the others */
    il_op *ops   = n > 0 ? il__calloc(n_ops, sizeof *ops) : NULL;

    if (ops == NULL)
        return;
    for (size_t i = 0; i < n; i++) {
        ops[i] = list_op(o->w, tenants[i], 1U << IL_RUN_RUNNING, IL_PAGE_ITEMS_MAX);
        if (!o->looked)
            ops[n + i] =
                list_op(o->w, tenants[i], 1U << IL_RUN_FAILED | 1U << IL_RUN_CANCELLED, FIRST_PAGE);
    }
    for (size_t i = 0; i < o->map.size; i++) {
        struct orphan *it = o->map.slots[i].item;
        if (it != NULL)
            it->seen = false;
    }
    bool ok = work_list_all(o->w, ops, n_ops, NULL) == IL_OK;
    for (size_t i = 0; ok && i < n; i++) {
        if (ops[i].status == IL_OK)
            look_at(o, tenants[i], &ops[i], o->looked ? NULL : &ops[n + i]);
    }
    for (size_t i = 0; i < n_ops; i++)
        il_op_release(&ops[i]);
    il__free(ops);
    o->looked = o->looked || ok;
}
