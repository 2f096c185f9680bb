/*
 * dispatch.c: slots that wait to be executed, and who is next.
 *
 * The *wants* are what this server knows of: told by its own triggers at once, found in a listing otherwise. They are only a memory: the store decides who executes a slot (il_run_start() with the slot's id and a holder
 * that no other server and no other execution has), so a want that is missing costs a second, and one too many costs a refused start. Both are bounded.
 *
 * Order: tenants take turns; within a tenant the pipeline whose oldest slot is oldest comes first; within a pipeline the slots are taken in the order of the store, one at a time: while one of them
 * runs here, or the key was found held, the others do not take part and take no room.
 */
#include <stdio.h>

#include "apps/runner/runner_internal.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"

#define WANTS_MAX 20000
#define LIST_NS RUNNER_NS_PER_S  /* between two listings */
#define LIST_TENANTS_MAX 256     /* of one: with more tenants they take turns */
#define LIST_PAGES_MAX 8         /* of one tenant at once; the next listing goes on there */
#define RETRY_NS RUNNER_NS_PER_S /* a key that was held */
#define TROUBLE_NS (2 * RUNNER_NS_PER_S)
#define CLEAN_NS (60 * RUNNER_NS_PER_S) /* between two looks at what killed servers left */

struct want {
    struct want       *next; /* of its group, oldest first */
    struct want_group *group;
    uint64_t           seq; /* of the run; 0 = not known yet, which is after all that are known */
    uint64_t           arrived; /* order in which we heard of it */
    uint64_t           pass;    /* the last listing that showed it */
    char               id[IL_ID_BYTES_MAX + 1];
};

/* The slots of one pipeline. */
struct want_group {
    struct want_group  *next; /* of its tenant */
    struct want_tenant *tenant;
    struct want        *first;
    int64_t             not_before_ns;
    bool                busy; /* one of its runs is being executed here, or started */
    char                pipeline[PIPELINE_ID_BYTES_MAX + 1];
};

struct want_tenant {
    struct want_tenant *next, *prev; /* a ring */
    struct want_group  *groups;
    char                name[IL_TENANT_BYTES_MAX + 1];
};

/* ---- what is wanted ------------------------------------------------------------------------------------------------------------------ */
/* All of this with r->mutex held. */

static uint64_t
name_hash(const char *tenant, const char *name)
{
    return il__hash_mix(il__hash_bytes(tenant, strlen(tenant)), il__hash_bytes(name, strlen(name)));
}

static struct want *
find_want(struct wants *w, const char *tenant, const char *id)
{
    uint64_t hash = name_hash(tenant, id);

    for (size_t i = il__map_start(&w->ids, hash);; i++) {
        struct want *want = il__map_next(&w->ids, hash, &i);
        if (want == NULL ||
            (strcmp(want->id, id) == 0 && strcmp(want->group->tenant->name, tenant) == 0))
            return want;
    }
}

static struct want_group *
find_group(struct wants *w, const char *tenant, const char *pipeline)
{
    uint64_t hash = name_hash(tenant, pipeline);

    for (size_t i = il__map_start(&w->groups, hash);; i++) {
        struct want_group *g = il__map_next(&w->groups, hash, &i);
        if (g == NULL || (strcmp(g->pipeline, pipeline) == 0 && strcmp(g->tenant->name, tenant) == 0))
            return g;
    }
}

static struct want_tenant *
find_tenant(struct wants *w, const char *name)
{
    struct want_tenant *t = w->turn;

    if (t == NULL)
        return NULL;
    do {
        if (strcmp(t->name, name) == 0)
            return t;
        t = t->next;
    } while (t != w->turn);
    return NULL;
}

static struct want_tenant *
need_tenant(struct wants *w, const char *name)
{
    struct want_tenant *t = find_tenant(w, name);

    if (t != NULL || (t = il__calloc(1, sizeof *t)) == NULL)
        return t;
    (void)snprintf(t->name, sizeof t->name, "%s", name);
    if (w->turn == NULL) {
        t->next = t->prev = t;
        w->turn           = t;
    } else { /* behind all others */
        t->next       = w->turn;
        t->prev       = w->turn->prev;
        t->prev->next = t;
        t->next->prev = t;
    }
    return t;
}

/* Groups and tenants without anything are forgotten. */
static void
drop_tenant(struct wants *w, struct want_tenant *t)
{
    if (t->groups != NULL)
        return;
    t->prev->next = t->next;
    t->next->prev = t->prev;
    if (w->turn == t)
        w->turn = t->next != t ? t->next : NULL;
    il__free(t);
}

static void
drop_group(struct wants *w, struct want_group *g)
{
    if (g->first != NULL || g->busy)
        return;
    struct want_group **p = &g->tenant->groups;
    while (*p != g)
        p = &(*p)->next;
    *p = g->next;
    il__map_remove(&w->groups, name_hash(g->tenant->name, g->pipeline), g);
    drop_tenant(w, g->tenant);
    il__free(g);
}

static struct want_group *
need_group(struct wants *w, const char *tenant, const char *pipeline)
{
    struct want_group *g = find_group(w, tenant, pipeline);

    if (g != NULL)
        return g;
    struct want_tenant *t = need_tenant(w, tenant);
    if (t == NULL)
        return NULL;
    g = il__map_reserve(&w->groups) ? il__calloc(1, sizeof *g) : NULL;
    if (g == NULL) {
        drop_tenant(w, t);
        return NULL;
    }
    (void)snprintf(g->pipeline, sizeof g->pipeline, "%s", pipeline);
    g->tenant = t;
    g->next   = t->groups;
    t->groups = g;
    il__map_add(&w->groups, name_hash(tenant, pipeline), g);
    return g;
}

static bool
comes_before(const struct want *a, const struct want *b)
{
    if (a->seq != 0 && b->seq != 0)
        return a->seq < b->seq;
    if (a->seq != b->seq)
        return a->seq != 0;
    return a->arrived < b->arrived;
}

static void
put_want(struct want *want)
{
    struct want **p = &want->group->first;

    while (*p != NULL && comes_before(*p, want))
        p = &(*p)->next;
    want->next = *p;
    *p         = want;
}

static void
pull_want(const struct want *want)
{
    struct want **p = &want->group->first;

    while (*p != want)
        p = &(*p)->next;
    *p = want->next;
}

static void
forget_want(struct wants *w, struct want *want)
{
    struct want_group *g = want->group;

    pull_want(want);
    il__map_remove(&w->ids, name_hash(g->tenant->name, want->id), want);
    w->n--;
    il__free(want);
    drop_group(w, g);
}

/* Note a slot. What has no room, or no memory, is found again by a listing. */
static struct want *
note_want(struct wants *w, const char *tenant, const char *pipeline, const char *id, uint64_t seq)
{
    struct want *want = find_want(w, tenant, id);

    if (want != NULL) {
        if (seq != 0 && want->seq == 0) {
            pull_want(want);
            want->seq = seq;
            put_want(want);
        }
        return want;
    }
    if (w->n >= WANTS_MAX || !il__map_reserve(&w->ids))
        return NULL;
    struct want_group *g = need_group(w, tenant, pipeline);
    want                 = g != NULL ? il__calloc(1, sizeof *want) : NULL;
    if (want == NULL) {
        if (g != NULL)
            drop_group(w, g);
        return NULL;
    }
    want->group   = g;
    want->seq     = seq;
    want->arrived = ++w->n_arrived;
    (void)snprintf(want->id, sizeof want->id, "%s", id);
    il__map_add(&w->ids, name_hash(tenant, id), want);
    put_want(want);
    w->n++;
    return want;
}

void
runner_wants_release(struct runner *r)
{
    struct wants *w = &r->wants;

    while (w->turn != NULL) {
        struct want_group *g = w->turn->groups;
        g->busy              = false;
        while (g->first->next != NULL)
            forget_want(w, g->first);
        forget_want(w, g->first); /* and with it the group, and perhaps the tenant */
    }
    il__map_release(&w->ids);
    il__map_release(&w->groups);
}

/* ---- told by others ------------------------------------------------------------------------------------------------------------------- */

static void
wake(struct runner *r)
{
    r->changed = true;
    CHECK(pthread_cond_signal(&r->wake) == 0);
}

void
runner_want(struct runner *r, const char *tenant, const char *run_id, const char *pipeline)
{
    if (r->o.mode == RUNNER_ASK)
        return;
    runner_lock(&r->mutex);
    struct want *want = note_want(&r->wants, tenant, pipeline, run_id, 0);
    if (want != NULL)
        want->pass = UINT64_MAX; /* a listing that is under way need not show it yet */
    wake(r);
    runner_unlock(&r->mutex);
}

void
runner_take(struct runner *r, const char *tenant, const char *run_id, struct pipeline *p)
{
    runner_want(r, tenant, run_id, p->id);
    il__pipeline_unref(p); /* it is executed as the catalogue has it then */
}

void
runner_poke(struct runner *r)
{
    runner_lock(&r->mutex);
    r->look = true;
    wake(r);
    runner_unlock(&r->mutex);
}

void
runner_running(struct execution *e)
{
    struct runner *r = e->r;

    runner_lock(&r->mutex);
    struct want *want = find_want(&r->wants, e->tenant, e->id);
    if (want != NULL)
        forget_want(&r->wants, want); /* its group stays: it is busy */
    runner_unlock(&r->mutex);
}

void
runner_started(struct execution *e, enum runner_started how, const char *before_id)
{
    struct runner *r = e->r;
    struct wants  *w = &r->wants;

    runner_lock(&r->mutex);
    struct want_group *g    = find_group(w, e->tenant, e->pipeline->id);
    struct want       *want = find_want(w, e->tenant, e->id);
    CHECK(g != NULL && g->busy); /* since the dispatcher began it */
    g->busy = false;
    if (how == RUNNER_STARTED_LATER) {
        /* An older one of ours is in the way: that one is to be tried, and at once. */
        struct want *before = before_id != NULL ? find_want(w, e->tenant, before_id) : NULL;
        bool         ours   = before != NULL && before->group == g && before != want;
        g->not_before_ns    = ours ? 0 : il__clock_boot_ns() + RETRY_NS;
        if (ours) {
            pull_want(before);
            before->next = g->first;
            g->first     = before;
        }
    } else if (how == RUNNER_STARTED_TROUBLE) {
        g->not_before_ns = il__clock_boot_ns() + TROUBLE_NS;
    } else {
        g->not_before_ns = 0; /* the next one may have its turn now */
    }
    if (how == RUNNER_STARTED_OVER && want != NULL)
        forget_want(w, want);
    else
        drop_group(w, g);
    wake(r);
    runner_unlock(&r->mutex);
}

/* ---- looking for slots ------------------------------------------------------------------------------------------------------------------- */

/* Tenants that have pipelines, some of them each time. */
struct listing {
    char     tenants[LIST_TENANTS_MAX][IL_TENANT_BYTES_MAX + 1];
    size_t   n;
    char     after[IL_TENANT_BYTES_MAX + 1]; /* the last one of the listing before; "" = begin */
    bool     more;
    uint64_t pass;
    struct { /* of a tenant with many slots: where to go on */
        char tenant[IL_TENANT_BYTES_MAX + 1];
        char cursor[128];
    } rest;
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

/* Is it being executed here, or started? Then it need not be noted again. */
static bool
is_executing(const struct runner *r, const char *tenant, const char *id)
{
    for (const struct execution *e = r->executions; e != NULL; e = e->next) {
        if (strcmp(e->id, id) == 0 && strcmp(e->tenant, tenant) == 0)
            return true;
    }
    return false;
}

/* Note the slots of a page. Runs that wait with a holder of their own (`interlock run --queue`) are no slots. */
static void
take_page(struct runner *r, const struct listing *l, const char *tenant, const il_op *op)
{
    for (size_t i = 0; i < op->out.n_runs; i++) {
        const il_run_info *run = &op->out.runs[i];
        if (run->state != IL_RUN_PENDING || run->holder[0] != '\0')
            continue;
        const char      *id = run->key + strlen(PIPELINE_KEY_PREFIX);
        struct pipeline *p  = il__catalogue_get(r->catalogue, tenant, id);
        if (p == NULL)
            continue; /* another server's */
        il__pipeline_unref(p);
        runner_lock(&r->mutex);
        struct want *want = is_executing(r, tenant, run->id)
                                ? find_want(&r->wants, tenant, run->id) /* started while this was read */
                                : note_want(&r->wants, tenant, id, run->id, run->seq);
        if (want != NULL)
            want->pass = l->pass;
        runner_unlock(&r->mutex);
    }
}

/* All slots of the tenant were listed: those that were not shown, and were known before it began, are none any more. */
static void
forget_unseen(struct runner *r, const struct listing *l, const char *tenant)
{
    runner_lock(&r->mutex);
    struct want_tenant *t = find_tenant(&r->wants, tenant);
    struct want_group  *g = t != NULL ? t->groups : NULL;
    while (g != NULL) {
        struct want_group *next_group = g->next;
        struct want       *want       = g->first;
        while (want != NULL) {
            struct want *next = want->next;
            if (want->pass == UINT64_MAX)
                want->pass = l->pass; /* the next listing must show it */
            else if (want->pass < l->pass && !(g->busy && is_executing(r, tenant, want->id)))
                forget_want(&r->wants, want); /* the last one takes the group along, if it is idle */
            want = next;
        }
        g = next_group;
    }
    runner_unlock(&r->mutex);
}

static il_op
list_op(const char *tenant, const char *cursor)
{
    il_op op = { .type = IL_OP_RUN_LIST, .tenant = tenant };

    op.in.list.prefix = PIPELINE_KEY_PREFIX;
    op.in.list.states = 1U << IL_RUN_PENDING;
    op.in.list.limit  = IL_PAGE_ITEMS_MAX;
    op.in.list.cursor = cursor;
    return op;
}

/* The further pages of a tenant: newest first is how they come, so that the oldest are on the last one. */
static void
list_rest(struct runner *r, struct listing *l, const char *tenant, const char *cursor)
{
    char at[sizeof l->rest.cursor];

    (void)snprintf(at, sizeof at, "%s", cursor);
    l->rest.tenant[0] = '\0';
    for (unsigned i = 0; i < LIST_PAGES_MAX && at[0] != '\0'; i++) {
        il_op op = list_op(tenant, at);
        if (il_apply(r->o.h, &op, 1, NULL) == IL_OK && op.status == IL_OK) {
            take_page(r, l, tenant, &op);
            (void)snprintf(at, sizeof at, "%s", op.out.next != NULL ? op.out.next : "");
        } else {
            at[0] = '\0';
        }
        il_op_release(&op);
    }
    if (at[0] != '\0') {
        (void)snprintf(l->rest.tenant, sizeof l->rest.tenant, "%s", tenant);
        (void)snprintf(l->rest.cursor, sizeof l->rest.cursor, "%s", at);
    }
}

/*
 * One batch, reads only: nothing is committed, and with nothing pending each tenant costs one look into an index of live runs.
 */
static void
list_slots(struct runner *r, struct listing *l)
{
    il_op   *ops;
    il_error error = { .message = "" };

    l->n    = 0;
    l->more = false;
    il__catalogue_tenants(r->catalogue, gather_tenant, l);
    (void)snprintf(l->after, sizeof l->after, "%s", l->more ? l->tenants[l->n - 1] : "");
    if (l->n == 0 || (ops = il__calloc(l->n, sizeof *ops)) == NULL)
        return;
    l->pass++;
    for (size_t i = 0; i < l->n; i++)
        ops[i] = list_op(l->tenants[i], NULL);
    il_status st = il_apply(r->o.h, ops, l->n, &error);
    if (st != IL_OK)
        runner_trouble(r, "pending runs cannot be listed", &error);
    for (size_t i = 0; st == IL_OK && i < l->n; i++) {
        const char *tenant = l->tenants[i];
        if (ops[i].status != IL_OK)
            continue;
        take_page(r, l, tenant, &ops[i]);
        if (ops[i].out.next == NULL)
            forget_unseen(r, l, tenant);
        else
            list_rest(r, l, tenant,
                      strcmp(l->rest.tenant, tenant) == 0 ? l->rest.cursor : ops[i].out.next);
    }
    for (size_t i = 0; i < l->n; i++)
        il_op_release(&ops[i]);
    il__free(ops);
}

/* ---- starting --------------------------------------------------------------------------------------------------------------------------------- */

/* The next group of the tenant that may be tried; *next_ns: when another one may. */
static struct want_group *
next_group(const struct want_tenant *t, int64_t now_ns, int64_t *next_ns)
{
    struct want_group *best = NULL;

    for (struct want_group *g = t->groups; g != NULL; g = g->next) {
        if (g->busy || g->first == NULL)
            continue;
        if (g->not_before_ns > now_ns)
            *next_ns = MIN(*next_ns, g->not_before_ns);
        else if (best == NULL || comes_before(g->first, best->first))
            best = g;
    }
    return best;
}

/* Begin the first slot of a group. */
static void
start(struct runner *r, struct want_group *g, int64_t now_ns)
{
    struct want     *want = g->first;
    struct pipeline *p    = il__catalogue_get(r->catalogue, g->tenant->name, g->pipeline);

    if (p == NULL) { /* taken away by a reload: left alone */
        forget_want(&r->wants, want);
        return;
    }
    g->busy = true;
    int rc  = runner_execute(r, g->tenant->name, want->id, p);
    if (rc != 0) {
        g->busy          = false;
        g->not_before_ns = now_ns + TROUBLE_NS;
    }
    il__pipeline_unref(p);
}

/* Start what can be started, tenants in turn. When to try again. */
static int64_t
start_some(struct runner *r)
{
    struct wants *w         = &r->wants;
    int64_t       now_ns    = il__clock_boot_ns();
    int64_t       next_ns   = INT64_MAX;
    size_t        n_idle    = 0; /* tenants in a row that have nothing to start */
    size_t        n_tenants = 0;

    for (struct want_tenant *t = w->turn; t != NULL && (n_tenants == 0 || t != w->turn); t = t->next)
        n_tenants++;
    while (w->turn != NULL && r->n_executions < r->o.runs_max && n_idle < n_tenants) {
        struct want_tenant *t = w->turn;
        struct want_group  *g = next_group(t, now_ns, &next_ns);
        w->turn               = t->next;
        n_idle                = g != NULL ? 0 : n_idle + 1;
        if (g != NULL)
            start(r, g, now_ns);
    }
    return next_ns;
}

/* Threads of runs that are over. */
static void
join_ended(struct runner *r)
{
    while (r->ended != NULL) {
        struct execution *e = r->ended;
        r->ended            = e->next;
        runner_unlock(&r->mutex);
        CHECK(pthread_join(e->thread, NULL) == 0);
        runner_execution_free(e);
        runner_lock(&r->mutex);
    }
}

/* All groups may be tried at once: somebody says that something has changed. */
static void
try_all(struct wants *w)
{
    struct want_tenant *t = w->turn;

    if (t == NULL)
        return;
    do {
        for (struct want_group *g = t->groups; g != NULL; g = g->next)
            g->not_before_ns = 0;
        t = t->next;
    } while (t != w->turn);
}

void *
runner_dispatch_main(void *arg)
{
    struct runner  *r       = arg;
    struct listing *l       = NULL; /* without it only what is told is executed */
    int64_t         list_ns = INT64_MAX, clean_ns = 0;

    if (r->o.mode == RUNNER_SERVE && (l = il__calloc(1, sizeof *l)) != NULL)
        list_ns = 0;
    runner_lock(&r->mutex);
    while (!r->closing) {
        join_ended(r);
        int64_t now_ns = il__clock_boot_ns();
        if (r->look)
            try_all(&r->wants);
        r->look &= l != NULL;
        if (l != NULL && !r->stopping && (r->look || now_ns >= list_ns)) {
            r->look = false;
            runner_unlock(&r->mutex);
            list_slots(r, l);
            if (now_ns >= clean_ns) {
                runner_folder_clean(r);
                clean_ns = now_ns + CLEAN_NS;
            }
            list_ns = now_ns + LIST_NS;
            runner_lock(&r->mutex);
            continue;
        }
        r->changed      = false;
        int64_t next_ns = r->stopping ? INT64_MAX : MIN(start_some(r), list_ns);
        if (!r->closing && !r->changed && r->ended == NULL && (!r->look || r->stopping))
            runner_wait(&r->wake, &r->mutex,
                        next_ns != INT64_MAX ? MAX(next_ns - il__clock_boot_ns(), 0) : -1);
    }
    join_ended(r);
    runner_unlock(&r->mutex);
    il__free(l);
    return NULL;
}
