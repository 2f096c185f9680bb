/*
 * doctor.c: the findings of `interlock doctor` about a SQLite store: its library, its file, and the
 * disk the file is on.
 */
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include "base/error.h"
#include "store/sqlite/sqlite_internal.h"

#define SMB2_MAGIC_NUMBER_ 0xFE534D42 /* not in every linux/magic.h */
#define CIFS_MAGIC_NUMBER_ 0xFF534D42
#define FREE_BYTES_LOW (UINT64_C(256) << 20)
#define WAL_BYTES_LARGE 100000000 /* checkpoint.c keeps it below that, except during long reads */
#define TEXT_BYTES 160

static void
tell_version(const struct il__report *r)
{
    bool fixed = sqlite3_libversion_number() >= 3051003;

    il__tell(r, IL__FINDING_GOOD, "SQLite", sqlite3_libversion(),
             fixed ? "has no known bug that affects the store"
                   : "can corrupt a WAL if a checkpoint overlaps a write; the store's lock file "
                     "prevents it. Write to the store only with Interlock");
}

static void
tell_filesystem(const struct il__report *r, const char *path)
{
    struct statfs fs;

    if (statfs(path, &fs) != 0)
        return;
    uint64_t type   = (uint64_t)fs.f_type & UINT32_MAX;
    bool     remote = type == NFS_SUPER_MAGIC || type == SMB_SUPER_MAGIC ||
                  type == SMB2_MAGIC_NUMBER_ || type == CIFS_MAGIC_NUMBER_ ||
                  type == AFS_SUPER_MAGIC || type == CEPH_SUPER_MAGIC;
    if (remote)
        il__tell(r, IL__FINDING_BAD, "file system", "network",
                 "locks and wake-ups do not reach other machines; use postgres: or redis:");
    else if (type == TMPFS_MAGIC || type == RAMFS_MAGIC)
        il__tell(r, IL__FINDING_WARN, "file system", "memory", "everything is lost on reboot");
    else
        il__tell(
            r, IL__FINDING_GOOD, "file system", "local",
            "acknowledged data survives a power failure, provided that the disk honours syncs");
}

static void
tell_space(const struct il__report *r, const char *path)
{
    struct statvfs fs;
    char           text[TEXT_BYTES];

    if (statvfs(path, &fs) != 0)
        return;
    uint64_t n_free = (uint64_t)fs.f_bavail * fs.f_frsize;
    (void)snprintf(text, sizeof text, "%" PRIu64 " MB", n_free >> 20);
    if (n_free < FREE_BYTES_LOW)
        il__tell(r, IL__FINDING_WARN, "free space", text,
                 "with a full disk nothing is granted and leases cannot be renewed");
    else
        il__tell(r, IL__FINDING_GOOD, "free space", text, "enough");
}

static void
tell_files(const struct il__report *r, const char *path)
{
    struct stat             st;
    char                    text[TEXT_BYTES];
    char                    group[IL__STORE_GROUP_BYTES] = "";
    char                    means[128];
    struct il__buf AUTO_BUF wal = { .n_bytes_max = 8192 };

    if (stat(path, &st) == 0) {
        (void)snprintf(text, sizeof text, "%04o", (unsigned)st.st_mode & 07777);
        bool open = (st.st_mode & 077) != 0;
        if (il__store_sqlite_group(path, group))
            (void)snprintf(means, sizeof means, "the members of the group %s share it", group);
        else
            (void)snprintf(means, sizeof means, "%s",
                           open ? "other users can read or change leases: chmod 600"
                                : "no other user can read or change it");
        il__tell(r, open && group[0] == '\0' ? IL__FINDING_WARN : IL__FINDING_GOOD, "file mode",
                 text, means);
    }
    il__buf_addf(&wal, "%s-wal", path);
    if (stat(il__buf_str(&wal), &st) != 0)
        return;
    (void)snprintf(text, sizeof text, "%" PRId64 " MB", (int64_t)st.st_size >> 20);
    if (st.st_size > WAL_BYTES_LARGE)
        il__tell(r, IL__FINDING_WARN, "write-ahead log", text,
                 "cannot be checkpointed: a program keeps a read transaction open");
    else
        il__tell(r, IL__FINDING_GOOD, "write-ahead log", text, "checkpointed in time");
}

il_status
il__sq_report(struct sq_store *s, const char *table, il__report_fn *each, void *cookie,
              il_error *reterr)
{
    struct il__report r    = { each, cookie };
    const char       *path = sqlite3_db_filename(s->conn.db, "main");

    if (table != NULL)
        return il__error_set(reterr, IL_INVAL,
                             "a sqlite: store has no user tables to check; use --connection");
    tell_version(&r);
    il__tell(&r, IL__FINDING_GOOD, "synchronous", "FULL",
             "every commit is synced before it is acknowledged");
    tell_filesystem(&r, path);
    tell_space(&r, path);
    tell_files(&r, path);
    return IL_OK;
}
