/*
 * catalogue_internal.h: shared by catalogue.c (snapshots and lookups) and catalogue_read.c (reading
 * the folder with several threads).
 */
#ifndef IL_APPS_RUNNER_CATALOGUE_INTERNAL_H
#define IL_APPS_RUNNER_CATALOGUE_INTERNAL_H

#include <sys/stat.h>

#include "apps/runner/pipeline.h"

#define CATALOGUE_FILES_MAX 200000

/* A file, as found by one reading of the folder. */
struct catalogue_file {
    char            *path;
    char            *tenant;
    struct stat      stat;     /* size, times, inode */
    struct pipeline *pipeline; /* a reference; NULL = the file is bad */
    bool             fresh;    /* read this time */
    bool             kept;     /* bad, and this is its last good version */
    bool             gone;     /* removed while the folder was read */
};

/* All files of a folder, by path. */
struct catalogue_files {
    struct catalogue_file *items;
    size_t                 n, capacity;
    size_t n_bad; /* including folders that belong to no tenant, and files beside them */
};

struct catalogue_reading {
    const char *dir; /* the folder named in messages; NULL with il__catalogue_read_paths() */
    const struct pipeline_defaults *defaults;
    doc_remark_fn                  *remark; /* may be NULL; one call at a time */
    void                           *cookie;
    const struct catalogue_files *old; /* the previous result: unchanged files are taken from it */
    bool                          all; /* read unchanged files as well */
};

/* Read the folder. IL_OK even with bad files, which have been reported. */
il_status il__catalogue_read(const struct catalogue_reading *how, struct catalogue_files *ret,
                             il_error *reterr) MUST_USE;
/* Read the files and folders that these paths name. */
il_status il__catalogue_read_paths(const struct catalogue_reading *how, const char *const *paths,
                                   size_t n_paths, struct catalogue_files *ret, il_error *reterr)
    MUST_USE;
void il__catalogue_files_release(struct catalogue_files *f);
/* Report an error of a file or folder. */
void il__catalogue_tell(const struct catalogue_reading *how, const char *path, size_t line,
                        const char *field, const char *fmt, ...) PRINTF_LIKE(5, 6);

#endif
