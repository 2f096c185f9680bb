/*
 * vfs.c: SQLite's own way to the files, but the WAL is written in one piece.
 *
 * SQLite writes every page of a commit to the WAL with two calls, one for the frame's head and one for the page;
 * an acquire changes four pages. Here what is written to a WAL side by side is gathered, and goes out with the
 * sync that ends the commit. Nobody misses it before: frames are announced in the shared index after the sync
 * (synchronous=FULL, see sql/connect.sql), and our own connection's reads come here too. If the process dies in
 * between, the frames were never written, as if it had died a moment earlier.
 *
 * What was gathered for a transaction that is undone (frames written before the commit, when the page cache was
 * full) is forgotten, under the lock file: later it would be written over what others have committed there.
 *
 * Everything else, the database itself included, is the default VFS's.
 */
#include <pthread.h>

#include "store/sqlite/sqlite_internal.h"

#define GATHER_BYTES (64 * 1024) /* SQLite's unix VFS writes no more than 128 kB - 1 at a time */

struct wal_file {
    sqlite3_file  base;
    char         *gathered; /* NULL until something is written */
    size_t        n_bytes;
    sqlite3_int64 offset; /* of gathered[0] in the file */
    sqlite3_file *real;   /* behind this struct */
};

static sqlite3_vfs    vfs; /* a copy of the default one, but for xOpen */
static sqlite3_vfs   *default_vfs;
static pthread_once_t once       = PTHREAD_ONCE_INIT;
static int            registered = SQLITE_ERROR;

static struct wal_file *
wal_from(sqlite3_file *file)
{
    return container_of(file, struct wal_file, base);
}

/* Write out what was gathered. On failure it is gone: the commit fails and is undone. */
static int
flush(struct wal_file *w)
{
    size_t n_bytes = w->n_bytes;

    w->n_bytes = 0;
    return n_bytes > 0 ? w->real->pMethods->xWrite(w->real, w->gathered, (int)n_bytes, w->offset)
                       : SQLITE_OK;
}

static int
wal_write(sqlite3_file *file, const void *data, int n_bytes, sqlite3_int64 offset)
{
    struct wal_file *w = wal_from(file);
    size_t           n = (size_t)n_bytes;

    if (offset != w->offset + (sqlite3_int64)w->n_bytes || n > GATHER_BYTES - w->n_bytes) {
        int rc = flush(w);
        if (rc != SQLITE_OK)
            return rc;
    }
    if (w->gathered == NULL)
        w->gathered = il__alloc(GATHER_BYTES);
    if (w->gathered == NULL || n > GATHER_BYTES)
        return w->real->pMethods->xWrite(w->real, data, n_bytes, offset);
    if (w->n_bytes == 0)
        w->offset = offset;
    memcpy(w->gathered + w->n_bytes, data, n);
    w->n_bytes += n;
    return SQLITE_OK;
}

static int
wal_sync(sqlite3_file *file, int flags)
{
    struct wal_file *w = wal_from(file);

#ifdef IL_MUTANT_synced_before_written
    int rc = w->real->pMethods->xSync(w->real, flags);
    return rc == SQLITE_OK ? flush(w) : rc;
#else
    int rc = flush(w);
    return rc == SQLITE_OK ? w->real->pMethods->xSync(w->real, flags) : rc;
#endif
}

static int
wal_read(sqlite3_file *file, void *data, int n_bytes, sqlite3_int64 offset)
{
    struct wal_file *w  = wal_from(file);
    int              rc = flush(w);

    return rc == SQLITE_OK ? w->real->pMethods->xRead(w->real, data, n_bytes, offset) : rc;
}

static int
wal_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    struct wal_file *w  = wal_from(file);
    int              rc = flush(w);

    return rc == SQLITE_OK ? w->real->pMethods->xTruncate(w->real, size) : rc;
}

static int
wal_file_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
    struct wal_file *w  = wal_from(file);
    int              rc = flush(w);

    return rc == SQLITE_OK ? w->real->pMethods->xFileSize(w->real, ret_size) : rc;
}

static int
wal_close(sqlite3_file *file)
{
    struct wal_file *w = wal_from(file);

    il__free(w->gathered);
    return w->real->pMethods->xClose(w->real);
}

/* A WAL is never locked itself. */
static int
wal_lock(sqlite3_file *file UNUSED, int kind UNUSED)
{
    return SQLITE_OK;
}

static int
wal_check_reserved(sqlite3_file *file UNUSED, int *ret_reserved)
{
    *ret_reserved = 0;
    return SQLITE_OK;
}

static int
wal_control(sqlite3_file *file, int op, void *arg)
{
    struct wal_file *w = wal_from(file);

    return w->real->pMethods->xFileControl(w->real, op, arg);
}

static int
wal_sector_size(sqlite3_file *file)
{
    struct wal_file *w = wal_from(file);

    return w->real->pMethods->xSectorSize(w->real);
}

static int
wal_characteristics(sqlite3_file *file)
{
    struct wal_file *w = wal_from(file);

    return w->real->pMethods->xDeviceCharacteristics(w->real);
}

static const sqlite3_io_methods wal_methods = {
    .iVersion               = 1,
    .xClose                 = wal_close,
    .xRead                  = wal_read,
    .xWrite                 = wal_write,
    .xTruncate              = wal_truncate,
    .xSync                  = wal_sync,
    .xFileSize              = wal_file_size,
    .xLock                  = wal_lock,
    .xUnlock                = wal_lock,
    .xCheckReservedLock     = wal_check_reserved,
    .xFileControl           = wal_control,
    .xSectorSize            = wal_sector_size,
    .xDeviceCharacteristics = wal_characteristics,
};

static int
vfs_open(sqlite3_vfs *self UNUSED, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
    if ((flags & SQLITE_OPEN_WAL) == 0)
        return default_vfs->xOpen(default_vfs, name, file, flags, ret_flags);
    struct wal_file *w = wal_from(file);
    *w                 = (struct wal_file){ .real = (sqlite3_file *)(void *)(w + 1) };
    int rc             = default_vfs->xOpen(default_vfs, name, w->real, flags, ret_flags);
    if (rc == SQLITE_OK)
        w->base.pMethods = &wal_methods;
    return rc;
}

static void
register_once(void)
{
    default_vfs = sqlite3_vfs_find(NULL);
    if (default_vfs == NULL)
        return;
    vfs          = *default_vfs;
    vfs.pNext    = NULL;
    vfs.zName    = "interlock";
    vfs.szOsFile = (int)sizeof(struct wal_file) + default_vfs->szOsFile;
    vfs.xOpen    = vfs_open;
    registered   = sqlite3_vfs_register(&vfs, 0);
}

void
il__sq_vfs_forget(sqlite3 *db)
{
    sqlite3_file *file = NULL;

    if (sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file) == SQLITE_OK &&
        file != NULL && file->pMethods == &wal_methods)
        wal_from(file)->n_bytes = 0;
}

const char *
il__sq_vfs(void)
{
    CHECK(pthread_once(&once, register_once) == 0);
    return registered == SQLITE_OK ? vfs.zName : NULL; /* NULL is the default one, slower but as good */
}
