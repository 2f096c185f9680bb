/*
 * set.c: the current invariants of a server. A set never changes: a load creates a new one, and the
 * old one lives on while runs and requests refer to it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "apps/check/serve.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/hash.h"
#include "http/server.h"

#define TENANTS_PAGE 256

/* ---- references ------------------------------------------------------------------------------ */

struct check_current *
il__check_current_ref(struct check_current *c)
{
    atomic_fetch_add(&c->n_refs, 1);
    return c;
}

void
il__check_current_unref(struct check_current *c)
{
    if (c == NULL || atomic_fetch_sub(&c->n_refs, 1) != 1)
        return;
    il__checks_release(&c->set);
    for (size_t i = 0; i < c->n_connections; i++) {
        char *url = (char *)(uintptr_t)c->connections[i].url; /* ours: in mem */
        if (url != NULL)
            explicit_bzero(url, strlen(url)); /* it may contain a password */
    }
    il__arena_free(&c->mem);
    il__free(c->subjects);
    il__free(c);
}

struct check_current *
il__check_app_current(struct check_app *app)
{
    il__mutex_lock(&app->mutex);
    struct check_current *c = il__check_current_ref(app->current);
    il__mutex_unlock(&app->mutex);
    return c;
}

/* ---- looking up ------------------------------------------------------------------------------ */

static int
compare(const struct check *c, const char *tenant, const char *name)
{
    int by_tenant = strcmp(c->tenant, tenant);

    return by_tenant != 0 ? by_tenant : strcmp(c->name, name);
}

static int
compare_subjects(const void *a, const void *b)
{
    const struct check *one   = ((const struct check_subject *)a)->check;
    const struct check *other = ((const struct check_subject *)b)->check;
    int                 by    = compare(one, other->tenant, other->name);

    return by != 0 ? by : (one->fault != NULL) - (other->fault != NULL);
}

const struct check_subject *
il__check_subject_from(const struct check_current *c, const char *tenant, const char *name,
                       bool after)
{
    size_t low = 0, high = c->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int    by     = compare(c->subjects[middle].check, tenant, name);
        if (by < 0 || (by == 0 && after))
            low = middle + 1;
        else
            high = middle;
    }
    return c->subjects + low;
}

const struct check_subject *
il__check_subject_get(const struct check_current *c, const char *tenant, const char *name)
{
    const struct check_subject *s = il__check_subject_from(c, tenant, name, false);

    return s < c->subjects + c->n && compare(s->check, tenant, name) == 0 ? s : NULL;
}

/* ---- loading --------------------------------------------------------------------------------- */

struct adding {
    const struct http_options *o;
    struct check_current      *c;
    char                       last[IL_TENANT_BYTES_MAX + 1];
    uint32_t                   n, present;
    uint64_t                   hash;
    il_status                  status;
    il_error                  *reterr;
};

static void
add_tenant(void *cookie, const struct il__data_tenant *t)
{
    struct adding *a = cookie;

    a->n++;
    a->hash = il__hash_mix(a->hash, il__hash_bytes(t->id, strlen(t->id)));
    (void)snprintf(a->last, sizeof a->last, "%s", t->id);
    for (size_t i = 0; a->c != NULL && i < a->o->n_apps && a->status == IL_OK; i++) {
        if ((a->present & (1U << i)) != 0)
            a->status = il__checks_add_app(&a->c->set, a->o->apps[i], t->id, a->reterr);
    }
}

il_status
il__check_present(const struct check_app *app, uint32_t *ret, il_error *reterr)
{
    const struct http_options *o = app->server->o;

    _Static_assert(HTTP_APPS_MAX <= 32, "a bit for each app");
    *ret = 0;
    for (size_t i = 0; i < o->n_apps; i++) {
        bool exist = false;
        if (o->apps[i]->n_invariants == 0)
            continue;
        il_status st =
            il__tables_exist(o->apps[i]->tables, o->store_url, o->data_url, &exist, reterr);
        if (st != IL_OK)
            return st;
        *ret |= exist ? 1U << i : 0;
    }
    return IL_OK;
}

/* The invariants of an app that has tables exist for every tenant. c NULL: only compute the hash of
 * tenants and apps. */
static il_status
each_tenant(const struct check_app *app, struct check_current *c, uint64_t *ret_hash,
            il_error *reterr)
{
    struct adding a       = { .o = app->server->o, .c = c, .reterr = reterr };
    il_status     present = il__check_present(app, &a.present, reterr);

    if (present != IL_OK)
        return present;
    a.hash = a.present;
    if (a.present == 0) { /* no matter which tenants there are */
        *ret_hash = 0;
        return IL_OK;
    }
    do {
        a.n          = 0;
        il_status st = il__data_tenant_list(app->server->data, a.last[0] != '\0' ? a.last : NULL,
                                            TENANTS_PAGE, add_tenant, &a, reterr);
        if (st != IL_OK)
            return st;
    } while (a.n == TENANTS_PAGE && a.status == IL_OK);
    *ret_hash = a.hash;
    return a.status;
}

static void
on_remark(void *cookie, const struct doc_remark *m)
{
    AUTO_BUF struct il__buf text = { 0 };

    il__buf_init(&text, 4096);
    il__buf_addf(&text, "%.1000s:%zu: %s%s%.2000s", m->path, m->line, m->field,
                 m->field[0] != '\0' ? ": " : "", m->text);
    il__check_refused(cookie, NULL, il__buf_str(&text));
}

static il_status
copy_connections(struct check_app *app, struct check_current *c, il_error *reterr)
{
    bool ok = true;

    il__mutex_lock(&app->mutex); /* a reload of the configuration replaces them */
    c->connections = il__arena_alloc(&c->mem, (app->n_connections + 1) * sizeof *c->connections);
    for (size_t i = 0; c->connections != NULL && i < app->n_connections; i++) {
        struct il__connection *to = &c->connections[i];
        *to                       = (struct il__connection){
                                  .name = il__arena_strdup(&c->mem, app->connections[i].name),
                                  .url  = il__arena_strdup(&c->mem, app->connections[i].url),
        };
        c->n_connections++;
        ok = ok && to->name != NULL && to->url != NULL;
    }
    ok = ok && c->connections != NULL;
    il__mutex_unlock(&app->mutex);
    return ok ? IL_OK : il__error_set(reterr, IL_NOMEM, "checks: out of memory");
}

static il_status
fill(struct check_app *app, struct check_current *c, il_error *reterr)
{
    il_status st = copy_connections(app, c, reterr);

    if (st == IL_OK)
        st = each_tenant(app, c, &c->own_hash, reterr);
    if (st == IL_OK && app->dir != NULL)
        st = il__checks_load(&c->set, app->dir, NULL, on_remark, app, reterr);
    if (st != IL_OK)
        return st;
    c->subjects = il__calloc(c->set.n + 1, sizeof *c->subjects);
    if (c->subjects == NULL)
        return il__error_set(reterr, IL_NOMEM, "checks: out of memory");
    for (size_t i = 0; i < c->set.n; i++) {
        c->subjects[c->n++] = (struct check_subject){ c, &c->set.items[i] };
        c->n_invalid += c->set.items[i].fault != NULL;
    }
    qsort(c->subjects, c->n, sizeof *c->subjects, compare_subjects);
    return IL_OK;
}

il_status
il__check_app_load(struct check_app *app, il_error *reterr)
{
    struct check_current *fresh = il__calloc(1, sizeof *fresh);

    if (fresh == NULL)
        return il__error_set(reterr, IL_NOMEM, "checks: out of memory");
    atomic_init(&fresh->n_refs, 1);
    il__mutex_lock(&app->load_mutex);
    il_status st = fill(app, fresh, reterr);
    if (st == IL_OK) {
        /* Whoever took a reference before keeps the old set; nobody sees half of either. */
        il__mutex_lock(&app->mutex);
        struct check_current *before = app->current;
        app->current                 = fresh;
        il__mutex_unlock(&app->mutex);
        il__check_loaded(app, fresh);
        fresh = before;
    }
    il__mutex_unlock(&app->load_mutex);
    il__check_current_unref(fresh);
    if (st == IL_OK && app->work != NULL)
        work_rescan(app->work); /* slots and ticks of new invariants */
    return st;
}

void
il__check_app_look(struct check_app *app)
{
    uint64_t hash = 0;
    il_error err  = { 0 };

    struct check_current *c  = il__check_app_current(app);
    il_status             st = each_tenant(app, NULL, &hash, &err);
    if (st == IL_OK && hash != c->own_hash)
        st = il__check_app_load(app, &err);
    if (st != IL_OK)
        il__check_trouble(app, "cannot list the tenants or the tables of apps", err.message);
    il__check_current_unref(c);
}
