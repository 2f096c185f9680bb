/*
 * dispatch.c: keeps the slots that wait for execution, and decides which is next.
 *
 * *Wants* are the slots that this server knows of: its own triggers report theirs at once, the
 * others are found in a listing. They are only a cache: the store decides who executes a slot
 * (il_run_start() with the slot's id and a holder unique to this server and execution). A missing
 * want costs a second, an extra one costs a refused start. Both are bounded.
 *
 * Order: tenants take turns, and each has its share of the places for runs (runtime/fair.h) unless
 * it is the only one with pipelines. Within a tenant, the pipeline with the oldest slot comes
 * first. Within a pipeline, slots are taken in the order of the store, one at a time: while one of
 * them runs here, or the key was found held, the others are skipped and take no place.
 */
#include <stdio.h>

#include "apps/runner/runner_internal.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "runtime/fair.h"

#define WANTS_MAX 65536
#define LIST_NS RUNNER_NS_PER_S            /* between two listings */
#define LIST_TENANTS_MAX 256               /* per listing: with more tenants they take turns */
#define LIST_PAGES_MAX 64                  /* per tenant: more than there is room for */
#define LIST_ALL_NS (10 * RUNNER_NS_PER_S) /* how often all pages are read */
#define LIST_CURSOR_BYTES 128
#define RETRY_NS RUNNER_NS_PER_S /* for a key that was held */
#define TROUBLE_NS (2 * RUNNER_NS_PER_S)
#define CLEAN_NS (60 * RUNNER_NS_PER_S) /* between two scans for what killed servers left behind */

struct want {
    struct want       *next; /* of its group, oldest first */
    struct want_group *group;
    uint64_t           seq;     /* of the run; 0 = not known yet, which sorts last */
    uint64_t           arrived; /* order of arrival */
    uint64_t           pass;    /* the last listing that contained it */
    char               id[IL_ID_BYTES_MAX + 1];
};

/* The slots of one pipeline. */
struct want_group {
    struct want_group  *next; /* of its tenant */
    struct want_tenant *tenant;
    struct want        *first;
    int64_t             not_before_ns;
    bool                busy; /* one of its runs is being started or executed here */
    char                pipeline[PIPELINE_ID_BYTES_MAX + 1];
};

struct want_tenant {
    struct want_tenant *next, *prev; /* a ring */
    struct want_group  *groups;
    size_t              n; /* wants */
    char                name[IL_TENANT_BYTES_MAX + 1];
};

/* ---- wants ----------------------------------------------------------------------------------- */
/* All of this requires r->mutex. */

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
        if (g == NULL ||
            (strcmp(g->pipeline, pipeline) == 0 && strcmp(g->tenant->name, tenant) == 0))
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
    } else { /* after all others */
        t->next       = w->turn;
        t->prev       = w->turn->prev;
        t->prev->next = t;
        t->next->prev = t;
    }
    return t;
}

/* Free groups and tenants that are empty. */
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
    g->tenant->n--;
    il__free(want);
    drop_group(w, g);
}

/* Note a slot. If there is no room or memory, a later listing finds it again. */
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
    const struct want_tenant *t = find_tenant(w, tenant);
    if (!il__fair_may_take(t != NULL ? t->n : 0, WANTS_MAX - w->n) || !il__map_reserve(&w->ids))
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
    g->tenant->n++;
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

/* ---- notifications --------------------------------------------------------------------------- */

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
        want->pass = UINT64_MAX; /* a listing in progress need not contain it yet */
    wake(r);
    runner_unlock(&r->mutex);
}

void
runner_take(struct runner *r, const char *tenant, const char *run_id, struct pipeline *p)
{
    runner_want(r, tenant, run_id, p->id);
    il__pipeline_unref(p); /* executed with the version in the catalogue at that time */
}

void
runner_cancelled(struct runner *r, const il_run_info *run)
{
    struct wants *w = &r->wants;

    if (r->o.mode == RUNNER_ASK ||
        strncmp(run->key, PIPELINE_KEY_PREFIX, strlen(PIPELINE_KEY_PREFIX)) != 0)
        return;
    runner_lock(&r->mutex);
    struct want_group *g    = find_group(w, run->tenant, run->key + strlen(PIPELINE_KEY_PREFIX));
    struct want       *want = find_want(w, run->tenant, run->id);
    if (g != NULL)
        g->not_before_ns = 0; /* it may have been the one that the others waited for */
    if (want != NULL && run->state > IL_RUN_RUNNING &&
        !runner_is_executing(r, run->tenant, run->id))
        forget_want(w, want); /* and perhaps its group */
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
        forget_want(&r->wants, want); /* its group is busy, so it stays */
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
    CHECK(g != NULL && g->busy); /* set by the dispatcher when it began */
    g->busy = false;
    if (how == RUNNER_STARTED_LATER) {
        /* An older slot must go first, possibly one we did not know of: try that one at once. */
        struct want *before =
            before_id != NULL ? note_want(w, e->tenant, e->pipeline->id, before_id, 0) : NULL;
        bool ours        = before != NULL && before->group == g && before != want;
        g->not_before_ns = ours ? 0 : il__clock_boot_ns() + RETRY_NS;
        if (ours) {
            pull_want(before);
            before->next = g->first;
            g->first     = before;
        }
    } else if (how == RUNNER_STARTED_TROUBLE) {
        g->not_before_ns = il__clock_boot_ns() + TROUBLE_NS;
    } else {
        g->not_before_ns = 0; /* the next slot may be tried now */
    }
    if (how == RUNNER_STARTED_OVER && want != NULL)
        forget_want(w, want);
    else
        drop_group(w, g);
    wake(r);
    runner_unlock(&r->mutex);
}

/* ---- looking for slots ----------------------------------------------------------------------- */

/* List the tenants that have pipelines, some of them each time. */
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
runner_is_executing(const struct runner *r, const char *tenant, const char *id)
{
    for (const struct execution *e = r->executions; e != NULL; e = e->next) {
        if (strcmp(e->id, id) == 0 && strcmp(e->tenant, tenant) == 0)
            return true;
    }
    return false;
}

/* Note the slots of a page. Runs that wait with their own holder (`interlock run --queue`) are
 * not slots. Returns whether one was new. */
static bool
take_page(struct runner *r, const struct listing *l, const char *tenant, const il_op *op)
{
    bool is_new = false;

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
        struct want *want = find_want(&r->wants, tenant, run->id);
        is_new            = is_new || want == NULL;
        if (!runner_is_executing(r, tenant, run->id)) /* started while the listing was read */
            want = note_want(&r->wants, tenant, id, run->id, run->seq);
        if (want != NULL)
            want->pass = l->pass;
        runner_unlock(&r->mutex);
    }
    return is_new;
}

/* All slots of the tenant were listed: those known before the listing began but missing from it
 * no longer exist. */
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
                want->pass = l->pass; /* the next listing must contain it */
            else if (want->pass < l->pass && !(g->busy && runner_is_executing(r, tenant, want->id)))
                /* the last one frees the group as well, if it is idle */
                forget_want(&r->wants, want);
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

/*
 * Read the further pages of a tenant, newest first. Slots older than a page with nothing new were
 * found before, so reading stops there, except in a pass that reads all. False: not everything was
 * read.
 */
static bool
list_rest(struct runner *r, const struct listing *l, const char *tenant, const char *cursor)
{
    char at[LIST_CURSOR_BYTES];
    bool go_on = true;

    (void)snprintf(at, sizeof at, "%s", cursor);
    for (unsigned i = 0; i < LIST_PAGES_MAX && at[0] != '\0' && go_on; i++) {
        il_op op = list_op(tenant, at);
        go_on    = il_apply(r->o.h, &op, 1, NULL) == IL_OK && op.status == IL_OK;
        if (go_on) {
            go_on = take_page(r, l, tenant, &op) || l->all;
            (void)snprintf(at, sizeof at, "%s", op.out.next != NULL ? op.out.next : "");
        }
        il_op_release(&op);
    }
    return at[0] == '\0';
}

il_status
runner_list_all(struct runner *r, il_op *ops, size_t n, il_error *reterr)
{
    il_status st     = IL_OK;
    size_t    n_done = 0;

    while (st == IL_OK && n_done < n) {
        st = il_apply(r->o.h, ops + n_done, n - n_done, reterr);
        for (n_done++; n_done < n && ops[n_done].status != IL_LIMIT; n_done++)
            ;
    }
    return st;
}

/* One batch of reads: nothing is committed, and without pending slots each tenant costs one
 * lookup in an index of live runs. */
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
    il_status st = runner_list_all(r, ops, l->n, &error);
    if (st != IL_OK)
        runner_trouble(r, "cannot list pending runs", &error);
    for (size_t i = 0; st == IL_OK && i < l->n; i++) {
        const char *tenant = l->tenants[i];
        if (ops[i].status != IL_OK)
            continue;
        bool go_on = take_page(r, l, tenant, &ops[i]) || l->all;
        if (ops[i].out.next == NULL || (go_on && list_rest(r, l, tenant, ops[i].out.next)))
            forget_unseen(r, l, tenant);
    }
    for (size_t i = 0; i < l->n; i++)
        il_op_release(&ops[i]);
    il__free(ops);
}

/* ---- starting -------------------------------------------------------------------------------- */

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

    if (p == NULL) { /* removed by a reload: left alone */
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

static bool
count_tenant(void *cookie, const char *tenant UNUSED)
{
    return ++*(size_t *)cookie < 2;
}

/* May the tenant have one more run here? Runs may last for hours, so room is kept for other
 * tenants. */
static bool
has_room(const struct runner *r, const struct want_tenant *t, bool alone)
{
    size_t n_own = 0;

    for (const struct execution *e = r->executions; e != NULL; e = e->next)
        n_own += strcmp(e->tenant, t->name) == 0;
    return alone || il__fair_may_take(n_own, r->o.runs_max - r->n_executions);
}

/* Start what can be started, tenants in turn. Returns when to try again. */
static int64_t
start_some(struct runner *r)
{
    size_t        n_served  = 0; /* tenants with pipelines; counting stops at two */
    struct wants *w         = &r->wants;
    int64_t       now_ns    = il__clock_boot_ns();
    int64_t       next_ns   = INT64_MAX;
    size_t        n_idle    = 0; /* consecutive tenants with nothing to start */
    size_t        n_tenants = 0;

    for (struct want_tenant *t = w->turn; t != NULL && (n_tenants == 0 || t != w->turn);
         t                     = t->next)
        n_tenants++;
    il__catalogue_tenants(r->catalogue, count_tenant, &n_served);
    while (w->turn != NULL && r->n_executions < r->o.runs_max && n_idle < n_tenants) {
        struct want_tenant *t = w->turn;
        struct want_group  *g =
            has_room(r, t, n_served < 2) ? next_group(t, now_ns, &next_ns) : NULL;
        w->turn = t->next;
        n_idle  = g != NULL ? 0 : n_idle + 1;
        if (g != NULL)
            start(r, g, now_ns);
    }
    return next_ns;
}

/* Join the threads of finished runs. */
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

/* Something may have changed: let all groups be tried at once. */
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
    struct listing *l       = NULL; /* without it, only reported slots are executed */
    struct orphans *orphans = NULL;
    int64_t         list_ns = INT64_MAX, clean_ns = 0;

    if (r->o.mode == RUNNER_SERVE && (l = il__calloc(1, sizeof *l)) != NULL)
        list_ns = 0;
    if (l != NULL)
        orphans = runner_orphans_new(r);
    runner_lock(&r->mutex);
    while (!r->closing) {
        join_ended(r);
        int64_t now_ns = il__clock_boot_ns();
        if (r->look)
            try_all(&r->wants);
        r->look &= l != NULL;
        if (l != NULL && !r->stopping && (r->look || now_ns >= list_ns)) {
            l->all    = r->look || now_ns >= l->all_ns;
            l->all_ns = l->all ? now_ns + LIST_ALL_NS : l->all_ns;
            r->look   = false;
            runner_unlock(&r->mutex);
            list_slots(r, l);
            if (orphans != NULL)
                runner_orphans_look(orphans, l->tenants, l->n);
            if (l->n > 0)
                runner_presence_tell(r, now_ns);
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
    runner_presence_end(r);
    runner_orphans_free(orphans);
    il__free(l);
    return NULL;
}
