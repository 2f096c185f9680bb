/*
 * dispatch.c: keeps the slots that wait for execution, and decides which is next.
 *
 * It knows slots (slots.h) from its own triggers, which report theirs at once, and from listings.
 * What it knows is only a cache: the store decides who executes a slot (il_run_start() with the
 * slot's id and a holder unique to this server and execution). A missing slot costs a second, an
 * extra one costs a refused start. Both are bounded.
 *
 * Order: tenants take turns, and each has its share of the places for runs (runtime/fair.h) unless
 * it is the only one with subjects. Within a tenant, the subject with the oldest slot comes first.
 * Within a subject, slots are taken in the order of the store, one at a time: while one of
 * them runs here, or the key was found held, the others are skipped and take no place.
 */
#include <stdio.h>

#include "apps/work/work_internal.h"
#include "base/clock.h"
#include "base/error.h"
#include "runtime/fair.h"

#define LIST_NS WORK_NS_PER_S            /* between two listings */
#define LIST_TENANTS_MAX 256             /* per listing: with more tenants they take turns */
#define LIST_PAGES_MAX 64                /* per tenant: more than there is room for */
#define LIST_ALL_NS (10 * WORK_NS_PER_S) /* how often all pages are read */
#define LIST_CURSOR_BYTES 128
#define RETRY_NS WORK_NS_PER_S /* for a key that was held */
#define TROUBLE_NS (2 * WORK_NS_PER_S)
#define TIDY_NS (60 * WORK_NS_PER_S) /* between two calls of the app */

/* ---- notifications --------------------------------------------------------------------------- */

static void
wake(struct work *w)
{
    w->changed = true;
    CHECK(pthread_cond_signal(&w->wake) == 0);
}

void
work_slot_created(struct work *w, const char *tenant, const char *run_id, const char *name)
{
    if (w->o.mode == WORK_ASK)
        return;
    il__mutex_lock(&w->mutex);
    struct slot *slot = work_slots_note(&w->slots, tenant, name, run_id, 0);
    if (slot != NULL)
        slot->pass = UINT64_MAX; /* a listing in progress need not contain it yet */
    wake(w);
    il__mutex_unlock(&w->mutex);
}

void
work_cancelled(struct work *w, const il_run_info *run)
{
    struct slots *all = &w->slots;

    if (w->o.mode == WORK_ASK || strncmp(run->key, w->prefix, w->n_prefix) != 0)
        return;
    il__mutex_lock(&w->mutex);
    struct slot_group *g    = work_slots_group(all, run->tenant, run->key + w->n_prefix);
    struct slot       *slot = work_slots_find(all, run->tenant, run->id);
    if (g != NULL)
        g->not_before_ns = 0; /* it may have been the one that the others waited for */
    if (slot != NULL && run->state > IL_RUN_RUNNING && !work_is_executing(w, run->tenant, run->id))
        work_slots_forget(all, slot); /* and perhaps its group */
    wake(w);
    il__mutex_unlock(&w->mutex);
}

void
work_running(struct work_execution *e)
{
    struct work *w = e->w;

    il__mutex_lock(&w->mutex);
    struct slot *slot = work_slots_find(&w->slots, e->tenant, e->id);
    if (slot != NULL)
        work_slots_forget(&w->slots, slot); /* its group is busy, so it stays */
    il__mutex_unlock(&w->mutex);
}

void
work_started(struct work_execution *e, enum work_started how, const char *before_id)
{
    struct work  *w   = e->w;
    struct slots *all = &w->slots;

    il__mutex_lock(&w->mutex);
    struct slot_group *g    = work_slots_group(all, e->tenant, e->pub.plan.name);
    struct slot       *slot = work_slots_find(all, e->tenant, e->id);
    CHECK(g != NULL && g->busy); /* set by the dispatcher when it began */
    g->busy = false;
    if (how == WORK_STARTED_LATER) {
        /* An older slot must go first, possibly one we did not know of: try that one at once. */
        struct slot *before = before_id != NULL
                                  ? work_slots_note(all, e->tenant, e->pub.plan.name, before_id, 0)
                                  : NULL;
        bool         ours   = before != NULL && before->group == g && before != slot;
        g->not_before_ns    = ours ? 0 : il__clock_boot_ns() + RETRY_NS;
        if (ours)
            work_slots_put_first(before);
    } else if (how == WORK_STARTED_TROUBLE) {
        g->not_before_ns = il__clock_boot_ns() + TROUBLE_NS;
    } else {
        g->not_before_ns = 0; /* the next slot may be tried now */
    }
    if (how == WORK_STARTED_OVER && slot != NULL)
        work_slots_forget(all, slot);
    else
        work_slots_drop_group(all, g);
    wake(w);
    il__mutex_unlock(&w->mutex);
}

/* ---- looking for slots ----------------------------------------------------------------------- */

/* List the tenants that have subjects, some of them each time. */
struct listing {
    char     tenants[LIST_TENANTS_MAX][IL_TENANT_BYTES_MAX + 1];
    size_t   n;
    char     after[IL_TENANT_BYTES_MAX + 1]; /* where the previous listing stopped; "" = start */
    bool     more;
    uint64_t pass;
    bool     all;    /* read all pages, not only those with new slots */
    int64_t  all_ns; /* when to do so again */
};

static bool
gather_tenant(void *cookie, const char *tenant)
{
    struct listing *l = cookie;

    if (strcmp(tenant, l->after) <= 0 && l->after[0] != '\0')
        return true;
    if (l->n == LIST_TENANTS_MAX) {
        l->more = true;
        return false;
    }
    (void)snprintf(l->tenants[l->n++], sizeof l->tenants[0], "%s", tenant);
    return true;
}

bool
work_is_executing(const struct work *w, const char *tenant, const char *id)
{
    for (const struct work_execution *e = w->executions; e != NULL; e = e->next) {
        if (strcmp(e->id, id) == 0 && strcmp(e->tenant, tenant) == 0)
            return true;
    }
    return false;
}

/* Note the slots of a page. Runs that wait with their own holder (`interlock run --queue`) are
 * not slots. Returns whether one was new. */
static bool
take_page(struct work *w, const struct listing *l, const char *tenant, const il_op *op)
{
    bool is_new = false;

    for (size_t i = 0; i < op->out.n_runs; i++) {
        const il_run_info *run = &op->out.runs[i];
        if (run->state != IL_RUN_PENDING || run->holder[0] != '\0')
            continue;
        const char *name    = run->key + w->n_prefix;
        void       *subject = w->kind->find(w->o.cookie, tenant, name);
        if (subject == NULL)
            continue; /* another server's */
        w->kind->drop(subject);
        il__mutex_lock(&w->mutex);
        struct slot *slot = work_slots_find(&w->slots, tenant, run->id);
        is_new            = is_new || slot == NULL;
        if (!work_is_executing(w, tenant, run->id)) /* started while the listing was read */
            slot = work_slots_note(&w->slots, tenant, name, run->id, run->seq);
        if (slot != NULL)
            slot->pass = l->pass;
        il__mutex_unlock(&w->mutex);
    }
    return is_new;
}

/* All slots of the tenant were listed: those known before the listing began but missing from it
 * no longer exist. */
static void
forget_unseen(struct work *w, const struct listing *l, const char *tenant)
{
    il__mutex_lock(&w->mutex);
    struct slot_tenant *t = work_slots_tenant(&w->slots, tenant);
    struct slot_group  *g = t != NULL ? t->groups : NULL;
    while (g != NULL) {
        struct slot_group *next_group = g->next;
        struct slot       *slot       = g->first;
        while (slot != NULL) {
            struct slot *next = slot->next;
            if (slot->pass == UINT64_MAX)
                slot->pass = l->pass; /* the next listing must contain it */
            else if (slot->pass < l->pass && !(g->busy && work_is_executing(w, tenant, slot->id)))
                /* the last one frees the group as well, if it is idle */
                work_slots_forget(&w->slots, slot);
            slot = next;
        }
        g = next_group;
    }
    il__mutex_unlock(&w->mutex);
}

static il_op
list_op(const struct work *w, const char *tenant, const char *cursor)
{
    il_op op = { .type = IL_OP_RUN_LIST, .tenant = tenant };

    op.in.list.prefix = w->prefix;
    op.in.list.states = 1U << IL_RUN_PENDING;
    op.in.list.limit  = IL_PAGE_ITEMS_MAX;
    op.in.list.cursor = cursor;
    return op;
}

/*
 * Read the further pages of a tenant, newest first. Slots older than a page with nothing new were
 * found before, so reading stops there, except in a pass that reads all. False: not everything was
 * read.
 */
static bool
list_rest(struct work *w, const struct listing *l, const char *tenant, const char *cursor)
{
    char at[LIST_CURSOR_BYTES];
    bool go_on = true;

    (void)snprintf(at, sizeof at, "%s", cursor);
    for (unsigned i = 0; i < LIST_PAGES_MAX && at[0] != '\0' && go_on; i++) {
        il_op op = list_op(w, tenant, at);
        go_on    = il_apply(w->o.h, &op, 1, NULL) == IL_OK && op.status == IL_OK;
        if (go_on) {
            go_on = take_page(w, l, tenant, &op) || l->all;
            (void)snprintf(at, sizeof at, "%s", op.out.next != NULL ? op.out.next : "");
        }
        il_op_release(&op);
    }
    return at[0] == '\0';
}

il_status
work_list_all(struct work *w, il_op *ops, size_t n, il_error *reterr)
{
    il_status st     = IL_OK;
    size_t    n_done = 0;

    while (st == IL_OK && n_done < n) {
        st = il_apply(w->o.h, ops + n_done, n - n_done, reterr);
        for (n_done++; n_done < n && ops[n_done].status != IL_LIMIT; n_done++)
            ;
    }
    return st;
}

/* One batch of reads: nothing is committed, and without pending slots each tenant costs one
 * lookup in an index of live runs. */
static void
list_slots(struct work *w, struct listing *l)
{
    il_op   *ops;
    il_error error = { .message = "" };

    l->n    = 0;
    l->more = false;
    w->kind->tenants(w->o.cookie, gather_tenant, l);
    (void)snprintf(l->after, sizeof l->after, "%s", l->more ? l->tenants[l->n - 1] : "");
    if (l->n == 0 || (ops = il__calloc(l->n, sizeof *ops)) == NULL)
        return;
    l->pass++;
    for (size_t i = 0; i < l->n; i++)
        ops[i] = list_op(w, l->tenants[i], NULL);
    il_status st = work_list_all(w, ops, l->n, &error);
    if (st != IL_OK)
        work_trouble(w, "cannot list pending runs", &error);
    for (size_t i = 0; st == IL_OK && i < l->n; i++) {
        const char *tenant = l->tenants[i];
        if (ops[i].status != IL_OK)
            continue;
        bool go_on = take_page(w, l, tenant, &ops[i]) || l->all;
        if (ops[i].out.next == NULL || (go_on && list_rest(w, l, tenant, ops[i].out.next)))
            forget_unseen(w, l, tenant);
    }
    for (size_t i = 0; i < l->n; i++)
        il_op_release(&ops[i]);
    il__free(ops);
}

/* ---- starting -------------------------------------------------------------------------------- */

/* The next group of the tenant that may be tried; *next_ns: when another one may. */
static struct slot_group *
next_group(const struct slot_tenant *t, int64_t now_ns, int64_t *next_ns)
{
    struct slot_group *best = NULL;

    for (struct slot_group *g = t->groups; g != NULL; g = g->next) {
        if (g->busy || g->first == NULL)
            continue;
        if (g->not_before_ns > now_ns)
            *next_ns = MIN(*next_ns, g->not_before_ns);
        else if (best == NULL || work_slot_comes_before(g->first, best->first))
            best = g;
    }
    return best;
}

/* Begin the first slot of a group. */
static void
start(struct work *w, struct slot_group *g, int64_t now_ns)
{
    struct slot *slot    = g->first;
    void        *subject = w->kind->find(w->o.cookie, g->tenant->name, g->name);

    if (subject == NULL) { /* removed meanwhile: left alone */
        work_slots_forget(&w->slots, slot);
        return;
    }
    g->busy = true;
    int rc  = work_execute(w, slot->id, subject);
    if (rc != 0) {
        g->busy          = false;
        g->not_before_ns = now_ns + TROUBLE_NS;
    }
    w->kind->drop(subject);
}

static bool
count_tenant(void *cookie, const char *tenant UNUSED)
{
    return ++*(size_t *)cookie < 2;
}

/* May the tenant have one more run here? Runs may last for hours, so room is kept for other
 * tenants. */
static bool
has_room(const struct work *w, const struct slot_tenant *t, bool alone)
{
    size_t n_own = 0;

    for (const struct work_execution *e = w->executions; e != NULL; e = e->next)
        n_own += strcmp(e->tenant, t->name) == 0;
    return alone || il__fair_may_take(n_own, w->o.runs_max - w->n_executions);
}

/* Start what can be started, tenants in turn. Returns when to try again. */
static int64_t
start_some(struct work *w)
{
    size_t        n_served  = 0; /* tenants with subjects; counting stops at two */
    struct slots *all       = &w->slots;
    int64_t       now_ns    = il__clock_boot_ns();
    int64_t       next_ns   = INT64_MAX;
    size_t        n_idle    = 0; /* consecutive tenants with nothing to start */
    size_t        n_tenants = 0;

    for (struct slot_tenant *t = all->turn; t != NULL && (n_tenants == 0 || t != all->turn);
         t                     = t->next)
        n_tenants++;
    w->kind->tenants(w->o.cookie, count_tenant, &n_served);
    while (all->turn != NULL && w->n_executions < w->o.runs_max && n_idle < n_tenants) {
        struct slot_tenant *t = all->turn;
        struct slot_group  *g =
            has_room(w, t, n_served < 2) ? next_group(t, now_ns, &next_ns) : NULL;
        all->turn = t->next;
        n_idle    = g != NULL ? 0 : n_idle + 1;
        if (g != NULL)
            start(w, g, now_ns);
    }
    return next_ns;
}

/* Join the threads of finished runs. */
static void
join_ended(struct work *w)
{
    while (w->ended != NULL) {
        struct work_execution *e = w->ended;
        w->ended                 = e->next;
        il__mutex_unlock(&w->mutex);
        CHECK(pthread_join(e->thread, NULL) == 0);
        work_execution_free(e);
        il__mutex_lock(&w->mutex);
    }
}

void *
work_dispatch_main(void *arg)
{
    struct work    *w       = arg;
    struct listing *l       = NULL; /* without it, only reported slots are executed */
    struct orphans *orphans = NULL;
    int64_t         list_ns = INT64_MAX, tidy_ns = 0;

    if (w->o.mode == WORK_SERVE && (l = il__calloc(1, sizeof *l)) != NULL)
        list_ns = 0;
    if (l != NULL)
        orphans = work_orphans_new(w);
    il__mutex_lock(&w->mutex);
    while (!w->closing) {
        join_ended(w);
        int64_t now_ns = il__clock_boot_ns();
        if (w->rescan)
            work_slots_try_all(&w->slots);
        w->rescan &= l != NULL;
        if (l != NULL && !w->stopping && (w->rescan || now_ns >= list_ns)) {
            l->all    = w->rescan || now_ns >= l->all_ns;
            l->all_ns = l->all ? now_ns + LIST_ALL_NS : l->all_ns;
            w->rescan = false;
            il__mutex_unlock(&w->mutex);
            list_slots(w, l);
            if (orphans != NULL)
                work_orphans_look(orphans, l->tenants, l->n);
            if (l->n > 0)
                work_presence_tell(w, now_ns);
            if (now_ns >= tidy_ns) {
                if (w->kind->tidy != NULL)
                    w->kind->tidy(w->o.cookie);
                tidy_ns = now_ns + TIDY_NS;
            }
            list_ns = now_ns + LIST_NS;
            il__mutex_lock(&w->mutex);
            continue;
        }
        w->changed      = false;
        int64_t next_ns = w->stopping ? INT64_MAX : MIN(start_some(w), list_ns);
        if (!w->closing && !w->changed && w->ended == NULL && (!w->rescan || w->stopping))
            work_wait(&w->wake, &w->mutex,
                      next_ns != INT64_MAX ? MAX(next_ns - il__clock_boot_ns(), 0) : -1);
    }
    join_ended(w);
    il__mutex_unlock(&w->mutex);
    work_presence_end(w);
    work_orphans_free(orphans);
    il__free(l);
    return NULL;
}
