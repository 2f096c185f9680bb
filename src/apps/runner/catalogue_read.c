/*
 * catalogue_read.c: reads a folder of pipelines: DIR/TENANT/NAME.yml. One thread walks the folder;
 * new and changed files are read and parsed by as many threads as there are processors.
 *
 * A good file with the same size, times and inode as before is not read again. A bad one is: it may
 * have been repaired within the resolution of its timestamps.
 */
#include "apps/runner/catalogue_internal.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "apps/common/reading.h"
#include "base/error.h"
#include "base/mutex.h"

#define THREADS_MAX 8
#define FILES_PER_THREAD 64 /* for fewer files, starting a thread costs more than it saves */

void
il__catalogue_tell(const struct catalogue_reading *how, const char *path, size_t line,
                   const char *field, const char *fmt, ...)
{
    struct doc_remark remark = { path, line, field, NULL, true };
    char              text[1024];
    va_list           ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    remark.text = text;
    if (how->remark != NULL)
        how->remark(how->cookie, &remark);
}

void
il__catalogue_files_release(struct catalogue_files *f)
{
    for (size_t i = 0; i < f->n; i++) {
        il__free(f->items[i].path);
        il__free(f->items[i].tenant);
        il__pipeline_unref(f->items[i].pipeline);
    }
    il__free(f->items);
    *f = (struct catalogue_files){ 0 };
}

/* ---- the folder ------------------------------------------------------------------------------ */

static void
close_dirp(DIR **dir)
{
    if (*dir != NULL)
        (void)closedir(*dir);
}
#define AUTO_DIR AUTO(close_dirp)

static char *
join(const char *dir, const char *name)
{
    size_t n    = strlen(dir) + strlen(name) + 2;
    char  *path = il__alloc(n);

    if (path != NULL)
        (void)snprintf(path, n, "%s/%s", dir, name);
    return path;
}

static il_status
add_file(struct catalogue_files *f, const char *dir, const char *name, const char *tenant,
         const struct stat *st, il_error *reterr)
{
    if (f->n == CATALOGUE_FILES_MAX)
        return il__error_set(reterr, IL_LIMIT, "%s: too many files (maximum %d)", dir,
                             CATALOGUE_FILES_MAX);
    if (!il__grow(&f->items, f->n, &f->capacity, sizeof *f->items))
        return il__error_set(reterr, IL_NOMEM, "%s: out of memory", dir);
    struct catalogue_file *file = &f->items[f->n];
    *file                       = (struct catalogue_file){ .path   = join(dir, name),
                                                           .tenant = il__strdup(tenant),
                                                           .stat   = *st };
    f->n++; /* even if incomplete, it is released with the others */
    if (file->path == NULL || file->tenant == NULL)
        return il__error_set(reterr, IL_NOMEM, "%s: out of memory", dir);
    return IL_OK;
}

static il_status
walk_tenant(const struct catalogue_reading *how, const char *path, const char *tenant,
            struct catalogue_files *f, il_error *reterr)
{
    AUTO_DIR DIR  *dir = opendir(path);
    struct dirent *entry;
    struct stat    st;

    if (dir == NULL) {
        il__catalogue_tell(how, path, 0, "", "cannot read the folder: %s", strerror(errno));
        f->n_bad++;
        return IL_OK;
    }
    while ((entry = readdir(dir)) != NULL) {
        if (!il__reading_is_yaml(entry->d_name))
            continue;
        /* Links are followed: mounted configuration consists of links. A file that has vanished
         * was removed. */
        if (fstatat(dirfd(dir), entry->d_name, &st, 0) != 0)
            memset(&st, 0, sizeof st);
        if (S_ISDIR(st.st_mode))
            continue;
        il_status status = add_file(f, path, entry->d_name, tenant, &st, reterr);
        if (status != IL_OK)
            return status;
    }
    return IL_OK;
}

static il_status
walk_entry(const struct catalogue_reading *how, const char *root, int fd, const char *name,
           struct catalogue_files *f, il_error *reterr)
{
    AUTO_FREE char *path = join(root, name);
    struct stat     st;

    if (path == NULL)
        return il__error_set(reterr, IL_NOMEM, "%s: out of memory", root);
    if (name[0] == '.' || fstatat(fd, name, &st, 0) != 0)
        return IL_OK;
    if (S_ISDIR(st.st_mode) && il__reading_is_tenant(name))
        return walk_tenant(how, path, name, f, reterr);
    if (S_ISDIR(st.st_mode)) {
        il__catalogue_tell(
            how, path, 0, "",
            "'%s' is not a tenant id (a-z, 0-9, _; at most %d); the folder is ignored", name,
            IL_TENANT_BYTES_MAX);
        f->n_bad++;
    } else if (il__reading_is_yaml(name)) {
        il__catalogue_tell(how, path, 0, "",
                           "move this pipeline into its tenant's folder: %s/TENANT/%s", root, name);
        f->n_bad++;
    }
    return IL_OK;
}

static int
by_path(const void *a, const void *b)
{
    return strcmp(((const struct catalogue_file *)a)->path,
                  ((const struct catalogue_file *)b)->path);
}

static il_status
walk(const struct catalogue_reading *how, const char *root, struct catalogue_files *f,
     il_error *reterr)
{
    AUTO_DIR DIR  *dir = opendir(root);
    struct dirent *entry;

    if (dir == NULL)
        return il__error_set(reterr, IL_INVAL, "%s: cannot read the pipelines folder: %s", root,
                             strerror(errno));
    while ((entry = readdir(dir)) != NULL) {
        il_status st = walk_entry(how, root, dirfd(dir), entry->d_name, f, reterr);
        if (st != IL_OK)
            return st;
    }
    return IL_OK;
}

/* ---- a file ---------------------------------------------------------------------------------- */

/* The work of one reader thread. */
struct reader {
    const struct catalogue_reading *how;
    struct catalogue_files         *files;
    size_t                         *next;  /* the next file to take */
    struct il__mutex               *mutex; /* serialises remarks; a leaf */
    char                           *text;
    bool                            no_memory;
};

static void
tell_one(void *cookie, const struct doc_remark *remark)
{
    struct reader *r = cookie;

    if (r->how->remark == NULL)
        return;
    il__mutex_lock(r->mutex);
    r->how->remark(r->how->cookie, remark);
    il__mutex_unlock(r->mutex);
}

static void
read_file(struct reader *r, struct catalogue_file *file)
{
    size_t   n;
    il_error err; /* the faults have been reported */

    file->fresh = true;
    if (!il__reading_file(file->path, r->text, PIPELINE_FILE_BYTES_MAX, &file->stat, &n)) {
        struct stat st;
        char        text[128];
        if (errno == ENOENT && lstat(file->path, &st) != 0) {
            file->gone = true;
            return;
        }
        struct doc_remark remark = { file->path, 0, "", text, true };
        (void)snprintf(text, sizeof text, "cannot read the file: %s",
                       errno == EINVAL ? "not a regular file" : strerror(errno));
        tell_one(r, &remark);
        return;
    }
    il_status st = il__pipeline_parse(file->tenant, file->path, r->text, n, r->how->defaults,
                                      tell_one, r, &file->pipeline, &err);
    if (st == IL_NOMEM)
        r->no_memory = true;
}

static void *
read_files(void *arg)
{
    struct reader *r = arg;

    r->text = il__alloc(PIPELINE_FILE_BYTES_MAX + 1);
    if (r->text == NULL) {
        r->no_memory = true;
        return NULL;
    }
    for (;;) {
        size_t i = __atomic_fetch_add(r->next, 1, __ATOMIC_RELAXED);
        if (i >= r->files->n || r->no_memory)
            break;
        if (r->files->items[i].pipeline == NULL)
            read_file(r, &r->files->items[i]);
    }
    il__free(r->text);
    return NULL;
}

static size_t
n_threads(size_t n_files)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);

    return MIN(MIN(n > 0 ? (size_t)n : 1, THREADS_MAX), n_files / FILES_PER_THREAD + 1);
}

/* Read the files that have no pipeline yet. This thread reads as well, so if no thread can be
 * started, it only takes longer. */
static il_status
read_missing(const struct catalogue_reading *how, struct catalogue_files *f, size_t n_missing,
             il_error *reterr)
{
    struct il__mutex mutex = { PTHREAD_MUTEX_INITIALIZER, IL__MUTEX_remarks };
    size_t           next  = 0;
    struct reader    readers[THREADS_MAX];
    pthread_t        threads[THREADS_MAX];
    size_t           n         = n_threads(n_missing);
    size_t           n_started = 1;
    bool             no_memory;

    for (size_t i = 0; i < n; i++)
        readers[i] = (struct reader){ how, f, &next, &mutex, NULL, false };
    while (n_started < n &&
           pthread_create(&threads[n_started], NULL, read_files, &readers[n_started]) == 0)
        n_started++;
    (void)read_files(&readers[0]);
    no_memory = readers[0].no_memory;
    for (size_t i = 1; i < n_started; i++) {
        (void)pthread_join(threads[i], NULL);
        no_memory |= readers[i].no_memory;
    }
    il__mutex_destroy(&mutex);
    return no_memory ? il__error_set(reterr, IL_NOMEM, "pipelines: out of memory") : IL_OK;
}

/* ---- unchanged files ------------------------------------------------------------------------- */

static bool
same_stat(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static const struct catalogue_file *
find_old(const struct catalogue_reading *how, const struct catalogue_file *file)
{
    if (how->old == NULL || how->old->n == 0)
        return NULL;
    return bsearch(file, how->old->items, how->old->n, sizeof *file, by_path);
}

/* The number of files left to read. */
static size_t
take_unchanged(const struct catalogue_reading *how, struct catalogue_files *f)
{
    size_t n_missing = 0;

    for (size_t i = 0; i < f->n; i++) {
        struct catalogue_file       *file = &f->items[i];
        const struct catalogue_file *old  = find_old(how, file);
        if (!how->all && old != NULL && old->pipeline != NULL && !old->kept &&
            same_stat(&old->stat, &file->stat))
            file->pipeline = il__pipeline_ref(old->pipeline);
        else
            n_missing++;
    }
    return n_missing;
}

/* A file that was only touched keeps its pipeline; a bad one keeps its last good version. */
static void
take_old(const struct catalogue_reading *how, struct catalogue_files *f,
         struct catalogue_file *file)
{
    const struct catalogue_file *old = file->fresh ? find_old(how, file) : NULL;

    f->n_bad += file->pipeline == NULL;
    if (old == NULL || old->pipeline == NULL)
        return;
    if (file->pipeline == NULL) {
        file->pipeline = il__pipeline_ref(old->pipeline);
        file->kept     = true;
    } else if (!how->all && file->pipeline->hash == old->pipeline->hash) {
        il__pipeline_unref(file->pipeline);
        file->pipeline = il__pipeline_ref(old->pipeline);
    }
}

static void
remove_gone(struct catalogue_files *f)
{
    size_t n = 0;

    for (size_t i = 0; i < f->n; i++) {
        if (!f->items[i].gone) {
            f->items[n++] = f->items[i];
            continue;
        }
        il__free(f->items[i].path);
        il__free(f->items[i].tenant);
    }
    f->n = n;
}

il_status
il__catalogue_read(const struct catalogue_reading *how, struct catalogue_files *ret,
                   il_error *reterr)
{
    AUTO(il__catalogue_files_release) struct catalogue_files f = { 0 };

    il_status st = walk(how, how->dir, &f, reterr);
    if (st != IL_OK)
        return st;
    if (f.n > 0)
        qsort(f.items, f.n, sizeof *f.items, by_path);
    size_t n_missing = take_unchanged(how, &f);
    if (n_missing > 0)
        st = read_missing(how, &f, n_missing, reterr);
    if (st != IL_OK)
        return st;
    remove_gone(&f);
    for (size_t i = 0; i < f.n; i++)
        take_old(how, &f, &f.items[i]);
    *ret = f;
    f    = (struct catalogue_files){ 0 };
    return IL_OK;
}

/* ---- given paths ----------------------------------------------------------------------------- */

/* The name of the of-th folder above a path, or (of == 0) of the path itself. */
static char *
folder_name(const char *path, int of)
{
    char *real = realpath(path, NULL);
    char *name = NULL;

    for (int i = 0; real != NULL && i < of; i++) {
        char *slash = strrchr(real, '/');
        if (slash != NULL)
            *slash = '\0';
    }
    if (real != NULL)
        name = il__strdup(strrchr(real, '/') != NULL ? strrchr(real, '/') + 1 : real);
    free(real); /* allocated by the C library */
    return name;
}

static bool
holds_pipelines(const char *path)
{
    AUTO_DIR DIR  *dir = opendir(path);
    struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        struct stat st;
        if (il__reading_is_yaml(entry->d_name) && fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 &&
            !S_ISDIR(st.st_mode))
            return true;
    }
    return false;
}

static il_status
add_path(const struct catalogue_reading *how, const char *path, struct catalogue_files *f,
         il_error *reterr)
{
    struct stat st;
    size_t      n = f->n + f->n_bad;

    if (stat(path, &st) != 0) {
        il__catalogue_tell(how, path, 0, "", "cannot read the file: %s", strerror(errno));
        f->n_bad++;
        return IL_OK;
    }
    bool            tenant = S_ISDIR(st.st_mode) && holds_pipelines(path);
    AUTO_FREE char *name   = folder_name(path, S_ISDIR(st.st_mode) ? 0 : 1);
    if (name == NULL)
        return il__error_set(reterr, IL_NOMEM, "%s: out of memory", path);
    il_status status;
    if (S_ISDIR(st.st_mode)) {
        status = tenant ? walk_tenant(how, path, name, f, reterr) : walk(how, path, f, reterr);
    } else {
        const char *slash = strrchr(path, '/');
        char *dir = slash != NULL ? il__strndup(path, (size_t)(slash - path)) : il__strdup(".");
        status = dir != NULL ? add_file(f, dir, slash != NULL ? slash + 1 : path, name, &st, reterr)
                             : il__error_set(reterr, IL_NOMEM, "%s: out of memory", path);
        il__free(dir);
    }
    if (status == IL_OK && f->n + f->n_bad == n) {
        il__catalogue_tell(how, path, 0, "",
                           "no pipeline files (TENANT/NAME.yml or NAME.yml) in this folder");
        f->n_bad++;
    }
    return status;
}

il_status
il__catalogue_read_paths(const struct catalogue_reading *how, const char *const *paths,
                         size_t n_paths, struct catalogue_files *ret, il_error *reterr)
{
    AUTO(il__catalogue_files_release) struct catalogue_files f = { 0 };

    for (size_t i = 0; i < n_paths; i++) {
        il_status st = add_path(how, paths[i], &f, reterr);
        if (st != IL_OK)
            return st;
    }
    if (f.n > 0)
        qsort(f.items, f.n, sizeof *f.items, by_path);
    for (size_t i = 1; i < f.n; i++)
        f.items[i].gone = strcmp(f.items[i].path, f.items[i - 1].path) == 0; /* named twice */
    remove_gone(&f);
    il_status st = read_missing(how, &f, f.n, reterr);
    if (st != IL_OK)
        return st;
    for (size_t i = 0; i < f.n; i++)
        f.n_bad += f.items[i].pipeline == NULL;
    *ret = f;
    f    = (struct catalogue_files){ 0 };
    return IL_OK;
}
