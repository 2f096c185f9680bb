/*
 * reading.h: readers of the fields of our YAML files (pipelines, invariants). Each fault names the
 * file, the line, the field and the reason; one pass finds all of them.
 */
#ifndef IL_APPS_COMMON_READING_H
#define IL_APPS_COMMON_READING_H

#include <sys/stat.h>

#include "apps/common/yaml.h"
#include "core/cron.h"

/* limits per file for errors and advice; more would not help anyone */
#define READING_REMARKS_MAX 100
#define READING_FIELD_BYTES 160

struct reading_note {
    struct reading_note *next; /* in the order of lines */
    struct doc_remark    remark;
};

/* A file while it is parsed. */
struct reading {
    const char          *path;
    void               **mem;     /* arena: what is kept of the file */
    void                *scratch; /* arena: the tree, the remarks */
    struct reading_note *notes;
    size_t               n_errors, n_advice;
    bool                 no_memory;
    void                *own; /* of the caller */
};

/* A position in the tree: "" or "steps[2]", and the name below it. */
struct place {
    const char *at, *key;
};
#define PLACE(at_, key_) \
    (struct place)       \
    {                    \
        (at_), (key_)    \
    }

/* ---- files ----------------------------------------------------------------------------------- */

/* Does the name end in .yml or .yaml (and is it not hidden)? */
bool il__reading_is_yaml(const char *name);
/* Is it the id of a tenant, and so may be the name of its folder? */
bool il__reading_is_tenant(const char *name);
/* Read a file into `text`, which has room for n_max + 1 bytes; *ret_n > n_max: it is longer. False:
 * errno, EINVAL if it is not a regular file. */
bool il__reading_file(const char *path, char *text, size_t n_max, struct stat *ret_stat,
                      size_t *ret_n);
/* Parse the text of the file. NULL: a fault, which is reported, or no_memory. */
struct doc_node *il__reading_tree(struct reading *r, const char *text, size_t n_bytes,
                                  size_t n_max);
/* Pass the remarks to `remark` (may be NULL) in the order of lines; the first error also goes to
 * *reterr, as "PATH:LINE: field: reason". Then frees r->scratch. IL_OK, IL_INVAL, IL_NOMEM. */
il_status il__reading_end(struct reading *r, doc_remark_fn *remark, void *cookie, il_error *reterr)
    MUST_USE;

/* ---- fields ---------------------------------------------------------------------------------- */

void il__reading_fault(struct reading *r, size_t line, struct place where, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
void il__reading_advise(struct reading *r, size_t line, struct place where, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
/* Allocate memory in *r->mem, zeroed; NULL sets no_memory. */
void *il__reading_alloc(struct reading *r, size_t n, size_t size);
char *il__reading_strdup(struct reading *r, const char *text);

/* The member of a mapping, or NULL. */
const struct doc_node *il__doc_get(const struct doc_node *map, const char *key);
/* Every key must be one of `names` (NULL-terminated) or of `more` (may be NULL). False: `map` is
 * not a mapping, or a key is unknown; reported. */
bool il__reading_keys(struct reading *r, const struct doc_node *map, const char *at,
                      const char *const *names, const char *const *more);
/* " (did you mean 'x'?)" or "". */
const char *il__reading_hint(const char *word, const char *(*next)(const void *cookie, size_t i),
                             const void *cookie, char *out, size_t n_bytes);

/* The text of a node, which must be `what` ("a number"); NULL = it has none, which is reported. */
const char *il__reading_scalar(struct reading *r, const struct doc_node *node, struct place where,
                               const char *what);

/* Values, each by its key below `map`. An invalid value is reported; for an invalid or missing
 * one the fallback is returned. */
/* A text of at most n_max bytes without control characters (newlines are allowed if `lines`);
 * NULL = missing or invalid. */
const char *il__reading_text(struct reading *r, const struct doc_node *map, const char *at,
                             const char *key, size_t n_max, bool required);
int64_t     il__reading_number(struct reading *r, const struct doc_node *map, const char *at,
                               const char *key, int64_t min, int64_t max, int64_t fallback);
int64_t     il__reading_duration(struct reading *r, const struct doc_node *map, const char *at,
                                 const char *key, int64_t min_ms, int64_t max_ms, int64_t fallback);
bool        il__reading_bool(struct reading *r, const struct doc_node *map, const char *at,
                             const char *key, bool fallback);
/* The index of the choice, whose names are NULL-terminated; - and _ are equivalent. SIZE_MAX =
 * missing or invalid. */
size_t il__reading_choice(struct reading *r, const struct doc_node *map, const char *at,
                          const char *key, const char *const *names, bool required);
/* timeout_minutes or timeout; only one of them may be given. */
struct reading_timeout {
    int64_t minutes_max, min_ms, max_ms, fallback_ms;
};
int64_t il__reading_timeout(struct reading *r, const struct doc_node *map, const char *at,
                            const struct reading_timeout *t, bool *ret_given);
/* An id: ^[A-Za-z0-9_-]+$. */
const char *il__reading_id(struct reading *r, const struct doc_node *map, const char *key,
                           const char *at, size_t n_max);
/* A hook (proc/hook.h): a list of program and arguments. NULL = none, or reported. */
char *const *il__reading_hook(struct reading *r, const struct doc_node *map, const char *at,
                              const char *key);
/* A cron schedule, which may be NULL; a time zone. False: reported, or no_memory. */
bool il__reading_cron(struct reading *r, const char *text, size_t line, struct place where,
                      struct il__cron *ret);
bool il__reading_zone(struct reading *r, const char *name, size_t line, struct place where,
                      const struct il__zone **ret);

#endif
