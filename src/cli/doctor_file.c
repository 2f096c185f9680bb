/*
 * doctor_file.c: the settings of a SQLite file that several processes share. Only what is kept in
 * the file can be seen; what each connection sets for itself cannot.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "cli/doctor.h"

#include "doctor_sql.inc"
#include "doctor_sqlite_sql.inc"

#define HEADER_BYTES 100
#define HEADER_VERSION 18 /* for writers: 2 in WAL mode */
#define PAGE_BYTES_USUAL 4096

struct settings {
    long page_bytes;
    char version[32];
};

static int
take_settings(void *cookie, const il_guard_row *row)
{
    struct settings *s    = cookie;
    const char      *page = il__doctor_text(row, 0), *version = il__doctor_text(row, 1);

    s->page_bytes = page != NULL ? strtol(page, NULL, 10) : 0;
    (void)snprintf(s->version, sizeof s->version, "%s", version != NULL ? version : "");
    return 0;
}

bool
il__doctor_is_wal(const char *path)
{
    char header[HEADER_BYTES + 1];

    return il__read_small(path, header, sizeof header) == HEADER_BYTES &&
           header[HEADER_VERSION] == 2;
}

/* A text of sql/doctor.sql without its newline. */
static void
line_of(const char *sql, char *out, size_t n_bytes)
{
    (void)snprintf(out, n_bytes, "%.*s", (int)strcspn(sql, "\n"), sql);
}

static void
tell(doctor_finding_fn *each, void *cookie, enum il__finding_level level, const char *name,
     const char *value, const char *means, const char *sql)
{
    char fix[256];

    line_of(sql != NULL ? sql : "", fix, sizeof fix);
    each(cookie, &(struct doctor_finding){ .level        = level,
                                           .check        = DOCTOR_FILE,
                                           .name         = name,
                                           .value        = value,
                                           .means        = means,
                                           .fix          = sql != NULL ? fix : NULL,
                                           .n_violations = -1 });
}

il_status
il__doctor_check_file(struct doctor_database *db, doctor_finding_fn *each, void *cookie,
                      il_error *reterr)
{
    struct settings s = { 0 };
    char            page[24];
    bool            wal = db->is_wal;

    il_status st = il__doctor_ask(db, sql_sqlite_settings, NULL, 0, take_settings, &s, reterr);
    if (st != IL_OK)
        return st;
    (void)snprintf(page, sizeof page, "%ld", s.page_bytes);
    tell(each, cookie, wal ? IL__FINDING_GOOD : IL__FINDING_WARN, "journal_mode",
         wal ? "wal" : "not wal",
         wal ? "readers and the writer do not block each other"
             : "readers and writers block each other",
         wal ? NULL : sql_fix_wal);
    if (s.page_bytes < PAGE_BYTES_USUAL)
        tell(each, cookie, IL__FINDING_NOTE, "page_size", page,
             "smaller than a block of the file system: a commit writes more blocks than it needs",
             sql_fix_page_size);
    else
        tell(each, cookie, IL__FINDING_GOOD, "page_size", page,
             "at least a block of the file system", NULL);
    tell(each, cookie, IL__FINDING_NOTE, "foreign_keys", "set by each connection",
         "not stored in the file; every connection must run PRAGMA foreign_keys = ON", NULL);
    tell(each, cookie, IL__FINDING_NOTE, "synchronous", "set by each connection",
         "not stored in the file; durable commits need PRAGMA synchronous = FULL on every "
         "connection",
         NULL);
    return IL_OK;
}
