/*
 * disk.c: a VFS that uses SQLite's own file objects; only the sync is ours. See disk.h.
 */
#include "fault/disk.h"

#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/rng.h"

#define N_FILES_MAX 16
#define SECTOR_BYTES 512
#define KINDS (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL)

static struct disk_plan plan;
static const char      *image_dir;
static unsigned         n_cuts;
static sqlite3_vfs      vfs; /* the default one, but for xOpen */
static sqlite3_vfs     *real_vfs;
/* those of its databases and of its other files, but for xSync */
static sqlite3_io_methods methods[2];
static int (*real_sync)(sqlite3_file *file, int flags);
static struct {
    sqlite3_file *file;
    char          path[T_PATH_BYTES];
} files[N_FILES_MAX];

void
disk_cut_dir(const char *image, unsigned i, char path[T_PATH_BYTES])
{
    t_path(path, "%s/cut-%u", image, i);
}

/* The path of a file's copy in another folder. */
static void
path_in(const char *dir, const char *of, char path[T_PATH_BYTES])
{
    const char *base = strrchr(of, '/');

    t_path(path, "%s/%s", dir, base != NULL ? base + 1 : of);
}

static void
copy(const char *from, const char *to)
{
    size_t n;
    char  *data = t_file_read(from, &n);

    t_file_write(to, data, n);
    free(data);
}

/* Sector by sector the old or the new one; the file is as long as the longer of both. */
static void
mix(const char *old_path, const char *new_path, const char *to, struct t_rng *rng)
{
    size_t n_new;
    size_t n_old = 0;
    char *new    = t_file_read(new_path, &n_new);
    char *old    = NULL;

    if (t_file_exists(old_path))
        old = t_file_read(old_path, &n_old);
    size_t n     = MAX(n_old, n_new);
    char  *mixed = calloc(1, n + 1);
    CHECK(mixed != NULL);
    for (size_t at = 0; at < n; at += SECTOR_BYTES) {
        bool        is_new = t_rng_below(rng, 2) == 0;
        const char *from   = is_new ? new : old;
        size_t      n_from = is_new ? n_new : n_old;
        if (at < n_from)
            memcpy(mixed + at, from + at, MIN(SECTOR_BYTES, n_from - at));
    }
    t_file_write(to, mixed, n);
    free(mixed);
    free(old);
    free(new);
}

/* Keep what would be left if the power went now, and say so. */
static void
keep_cut(void)
{
    char         dir[T_PATH_BYTES];
    struct t_rng rng;

    t_rng_init(&rng, plan.seed * 1000 + n_cuts / 2 + 1);
    disk_cut_dir(image_dir, n_cuts++, dir);
    CHECK(mkdir(dir, 0700) == 0);
    for (size_t i = 0; i < N_FILES_MAX && files[i].file != NULL; i++) {
        char image[T_PATH_BYTES];
        char to[T_PATH_BYTES];
        path_in(image_dir, files[i].path, image);
        path_in(dir, files[i].path, to);
        if (plan.loss == DISK_MIXES && t_file_exists(files[i].path))
            mix(image, files[i].path, to, &rng);
        else if (t_file_exists(image))
            copy(image, to);
    }
    static const char line[] = DISK_CUT_LINE "\n";
    CHECK(write(STDOUT_FILENO, line, strlen(line)) == (ssize_t)strlen(line));
}

static int
disk_sync(sqlite3_file *file, int flags)
{
    char   image[T_PATH_BYTES];
    size_t i = 0;

    while (i < N_FILES_MAX && files[i].file != file)
        i++;
    CHECK(i < N_FILES_MAX);
    keep_cut();
    int rc = real_sync(file, flags);
    CHECK(rc == SQLITE_OK);
    path_in(image_dir, files[i].path, image);
    if (plan.loss != DISK_LIES)
        copy(files[i].path, image);
    keep_cut();
    return rc;
}

static int
disk_open(sqlite3_vfs *self UNUSED, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
    int rc = real_vfs->xOpen(real_vfs, name, file, flags, ret_flags);

    if (rc != SQLITE_OK || (flags & KINDS) == 0)
        return rc;
    sqlite3_io_methods *m = &methods[(flags & SQLITE_OPEN_MAIN_DB) == 0];
    *m                    = *file->pMethods;
    real_sync             = m->xSync; /* all of them have the same */
    m->xSync              = disk_sync;
    file->pMethods        = m;
    size_t i              = 0;
    while (i < N_FILES_MAX && files[i].file != NULL && files[i].file != file &&
           strcmp(files[i].path, name) != 0)
        i++;
    CHECK(i < N_FILES_MAX);
    files[i].file = file;
    t_path(files[i].path, "%s", name);
    return rc;
}

static int
disk_delete(sqlite3_vfs *self UNUSED, const char *name, int sync_dir)
{
    char image[T_PATH_BYTES];
    int  rc = real_vfs->xDelete(real_vfs, name, sync_dir);

    path_in(image_dir, name, image);
    if (rc == SQLITE_OK && sync_dir != 0 && t_file_exists(image))
        CHECK(unlink(image) == 0);
    return rc;
}

void
disk_install(const char *image, const struct disk_plan *the_plan)
{
    plan      = *the_plan;
    image_dir = image;
    real_vfs  = sqlite3_vfs_find(NULL);
    CHECK(real_vfs != NULL);
    vfs         = *real_vfs;
    vfs.pNext   = NULL;
    vfs.zName   = "disk";
    vfs.xOpen   = disk_open;
    vfs.xDelete = disk_delete;
    CHECK(sqlite3_vfs_register(&vfs, 1) == SQLITE_OK);
}
