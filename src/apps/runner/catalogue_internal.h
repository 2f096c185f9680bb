/*
 * catalogue_internal.h: between catalogue.c (snapshots, who finds what) and catalogue_read.c (the folder, files read by several threads).
 */
#ifndef IL_APPS_RUNNER_CATALOGUE_INTERNAL_H
#define IL_APPS_RUNNER_CATALOGUE_INTERNAL_H

#include <sys/stat.h>

#include "apps/runner/pipeline.h"

#define CATALOGUE_FILES_MAX 200000

/* A file, as one reading of the folder found it. */
struct catalogue_file {
    char            *path;
    char            *tenant;
    struct stat      stat;     /* size, times, inode */
    struct pipeline *pipeline; /* a reference; NULL = it is bad */
    bool             fresh;    /* read this time */
    bool             kept;     /* bad, and this is its last good version */
    bool             gone;     /* removed while the folder was read */
};

/* All files of a folder, by path. */
struct catalogue_files {
    struct catalogue_file *items;
    size_t                 n, capacity;
    size_t n_bad; /* also folders that are none of a tenant's, and files beside them */
};

struct catalogue_reading {
    const char *dir; /* what messages name; NULL with il__catalogue_read_paths() */
    const struct pipeline_defaults *defaults;
    pipeline_remark_fn             *remark; /* may be NULL; one call at a time */
    void                           *cookie;
    const struct catalogue_files *old; /* what is known: what has not changed is taken from there */
    bool                          all; /* read also what has not */
};

/* Read the folder. IL_OK also with bad files, which were told. */
il_status il__catalogue_read(const struct catalogue_reading *how, struct catalogue_files *ret,
                             il_error *reterr) MUST_USE;
/* Read what these paths name. */
il_status il__catalogue_read_paths(const struct catalogue_reading *how, const char *const *paths,
                                   size_t n_paths, struct catalogue_files *ret, il_error *reterr)
    MUST_USE;
void il__catalogue_files_release(struct catalogue_files *f);
/* Say something about a file or folder. */
void il__catalogue_tell(const struct catalogue_reading *how, const char *path, size_t line,
                        const char *field, bool is_error, const char *fmt, ...) PRINTF_LIKE(6, 7);

#endif
