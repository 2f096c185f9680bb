/*
 * pipeline_internal.h: shared by the files that parse a pipeline (runner.h lists them).
 * apps/common/yaml.c turns the text into a tree, and apps/common/reading.c has the readers of
 * single fields.
 */
#ifndef IL_APPS_RUNNER_PIPELINE_INTERNAL_H
#define IL_APPS_RUNNER_PIPELINE_INTERNAL_H

#include "apps/runner/pipeline.h"
#include "apps/common/reading.h"

/* What a pipeline file has while it is parsed: struct reading.own. */
struct pipeline_reading {
    struct pipeline                *p;
    const struct pipeline_defaults *defaults;
    bool                            in_probe; /* names known only within a step are refused here */
    bool     own_timeout, own_lock_retries;   /* set in the file; for the advice */
    int64_t  retry_delay_ms;                  /* default for steps that do not set it */
    uint32_t retry_attempts;
};

static inline struct pipeline_reading *
own(const struct reading *r)
{
    return r->own;
}

/* ---- pipeline_field.c ------------------------------------------------------------------------ */

/* A text with parameters, at a node; undeclared ones are reported. */
bool il__pipeline_read_template(struct reading *r, const struct doc_node *node, struct place where,
                                struct pipeline_text *ret);
/* The same for SQL. */
bool il__pipeline_read_sql(struct reading *r, const struct doc_node *node, struct place where,
                           struct pipeline_text *ret);

/* ---- pipeline_step.c, pipeline_action.c ------------------------------------------------------ */

void il__pipeline_read_steps(struct reading *r, const struct doc_node *root);
/* The keys that define a command or a request, in a step or a probe. */
extern const char *const il__pipeline_read_command_keys[], *const il__pipeline_read_http_keys[];
void il__pipeline_read_command(struct reading *r, const struct doc_node *map, const char *at,
                               struct pipeline_command *ret);
void il__pipeline_read_http(struct reading *r, const struct doc_node *map, const char *at,
                            struct pipeline_http *ret);
void il__pipeline_read_check(struct reading *r, const struct doc_node *map, const char *at,
                             struct pipeline_step *step);

/* ---- other files ----------------------------------------------------------------------------- */

/* expand.c: names set by the runner itself; NULL-terminated. */
const char *il__pipeline_known_name(size_t i);
/* pipeline_advice.c */
void il__pipeline_advise(struct reading *r, const struct doc_node *root);
/* graph.c: compute levels from needs. False: there is a cycle; it is written to `cycle` as "a →
 * b → a", *ret_step is its first step. */
bool il__pipeline_levels(struct pipeline *p, char *cycle, size_t n_bytes, size_t *ret_step);

#endif
