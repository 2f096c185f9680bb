/*
 * disk.c: a VFS that uses SQLite's own file objects; only the sync is ours. See disk.h.
 */
#include "fault/disk.h"

#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

#include "harness/rng.h"
#include "harness/tmp.h"

#define N_FILES_MAX 16
#define SECTOR_BYTES 512
#define KINDS (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL)

static struct disk_cut cut;
static const char     *image_dir;
static unsigned        n_syncs;
static sqlite3_vfs     vfs; /* the default one, but for xOpen */
static sqlite3_vfs    *real_vfs;
/* those of its databases and of its other files, but for xSync */
static sqlite3_io_methods methods[2];
static int (*real_sync)(sqlite3_file *file, int flags);
static struct {
    sqlite3_file *file;
    char          path[T_PATH_BYTES];
} files[N_FILES_MAX];

static void
image_path(char path[T_PATH_BYTES], const char *of)
{
    const char *base = strrchr(of, '/');

    t_path(path, "%s/%s", image_dir, base != NULL ? base + 1 : of);
}

static void
take_image(const char *path)
{
    char   to[T_PATH_BYTES];
    size_t n;
    char  *data = t_file_read(path, &n);

    image_path(to, path);
    t_file_write(to, data, n);
    free(data);
}

/* Sector by sector the old or the new one; the file is as long as the longer of both. */
static void
mix_image(const char *path, struct t_rng *rng)
{
    char   to[T_PATH_BYTES];
    size_t n_new;
    size_t n_old = 0;
    char *new    = t_file_read(path, &n_new);
    char *old    = NULL;

    image_path(to, path);
    if (t_file_exists(to))
        old = t_file_read(to, &n_old);
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

_Noreturn static void
lose_power(void)
{
    struct t_rng rng;

    t_rng_init(&rng, cut.seed);
    for (size_t i = 0; cut.loss == DISK_MIXES && i < N_FILES_MAX; i++) {
        if (files[i].file != NULL && t_file_exists(files[i].path))
            mix_image(files[i].path, &rng);
    }
    _exit(DISK_CUT_STATUS);
}

static int
disk_sync(sqlite3_file *file, int flags)
{
    size_t i = 0;

    while (i < N_FILES_MAX && files[i].file != file)
        i++;
    CHECK(i < N_FILES_MAX);
    n_syncs++;
    if (n_syncs == cut.at && cut.before)
        lose_power();
    int rc = real_sync(file, flags);
    if (rc == SQLITE_OK && cut.loss != DISK_LIES)
        take_image(files[i].path);
    if (n_syncs == cut.at)
        lose_power();
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

    image_path(image, name);
    if (rc == SQLITE_OK && sync_dir != 0 && t_file_exists(image))
        CHECK(unlink(image) == 0);
    return rc;
}

void
disk_install(const char *image, const struct disk_cut *the_cut)
{
    cut       = *the_cut;
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
