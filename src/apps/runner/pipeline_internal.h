/*
 * pipeline_internal.h: shared by the files that parse a pipeline. yaml.c turns the text into a
 * tree; pipeline_file.c reads the file as a whole, pipeline_step.c and pipeline_action.c its steps,
 * pipeline_field.c single fields; pipeline_check.c parses check steps, pipeline_advice.c suggests
 * improvements; graph.c orders the steps.
 */
#ifndef IL_APPS_RUNNER_PIPELINE_INTERNAL_H
#define IL_APPS_RUNNER_PIPELINE_INTERNAL_H

#include "apps/runner/pipeline.h"
#include "apps/common/yaml.h"

/* limits per file for errors and advice; more would not help anyone */
#define READING_REMARKS_MAX 100
#define READING_FIELD_BYTES 160

struct reading_remark {
    struct reading_remark *next; /* in the order of lines */
    struct pipeline_remark remark;
};

/* A file while it is parsed. */
struct reading {
    struct pipeline                *p;
    const struct pipeline_defaults *defaults;
    const char                     *path;
    void                           *scratch; /* arena: the tree, the remarks */
    struct reading_remark          *remarks;
    size_t                          n_errors, n_advice;
    bool                            no_memory;
    bool                            in_probe; /* names known only within a step are refused here */
    bool     own_timeout, own_lock_retries;   /* set in the file; for the advice */
    int64_t  retry_delay_ms;                  /* default for steps that do not set it */
    uint32_t retry_attempts;
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

/* ---- pipeline_field.c ------------------------------------------------------------------------ */

void il__reading_fault(struct reading *r, size_t line, struct place where, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
void il__reading_advise(struct reading *r, size_t line, struct place where, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
/* Allocate memory of the pipeline, zeroed; NULL sets no_memory. */
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
/* names[i] of a NULL-terminated array, for il__suggest(). */
const char *il__reading_name_at(const void *cookie, size_t i);

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

/* A text with parameters, at a node; undeclared ones are reported. */
bool il__reading_template(struct reading *r, const struct doc_node *node, struct place where,
                          struct pipeline_text *ret);
/* The same for SQL. */
bool il__reading_sql(struct reading *r, const struct doc_node *node, struct place where,
                     struct pipeline_text *ret);

/* ---- pipeline_step.c, pipeline_action.c ------------------------------------------------------ */

void il__reading_steps(struct reading *r, const struct doc_node *root);
/* The keys that define a command or a request, in a step or a probe. */
extern const char *const il__reading_command_keys[], *const il__reading_http_keys[];
void il__reading_command(struct reading *r, const struct doc_node *map, const char *at,
                         struct pipeline_command *ret);
void il__reading_http(struct reading *r, const struct doc_node *map, const char *at,
                      struct pipeline_http *ret);
void il__reading_check(struct reading *r, const struct doc_node *map, const char *at,
                       struct pipeline_step *step);

/* ---- other files ----------------------------------------------------------------------------- */

/* values.c: names set by the runner itself; NULL-terminated. */
const char *il__pipeline_known_name(size_t i);
/* pipeline_advice.c */
void il__pipeline_advise(struct reading *r, const struct doc_node *root);
/* graph.c: compute levels from needs. False: there is a cycle; it is written to `cycle` as "a →
 * b → a", *ret_step is its first step. */
bool il__pipeline_levels(struct pipeline *p, char *cycle, size_t n_bytes, size_t *ret_step);

#endif
