/*
 * catalogue.c: all pipelines of a folder, looked up by (tenant, id).
 *
 * The result of reading the folder is a snapshot: immutable and reference-counted. A reload builds
 * a new snapshot and swaps it in, so lookups never wait for a reload: the mutex is held only for
 * one lookup, or to change one pointer. catalogue_read.c reads the files.
 */
#include "apps/runner/catalogue_internal.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/mutex.h"

struct snapshot {
    unsigned          n_refs; /* protected by the catalogue's mutex */
    struct il__map    by_id;
    struct pipeline **sorted; /* by tenant, then id; a reference to each */
    size_t            n;
};

struct pipeline_catalogue {
    struct il__mutex         mutex; /* protects `now` and its n_refs; a leaf */
    struct snapshot         *now;
    struct il__mutex         reload; /* serialises reloads; protects what follows; before `mutex` */
    char                    *dir;    /* NULL = none */
    struct catalogue_files   files;
    struct pipeline_defaults defaults;
};

/* ---- snapshots ------------------------------------------------------------------------------- */

static int
compare(const char *tenant_a, const char *id_a, const char *tenant_b, const char *id_b)
{
    int order = strcmp(tenant_a, tenant_b);

    return order != 0 ? order : strcmp(id_a, id_b);
}

static int
by_name(const void *a, const void *b)
{
    const struct pipeline *p = *(struct pipeline *const *)a;
    const struct pipeline *q = *(struct pipeline *const *)b;

    return compare(p->tenant, p->id, q->tenant, q->id);
}

static uint64_t
hash_of(const char *tenant, const char *id)
{
    return il__hash_mix(il__hash_bytes(tenant, strlen(tenant)), il__hash_bytes(id, strlen(id)));
}

static struct pipeline *
snapshot_find(const struct snapshot *s, const char *tenant, const char *id)
{
    uint64_t         hash = hash_of(tenant, id);
    struct pipeline *p;

    for (size_t i = il__map_start(&s->by_id, hash); (p = il__map_next(&s->by_id, hash, &i)) != NULL;
         i++) {
        if (compare(p->tenant, p->id, tenant, id) == 0)
            return p;
    }
    return NULL;
}

static void
snapshot_free(struct snapshot *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->n; i++)
        il__pipeline_unref(s->sorted[i]);
    il__free(s->sorted);
    il__map_release(&s->by_id);
    il__free(s);
}
DEFINE_AUTO(struct snapshot, snapshot_free)

static struct snapshot *
snapshot_take(struct pipeline_catalogue *c)
{
    il__mutex_lock(&c->mutex);
    struct snapshot *s = c->now;
    s->n_refs++;
    il__mutex_unlock(&c->mutex);
    return s;
}

static void
snapshot_give(struct pipeline_catalogue *c, struct snapshot *s)
{
    il__mutex_lock(&c->mutex);
    bool last = --s->n_refs == 0;
    il__mutex_unlock(&c->mutex);
    if (last)
        snapshot_free(s);
}

static struct snapshot *
snapshot_new(size_t n_max)
{
    struct snapshot *s = il__calloc(1, sizeof *s);

    if (s == NULL)
        return NULL;
    s->n_refs = 1;
    s->sorted = il__calloc(MAX(n_max, 1), sizeof(struct pipeline *));
    if (s->sorted == NULL)
        snapshot_free(TAKE(s));
    return s;
}

/* ---- from files to a snapshot ---------------------------------------------------------------- */

/* Which of two files with the same id wins: the one that has it now; then by path. A file's last
 * good version yields to any good file. */
enum pass {
    PASS_SAME,
    PASS_GOOD,
    PASS_KEPT,
    PASS_COUNT
};

static enum pass
pass_of(const struct snapshot *old, const struct catalogue_file *file)
{
    const struct pipeline *p = snapshot_find(old, file->tenant, file->pipeline->id);

    if (file->kept)
        return PASS_KEPT;
    return p != NULL && strcmp(p->path, file->path) == 0 ? PASS_SAME : PASS_GOOD;
}

static bool
add_pipeline(struct snapshot *s, struct pipeline *p)
{
    if (!il__map_reserve(&s->by_id))
        return false;
    il__map_add(&s->by_id, hash_of(p->tenant, p->id), p);
    s->sorted[s->n++] = il__pipeline_ref(p);
    return true;
}

static bool
add_files(const struct catalogue_reading *how, struct catalogue_files *files,
          const struct snapshot *old, struct snapshot *s, struct pipeline_loaded *loaded)
{
    for (enum pass pass = 0; pass < PASS_COUNT; pass++) {
        for (size_t i = 0; i < files->n; i++) {
            struct catalogue_file *file = &files->items[i];
            if (file->pipeline == NULL || pass_of(old, file) != pass)
                continue;
            const struct pipeline *twin = snapshot_find(s, file->tenant, file->pipeline->id);
            if (twin == NULL) {
                if (!add_pipeline(s, file->pipeline))
                    return false;
                loaded->n_kept += file->kept;
            } else if (!file->kept) {
                il__catalogue_tell(
                    how, file->path, file->pipeline->id_line, "pipeline_id",
                    "duplicate pipeline_id '%s', already used in %s; this file is ignored",
                    file->pipeline->id, twin->path);
                loaded->n_bad++;
            }
        }
    }
    return true;
}

static void
count(const struct snapshot *old, const struct snapshot *s, struct pipeline_loaded *loaded)
{
    loaded->n_pipelines = s->n;
    for (size_t i = 0; i < s->n; i++) {
        const struct pipeline *p = s->sorted[i];
        loaded->n_tenants += i == 0 || strcmp(s->sorted[i - 1]->tenant, p->tenant) != 0;
        loaded->n_changed += snapshot_find(old, p->tenant, p->id) != p;
    }
    for (size_t i = 0; i < old->n; i++)
        loaded->n_changed += snapshot_find(s, old->sorted[i]->tenant, old->sorted[i]->id) == NULL;
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool
same_defaults(const struct pipeline_defaults *a, const struct pipeline_defaults *b)
{
    return a->lock_retries == b->lock_retries && a->lock_retry_delay_ms == b->lock_retry_delay_ms &&
           a->lock_metrics == b->lock_metrics;
}

static il_status
read_again(struct pipeline_catalogue *c, const struct pipeline_defaults *defaults,
           doc_remark_fn *remark, void *cookie, struct pipeline_loaded *loaded, il_error *reterr)
{
    AUTO(il__catalogue_files_release) struct catalogue_files files = { 0 };
    bool                     changed = !same_defaults(defaults, &c->defaults);
    struct catalogue_reading how     = { c->dir, defaults, remark, cookie, &c->files, changed };
    struct snapshot *old = c->now; /* only a reload changes it, and reloads are serialised */

    *loaded = (struct pipeline_loaded){ 0 };
    if (c->dir == NULL)
        return IL_OK;
    il_status st = il__catalogue_read(&how, &files, reterr);
    if (st != IL_OK)
        return st;
    loaded->n_bad                           = files.n_bad;
    AUTO(snapshot_freep) struct snapshot *s = snapshot_new(files.n);
    if (s == NULL || !add_files(&how, &files, old, s, loaded))
        return il__error_set(reterr, IL_NOMEM, "%s: out of memory", c->dir);
    qsort(s->sorted, s->n, sizeof(struct pipeline *), by_name);
    count(old, s, loaded);
    c->defaults                   = *defaults;
    struct catalogue_files before = c->files; /* released with `files` */
    c->files                      = files;
    files                         = before;
    il__mutex_lock(&c->mutex);
    c->now = TAKE(s);
    il__mutex_unlock(&c->mutex);
    snapshot_give(c, old);
    return IL_OK;
}

il_status
il__catalogue_reload(struct pipeline_catalogue *c, const struct pipeline_defaults *defaults,
                     doc_remark_fn *remark, void *cookie, struct pipeline_loaded *loaded,
                     il_error *reterr)
{
    struct pipeline_loaded result;

    il__mutex_lock(&c->reload);
    il_status st = read_again(c, defaults, remark, cookie, &result, reterr);
    il__mutex_unlock(&c->reload);
    if (st == IL_OK && loaded != NULL)
        *loaded = result;
    return st;
}

il_status
il__catalogue_open(const char *dir, const struct pipeline_defaults *defaults, doc_remark_fn *remark,
                   void *cookie, struct pipeline_loaded *loaded, struct pipeline_catalogue **ret,
                   il_error *reterr)
{
    struct pipeline_catalogue *c = il__calloc(1, sizeof *c);

    il__hash_init();
    if (c == NULL)
        return il__error_nomem(reterr);
    il__mutex_init(&c->mutex, IL__MUTEX_catalogue);
    il__mutex_init(&c->reload, IL__MUTEX_catalogue_reload);
    c->defaults  = *defaults;
    c->now       = snapshot_new(0);
    c->dir       = dir != NULL ? il__strdup(dir) : NULL;
    il_status st = c->now != NULL && (dir == NULL || c->dir != NULL)
                       ? il__catalogue_reload(c, defaults, remark, cookie, loaded, reterr)
                       : il__error_nomem(reterr);
    if (st == IL_OK)
        *ret = c;
    else
        il__catalogue_close(c);
    return st;
}

void
il__catalogue_close(struct pipeline_catalogue *c)
{
    if (c == NULL)
        return;
    snapshot_free(c->now);
    il__catalogue_files_release(&c->files);
    il__mutex_destroy(&c->mutex);
    il__mutex_destroy(&c->reload);
    il__free(c->dir);
    il__free(c);
}

il_status
il__pipelines_check(const char *const *paths, size_t n_paths,
                    const struct pipeline_defaults *defaults, doc_remark_fn *remark, void *cookie,
                    struct pipeline_loaded *loaded, il_error *reterr)
{
    AUTO(il__catalogue_files_release) struct catalogue_files files = { 0 };
    struct catalogue_reading how = { NULL, defaults, remark, cookie, NULL, true };

    il__hash_init();
    *loaded      = (struct pipeline_loaded){ 0 };
    il_status st = il__catalogue_read_paths(&how, paths, n_paths, &files, reterr);
    if (st != IL_OK)
        return st;
    loaded->n_bad                              = files.n_bad;
    AUTO(snapshot_freep) struct snapshot *none = snapshot_new(0);
    AUTO(snapshot_freep) struct snapshot *s    = snapshot_new(files.n);
    if (none == NULL || s == NULL || !add_files(&how, &files, none, s, loaded))
        return il__error_set(reterr, IL_NOMEM, "pipelines: out of memory");
    qsort(s->sorted, s->n, sizeof(struct pipeline *), by_name);
    count(none, s, loaded);
    return IL_OK;
}

/* ---- lookups --------------------------------------------------------------------------------- */

struct pipeline *
il__catalogue_get(struct pipeline_catalogue *c, const char *tenant, const char *id)
{
    il__mutex_lock(&c->mutex);
    struct pipeline *p = snapshot_find(c->now, tenant, id);
    if (p != NULL)
        p = il__pipeline_ref(p);
    il__mutex_unlock(&c->mutex);
    return p;
}

/* The first entry after (tenant, id). */
static size_t
first_after(const struct snapshot *s, const char *tenant, const char *id)
{
    size_t lo = 0;
    size_t hi = s->n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (compare(s->sorted[mid]->tenant, s->sorted[mid]->id, tenant, id) <= 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

size_t
il__catalogue_list(struct pipeline_catalogue *c, const char *tenant, const char *after_tenant,
                   const char *after_id, struct pipeline **refs, size_t n)
{
    struct snapshot *s       = snapshot_take(c);
    size_t           n_found = 0;
    size_t           i       = 0;

    if (tenant != NULL)
        i = first_after(s, tenant, "");
    if (after_id != NULL)
        i = MAX(i, first_after(s,
                               after_tenant != NULL ? after_tenant
                               : tenant != NULL     ? tenant
                                                    : "",
                               after_id));
    for (; i < s->n && n_found < n; i++) {
        if (tenant != NULL && strcmp(s->sorted[i]->tenant, tenant) != 0)
            break;
        refs[n_found++] = il__pipeline_ref(s->sorted[i]);
    }
    snapshot_give(c, s);
    return n_found;
}

void
il__catalogue_tenants(struct pipeline_catalogue *c, pipeline_tenant_fn *each, void *cookie)
{
    struct snapshot *s = snapshot_take(c);

    for (size_t i = 0; i < s->n; i++) {
        if (i > 0 && strcmp(s->sorted[i - 1]->tenant, s->sorted[i]->tenant) == 0)
            continue;
        if (!each(cookie, s->sorted[i]->tenant))
            break;
    }
    snapshot_give(c, s);
}
